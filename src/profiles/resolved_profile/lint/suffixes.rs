//! Versions with a variant in their name, which automatic updates ignore.

use std::collections::BTreeMap;

use super::Lint;
use super::finding::{Rule, some_of};
use crate::resolved_profile::suffix::{is_known_suffix, suffix_of};
use crate::versions::candidates::numbers;
use crate::versions::catalog::{ListedImage, ListedImageVersion, VersionCatalog};
use crate::versions::target::{Candidate, Subject, automatic};
use wire::api::gotext::version::Version;

/// Versions of an image with one suffix.
struct Variant<'l> {
    path: String,
    versions: Vec<&'l ListedImageVersion<'l>>,
    /// Whether only these versions, among those with the same numbers, support in-place updates.
    is_in_place: bool,
}

impl Lint<'_> {
    /// Reports suffixes that distinguish variants of one version.
    pub(super) fn suffixes(&mut self, catalog: &VersionCatalog<'_>) {
        for (position, image) in catalog.images.iter().enumerate() {
            for (suffix, variant) in self.variants(position, image) {
                self.variant(image, suffix, &variant);
            }
        }
    }

    fn variants<'l>(&self, position: usize, image: &'l ListedImage<'l>) -> BTreeMap<&'l str, Variant<'l>> {
        let mut by_numbers: BTreeMap<[u64; 3], Vec<(usize, &'l ListedImageVersion<'l>)>> = BTreeMap::new();
        for (index, version) in image.versions.iter().enumerate() {
            if let Ok(Version { major, minor, patch, .. }) = version.listed.version
                && version.listed.at(self.settings.now).is_active()
            {
                by_numbers.entry([major, minor, patch]).or_default().push((index, version));
            }
        }
        let mut found: BTreeMap<&'l str, Variant<'l>> = BTreeMap::new();
        for same in by_numbers.values() {
            for (index, version) in same {
                let suffix = suffix(version.listed.text);
                if suffix.is_empty() || same.len() == 1 && !is_known_suffix(suffix.trim_start_matches('-')) {
                    continue;
                }
                let path = format!("spec.machineImages[{position}].versions[{index}]");
                let variant = found.entry(suffix).or_insert(Variant { path, versions: Vec::new(), is_in_place: false });
                variant.versions.push(version);
                let is_other = same.iter().any(|(_, other)| !other.is_updated_in_place());
                variant.is_in_place |= version.is_updated_in_place() && is_other;
            }
        }
        found
    }

    fn variant(&mut self, image: &ListedImage<'_>, suffix: &str, variant: &Variant<'_>) {
        let texts = variant.versions.iter().map(|version| version.listed.text);
        let reason = format!(
            "The suffix {suffix} tells variants of one version apart ({}). Automatic updates compare suffixes like numbers, so \
             they move pools from one variant to another, whatever the machines can run{}.",
            some_of(texts),
            self.example(image, suffix)
        );
        let name = &image.image.name;
        let text = variant.versions.first().map_or("", |version| version.listed.text);
        let listed: Vec<&str> = image.versions.iter().map(|version| version.listed.text).collect();
        let is_converted = suffix_of(text, &listed).is_some();
        let advice = match (variant.is_in_place, self.resolved_profile().declares_capabilities) {
            (true, _) => format!(
                "Keep the versions: flavors have no inPlaceUpdates, and pools that are updated in place would be stuck. An image \
                 of their own, such as {name}{suffix}, keeps the variants apart."
            ),
            (false, true) => {
                "Make flavors of the variants, and remove the versions with the suffix once no Shoot uses them."
                    .to_owned()
            }
            (false, false) if is_known_suffix(suffix.trim_start_matches('-')) => {
                "Make flavors of the variants: cloudprofile convert does it.".to_owned()
            }
            (false, false) if is_converted => {
                "Make flavors of the variants: cloudprofile convert does it with --suffix, which defines the meaning of the suffix."
                    .to_owned()
            }
            (false, false) => format!(
                "Make flavors of one version of the variants, or give each an image of its own, such as {name}{suffix}."
            ),
        };
        self.find(Rule::VersionSuffix, &variant.path, name, reason, advice);
    }

    /// Ends a sentence with an example of an update from or to the variant: `: from 1.0.0-pxe to 1.0.0-usi`.
    fn example(&self, image: &ListedImage<'_>, suffix_of_variant: &str) -> String {
        let candidates = image.versions.iter().map(|version| &version.listed);
        let candidates: Vec<Candidate<'_>> =
            candidates.map(|listed| Candidate { listed, stage: listed.at(self.settings.now) }).collect();
        let reach = Subject::Image { name: &image.image.name, strategy: image.strategy() }.reach();
        let moves = image.versions.iter().filter_map(|version| {
            let current = version.listed.version.as_ref().ok()?;
            let to = automatic(reach, &candidates, current).ok()??;
            Some((version.listed.text, to))
        });
        let is_of_variant = |text: &str| suffix(text) == suffix_of_variant;
        let mut between = moves.filter(|(from, to)| is_of_variant(from) != is_of_variant(to));
        between.next().map(|(from, to)| format!(": from {from} to {to}")).unwrap_or_default()
    }
}

/// The suffix after the numbers of a version, with its separator.
fn suffix(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.strip_prefix(numbers(version)).unwrap_or_default()
}
