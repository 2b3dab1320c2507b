//! Versions that expire, have expired, or carry a capability in their name.

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Lint;
use super::finding::{Rule, Severity, count, some_of};
use crate::api::bounded_text::enumerated;
use crate::capabilities::Classification;
use crate::offer::offered::OfferedVersion;
use crate::offer::resolution::ResolvedVersion;
use crate::offer::suffix::suffix_of;

impl Lint<'_> {
    pub(super) fn lifetime(&mut self) {
        for resolved in self.resolution.versions() {
            match resolved.offered.expires {
                Some(expires) if resolved.offered.is_expired() => self.expired(resolved.offered, expires),
                Some(expires) if self.is_soon(expires) => self.expires_soon(resolved, expires),
                _ => {}
            }
        }
        self.suffixes();
    }

    fn is_soon(&self, expires: Timestamp) -> bool {
        let left = expires.duration_since(self.settings.now);
        left > SignedDuration::ZERO && left <= self.settings.soon
    }

    fn expires_soon(&mut self, resolved: &ResolvedVersion<'_>, expires: Timestamp) {
        let version = resolved.offered;
        let outlives = |other: &&ResolvedVersion<'_>| {
            let OfferedVersion { classification, expires: end, .. } = other.offered;
            classification.is_active() && end.is_none_or(|end| end > expires)
        };
        let lasting: Vec<_> = self.resolution.versions().iter().filter(outlives).collect();
        let stranded = self.usable_groups().filter(|group| {
            self.can_have(group, resolved) && !lasting.iter().any(|version| self.can_have(group, version))
        });
        let stranded: Vec<&str> = stranded.flat_map(|group| group.names()).collect();
        let days = expires.duration_since(self.settings.now).as_hours() / 24;
        let when =
            format!("It expires in {} ({})", count(usize::try_from(days).unwrap_or_default(), "day"), day(expires));
        let successor = lasting
            .iter()
            .map(|other| other.offered)
            .any(|other| other.image == version.image && other.classification == Classification::Supported);
        let (severity, reason) = if stranded.is_empty() {
            let after = if successor { "" } else { ", and no supported version of the image lasts longer" };
            (Severity::Warning, format!("{when}; no new pool can select it then{after}."))
        } else {
            let lost = count(stranded.len(), "machine type");
            (Severity::Error, format!("{when}; then no image is left for {lost}: {}.", some_of(stranded)))
        };
        let advice = "Add its successor before, or move the expirationDate.";
        self.find_as(severity, Rule::ExpiresSoon, &version.path, version.title(), reason, advice);
    }

    fn expired(&mut self, version: &OfferedVersion, expires: Timestamp) {
        let reason = format!("It has expired on {}: no new pool can select it.", day(expires));
        let advice = "Remove it from both halves once no Shoot uses it; Gardener refuses that as long as one does.";
        self.find(Rule::Expired, &version.path, version.title(), reason, advice);
    }

    /// Suffixes that tell variants of one version apart: automatic updates don't know that they do.
    fn suffixes(&mut self) {
        let offer = self.offer();
        let mut by_suffix: BTreeMap<(&str, &str), Vec<&OfferedVersion>> = BTreeMap::new();
        for version in offer.images.iter().filter(|version| version.classification.is_active()) {
            let same_image = offer.images.iter().filter(|other| other.image == version.image);
            let versions: Vec<&str> = same_image.map(|other| other.version.as_str()).collect();
            if let Some((_, suffix)) = suffix_of(&version.version, &versions) {
                by_suffix.entry((&version.image, suffix)).or_default().push(version);
            }
        }
        for ((image, suffix), versions) in by_suffix {
            let Some(first) = versions.first() else { continue };
            let titles: Vec<&str> = versions.iter().map(|version| version.version.as_str()).collect();
            let reason = format!(
                "The suffix -{suffix} tells variants of one version apart ({}). Automatic updates take such versions for \
                 newer ones: a pool without the suffix can be moved to a version with it, whatever its machine type can run.",
                enumerated(&titles)
            );
            let advice = if offer.declares_capabilities {
                "Make flavors of the variants, and remove the versions with the suffix once no Shoot uses them."
            } else {
                "Make flavors of the variants: cloudprofile convert does it."
            };
            self.find(Rule::VersionSuffix, &first.path, image, reason, advice);
        }
    }
}

fn day(moment: Timestamp) -> String {
    moment.strftime("%F").to_string()
}
