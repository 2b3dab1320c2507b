//! Images that are missing in some regions, and images for regions that the profile does not have.

use std::collections::{BTreeMap, BTreeSet};

use super::Lint;
use super::finding::{Rule, Severity, count, machine_types, some_of};
use crate::resolved_profile::profile::config_path;
use crate::resolved_profile::resolution::{Availability, ResolvedVersion};
use decisions::provider::profile::UncoveredRegion;

impl Lint<'_> {
    pub(super) fn regions(&mut self) {
        self.unknown_regions();
        self.uncovered_regions();
        for resolved in self.resolution.versions().iter().filter(|version| !version.selectable.is_expired()) {
            for (flavor, selectable) in resolved.selectable.flavors.iter().enumerate() {
                let lacking = resolved.availability.iter().filter(|available| !available.flavors.contains(&flavor));
                let lacking: Vec<&Availability<'_>> = lacking.collect();
                if lacking.is_empty() {
                    continue;
                }
                let regions: Vec<&str> = lacking.iter().flat_map(|available| &available.regions).copied().collect();
                let reason = format!(
                    "Flavor {flavor} has no image in {} of {}: {}. {}",
                    regions.len(),
                    count(self.resolved_profile().regions.len(), "region"),
                    some_of(regions),
                    self.consequence(resolved, flavor, &lacking)
                );
                let advice =
                    "Add the images of these regions, or take the regions out of spec.regions if no shoot uses them.";
                let path = format!("{}.regions", selectable.path);
                self.find(Rule::MissingRegion, path, resolved.selectable.title(), reason, advice);
            }
            self.regions_without_images(resolved);
        }
    }

    /// The effect of a flavor's missing regions on the machine types that get it elsewhere.
    fn consequence(&self, version: &ResolvedVersion<'_>, flavor: usize, lacking: &[&Availability<'_>]) -> String {
        let mut nothing = Vec::new();
        let mut another: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for group in self.resolution.groups() {
            let gets = |available| self.resolution.chosen(group, available);
            if !version.availability.iter().any(|available| gets(available) == Some(flavor)) {
                continue;
            }
            let there: Option<Vec<usize>> = lacking.iter().map(|available| gets(available)).collect();
            match there.as_deref() {
                None => nothing.extend(group.names()),
                Some([other, ..]) => another.entry(*other).or_default().extend(group.names()),
                Some([]) => {}
            }
        }
        let mut sentences = Vec::new();
        if !nothing.is_empty() {
            sentences.push(format!("{} can't be used with this version there.", machine_types(&nothing)));
        }
        for (other, names) in another {
            sentences.push(format!("{} get flavor {other} there instead.", machine_types(&names)));
        }
        if sentences.is_empty() { "No machine type gets it elsewhere either.".to_owned() } else { sentences.join(" ") }
    }

    /// Reports versions that Gardener admits in regions for which the provider's half has no image.
    fn regions_without_images(&mut self, version: &ResolvedVersion<'_>) {
        let selectable = version.selectable;
        let declared = &self.profile.spec.machine_capabilities;
        let none = version.availability.iter().find(|available| available.flavors.is_empty());
        let (reason, advice) = if selectable.flavors.is_empty() {
            // A version that the provider's half does not list is reported by the rule for missing mappings.
            if self.profile.config.flavors([&selectable.image, &selectable.version], None, declared).is_empty() {
                return;
            }
            let reason =
                "It has images only in regions that spec.regions does not have, but Gardener lets Shoots select it.";
            (reason.to_owned(), "Add images of the regions in spec.regions, or remove the version.")
        } else if let Some(none) = none {
            let regions = some_of(none.regions.iter().copied());
            let reason = format!("It has no image at all in {regions}, but Gardener lets Shoots there select it.");
            (reason, "Add images of these regions, or take the regions out of spec.regions if no shoot uses them.")
        } else {
            return;
        };
        self.find_as(Severity::Error, Rule::MissingRegion, &selectable.path, selectable.title(), reason, advice);
    }

    fn uncovered_regions(&mut self) {
        let regions = &self.profile.spec.regions;
        for uncovered in self.profile.config.uncovered_regions(regions) {
            let UncoveredRegion { region, member, consequence } = uncovered;
            let reason = format!("{member} does not list region {region}: {consequence}.");
            let advice = format!("List the region in {member}, give it zones, or take it out of spec.regions.");
            let path = format!("spec.providerConfig.{member}");
            self.find_as(Severity::Error, Rule::MissingRegion, path, region, reason, advice);
        }
    }

    fn unknown_regions(&mut self) {
        let known: BTreeSet<&str> = self.resolved_profile().regions.iter().map(String::as_str).collect();
        let mut unknown: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
        let listed = self.profile.config.images();
        let declared = &self.profile.spec.machine_capabilities;
        for version in &listed {
            for flavor in self.profile.config.flavors([version.image, version.version], None, declared) {
                let regions = flavor.references.iter().filter_map(|reference| reference.region);
                let regions: BTreeSet<String> =
                    regions.filter(|region| !known.contains(region)).map(str::to_owned).collect();
                if !regions.is_empty() {
                    let title = format!("{} {}", version.image, version.version);
                    unknown.insert(format!("{}.regions", config_path(flavor.location)), (title, regions));
                }
            }
        }
        for (path, (title, regions)) in unknown {
            let reason = format!(
                "spec.regions does not have {}, so no pool can use these images; they only make the object larger.",
                some_of(regions.iter().map(String::as_str))
            );
            let advice = "Correct the name of the region, add it to spec.regions, or remove the images.";
            self.find(Rule::UnknownRegion, path, title, reason, advice);
        }
    }
}
