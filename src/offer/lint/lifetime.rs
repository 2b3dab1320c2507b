//! Findings about versions that expire, have expired or should expire, and about versions with a capability in their
//! name.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use super::Lint;
use super::expiry::{day, in_days, kubernetes_path};
use super::finding::{Rule, Severity, count, some_of};
use crate::api::bounded_text::enumerated;
use crate::capabilities::{Classification, Life};
use crate::offer::offered::OfferedVersion;
use crate::offer::resolution::ResolvedVersion;
use crate::offer::suffix::suffix_of;
use crate::versions::catalog::{ListedVersion, VersionCatalog};

/// A version with its path, and whether its classification is explicitly `supported`.
struct VersionOfList<'l> {
    path: String,
    listed: &'l ListedVersion<'l>,
    says_supported: bool,
}

impl Lint<'_> {
    pub(super) fn lifetime(&mut self) {
        let catalog = VersionCatalog::new(self.profile.name(), &self.profile.spec);
        for resolved in self.resolution.versions() {
            match resolved.offered.expires {
                Some(expires) if resolved.offered.is_expired() => self.expired(&catalog, resolved, expires),
                Some(expires) if self.is_soon(expires) => self.expires_soon(&catalog, resolved, expires),
                _ => {}
            }
        }
        self.expired_images(&catalog);
        self.kubernetes(&catalog);
        let versions = catalog.kubernetes.iter().zip(&self.profile.spec.kubernetes.versions).enumerate();
        let versions = versions.map(|(index, (listed, written))| VersionOfList {
            path: kubernetes_path(index),
            listed,
            says_supported: says_supported(written),
        });
        self.without_end("Kubernetes", versions.collect());
        for (position, image) in catalog.images.iter().enumerate() {
            let versions = image.versions.iter().enumerate().map(|(index, version)| VersionOfList {
                path: format!("spec.machineImages[{position}].versions[{index}]"),
                listed: &version.listed,
                says_supported: says_supported(version.entry),
            });
            self.without_end(&image.image.name, versions.collect());
        }
        self.suffixes();
    }

    fn expires_soon(&mut self, catalog: &VersionCatalog<'_>, resolved: &ResolvedVersion<'_>, expires: Timestamp) {
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
        let when = format!("It expires in {}", in_days(expires, self.settings.now));
        let successor = lasting
            .iter()
            .map(|other| other.offered)
            .any(|other| other.image == version.image && other.classification == Classification::Supported);
        let (severity, reason) = if stranded.is_empty() {
            let after = if successor { "" } else { ", and no supported version of the image lasts longer" };
            let way = self.way_text(catalog, resolved, expires);
            (Severity::Warning, format!("{when}; no new pool can select it then{after}{way}."))
        } else {
            let lost = count(stranded.len(), "machine type");
            (Severity::Error, format!("{when}; then no image is left for {lost}: {}.", some_of(stranded)))
        };
        let advice = "Add its successor before, or move the expirationDate.";
        self.find_as(severity, Rule::ExpiresSoon, &version.path, version.title(), reason, advice);
    }

    fn expired(&mut self, catalog: &VersionCatalog<'_>, resolved: &ResolvedVersion<'_>, expires: Timestamp) {
        let version = resolved.offered;
        let way = self.way_text(catalog, resolved, expires);
        let reason = format!("It has expired on {}: no new pool can select it{way}.", day(expires));
        let advice = "Remove it from both halves once no Shoot uses it; Gardener refuses that as long as one does.";
        self.find(Rule::Expired, &version.path, version.title(), reason, advice);
    }

    /// Reports versions that never expire: deprecated ones, and several supported ones of a minor unless Gardener
    /// rejects those.
    fn without_end(&mut self, name: &str, versions: Vec<VersionOfList<'_>>) {
        let mut supported: BTreeMap<(u64, u64), Vec<&VersionOfList<'_>>> = BTreeMap::new();
        for version in versions.iter().filter(|version| version.listed.expires().is_none()) {
            let listed = version.listed;
            match (listed.at(self.settings.now), &listed.version) {
                (Classification::Deprecated, _) => {
                    let reason = "It is deprecated and never expires: pools and control planes with it that don't want automatic \
                                  updates keep it for ever.";
                    let advice = "Set an expirationDate.";
                    let subject = format!("{name} {}", listed.text);
                    self.find(Rule::DeprecatedWithoutExpiry, &version.path, subject, reason, advice);
                }
                (Classification::Supported, Ok(read)) if read.prerelease.is_empty() => {
                    supported.entry((read.major, read.minor)).or_default().push(version);
                }
                _ => {}
            }
        }
        for ((major, minor), mut of_minor) in supported {
            let is_refused = of_minor.iter().filter(|version| version.says_supported).count() > 1;
            of_minor.sort_by_key(|version| std::cmp::Reverse(version.listed.version.as_ref().ok()));
            let Some(older) = of_minor.get(1).filter(|_| !is_refused) else { continue };
            let texts: Vec<&str> = of_minor.iter().map(|version| version.listed.text).collect();
            let reason = format!(
                "Several versions of one minor are supported without an end: {}. Nothing tells owners to leave the older ones.",
                enumerated(&texts)
            );
            let advice = "Classify the older ones as deprecated and set their expirationDate.";
            self.find(Rule::TwoSupported, &older.path, format!("{name} {major}.{minor}"), reason, advice);
        }
    }

    /// Reports suffixes that distinguish variants of a version, because automatic updates treat such variants as newer
    /// versions.
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

fn says_supported<'v>(version: impl Into<Life<'v>>) -> bool {
    version.into().classification == Some(Classification::Supported.word())
}
