//! Finds flavors of a version with the same capabilities.

use std::collections::HashMap;

use super::images::{EntryFlavor, ImageVersions, VersionEntry};
use super::{Place, RepeatedFlavor};
use crate::api::gardener::CapabilityDefinition;
use crate::capabilities::mean_the_same;

/// An earlier flavor with its place.
struct Met<'a> {
    flavor: EntryFlavor<'a>,
    place: Place,
}

/// Pairs each repeated flavor with the first one that it repeats, in document order.
pub(super) fn repeated_flavors<'a, Version: VersionEntry>(
    images: &'a [ImageVersions<Version>],
    definitions: &[CapabilityDefinition],
) -> Vec<RepeatedFlavor<'a>> {
    let mut repeated = Vec::new();
    for (image, listed) in images.iter().enumerate() {
        let mut met: HashMap<&str, Vec<Met<'a>>> = HashMap::new();
        for (version, entry) in listed.versions.iter().enumerate() {
            let earlier = met.entry(entry.version()).or_default();
            for flavor in entry.flavors(None) {
                let place = Place { image, version, flavor: flavor.position };
                let same = earlier.iter().find(|earlier| {
                    mean_the_same(&earlier.flavor.capabilities, &flavor.capabilities, definitions)
                        && meet(&earlier.flavor, &flavor)
                });
                if let Some(same) = same {
                    let (image, version) = (listed.name.as_str(), entry.version());
                    repeated.push(RepeatedFlavor { image, version, first: same.place, second: place });
                }
                earlier.push(Met { flavor, place });
            }
        }
    }
    repeated
}

/// Whether a machine could select either of them, because they share a region or apply to all regions.
fn meet(one: &EntryFlavor<'_>, other: &EntryFlavor<'_>) -> bool {
    one.references.iter().any(|one| {
        other
            .references
            .iter()
            .any(|other| one.region.is_none() || other.region.is_none() || one.region == other.region)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use crate::api::gardener::CapabilityDefinition;
    use crate::provider::Providers;

    fn repeated(provider: &str, versions: &str) -> Vec<String> {
        let definitions: Vec<CapabilityDefinition> = serde_json::from_str(
            r#"[{"name":"architecture","values":["amd64","arm64"]},{"name":"hyper","values":["gen2","gen1"]}]"#,
        )
        .unwrap();
        let document = format!(
            r#"{{"apiVersion":"{provider}.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",
                "machineImages":[{{"name":"os","versions":{versions}}}]}}"#
        );
        let raw = RawValue::from_string(document).unwrap();
        let config = Providers::SHIPPED.profile_format(provider).unwrap().open(Some(&raw)).unwrap();
        config.repeated_flavors(&definitions).iter().map(|found| format!("{} {}", found.first, found.second)).collect()
    }

    #[test]
    fn flavors_repeat_each_other_by_what_they_mean() {
        let versions = r#"[{"version":"1","capabilityFlavors":[
                {"capabilities":{"architecture":["amd64"]},"id":"a"},
                {"capabilities":{"architecture":["amd64"],"hyper":["gen1","gen2"]},"id":"b"},
                {"capabilities":{"architecture":["amd64"],"hyper":["gen2"]},"id":"c"}]},
            {"version":"2","id":"d"},{"version":"2","architecture":"amd64","id":"e"}]"#;
        let first =
            "machineImages[0].versions[0].capabilityFlavors[0] machineImages[0].versions[0].capabilityFlavors[1]";
        assert_eq!(repeated("azure", versions), [first, "machineImages[0].versions[1] machineImages[0].versions[2]"]);
    }

    #[test]
    fn flavors_of_different_regions_never_meet() {
        let flavor = |region: &str| format!(r#"{{"capabilities":{{}},"regions":[{{"name":"{region}","ami":"a"}}]}}"#);
        let versions = |regions: [&str; 2]| {
            format!(r#"[{{"version":"1","capabilityFlavors":[{}]}}]"#, regions.map(flavor).join(","))
        };
        assert!(repeated("aws", &versions(["eu", "us"])).is_empty());
        assert_eq!(repeated("aws", &versions(["eu", "eu"])).len(), 1);
    }
}
