//! The effects of a change according to `preview`, in the words of the cases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gardener_extension_worker::preview::{
    Baseline, ChangedObject, CloudProfiles, FindingKind, Inputs, PlacementChange, Severity, ShootSource, Verdict,
    WorkerChange, compare,
};
use gardener_extension_worker::worker::machines::machine_objects::MachineObjects;
use serde_json::{Value, json};

use super::corpus::garden;

/// A pool that the controller would not deploy, whatever gardenlet requests.
const INVALID: &str = "invalid";

/// The effect on every pool, from two Shoots and their CloudProfiles.
pub(crate) fn effects(
    shoots: [&Value; 2],
    profiles: [&Value; 2],
    is_zoned: bool,
) -> Result<BTreeMap<String, String>, String> {
    let change = change(shoots, profiles, is_zoned)?;
    named_by_a_person(&change)?;
    saved_for_any_unrecorded_state(&change, shoots, profiles, is_zoned)?;
    let pools: BTreeSet<&str> = change.placements.iter().map(|placement| placement.pool.as_str()).collect();
    let mut effects: BTreeMap<String, String> =
        pools.into_iter().map(|pool| (pool.to_owned(), effect(&change, pool).to_owned())).collect();
    for finding in change.findings.iter().filter(|finding| finding.severity == Severity::Error) {
        match &finding.pool {
            Some(pool) if finding.kind == FindingKind::CannotBePlanned => {
                effects.insert(pool.clone(), INVALID.to_owned());
            }
            _ => return Err(format!("{finding:?}")),
        }
    }
    Ok(effects)
}

fn change(shoots: [&Value; 2], profiles: [&Value; 2], is_zoned: bool) -> Result<WorkerChange, String> {
    let known = CloudProfiles::default();
    let source = Arc::new(ShootSource::new(garden(&Value::Null).now));
    let inputs = |index: usize| -> Result<Inputs, String> {
        let profile = known.share(with_images(profiles[index])).map_err(|error| error.to_string())?;
        let mut shoot = shoots[index].clone();
        shoot["spec"]["provider"]["infrastructureConfig"]["zoned"] = is_zoned.into();
        Ok(Inputs::of_shoot(shoot, profile, Arc::clone(&source), known.providers()))
    };
    let (old, new) = (inputs(0)?, inputs(1)?);
    Ok(compare(Some(&old), Some(&new), &MachineObjects::default(), Baseline::Rendered, &known))
}

/// The inputs saved for a roll are those that the controller finds. This holds although a Shoot as written records no
/// credentials rotation, on which all class names depend.
fn saved_for_any_unrecorded_state(
    change: &WorkerChange,
    shoots: [&Value; 2],
    profiles: [&Value; 2],
    is_zoned: bool,
) -> Result<(), String> {
    let rolls = change.placements.iter().any(|placement| placement.verdict.is_roll());
    if !rolls || shoots[0]["status"] != shoots[1]["status"] {
        return Ok(());
    }
    let rotated = shoots.map(|shoot| {
        let mut shoot = shoot.clone();
        let times = json!({"lastInitiationTime": "2026-05-04T03:02:01Z"});
        shoot["status"]["credentials"]["rotation"]["serviceAccountKey"] = times;
        shoot
    });
    let there = self::change([&rotated[0], &rotated[1]], profiles, is_zoned)?;
    for (saved, found) in change.placements.iter().zip(&there.placements) {
        if saved.verdict.is_roll() && (saved.changed_inputs.is_none() || saved.changed_inputs != found.changed_inputs) {
            return Err(format!(
                "pool {}: saved {:?}, there {:?}",
                saved.pool, saved.changed_inputs, found.changed_inputs
            ));
        }
    }
    Ok(())
}

/// Every roll has a cause, and a user can edit every cause.
fn named_by_a_person(change: &WorkerChange) -> Result<(), String> {
    for placement in change.placements.iter().filter(|placement| placement.verdict.is_roll()) {
        let is_edited = |object: &ChangedObject| matches!(object, ChangedObject::Shoot | ChangedObject::CloudProfile);
        if placement.causes.is_empty() || !placement.causes.iter().all(|cause| is_edited(&cause.change.object)) {
            return Err(format!("causes of pool {}: {:?}", placement.pool, placement.causes));
        }
    }
    Ok(())
}

fn effect(change: &WorkerChange, pool: &str) -> &'static str {
    let of_pool: Vec<&PlacementChange> = change.placements.iter().filter(|placement| placement.pool == pool).collect();
    let all = |verdict: Verdict| of_pool.iter().all(|placement| placement.verdict == verdict);
    let any = |verdict: Verdict| of_pool.iter().any(|placement| placement.verdict == verdict);
    match () {
        () if all(Verdict::Create) => "added",
        () if all(Verdict::Delete) => "removed",
        () if any(Verdict::InPlace) => "in-place",
        () if any(Verdict::Roll) => "roll",
        () if all(Verdict::None) => "none",
        () => "settings",
    }
}

/// Whether the infrastructure of a Shoot has zones. The infrastructure in the cases does not specify it.
pub(crate) fn has_zones(shoot: &Value) -> bool {
    let pools = shoot["spec"]["provider"]["workers"].as_array().into_iter().flatten();
    pools.into_iter().any(|pool| pool.get("zones").is_some())
}

/// The documents of a pair that decide in addition to the measured effect.
pub(crate) struct Pair<'a> {
    /// The old and the new stored Shoot.
    pub(crate) shoots: [&'a Value; 2],
    /// The CloudProfile after the change.
    pub(crate) profile: &'a Value,
    /// `spec` of the Worker before and after the change.
    pub(crate) workers: [&'a Value; 2],
}

impl Pair<'_> {
    /// The effect on a pool in a case, including what its provider hashes. Returns `got` where `preview` considers more
    /// than was measured. Another region or hibernation changes objects. Only some members of a provider config matter.
    /// The effect of another strategy depends on machine-controller-manager. A pool can't be deployed without a known
    /// machine type, a volume, or the zones that it requires, or with a provider config of another cloud.
    pub(crate) fn expected(&self, name: &str, pool: &Value, got: Option<&String>) -> Value {
        let effect = pool["effect"].as_str().unwrap_or_default();
        let is_one_of = |words: &[&str]| got.is_some_and(|got| words.contains(&got.as_str()));
        let differs = |path: &str| self.shoots[0].pointer(path) != self.shoots[1].pointer(path);
        let hashed = |member: &str| self.hashed(name, member);
        let effect = match effect {
            "settings" if hashed("dataVolumes") || hashed("volume") => self.of_another_class(name),
            effect => effect,
        };
        let agrees = match effect {
            _ if is_one_of(&[INVALID]) => self.is_incomplete(name),
            "settings" if self.is_other_config(name, pool) => {
                is_one_of(&["none", "settings", self.of_another_class(name)])
            }
            // A member that only affects nodes changes no object.
            "settings" => is_one_of(&["none", "settings"]),
            "none" if differs("/spec/region") || differs("/spec/hibernation") => is_one_of(&["none", "settings"]),
            "strategy-switch" => is_one_of(&["roll", "in-place"]),
            _ => false,
        };
        if agrees { json!(got) } else { json!(effect) }
    }

    /// Whether the provider hashes a difference in a member. Azure's own hash is part of the measurements.
    fn hashed(&self, name: &str, member: &str) -> bool {
        let is_in_place = self.of_another_class(name) == "in-place";
        let [old, new] = self.workers.map(|worker| {
            let pool = pool(worker, name);
            let volumes = pool[member].as_array().cloned().unwrap_or_default();
            let of_volumes = |members: [&'static str; 3]| {
                volumes.iter().map(move |volume| members.map(|member| volume[member].clone()))
            };
            match (self.profile["spec"]["type"].as_str(), member) {
                (Some("aws"), "volume") => pool["volume"]["encrypted"].clone(),
                (Some("aws"), "dataVolumes") if !is_in_place => {
                    json!(Vec::from_iter(of_volumes(["size", "type", "encrypted"])))
                }
                (Some("gcp"), "dataVolumes") if !is_in_place => {
                    let mut volumes = Vec::from_iter(of_volumes(["name", "size", "type"]));
                    volumes.sort_by_key(|[name, ..]| name.to_string());
                    json!(volumes)
                }
                _ => Value::Null,
            }
        });
        old != new
    }

    /// The test `parity` checks which members of a provider config are hashed, with measured Workers.
    fn is_other_config(&self, name: &str, case: &Value) -> bool {
        let [old, new] = self.workers.map(|worker| &pool(worker, name)["providerConfig"]);
        case.get("providerDecides").is_some() && self.profile["spec"]["type"] != "azure" && old != new
    }

    fn of_another_class(&self, name: &str) -> &'static str {
        let strategy = &pool(self.workers[1], name)["updateStrategy"];
        if ["AutoInPlaceUpdate", "ManualInPlaceUpdate"].iter().any(|known| strategy == known) {
            "in-place"
        } else {
            "roll"
        }
    }

    fn is_incomplete(&self, name: &str) -> bool {
        let pools = self.workers[1]["pools"].as_array().into_iter().flatten();
        let types = self.profile["spec"]["machineTypes"].as_array().into_iter().flatten();
        let known: BTreeSet<_> = types.map(|known| known["name"].to_string()).collect();
        let mut own = pools.filter(|pool| pool["name"] == name);
        let is_zoned = has_zones(self.shoots[0]);
        let has_no_zones =
            |pool: &Value| self.profile["spec"]["type"] == "azure" && pool.get("zones").is_some() && !is_zoned;
        own.any(|pool| {
            let is_of_another_cloud =
                self.profile["spec"]["type"] == "openstack" && pool["providerConfig"].get("volume").is_some();
            is_of_another_cloud
                || has_no_zones(pool)
                || !known.contains(&pool["machineType"].to_string())
                || pool.get("volume").is_none()
        })
    }
}

fn pool<'a>(worker: &'a Value, name: &str) -> &'a Value {
    let mut pools = worker["pools"].as_array().into_iter().flatten();
    pools.find(|pool| pool["name"] == name).unwrap_or(&Value::Null)
}

/// Adds an image at the cloud for every version, because the cases contain none.
fn with_images(profile: &Value) -> Value {
    let mut profile = profile.clone();
    let provider = profile["spec"]["type"].as_str().unwrap_or_default().to_owned();
    let has_capabilities = profile["spec"].get("machineCapabilities").is_some();
    let images = profile["spec"]["machineImages"].as_array().into_iter().flatten().map(|image| {
        let versions = image["versions"].as_array().into_iter().flatten().flat_map(|version| {
            let flavors = match version["capabilityFlavors"].as_array() {
                Some(flavors) if has_capabilities => flavors.clone(),
                _ => version["architectures"].as_array().cloned().unwrap_or_else(|| vec![json!("amd64")]),
            };
            let name = version["version"].clone();
            if has_capabilities {
                let flavors = flavors.into_iter().map(|flavor| json!({"capabilities": flavor, "urn": "a:b:c:d"}));
                return vec![json!({"version": name, "capabilityFlavors": flavors.collect::<Vec<_>>()})];
            }
            let entries = flavors.into_iter().map(|architecture| entry(&provider, &name, &architecture));
            entries.collect::<Vec<_>>()
        });
        json!({"name": image["name"], "versions": versions.collect::<Vec<_>>()})
    });
    let images = images.collect::<Vec<_>>();
    profile["spec"]["providerConfig"] = json!({
        "apiVersion": format!("{provider}.provider.extensions.gardener.cloud/v1alpha1"),
        "kind": "CloudProfileConfig", "machineImages": images,
    });
    if provider == "openstack" {
        profile["spec"]["providerConfig"]["keystoneURL"] = json!("https://identity.example.org");
    }
    if provider == "azure" {
        profile["spec"]["providerConfig"]["countFaultDomains"] = json!([{"region": "francesouth", "count": 2}]);
    }
    profile
}

fn entry(provider: &str, version: &Value, architecture: &Value) -> Value {
    let mut entry = json!({"version": version, "architecture": architecture});
    match provider {
        "aws" => {
            let regions = ["eu-central-1", "eu-west-1", "us-east-1"]
                .map(|region| json!({"name": region, "ami": "ami-1", "architecture": architecture}));
            return json!({"version": version, "regions": regions});
        }
        "openstack" => {
            let regions = [json!({"name": "eu-de-1", "id": "i", "architecture": architecture})];
            return json!({"version": version, "image": "i", "regions": regions});
        }
        "gcp" => entry["image"] = json!("projects/p/global/images/i"),
        _ => entry["urn"] = json!("a:b:c:d"),
    }
    entry
}
