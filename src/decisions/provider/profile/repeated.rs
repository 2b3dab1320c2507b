//! Finds flavors of a version with the same capabilities.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::images::{EntryFlavor, ImageVersions, VersionEntry};
use super::{ListedReference, Location, RepeatedFlavor};
use wire::api::gardener::CapabilityDefinition;
use wire::capabilities::{Meaning, Meanings};

/// Positions of the entry of a version and of the flavor in it.
type Order = (usize, usize);

/// The first flavors of a version with the same meaning, to find later ones that repeat them.
#[derive(Default)]
struct Met<'a> {
    /// The first that has images anywhere.
    first: Option<(Order, Location)>,
    /// The first with an image for all regions.
    everywhere: Option<(Order, Location)>,
    /// The first with an image in a region.
    by_region: HashMap<&'a str, (Order, Location)>,
}

impl<'a> Met<'a> {
    /// The first flavor that is ambiguous with this one for some machine: both have images in the same region, or
    /// everywhere.
    fn first_beside(&self, flavor: &EntryFlavor<'_>) -> Option<Location> {
        let beside = |region: Option<&str>| match region {
            None => self.first,
            Some(region) => {
                self.everywhere.into_iter().chain(self.by_region.get(region).copied()).min_by_key(|met| met.0)
            }
        };
        let met = flavor.references.iter().filter_map(|reference| beside(reference.region));
        met.min_by_key(|met| met.0).map(|(_, location)| location)
    }

    fn add(&mut self, order: Order, location: Location, references: &[ListedReference<'a>]) {
        for reference in references {
            self.first.get_or_insert((order, location));
            match reference.region {
                None => {
                    self.everywhere.get_or_insert((order, location));
                }
                Some(region) => {
                    self.by_region.entry(region).or_insert((order, location));
                }
            }
        }
    }
}

/// Pairs each repeated flavor with the first one that it repeats, in document order.
pub(super) fn repeated_flavors<'a, Version: VersionEntry>(
    images: &'a [ImageVersions<Version>],
    definitions: &[CapabilityDefinition],
) -> Vec<RepeatedFlavor<'a>> {
    let meanings = Meanings::new(definitions);
    let mut repeated = Vec::new();
    for (image, listed) in images.iter().enumerate() {
        let mut met: HashMap<&str, BTreeMap<OwnedMeaning, Met<'a>>> = HashMap::new();
        for (version, entry) in listed.versions.iter().enumerate() {
            let earlier = met.entry(entry.version()).or_default();
            for (number, flavor) in entry.flavors(None).into_iter().enumerate() {
                let location = Location { image, version, flavor: flavor.position };
                let same = earlier.entry(owned(&meanings.of(&flavor.capabilities))).or_default();
                if let Some(first) = same.first_beside(&flavor) {
                    let image = listed.name.as_str();
                    let version = entry.version();
                    repeated.push(RepeatedFlavor { image, version, first, second: location });
                }
                same.add((version, number), location, &flavor.references);
            }
        }
    }
    repeated
}

/// A [`Meaning`](wire::capabilities::Meaning) that is kept.
type OwnedMeaning = BTreeMap<String, BTreeSet<String>>;

fn owned(meaning: &Meaning<'_>) -> OwnedMeaning {
    let values = |values: &BTreeSet<&str>| values.iter().map(|value| (*value).to_owned()).collect();
    meaning.iter().map(|(name, of)| ((*name).to_owned(), values(of))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use crate::provider::Providers;
    use wire::api::gardener::CapabilityDefinition;

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
    fn compares_flavors_by_meaning() {
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
