//! The effects of an edit on the users of a CloudProfile: which machine types get another image, which combinations
//! appear or vanish, which versions change their classification, and what is newly rejected.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_with::apply;

use super::capability_change::{CapabilityChange, capability_changes};
use super::equivalence::{Difference, Reply, compare};
use super::lint::{Finding, Settings, Severity, lint};
use super::new_types::{NewMachineType, new_machine_types};
use super::profile::{Profile, ProfileError};
use super::resolution::Resolution;
use super::selectable::{ResolvedProfile, SelectableVersion};
use crate::versions::catalog::{ListedVersion, VersionCatalog};
use decisions::provider::Providers;
use decisions::provider::explanation::ImageName;
use wire::api::gardener::ProfileSpec;
use wire::capabilities::Classification;

/// Name and version of the schema. New fields don't change it; changed meanings do.
pub const SCHEMA: &str = "cloudprofile-diff/v1";

/// How two profiles differ.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileDiff {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Capabilities that were added, removed, reordered or got other values.
    pub capabilities: Vec<CapabilityChange>,
    /// Changes of the usable machine types.
    pub machine_types: NamesDiff,
    /// The images of added machine types.
    pub new_machine_types: Vec<NewMachineType>,
    /// Image versions that were added, removed or changed their classification.
    pub versions: Vec<VersionChange>,
    /// Kubernetes versions that were added, removed or changed their classification.
    pub kubernetes: Vec<KubernetesChange>,
    /// Changes of the regions.
    pub regions: NamesDiff,
    /// Changes of the zones in regions that both sides have, as `region/zone`.
    pub zones: NamesDiff,
    /// Changes of the usable volume types.
    pub volume_types: NamesDiff,
    /// Combinations of machine types and image versions that differ; those that take something away come first.
    pub combinations: Vec<CombinationChange>,
    /// Errors for which Gardener or the provider rejects NEW, but not OLD.
    pub refused: Vec<Finding>,
    /// Number of compared combinations, counted for each region.
    pub compared: usize,
}

/// Names that only one side has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamesDiff {
    /// Names only in NEW.
    pub added: Vec<String>,
    /// Names only in OLD.
    pub removed: Vec<String>,
}

/// An image version that differs.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionChange {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// Its stage in OLD, if it exists there.
    pub before: Option<Stage>,
    /// Its stage in NEW, if it exists there.
    pub after: Option<Stage>,
}

/// A Kubernetes version that differs.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubernetesChange {
    /// The version.
    pub version: String,
    /// Its stage in OLD, if it exists there.
    pub before: Option<Stage>,
    /// Its stage in NEW, if it exists there.
    pub after: Option<Stage>,
}

impl KubernetesChange {
    /// Whether users can no longer choose it, or must stop using it.
    fn is_taken_away(&self) -> bool {
        self.after.as_ref().is_none_or(|stage| !stage.classification.is_active())
    }
}

/// The classification of a version, and until when it can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// At the time of the comparison.
    pub classification: Classification,
    /// When it expires, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// The effect on a combination, in printing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It is no longer available.
    Vanishes,
    /// New machines start from another image with the same version.
    AnotherImage,
    /// The image stays, but the common capabilities of machine and image change the machine, such as its network.
    OtherMachine,
    /// It becomes available.
    Appears,
    /// There is an image for it now, of a version that no new pool can select: only pools that have the version get it.
    AppearsForExisting,
}

impl Effect {
    /// Whether the combination is no longer available, or new machines with it differ.
    #[must_use]
    pub fn takes_something(self) -> bool {
        !matches!(self, Self::Appears | Self::AppearsForExisting)
    }
}

/// Machine types with the same change of a version.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CombinationChange {
    /// The effect of the edit.
    pub effect: Effect,
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// The machine types, which exist on both sides.
    pub machine_types: Vec<String>,
    /// The regions; empty if images are the same in every region.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The image before; `None` if there was none or Gardener rejected the combination.
    pub before: Option<ImageName>,
    /// The image after.
    pub after: Option<ImageName>,
}

impl ProfileDiff {
    /// Whether there are no differences that affect users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names().iter().all(|names| **names == NamesDiff::default())
            && self.capabilities.is_empty()
            && self.versions.is_empty()
            && self.kubernetes.is_empty()
            && self.combinations.is_empty()
            && self.refused.is_empty()
    }

    /// The names that only one side has, for all kinds of names.
    #[must_use]
    pub fn names(&self) -> [&NamesDiff; 4] {
        [&self.machine_types, &self.regions, &self.zones, &self.volume_types]
    }

    /// Whether something is removed, rejected, or behaves differently under the same name.
    #[must_use]
    pub fn is_hazardous(&self) -> bool {
        let removes_version = self.versions.iter().any(|version| version.after.is_none());
        removes_version
            || self.kubernetes.iter().any(KubernetesChange::is_taken_away)
            || self.names().iter().any(|names| !names.removed.is_empty())
            || self.capabilities.iter().any(|change| change.change.takes_something())
            || !self.refused.is_empty()
            || self.combinations.iter().any(|combination| combination.effect.takes_something())
    }
}

/// Compares two CloudProfiles.
///
/// # Errors
/// If one of the profiles can't be read.
pub fn diff(old: &Value, new: &Value, settings: Settings, providers: Providers) -> Result<ProfileDiff, ProfileError> {
    let refused = refused(old, new, settings, providers)?;
    let old = Profile::read(old.clone(), providers)?;
    let new = Profile::read(new.clone(), providers)?;
    let [before, after] = [&old, &new].map(|profile| profile.resolved_profile(settings.now));
    let old = &old.spec;
    let new = &new.spec;
    let resolution = Resolution::of(&after);
    let check = compare(&Resolution::of(&before), &resolution);
    let machine_types = names(&before, &after, |resolved_profile| {
        resolved_profile.machine_types.iter().filter(|known| known.usable).map(|known| known.name.clone()).collect()
    });
    Ok(ProfileDiff {
        schema: SCHEMA,
        capabilities: capability_changes(&old.machine_capabilities, &new.machine_capabilities),
        new_machine_types: new_machine_types(&machine_types.added, &resolution),
        machine_types,
        versions: versions(&before, &after),
        kubernetes: kubernetes(old, new, settings.now),
        regions: names(old, new, |spec| spec.regions.iter().map(|region| region.name.clone()).collect()),
        zones: zones(old, new),
        volume_types: names(old, new, |spec| {
            let usable = spec.volume_types.iter().filter(|known| known.usable != Some(false));
            usable.map(|known| known.name.clone()).collect()
        }),
        compared: check.combinations,
        combinations: combinations(check.differences, &after),
        refused,
    })
}

/// Errors of NEW that OLD does not have.
fn refused(old: &Value, new: &Value, settings: Settings, providers: Providers) -> Result<Vec<Finding>, ProfileError> {
    let errors = |document: &Value| -> Result<Vec<Finding>, ProfileError> {
        let findings = lint(document, settings, providers)?.findings.into_iter();
        Ok(findings.filter(|finding| finding.severity == Severity::Error).collect())
    };
    let known = errors(old)?;
    // The path is ignored, because edits before it may have moved it.
    let message = |finding: &Finding| (finding.rule, finding.subject.clone(), finding.reason.clone());
    let known: Vec<_> = known.iter().map(message).collect();
    Ok(errors(new)?.into_iter().filter(|finding| !known.contains(&message(finding))).collect())
}

/// Kubernetes versions that differ, in the order of OLD; new ones come last.
fn kubernetes(old: &ProfileSpec, new: &ProfileSpec, now: Timestamp) -> Vec<KubernetesChange> {
    let [before, after] = [old, new].map(|spec| VersionCatalog::new("", spec).kubernetes);
    let stage = |versions: &[ListedVersion<'_>], version: &str| {
        let listed = versions.iter().find(|listed| listed.text == version)?;
        Some(Stage { classification: listed.at(now), expires: listed.expires() })
    };
    let mut known = BTreeSet::new();
    let versions = before.iter().chain(&after).map(|listed| listed.text).filter(|version| known.insert(*version));
    let change = |version: &str| {
        let before = stage(&before, version);
        let after = stage(&after, version);
        (before != after).then(|| KubernetesChange { version: version.to_owned(), before, after })
    };
    versions.filter_map(change).collect()
}

/// Added and removed regions are reported themselves, so their zones are left out.
fn zones(old: &ProfileSpec, new: &ProfileSpec) -> NamesDiff {
    let is_in = |spec: &ProfileSpec, name: &str| spec.regions.iter().any(|region| region.name == name);
    names(old, new, |spec| {
        let regions = spec.regions.iter().filter(|region| is_in(old, &region.name) && is_in(new, &region.name));
        regions.flat_map(|region| region.zones.iter().map(|zone| format!("{}/{}", region.name, zone.name))).collect()
    })
}

/// The names that only one side has.
fn names<T>(before: &T, after: &T, names: impl Fn(&T) -> BTreeSet<String>) -> NamesDiff {
    let before = names(before);
    let after = names(after);
    NamesDiff {
        added: after.difference(&before).cloned().collect(),
        removed: before.difference(&after).cloned().collect(),
    }
}

fn versions(before: &ResolvedProfile, after: &ResolvedProfile) -> Vec<VersionChange> {
    let stage = |resolved_profile: &ResolvedProfile, title: &(String, String)| {
        let is_meant = |version: &&SelectableVersion| version.image == title.0 && version.version == title.1;
        let version = resolved_profile.images.iter().find(is_meant)?;
        Some(Stage { classification: version.classification, expires: version.expires })
    };
    let mut known = BTreeSet::new();
    let titles = after.images.iter().chain(&before.images);
    let titles = titles.map(|version| (version.image.clone(), version.version.clone()));
    let change = |title: (String, String)| {
        let was = stage(before, &title);
        let is = stage(after, &title);
        (was != is).then_some(VersionChange { image: title.0, version: title.1, before: was, after: is })
    };
    titles.filter(|title| known.insert(title.clone())).filter_map(change).collect()
}

/// Machine types for which the same happens are one change.
fn combinations(differences: Vec<Difference>, new: &ResolvedProfile) -> Vec<CombinationChange> {
    let can_be_selected: BTreeSet<(&str, &str)> = new
        .images
        .iter()
        .filter(|version| version.classification.is_active())
        .map(|version| (version.image.as_str(), version.version.as_str()))
        .collect();
    let mut changes: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut order: Vec<(String, String)> = Vec::new();
    for Difference { image, version, machine_types, regions, before, after } in differences {
        let Some(mut effect) = effect(&before, &after) else { continue };
        if effect == Effect::Appears && !can_be_selected.contains(&(image.as_str(), version.as_str())) {
            effect = Effect::AppearsForExisting;
        }
        let title = (image, version);
        let location = order.iter().position(|known| *known == title).unwrap_or_else(|| {
            order.push(title);
            order.len() - 1
        });
        let [before, after] = [before, after].map(|result| if result.admitted { result.image } else { None });
        changes.entry((effect, location, regions, before, after)).or_default().extend(machine_types);
    }
    let change = |((effect, location, regions, before, after), machine_types): ((Effect, usize, _, _, _), _)| {
        let (image, version) = order.get(location).cloned().unwrap_or_default();
        CombinationChange { effect, image, version, machine_types, regions, before, after }
    };
    changes.into_iter().map(change).collect()
}

/// The effect of a different result; `None` if the combination is available neither before nor after.
#[must_use]
pub fn effect(before: &Reply, after: &Reply) -> Option<Effect> {
    match [before, after].map(|result| result.image.is_some() && result.admitted) {
        [true, false] => Some(Effect::Vanishes),
        [false, true] => Some(Effect::Appears),
        [true, true] if before.image != after.image => Some(Effect::AnotherImage),
        [true, true] => Some(Effect::OtherMachine),
        [false, false] => None,
    }
}
