//! Machine types without an image, and empty lists that nothing can match.

use super::Lint;
use super::finding::{Rule, count, machine_types, some_of};
use super::flavors::requirements;
use crate::resolved_profile::resolution::{FlavorChoice, ResolvedVersion, TypeGroup};
use crate::resolved_profile::selectable::SelectableVersion;
use wire::api::gardener::Capabilities;
use wire::capabilities::{ARCHITECTURE, Mismatch, mismatches};

impl<'a> Lint<'a> {
    pub(super) fn machine_types(&mut self) {
        self.empty_capabilities();
        self.types_without_image();
        self.admitted_without_image();
    }

    /// Whether machines of a group can use a version in at least one region.
    pub(super) fn can_have(&self, group: &TypeGroup<'_>, version: &ResolvedVersion<'_>) -> bool {
        let gets = |available| self.resolution.chosen(group, available).is_some();
        self.resolution.admits(version, group) && version.availability.iter().any(gets)
    }

    /// Groups with a machine type that shoots may use.
    pub(super) fn usable_groups(&self) -> impl Iterator<Item = &'a TypeGroup<'a>> + use<'a> {
        let groups = self.resolution.groups().iter();
        groups.filter(|group| group.types.iter().any(|machine_type| machine_type.usable))
    }

    fn types_without_image(&mut self) {
        let is_active = |version: &&ResolvedVersion<'_>| version.selectable.classification.is_active();
        let active: Vec<_> = self.resolution.versions().iter().filter(is_active).collect();
        if active.is_empty() {
            return self.nothing_to_select();
        }
        for group in self.usable_groups() {
            if active.iter().any(|version| self.can_have(group, version)) {
                continue;
            }
            let nearest = active.iter().map(|version| version.selectable);
            let nearest = nearest.filter_map(|version| Some((version, self.nearest(&group.capabilities, version)?)));
            let nearest = nearest.min_by_key(|(_, (_, mismatches))| distance(mismatches));
            let why = match nearest {
                Some((version, (flavor, mismatches))) => format!(
                    "; the nearest is flavor {flavor} of {}, which {}",
                    version.title(),
                    mismatch_text(&mismatches)
                ),
                None => String::new(),
            };
            let reason =
                format!("None of the {} that can be selected fits it{why}.", count(active.len(), "image version"));
            for machine_type in &group.types {
                let advice = "Add a flavor for it, correct its capabilities, or take it out (usable: false hides it).";
                let path = &machine_type.path;
                let name = &machine_type.name;
                self.find(Rule::MachineTypeWithoutImage, path, name, reason.clone(), advice);
            }
        }
    }

    /// Reports that no version can be selected. The machine types themselves are not wrong.
    fn nothing_to_select(&mut self) {
        let resolved_profile = self.resolved_profile();
        let types = resolved_profile.machine_types.iter().filter(|machine_type| machine_type.usable).count();
        if types == 0 {
            return;
        }
        let over = resolved_profile.images.iter().filter(|version| version.is_expired());
        let over: Vec<String> = over.map(SelectableVersion::title).collect();
        let why = match over.len() {
            0 => String::new(),
            _ => format!(": {} expired", some_of(over.iter().map(String::as_str))),
        };
        let reason = format!(
            "No version of any image can be selected{why}. No pool can be created, whichever of the {} it has.",
            count(types, "machine type")
        );
        let advice = "Add a version that can be selected, or set a later expirationDate.";
        self.find(Rule::MachineTypeWithoutImage, "spec.machineImages", "", reason, advice);
    }

    /// The flavor of a version with the fewest mismatches for a machine.
    fn nearest(&self, machine: &Capabilities, version: &SelectableVersion) -> Option<(usize, Vec<Mismatch>)> {
        let definitions = &self.resolved_profile().definitions;
        let flavors = version.flavors.iter().enumerate();
        let missed =
            flavors.map(|(position, flavor)| (position, mismatches(machine, &flavor.capabilities, definitions)));
        missed.filter(|(_, mismatches)| !mismatches.is_empty()).min_by_key(|(_, mismatches)| distance(mismatches))
    }

    /// Reports versions that Gardener admits but that have no image. Admission compares the flavors of both halves, but
    /// not with the machine types.
    fn admitted_without_image(&mut self) {
        for resolved in self.resolution.versions() {
            let (version, availability) = (resolved.selectable, &resolved.availability);
            if !version.classification.is_active() || version.flavors.is_empty() {
                continue;
            }
            let gets_none = |group: &TypeGroup<'_>| {
                availability.iter().all(|available| {
                    let choice = self.resolution.choice(group, available);
                    matches!(choice, FlavorChoice::NoneFits | FlavorChoice::NoFlavors)
                })
            };
            let admitted = self.usable_groups().filter(|group| self.resolution.admits(resolved, group));
            let lost: Vec<_> = admitted.filter(|group| gets_none(group)).collect();
            let Some(first) = lost.first() else { continue };
            let nearest = self.nearest(&first.capabilities, version);
            let why = nearest.map(|(flavor, mismatches)| format!(": flavor {flavor} {}", mismatch_text(&mismatches)));
            let names: Vec<&str> = lost.iter().flat_map(|group| group.names()).collect();
            let reason = format!(
                "Gardener admits it for {}, but no flavor of the provider config fits{}. The pools fail.",
                machine_types(&names),
                why.unwrap_or_default()
            );
            let advice = "Give spec.machineImages and spec.providerConfig the same capabilities for this version.";
            let path = &version.path;
            let title = version.title();
            self.find(Rule::AdmittedWithoutImage, path, title, reason, advice);
        }
    }

    fn empty_capabilities(&mut self) {
        let resolved_profile = self.resolved_profile();
        let advice = "Remove the name to mean every value, or list the values.";
        for (position, machine_type) in self.profile.spec.machine_types.iter().enumerate() {
            for name in empty_lists(&machine_type.capabilities) {
                let path = format!("spec.machineTypes[{position}].capabilities.{name}");
                let reason = format!("An empty list of {name} means that no image fits this machine type.");
                self.find(Rule::EmptyCapability, path, &machine_type.name, reason, advice);
            }
        }
        for version in &resolved_profile.images {
            for flavor in &version.flavors {
                for name in empty_lists(&flavor.capabilities) {
                    let reason = format!("An empty list of {name} means that the flavor fits no machine type.");
                    let path = format!("{}.capabilities.{name}", flavor.path);
                    self.find(Rule::EmptyCapability, path, version.title(), reason, advice);
                }
            }
        }
    }
}

/// The distance of a flavor from a machine. Another architecture is farther away than any other mismatch.
fn distance(mismatches: &[Mismatch]) -> (bool, usize) {
    (mismatches.iter().any(|mismatch| mismatch.capability == ARCHITECTURE), mismatches.len())
}

fn empty_lists(capabilities: &Capabilities) -> impl Iterator<Item = &str> {
    capabilities.0.iter().filter(|(_, values)| values.is_empty()).map(|(name, _)| name.as_str())
}

/// A text such as `needs hypervisorType={gen1}, where the machine type has {gen2}`.
fn mismatch_text(mismatches: &[Mismatch]) -> String {
    let texts = mismatches.iter().map(|mismatch| {
        let needed = Capabilities::from_iter([(mismatch.capability.as_str(), mismatch.provided.iter())]);
        format!("needs {}, where the machine type has {{{}}}", requirements(&needed), mismatch.required.join(", "))
    });
    texts.collect::<Vec<_>>().join(" and ")
}
