//! Versions that expire, have expired or should, and those that pools can't leave in place.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use super::Lint;
use super::expiry::{after, in_days, kubernetes_path};
use super::finding::{Rule, Severity, count, some_of};
use super::ways::PoolKinds;
use crate::resolved_profile::resolution::ResolvedVersion;
use crate::versions::candidates::unfit_in_place;
use crate::versions::catalog::{ListedImage, ListedVersion, VersionCatalog};
use wire::api::bounded_text::enumerated;
use wire::capabilities::{Classification, Life};

/// A version with its path, and whether its classification is explicitly `supported`.
struct VersionOfList<'l> {
    path: String,
    listed: &'l ListedVersion<'l>,
    is_marked_supported: bool,
}

impl<'a> Lint<'a> {
    pub(super) fn lifetime(&mut self) {
        let catalog = VersionCatalog::new(self.profile.name(), &self.profile.spec);
        let kinds = PoolKinds::of(self, &catalog);
        for resolved in self.resolution.versions() {
            match resolved.selectable.expires {
                expires if resolved.selectable.is_expired() => self.expired(&kinds, resolved, expires),
                Some(expires) if self.is_soon(expires) => self.expires_soon(&kinds, resolved, expires),
                _ => {}
            }
        }
        self.expired_images(&kinds);
        self.gaps_in_place(&kinds);
        self.kubernetes(&catalog);
        let versions = catalog.kubernetes.iter().zip(&self.profile.spec.kubernetes.versions).enumerate();
        let versions = versions.map(|(index, (listed, written))| VersionOfList {
            path: kubernetes_path(index),
            listed,
            is_marked_supported: is_marked_supported(written),
        });
        self.without_end("Kubernetes", versions.collect());
        for (position, image) in catalog.images.iter().enumerate() {
            let versions = image.versions.iter().enumerate().map(|(index, version)| VersionOfList {
                path: format!("spec.machineImages[{position}].versions[{index}]"),
                listed: &version.listed,
                is_marked_supported: is_marked_supported(version.entry),
            });
            self.without_end(&image.image.name, versions.collect());
        }
        self.suffixes(&catalog);
    }

    fn expires_soon(&mut self, kinds: &PoolKinds<'a, '_>, resolved: &ResolvedVersion<'_>, expires: Timestamp) {
        let version = resolved.selectable;
        let then = after(expires);
        let listed = kinds.catalog.images.iter().flat_map(|image| &image.versions).map(|version| &version.listed);
        let stages: Vec<_> = self.resolution.versions().iter().zip(listed.map(|listed| listed.at(then))).collect();
        let lasting: Vec<&ResolvedVersion<'_>> =
            stages.iter().filter(|(_, stage)| stage.is_active()).map(|(version, _)| *version).collect();
        let stranded = self.usable_groups().filter(|group| {
            self.can_have(group, resolved) && !lasting.iter().any(|version| self.can_have(group, version))
        });
        let stranded: Vec<&str> = stranded.flat_map(|group| group.names()).collect();
        let when = format!("It expires in {}", in_days(expires, self.settings.now));
        let has_successor = stages
            .iter()
            .any(|(other, stage)| other.selectable.image == version.image && *stage == Classification::Supported);
        let way = self.way_text(&self.ways(kinds, resolved, then.max(self.settings.now)));
        let (severity, reason) = if stranded.is_empty() {
            let after = if has_successor { "" } else { ", and no supported version of the image lasts longer" };
            (Severity::Warning, format!("{when}; no new pool can select it then{after}{way}."))
        } else {
            let lost = count(stranded.len(), "machine type");
            (Severity::Error, format!("{when}; then no image is left for {lost}: {}{way}.", some_of(stranded)))
        };
        let advice = "Add its successor before, or move the expirationDate.";
        self.find_as(severity, Rule::ExpiresSoon, &version.path, version.title(), reason, advice);
    }

    /// Reports an expired version. Its date is unknown if the stage has no start time.
    fn expired(&mut self, kinds: &PoolKinds<'a, '_>, resolved: &ResolvedVersion<'_>, expires: Option<Timestamp>) {
        let version = resolved.selectable;
        let way = self.way_text(&self.ways(kinds, resolved, self.moment_of(expires)));
        let since = self.since_text(expires);
        let reason = format!("It has expired{since}: no new pool can select it{way}.");
        let advice = "Remove it from both halves once no Shoot uses it; Gardener refuses that as long as one does.";
        self.find(Rule::Expired, &version.path, version.title(), reason, advice);
    }

    /// Reports versions with in-place updates from which no newer version can be reached in place.
    fn gaps_in_place(&mut self, kinds: &PoolKinds<'a, '_>) {
        for resolved in self.resolution.versions().iter().filter(|version| !version.selectable.is_expired()) {
            let Some(image) = kinds.image(resolved) else { continue };
            let missing = unreached(image, &resolved.selectable.version, self.settings.now);
            if missing.is_empty() {
                continue;
            }
            let reason = format!(
                "No newer version can be reached from it in place: {}. Pools that are updated in place stay at it.",
                some_of(missing.iter().map(String::as_str))
            );
            let advice = "Lower minVersionForUpdate, or add a version in between.";
            self.find(Rule::InPlaceGap, &resolved.selectable.path, resolved.selectable.title(), reason, advice);
        }
    }

    /// Reports versions without expiration: deprecated ones, and several supported ones of a minor unless Gardener
    /// rejects them.
    fn without_end(&mut self, name: &str, versions: Vec<VersionOfList<'_>>) {
        let mut supported: BTreeMap<(u64, u64), Vec<&VersionOfList<'_>>> = BTreeMap::new();
        for version in versions.iter().filter(|version| version.listed.expires().is_none()) {
            let listed = version.listed;
            match (listed.at(self.settings.now), &listed.version) {
                (Classification::Deprecated, _) => {
                    let reason = "It is deprecated and never expires: pools and control planes with it without automatic updates keep it forever.";
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
            let is_refused = of_minor.iter().filter(|version| version.is_marked_supported).count() > 1;
            of_minor.sort_by_key(|version| std::cmp::Reverse(version.listed.version.as_ref().ok()));
            if is_refused {
                continue;
            }
            let Some(older) = of_minor.get(1) else { continue };
            let texts: Vec<&str> = of_minor.iter().map(|version| version.listed.text).collect();
            let reason = format!(
                "Several versions of one minor are supported without an end: {}. Nothing tells owners to leave the older ones.",
                enumerated(&texts)
            );
            let advice = "Classify the older ones as deprecated and set their expirationDate.";
            self.find(Rule::TwoSupported, &older.path, format!("{name} {major}.{minor}"), reason, advice);
        }
    }
}

/// The unreachable newer versions with `inPlaceUpdates`, with their requirements; empty if one can be reached.
fn unreached(image: &ListedImage<'_>, version: &str, now: Timestamp) -> Vec<String> {
    let Some(from) = image.versions.iter().find(|known| known.listed.text == version) else { return Vec::new() };
    let (true, Ok(current)) = (from.is_updated_in_place(), &from.listed.version) else { return Vec::new() };
    let newer = image.versions.iter().filter(|other| {
        let stage = other.listed.at(now);
        let is_newer = other.listed.version.as_ref().is_ok_and(|other| other > current);
        is_newer && other.is_updated_in_place() && stage.is_active() && stage != Classification::Preview
    });
    let mut missing = Vec::new();
    for other in newer {
        match unfit_in_place(other, version) {
            None => return Vec::new(),
            Some(unfit) => missing.push(format!("{}: {unfit}", other.listed.text)),
        }
    }
    missing
}

fn is_marked_supported<'v>(version: impl Into<Life<'v>>) -> bool {
    version.into().classification == Some(Classification::Supported.word())
}
