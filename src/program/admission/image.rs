//! Checks when a Shoot is written whether its machines will find an image. Otherwise only the Worker would report it
//! later.
//!
//! Gardener compares machine types with images by the generic part of a profile. It detects neither ambiguous flavors
//! nor regions without an image, and its denials do not suggest alternatives.

use jiff::Timestamp;

use super::garden::ProfileError;
use super::profile_reference::ProfileReference;
use super::refusal::verdict;
use decisions::provider::Providers;
use decisions::provider::profile::{ListedFlavor, ProfileConfig, ProfileFormat};
use profiles::versions::selectable::selectable;
use runtime::webhook::Verdict;
use wire::api::gardener::{
    Capabilities, CapabilityDefinition, MachineImage, ProfileMachineType, ProfileSpec, ShootPool, ShootPools,
};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{NoFlavor, architecture_of_machine_type, best_flavor};

/// Maximum number of versions checked as alternatives, and of versions suggested.
const MAX_CHECKED_VERSIONS: usize = 50;
const NAMED: usize = 5;

/// The parts of a Shoot that remain to be compared with its profile.
#[derive(Debug)]
pub(crate) struct PendingComparison {
    /// Errors in the pools themselves.
    pub(super) errors: FieldErrors,
    /// Errors that existed before, so they do not block the edit.
    pub(super) warnings: Vec<String>,
    pub(super) pools: ShootPools,
    /// Indexes of pools whose machines need another image than before.
    pub(super) positions: Vec<usize>,
    /// Indexes of pools with a new provider config, if the CloudProfile restricts its values.
    pub(super) configured: Vec<usize>,
    pub(super) region: String,
    pub(super) profile: ProfileReference,
}

impl PendingComparison {
    /// The warning if the profile cannot be read. A Shoot that only changes versions gets none.
    pub(super) fn not_compared(&self, error: &ProfileError) -> Option<String> {
        let what = match (self.positions.is_empty(), self.configured.is_empty()) {
            (true, true) => return None,
            (false, true) => "images of the pools were not compared with machine types",
            (true, false) => "provider configs of the pools were not compared with the CloudProfile",
            (false, false) => "images and provider configs of the pools were not compared with the CloudProfile",
        };
        Some(format!("{what}: {error}"))
    }
}

/// Indexes of pools whose machines need another image than before.
pub(super) fn pools_to_compare(pools: &ShootPools, old: Option<&ShootPools>) -> Vec<usize> {
    let names_all = |pool: &ShootPool| {
        let image = pool.machine.image.as_ref();
        image.is_some_and(|image| !image.name.is_empty() && !image.version.is_empty())
            && !pool.machine.machine_type.is_empty()
    };
    positions(pools, old, |pool, before| names_all(pool) && before.is_none_or(|before| before.machine != pool.machine))
}

/// Indexes of pools with a new provider config.
pub(super) fn pools_configured(pools: &ShootPools, old: Option<&ShootPools>) -> Vec<usize> {
    let config = |pool: &ShootPool| pool.provider_config.as_ref().map(|config| config.get().to_owned());
    positions(pools, old, |pool, before| pool.provider_config.is_some() && before.and_then(config) != config(pool))
}

fn positions(
    pools: &ShootPools,
    old: Option<&ShootPools>,
    counts: impl Fn(&ShootPool, Option<&ShootPool>) -> bool,
) -> Vec<usize> {
    let before = |pool: &ShootPool| old?.workers.iter().find(|before| before.name == pool.name);
    let pools = pools.workers.iter().enumerate().filter(|(_, pool)| counts(pool, before(pool)));
    pools.map(|(position, _)| position).collect()
}

/// Compares pools with the profile of their Shoot and adds the errors to the earlier ones. `what` is the Shoot.
pub(crate) fn compare(
    left: PendingComparison,
    profile: &ProfileSpec,
    what: &str,
    providers: Providers,
    now: Timestamp,
) -> Verdict {
    let PendingComparison { mut errors, mut warnings, pools, positions, configured, region, profile: _ } = left;
    let format = providers.profile_format(&profile.provider_type);
    // Invalid profiles are denied by their own review and must not block a Shoot.
    let config = format.and_then(|format| format.open(profile.provider_config.as_deref()).ok());
    if let (Some(format), Some(config)) = (format, config) {
        let definitions = format.definitions(&profile.machine_capabilities);
        let resolved_profile =
            ResolvedProfile { profile, format, config: &*config, definitions: &definitions, region: &region, now };
        let path = FieldPath::new("spec.provider.workers");
        for (position, pool) in
            configured.into_iter().filter_map(|position| Some((position, pools.workers.get(position)?)))
        {
            resolved_profile.config.validate_pool(pool, path.index(position), &mut errors);
        }
        for position in positions {
            let Some(pool) = pools.workers.get(position) else { continue };
            resolved_profile.compare(pool, path.index(position), &mut errors, &mut warnings);
        }
    }
    verdict(what, &errors, warnings)
}

/// The images of a profile in a region, with the provider that decodes them.
struct ResolvedProfile<'a> {
    profile: &'a ProfileSpec,
    format: &'a dyn ProfileFormat,
    config: &'a dyn ProfileConfig,
    definitions: &'a [CapabilityDefinition],
    region: &'a str,
    now: Timestamp,
}

impl ResolvedProfile<'_> {
    fn compare(&self, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors, warnings: &mut Vec<String>) {
        let machine_types = &mut self.profile.machine_types.iter();
        // Gardener itself denies machine types and versions that the generic part does not list.
        let Some(machine_type) = machine_types.find(|known| known.name == pool.machine.machine_type) else { return };
        let Some(image) = &pool.machine.image else { return };
        let encrypted = pool.volume.as_ref().and_then(|volume| volume.encrypted).unwrap_or_default();
        if self.format.bypasses_profile(encrypted).is_some() {
            return;
        }
        let machine = self.machine(machine_type, pool);
        let declared = &self.profile.machine_capabilities;
        let flavors = self.config.flavors([&image.name, &image.version], Some(self.region), declared);
        let machine_path = path.child("machine");
        let image_path = machine_path.child("image");
        let version_path = image_path.child("version");
        let refused = |problem: String, errors: &mut FieldErrors| {
            let detail = format!("{problem}. {}", self.suggest_versions(image, &machine, &machine_type.name));
            errors.invalid(version_path, &image.version, detail);
        };
        let name = &image.name;
        let version = &image.version;
        if flavors.is_empty() {
            let elsewhere = self.config.flavors([name, version], None, declared);
            if elsewhere.is_empty() {
                // Workers may still have it in their status.
                warnings.push(format!(
                    "{version_path}: the providerConfig of the profile has no image for {name}@{version}"
                ));
            } else {
                let regions = regions(&elsewhere);
                let problem = format!("{name}@{version} has no image in region {:?}, only in {regions}", self.region);
                refused(problem, errors);
            }
            return;
        }
        match best_flavor(&machine, self.definitions, &flavors, |flavor| &*flavor.capabilities) {
            Ok(_) => {}
            Err(NoFlavor::NoneCompatible { mismatches }) => {
                let each: Vec<String> = flavors
                    .iter()
                    .zip(&mismatches)
                    .map(|(flavor, mismatch)| format!("spec.providerConfig.{}: {mismatch}", flavor.location))
                    .collect();
                let problem = format!(
                    "no image of {name}@{version} fits machine type {}: {}",
                    machine_type.name,
                    each.join("; ")
                );
                refused(problem, errors);
            }
            Err(NoFlavor::Ambiguous { tied }) => {
                let locations = tied.iter().filter_map(|position| flavors.get(*position));
                let locations: Vec<String> =
                    locations.map(|flavor| format!("spec.providerConfig.{}", flavor.location)).collect();
                let problem = format!(
                    "nothing tells the images of {name}@{version} apart for machine type {}: {} of the profile list the \
                     same capabilities",
                    machine_type.name,
                    locations.join(" and ")
                );
                refused(problem, errors);
            }
        }
    }

    fn machine(&self, machine_type: &ProfileMachineType, pool: &ShootPool) -> Capabilities {
        let of_type = || architecture_of_machine_type(machine_type, self.definitions);
        let architecture = pool.machine.architecture.as_deref().or_else(of_type).unwrap_or_default();
        self.format.machine_capabilities(Some(&machine_type.capabilities), architecture, self.definitions)
    }

    /// Other selectable versions with a matching image, best first.
    fn suggest_versions(&self, image: &MachineImage, machine: &Capabilities, machine_type: &str) -> String {
        let versions = self.profile.machine_images.iter().filter(|known| known.name == image.name);
        let versions = versions.flat_map(|known| selectable(&known.versions, self.now)).take(MAX_CHECKED_VERSIONS);
        let declared = &self.profile.machine_capabilities;
        let fits = |version: &str| {
            let flavors = self.config.flavors([&image.name, version], Some(self.region), declared);
            best_flavor(machine, self.definitions, &flavors, |flavor| &*flavor.capabilities).is_ok()
        };
        let fitting = versions.filter(|(known, _)| known.version != image.version && fits(&known.version)).take(NAMED);
        let fitting: Vec<String> = fitting
            .map(|(known, classification)| match classification.word() {
                "" => known.version.clone(),
                word => format!("{} ({word})", known.version),
            })
            .collect();
        match fitting[..] {
            [] => format!("No other checked version of {} fits: choose another image or machine type", image.name),
            _ => format!("Versions of {} that fit {machine_type}: {}", image.name, fitting.join(", ")),
        }
    }
}

fn regions(flavors: &[ListedFlavor<'_>]) -> String {
    let named = flavors.iter().flat_map(|flavor| &flavor.references).filter_map(|reference| reference.region);
    let mut regions: Vec<&str> = named.collect();
    regions.sort_unstable();
    regions.dedup();
    let more = regions.len().saturating_sub(NAMED);
    regions.truncate(NAMED);
    if more > 0 { format!("{} and {more} more", regions.join(", ")) } else { regions.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn profile() -> Value {
        let flavor =
            |hyper: &str, id: &str| json!({"capabilities": {"architecture": ["amd64"], "hyper": [hyper]}, "id": id});
        json!({
            "type": "azure",
            "machineCapabilities": [{"name": "architecture", "values": ["amd64"]}, {"name": "hyper", "values": ["gen2", "gen1"]}],
            "machineTypes": [{"name": "old", "capabilities": {"hyper": ["gen1"]}}, {"name": "any"}],
            "machineImages": [{"name": "os", "versions": [{"version": "1"}, {"version": "2"}, {"version": "3"},
                {"version": "4", "classification": "preview"}, {"version": "5", "expirationDate": "2001-01-01T00:00:00Z"}]}],
            "providerConfig": {"apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
                "machineImages": [{"name": "os", "versions": [
                    {"version": "1", "capabilityFlavors": [flavor("gen1", "a")]},
                    {"version": "2", "capabilityFlavors": [flavor("gen2", "b")]},
                    {"version": "3", "capabilityFlavors": [flavor("gen2", "c"), flavor("gen2", "d")]},
                    {"version": "4", "capabilityFlavors": [flavor("gen1", "d")]},
                    {"version": "5", "capabilityFlavors": [flavor("gen1", "e")]},
                ]}]},
        })
    }

    fn compared(machine_type: &str, version: &str) -> String {
        let pool = json!({"name": "a", "machine": {"type": machine_type, "image": {"name": "os", "version": version}}});
        compared_to(&profile(), &pool, &json!({}))
    }

    fn compared_to(profile: &Value, pool: &Value, before: &Value) -> String {
        let pools =
            |pool: &Value| -> ShootPools { serde_json::from_str(&json!({"workers": [pool]}).to_string()).unwrap() };
        let profile: ProfileSpec = serde_json::from_str(&profile.to_string()).unwrap();
        let (pools, old) = (pools(pool), pools(before));
        let left = PendingComparison {
            errors: FieldErrors::default(),
            warnings: Vec::new(),
            positions: pools_to_compare(&pools, Some(&old)),
            configured: pools_configured(&pools, Some(&old)),
            pools,
            region: "eu".to_owned(),
            profile: ProfileReference::CloudProfile("p".to_owned()),
        };
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        match compare(left, &profile, "Shoot a/b", Providers::SHIPPED, now) {
            Verdict::Denied(denial) => denial.message,
            Verdict::Allowed { warnings, .. } => warnings.concat(),
        }
    }

    #[test]
    fn a_refusal_names_type_version_capability_both_sides_and_a_way_out() {
        assert_eq!(compared("old", "1"), "");
        assert_eq!(
            compared("old", "2"),
            "Shoot a/b: spec.provider.workers[0].machine.image.version: Invalid value: \"2\": no image of os@2 fits machine \
             type old: spec.providerConfig.machineImages[0].versions[1].capabilityFlavors[0]: machine type requires \
             hyper=gen1; image supports gen2. Versions of os that fit old: 1 (supported), 4 (preview)"
        );
        let tied = compared("any", "3");
        assert!(tied.contains("nothing tells the images of os@3 apart for machine type any"), "{tied}");
        assert!(tied.ends_with("Versions of os that fit any: 2 (supported), 1 (supported), 4 (preview)"), "{tied}");
        assert_eq!(compared("unknown", "2"), "", "that is Gardener's to refuse");
        assert!(compared("any", "9").contains("has no image for os@9"));
    }

    #[test]
    fn a_server_group_policy_is_one_of_the_profile() {
        let api_version = "openstack.provider.extensions.gardener.cloud/v1alpha1";
        let config =
            json!({"apiVersion": api_version, "kind": "CloudProfileConfig", "serverGroupPolicies": ["affinity"]});
        let profile = json!({"type": "openstack", "providerConfig": config});
        let pool = |policy: &str| {
            let group = json!({"policy": policy});
            json!({"name": "a", "providerConfig": {"apiVersion": api_version, "kind": "WorkerConfig", "serverGroup": group}})
        };
        assert_eq!(compared_to(&profile, &pool("affinity"), &json!({})), "");
        assert_eq!(
            compared_to(&profile, &pool("soft-affinity"), &pool("affinity")),
            "Shoot a/b: spec.provider.workers[0].providerConfig.serverGroup.policy: Unsupported value: \"soft-affinity\": \
             supported values: \"affinity\""
        );
        // An unchanged policy is not compared, because the profile may have changed since.
        assert_eq!(compared_to(&profile, &pool("soft-affinity"), &pool("soft-affinity")), "");
    }

    #[test]
    fn only_pools_with_another_machine_are_compared() {
        let pools =
            |pools: Value| -> ShootPools { serde_json::from_str(&json!({"workers": pools}).to_string()).unwrap() };
        let machine = |version: &str| json!({"type": "t", "image": {"name": "os", "version": version}});
        let old = pools(json!([{"name": "a", "machine": machine("1")}, {"name": "b", "machine": machine("1")}]));
        let new = pools(json!([
            {"name": "a", "machine": machine("1"), "maximum": 9},
            {"name": "b", "machine": machine("2")},
            {"name": "c", "machine": machine("1")},
            {"name": "d", "machine": {"type": "t"}},
        ]));
        assert_eq!(pools_to_compare(&new, Some(&old)), [1, 2]);
    }
}
