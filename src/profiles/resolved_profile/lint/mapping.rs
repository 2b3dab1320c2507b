//! Entries in the provider's half that core's half lacks. The other direction is rejected on admission.

use std::collections::BTreeMap;

use super::Lint;
use super::finding::{Rule, count};
use super::flavors::requirements;
use crate::resolved_profile::profile::config_path;
use decisions::provider::profile::{ListedFlavor, ListedVersion, Location};
use wire::api::bounded_text::enumerated;
use wire::api::gardener::{Capabilities, ProfileImageVersion};
use wire::capabilities::{ARCHITECTURE, are_equal, flavors_with_defaults, with_defaults};

impl Lint<'_> {
    pub(super) fn mapping(&mut self) {
        let listed = self.profile.config.images();
        self.listed_twice(&listed);
        for version in &listed {
            let title = format!("{} {}", version.image, version.version);
            let path = config_path(version.location);
            let Some(core) = self.core_version(version.image, version.version) else {
                let reason = "spec.machineImages does not list it, so no pool can select it.";
                let advice = "Remove it, or add it to spec.machineImages.";
                self.find(Rule::UnlistedImage, path, title, reason, advice);
                continue;
            };
            let in_excess = self.flavors_in_excess(version, core);
            for (location, capabilities) in in_excess {
                let reason = format!(
                    "spec.machineImages does not list this flavor ({}). With the provider's webhook it is added there; \
                     without it, Gardener does not know that machines can have it.",
                    requirements(&capabilities)
                );
                let advice = "List it in capabilityFlavors (or architectures) of the version in spec.machineImages, or remove it here.";
                self.find(Rule::UnlistedFlavor, config_path(location), title.clone(), reason, advice);
            }
        }
    }

    fn core_version(&self, image: &str, version: &str) -> Option<&ProfileImageVersion> {
        let images = self.profile.spec.machine_images.iter().filter(|known| known.name == image);
        images.flat_map(|image| &image.versions).find(|known| known.version == version)
    }

    fn flavors_in_excess(
        &self,
        version: &ListedVersion<'_>,
        core: &ProfileImageVersion,
    ) -> Vec<(Location, Capabilities)> {
        let declared = &self.profile.spec.machine_capabilities;
        let flavors = self.profile.config.flavors([version.image, version.version], None, declared);
        let here = flavors.iter().filter(|flavor| {
            (flavor.location.image, flavor.location.version) == (version.location.image, version.location.version)
        });
        let listed = flavors_with_defaults(&core.capability_flavors, declared);
        let architectures = self.architectures(core);
        let is_listed = |flavor: &&ListedFlavor<'_>| {
            if declared.is_empty() && !self.profile.format.distinguishes_architectures() {
                return true;
            }
            if declared.is_empty() || version.old_format {
                // Core's half distinguishes flavors only by architecture.
                let named = flavor.capabilities.values(ARCHITECTURE).unwrap_or_default();
                return named.is_empty() || named.iter().any(|named| architectures.contains(named));
            }
            let flavor = with_defaults(&flavor.capabilities, declared);
            listed.iter().any(|known| are_equal(known, &flavor))
        };
        let in_excess = here.filter(|flavor| !is_listed(flavor));
        in_excess.map(|flavor| (flavor.location, flavor.capabilities.clone().into_owned())).collect()
    }

    fn architectures(&self, core: &ProfileImageVersion) -> Vec<String> {
        let selectable = self.resolved_profile().images.iter().find(|selectable| {
            let is_same = |image: &wire::api::gardener::ProfileImage| {
                image.name == selectable.image && image.versions.iter().any(|version| std::ptr::eq(version, core))
            };
            selectable.version == core.version && self.profile.spec.machine_images.iter().any(is_same)
        });
        selectable.map(|selectable| selectable.architectures.clone()).unwrap_or_default()
    }

    /// Reports versions that are listed several times, because admission reads one entry and Workers read all. In the
    /// old format, one entry per architecture is allowed.
    fn listed_twice(&mut self, listed: &[ListedVersion<'_>]) {
        let mut locations: BTreeMap<(&str, &str), Vec<&ListedVersion<'_>>> = BTreeMap::new();
        for version in listed {
            locations.entry((version.image, version.version)).or_default().push(version);
        }
        for ((image, version), entries) in locations {
            let first_counts = self.profile.format.first_entry_counts();
            let is_per_architecture = !first_counts
                && entries.iter().all(|entry| entry.old_format)
                && entries
                    .iter()
                    .all(|entry| entry.location.image == entries.first().map_or(0, |first| first.location.image));
            if entries.len() < 2 || is_per_architecture {
                continue;
            }
            let Some(last) = entries.last() else { continue };
            let positions: Vec<String> = entries.iter().map(|entry| entry.location.to_string()).collect();
            let who_counts = if first_counts {
                "Workers use the first that has an image for their region, and none of the others."
            } else {
                "Admission compares the flavors of one of them, Workers choose from those of all of one image entry."
            };
            let reason =
                format!("It is listed {}, at {}. {who_counts}", count(entries.len(), "time"), enumerated(&positions));
            let advice = "Keep one entry with all flavors.";
            let path = config_path(last.location);
            let title = format!("{image} {version}");
            self.find(Rule::ListedTwice, path, title, reason, advice);
        }
    }
}
