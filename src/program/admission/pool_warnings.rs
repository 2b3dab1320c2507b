//! Warns users about the effect of editing a CloudProfile or NamespacedCloudProfile on the garden's pools, without
//! denying it.
//!
//! The check reads only Shoots. Whether a pool keeps an image that its CloudProfile loses depends on the Worker's
//! status in a seed.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use super::subject::Subject;
use decisions::provider::Providers;
use explanations::preview::NamedProfiles;
use profiles::resolved_profile::diff::{Effect, effect};
use profiles::resolved_profile::equivalence::{Difference, compare};
use profiles::resolved_profile::{Profile, Resolution, merged};
use runtime::webhook::Verdict;
use wire::api::bounded_text::{escaped, shortened};
use wire::api::gardener::ProfileSpec;

/// Maximum number of lines; the rest are counted.
const MOST: usize = 10;
/// Maximum bytes of a name.
const NAME: usize = 63;

/// The parent CloudProfile of each NamespacedCloudProfile, by `namespace/name` of the latter.
#[derive(Debug, Default)]
pub(super) struct Parents(HashMap<String, String>);

impl Parents {
    pub(super) fn add(&mut self, namespaced: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &namespaced["metadata"];
        let name = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
        self.0.insert(name, text(&namespaced["spec"]["parent"]["name"]));
    }
}

/// The properties of a Shoot's pool that a CloudProfile affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsedPool {
    shoot: String,
    /// The referenced CloudProfile's name, or `namespace/name` of a NamespacedCloudProfile.
    profile: String,
    /// The parent, if the profile is a NamespacedCloudProfile.
    parent: Option<String>,
    region: String,
    machine_type: String,
    image: String,
    version: String,
}

impl UsedPool {
    /// The pools of a stored Shoot. With a NamespacedCloudProfile, its parent also affects them.
    pub(super) fn of_shoot(shoot: &Value, parents: &Parents) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &shoot["spec"];
        let metadata = &shoot["metadata"];
        let profile = NamedProfiles::name_for(shoot);
        let named = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
        let pools = spec["provider"]["workers"].as_array().into_iter().flatten();
        let of_pool = |pool: &Value| Self {
            shoot: named.clone(),
            profile: profile.clone(),
            parent: parents.0.get(&profile).cloned(),
            region: text(&spec["region"]),
            machine_type: text(&pool["machine"]["type"]),
            image: text(&pool["machine"]["image"]["name"]),
            version: text(&pool["machine"]["image"]["version"]),
        };
        pools.map(of_pool).collect()
    }

    /// Whether an edit of the named profile affects this pool.
    fn is_selectable_in(&self, profile: &str) -> bool {
        self.profile == profile || self.parent.as_deref() == Some(profile)
    }

    fn is_affected_by(&self, difference: &Difference) -> bool {
        let Difference { image, version, machine_types, regions, .. } = difference;
        (&self.image, &self.version) == (image, version)
            && machine_types.contains(&self.machine_type)
            && (regions.is_empty() || regions.contains(&self.region))
    }
}

/// A profile of which only the name is decoded.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    metadata: ObjectMeta,
}

/// Adds warnings about pools if the verdict allows the profile. `parent` is required for a NamespacedCloudProfile.
pub(super) fn warn_of_pools(
    mut verdict: Verdict,
    subject: Subject<'_>,
    parent: Option<&ProfileSpec>,
    pools: &[UsedPool],
    providers: Providers,
    now: Timestamp,
) -> Verdict {
    if let (Verdict::Allowed { warnings, .. }, Some(old)) = (&mut verdict, subject.old) {
        warnings.extend(pool_warnings(old, subject.object, parent, pools, providers, now).unwrap_or_default());
    }
    verdict
}

/// The effect on the pools; `None` if it cannot be determined.
fn pool_warnings(
    old: &str,
    new: &str,
    parent: Option<&ProfileSpec>,
    pools: &[UsedPool],
    providers: Providers,
    now: Timestamp,
) -> Option<Vec<String>> {
    let Named { metadata } = serde_json::from_str(new).ok()?;
    let name = metadata.name.unwrap_or_default();
    let name = metadata.namespace.map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
    let own: Vec<&UsedPool> = pools.iter().filter(|pool| pool.is_selectable_in(&name)).collect();
    if own.is_empty() {
        return None;
    }
    let read = |text: &str| {
        let document: Value = serde_json::from_str(text).ok()?;
        let document = match parent {
            Some(parent) => merged(&document, &json!({"spec": parent}), providers).ok()?,
            None => document,
        };
        Profile::read(document, providers).ok()
    };
    let old = read(old)?;
    let new = read(new)?;
    let [before, after] = [&old, &new].map(|profile| profile.resolved_profile(now));
    let differences = compare(&Resolution::of(&before), &Resolution::of(&after)).differences;
    let warnings = differences.iter().filter_map(|difference| warning(difference, &own));
    let mut warnings: Vec<String> = warnings.collect();
    if let Some(more) = warnings.len().checked_sub(MOST).filter(|more| *more > 0) {
        warnings.truncate(MOST - 1);
        warnings.push(format!("{} further image versions that pools use differ", more + 1));
    }
    Some(warnings)
}

fn warning(difference: &Difference, pools: &[&UsedPool]) -> Option<String> {
    let effect = effect(&difference.before, &difference.after).filter(|effect| effect.takes_something())?;
    let used: Vec<&&UsedPool> = pools.iter().filter(|pool| pool.is_affected_by(difference)).collect();
    let shoots: BTreeSet<&str> = used.iter().map(|pool| pool.shoot.as_str()).collect();
    let first = shoots.first()?;
    let [image, version, first] =
        [&difference.image, &difference.version, *first].map(|name| shortened(&escaped(name), NAME));
    let [of_pools, of_shoots] = [(used.len(), "pool"), (shoots.len(), "Shoot")]
        .map(|(number, noun)| format!("{number} {noun}{}", if number == 1 { "" } else { "s" }));
    let who = format!("{of_pools} of {of_shoots}, such as {first},");
    Some(match effect {
        Effect::Vanishes => format!("{image} {version} is lost to {who} unless their Workers have recorded it"),
        Effect::AnotherImage => {
            format!("{image} {version}: new nodes of {who} start from another image than those there are")
        }
        Effect::OtherMachine | Effect::Appears | Effect::AppearsForExisting => {
            format!("{image} {version}: new nodes of {who} differ from those there are")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with this number of versions, each with the image `urn`.
    fn profile(versions: usize, urn: &str) -> String {
        let names = (0..versions).map(|number| format!("1.{number}.0"));
        let listed: Vec<Value> =
            names.clone().map(|name| json!({"version": name, "architectures": ["amd64"]})).collect();
        let images: Vec<Value> = names.map(|name| json!({"version": name, "urn": urn})).collect();
        let config = json!({
            "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "os", "versions": images}],
        });
        json!({
            "metadata": {"name": "p"},
            "spec": {
                "type": "azure", "regions": [{"name": "here"}], "providerConfig": config,
                "machineTypes": [{"name": "m", "cpu": "2", "gpu": "0", "memory": "8Gi", "architecture": "amd64"}],
                "machineImages": [{"name": "os", "versions": listed}],
            },
        })
        .to_string()
    }

    fn pools(count: usize, profile: &str) -> Vec<UsedPool> {
        pools_by(count, &json!({"kind": "CloudProfile", "name": profile}), &Parents::default())
    }

    fn pools_by(count: usize, reference: &Value, parents: &Parents) -> Vec<UsedPool> {
        let pool = |number: usize| json!({"name": format!("w{number}"), "machine": {"type": "m", "image": {"name": "os", "version": format!("1.{number}.0")}}});
        let workers: Vec<Value> = (0..count).map(pool).collect();
        let shoot = json!({
            "metadata": {"name": "s\u{1b}[2J", "namespace": "garden-p"},
            "spec": {"cloudProfile": reference, "region": "here", "provider": {"workers": workers}},
        });
        UsedPool::of_shoot(&shoot, parents)
    }

    fn warnings_of(old: &str, new: &str, pools: &[UsedPool]) -> Vec<String> {
        let now = "2026-10-01T00:00:00Z".parse().unwrap();
        pool_warnings(old, new, None, pools, Providers::SHIPPED, now).unwrap_or_default()
    }

    #[test]
    fn warns_of_the_pools_that_an_edit_affects() {
        let old = profile(2, "a:b:c:1");
        let none = [""; 0];
        let shoot = "garden-p/s\\u{1b}[2J";
        assert_eq!(
            warnings_of(&old, &profile(2, "a:b:c:2"), &pools(1, "p")),
            [format!(
                "os 1.0.0: new nodes of 1 pool of 1 Shoot, such as {shoot}, start from another image than those there are"
            )]
        );
        let lost = warnings_of(&old, &profile(1, "a:b:c:1"), &pools(2, "p"));
        assert_eq!(
            lost,
            [format!("os 1.1.0 is lost to 1 pool of 1 Shoot, such as {shoot}, unless their Workers have recorded it")]
        );
        assert_eq!(warnings_of(&old, &profile(3, "a:b:c:1"), &pools(3, "p")), none);
        assert_eq!(warnings_of(&old, &profile(2, "a:b:c:2"), &pools(1, "another")), none);
    }

    #[test]
    fn pools_of_a_namespaced_profile_are_reached_by_an_edit_of_its_parent() {
        let mut parents = Parents::default();
        for (namespace, parent) in [("garden-p", "p"), ("garden-another", "another")] {
            parents.add(
                &json!({"metadata": {"namespace": namespace, "name": "own"}, "spec": {"parent": {"name": parent}}}),
            );
        }
        let warnings = |name: &str| {
            let pools = pools_by(1, &json!({"kind": "NamespacedCloudProfile", "name": name}), &parents);
            warnings_of(&profile(2, "a:b:c:1"), &profile(2, "a:b:c:2"), &pools).len()
        };
        assert_eq!((warnings("own"), warnings("gone")), (1, 0));
    }

    #[test]
    fn namespaced_profile_warns_of_pools_in_its_project() {
        let parent: Value = serde_json::from_str(&profile(1, "a:b:c:1")).unwrap();
        let parent: ProfileSpec = serde_json::from_value(parent["spec"].clone()).unwrap();
        let own = |versions: &[&str]| {
            let listed: Vec<Value> = versions.iter().map(|name| json!({"version": name})).collect();
            let images: Vec<Value> = versions.iter().map(|name| json!({"version": name, "urn": "a:b:c:9"})).collect();
            let config = json!({
                "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
                "machineImages": [{"name": "os", "versions": images}],
            });
            let images = json!([{"name": "os", "versions": listed}]);
            let spec = json!({"parent": {"name": "p"}, "machineImages": images, "providerConfig": config});
            json!({"metadata": {"name": "own", "namespace": "garden-p"}, "spec": spec}).to_string()
        };
        let warnings = |profile: &str| {
            let pools = pools_by(2, &json!({"kind": "NamespacedCloudProfile", "name": profile}), &Parents::default());
            let now = "2026-10-01T00:00:00Z".parse().unwrap();
            let old = own(&["1.1.0"]);
            let new = own(&[]);
            pool_warnings(&old, &new, Some(&parent), &pools, Providers::SHIPPED, now).unwrap_or_default()
        };
        let shoot = "garden-p/s\\u{1b}[2J";
        assert_eq!(
            warnings("own"),
            [format!("os 1.1.0 is lost to 1 pool of 1 Shoot, such as {shoot}, unless their Workers have recorded it")]
        );
        assert_eq!(warnings("another"), [""; 0]);
    }

    #[test]
    fn many_versions_take_at_most_ten_lines() {
        let warnings = warnings_of(&profile(30, "a:b:c:1"), &profile(30, "a:b:c:2"), &pools(30, "p"));
        assert_eq!((warnings.len(), warnings[9].as_str()), (10, "21 further image versions that pools use differ"));
    }
}
