//! Images that are missing in some regions, and images for regions that nobody has.

use std::collections::{BTreeMap, BTreeSet};

use super::Lint;
use super::finding::{Rule, Severity, count, some_of};
use crate::offer::offered::OfferedVersion;
use crate::offer::profile::config_path;
use crate::offer::resolution::{Availability, Outcome};
use crate::provider::profile::UncoveredRegion;

impl Lint<'_> {
    pub(super) fn regions(&mut self) {
        self.unknown_regions();
        self.uncovered_regions();
        let offer = self.offer();
        for (position, version) in offer.images.iter().enumerate() {
            if self.is_over(position) {
                continue;
            }
            for (flavor, offered) in version.flavors.iter().enumerate() {
                let lacking = self.resolution.availability(position).iter();
                let lacking: Vec<&Availability> =
                    lacking.filter(|available| !available.flavors.contains(&flavor)).collect();
                if lacking.is_empty() {
                    continue;
                }
                let regions = lacking.iter().flat_map(|available| &available.regions);
                let regions: Vec<&str> =
                    regions.filter_map(|region| offer.regions.get(*region)).map(String::as_str).collect();
                let reason = format!(
                    "Flavor {flavor} has no image in {} of {}: {}. {}",
                    regions.len(),
                    count(offer.regions.len(), "region"),
                    some_of(regions),
                    self.consequence(position, flavor, &lacking)
                );
                let advice =
                    "Add the images of these regions, or take the regions out of spec.regions if nobody uses them.";
                let path = format!("{}.regions", offered.path);
                self.find(Severity::Warning, Rule::MissingRegion, path, version.title(), reason, advice);
            }
            self.regions_without_images(position, version);
        }
    }

    /// What machine types that get the flavor elsewhere get where it is missing.
    fn consequence(&self, version: usize, flavor: usize, lacking: &[&Availability]) -> String {
        let groups: BTreeSet<usize> = (0..self.resolution.groups().len())
            .filter(|group| {
                let gets = |available| self.resolution.outcome(*group, available) == Outcome::Chosen(flavor);
                self.resolution.availability(version).iter().any(gets)
            })
            .collect();
        let mut nothing = Vec::new();
        let mut another: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for group in groups {
            let outcomes = lacking.iter().map(|available| self.resolution.outcome(group, available));
            let outcomes: Vec<Outcome> = outcomes.collect();
            let names = self.resolution.type_names(group);
            match outcomes.iter().find(|outcome| !matches!(outcome, Outcome::Chosen(_))) {
                Some(_) => nothing.extend(names),
                None => {
                    let Some(Outcome::Chosen(other)) = outcomes.first() else { continue };
                    another.entry(*other).or_default().extend(names);
                }
            }
        }
        let mut sentences = Vec::new();
        if !nothing.is_empty() {
            let number = count(nothing.len(), "machine type");
            sentences.push(format!("{number} ({}) can't be used with this version there.", some_of(nothing)));
        }
        for (other, names) in another {
            let number = count(names.len(), "machine type");
            sentences.push(format!("{number} ({}) get flavor {other} there instead.", some_of(names)));
        }
        if sentences.is_empty() { "No machine type gets it elsewhere either.".to_owned() } else { sentences.join(" ") }
    }

    /// Versions whose provider half knows no region of the profile at all have no flavors in the offer.
    fn regions_without_images(&mut self, position: usize, version: &OfferedVersion) {
        let none = self.resolution.availability(position).iter().find(|available| available.flavors.is_empty());
        // A version without any image is told by what it lacks in the provider's half.
        if version.flavors.is_empty() {
            return;
        }
        let Some(none) = none.filter(|none| none.regions.len() < self.offer().regions.len()) else { return };
        let regions = none.regions.iter().filter_map(|region| self.offer().regions.get(*region));
        let reason = format!(
            "It has no image at all in {}, but Gardener lets Shoots there select it.",
            some_of(regions.map(String::as_str))
        );
        let advice = "Add images of these regions, or take the regions out of spec.regions if nobody uses them.";
        self.find(Severity::Error, Rule::MissingRegion, &version.path, version.title(), reason, advice);
    }

    fn uncovered_regions(&mut self) {
        let regions = &self.profile.spec.regions;
        for uncovered in self.profile.config.uncovered_regions(regions) {
            let UncoveredRegion { region, member, consequence } = uncovered;
            let reason = format!("{member} does not list region {region}: {consequence}.");
            let advice = format!("List the region in {member}, give it zones, or take it out of spec.regions.");
            let path = format!("spec.providerConfig.{member}");
            self.find(Severity::Error, Rule::MissingRegion, path, region, reason, advice);
        }
    }

    fn unknown_regions(&mut self) {
        let known: BTreeSet<&str> = self.offer().regions.iter().map(String::as_str).collect();
        let mut unknown: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
        let listed = self.profile.config.images();
        for version in &listed {
            for flavor in self.profile.config.flavors(version.image, version.version, None) {
                let regions = flavor.references.iter().filter_map(|reference| reference.region);
                let regions: BTreeSet<String> =
                    regions.filter(|region| !known.contains(region)).map(str::to_owned).collect();
                if !regions.is_empty() {
                    let title = format!("{} {}", version.image, version.version);
                    unknown.insert(format!("{}.regions", config_path(flavor.place)), (title, regions));
                }
            }
        }
        for (path, (title, regions)) in unknown {
            let reason = format!(
                "spec.regions does not have {}, so nobody can use these images; they only make the object larger.",
                some_of(regions.iter().map(String::as_str))
            );
            let advice = "Correct the name of the region, add it to spec.regions, or remove the images.";
            self.find(Severity::Warning, Rule::UnknownRegion, path, title, reason, advice);
        }
    }
}
