//! Finds versions of a profile, and images at a cloud, that are not in use. Anything unclear is treated as a use.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::catalogue::Catalogue;
use super::lock::Lock;
use super::requested_names::RequestedNames;
use super::users::{Reader, parent, title};
use super::version_users::{ImageVersionStage, PlannedVersion, VersionUse, VersionUsers, kept_image_version};
use crate::resolved_profile::profile::Profile;
use crate::resolved_profile::selectable::SelectableVersion;
use wire::capabilities::Classification;

pub use super::users::UsersError;

/// The versions of a profile with their users, and the unused images.
#[derive(Debug, Serialize)]
pub struct Unused {
    /// Every version of the profile.
    pub versions: Vec<VersionNeed>,
    /// Images at the cloud that no profile, lock or user refers to.
    pub images: Vec<UnusedImage>,
    /// Number of documents searched.
    pub documents: usize,
}

/// A version and its users.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionNeed {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// Its classification.
    pub stage: Classification,
    /// Number of documents that need it.
    pub users: usize,
    /// Some of these documents.
    pub examples: Vec<String>,
    /// Why an unused version has to stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Unused images of an unused version.
    pub images: Vec<String>,
}

impl VersionNeed {
    /// Whether it can be removed.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.users == 0 && self.kept.is_none()
    }
}

/// An unused image.
#[derive(Debug, Serialize)]
pub struct UnusedImage {
    /// Name at the cloud.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The region.
    pub region: String,
}

/// Finds versions and images of a profile that nothing uses. `objects` is the landscape: Shoots,
/// NamespacedCloudProfiles, Workers, ShootStates, machine classes and any others; `planned` are the versions that
/// maintenance will move Shoots to.
///
/// # Errors
/// If a document can't be decoded, because then its uses are unknown.
pub fn unused(
    profile: &Profile,
    objects: &[Value],
    planned: &[PlannedVersion],
    catalogue: &Catalogue,
    lock: Option<&Lock>,
    now: Timestamp,
) -> Result<Unused, UsersError> {
    if !objects.iter().any(|document| document["kind"] == "Shoot" || document["kind"] == "Worker") {
        return Err(UsersError::NoUsers);
    }
    let resolved_profile = profile.resolved_profile(now);
    let mut listed: BTreeSet<String> = resolved_profile.images.iter().flat_map(ids_of).collect();
    let of_cloud = catalogue.images().iter().filter(|image| image.provider == profile.spec.provider_type);
    let at_cloud = of_cloud.clone().map(|image| image.reference.value.clone());
    let requested = RequestedNames::new(listed.iter().cloned().chain(at_cloud));
    let parents: BTreeMap<String, String> = objects.iter().filter_map(parent).collect();
    let reader = Reader {
        profile: profile.name(),
        provider: &profile.spec.provider_type,
        requested: &requested,
        parents: &parents,
    };
    let mut ids: BTreeSet<String> = BTreeSet::new();
    let listed_versions =
        resolved_profile.images.iter().map(|version| (Some(version.image.clone()), version.version.clone()));
    let mut users = VersionUsers::new(listed_versions);
    planned.iter().for_each(|planned| users.plan(planned));
    for document in std::iter::once(&profile.document).chain(objects) {
        let mut needs = reader.needs(document)?;
        ids.append(&mut needs.ids);
        listed.append(&mut needs.listed);
        users.add(&title(document), &needs);
    }
    let mut needed = ids.clone();
    let mut versions: Vec<VersionNeed> = Vec::new();
    for (version, kept) in resolved_profile.images.iter().zip(kept_versions(&resolved_profile.images, now)) {
        let VersionUse { users: count, mut examples } = users.of(Some(&version.image), &version.version);
        let by_id = ids_of(version).filter(|id| ids.contains(id)).count();
        if count == 0 && by_id > 0 {
            examples.push("by the name of its image".to_owned());
        }
        let need = VersionNeed {
            image: version.image.clone(),
            version: version.version.clone(),
            stage: version.classification,
            users: count.max(by_id),
            examples,
            kept,
            images: Vec::new(),
        };
        if !need.is_unused() {
            needed.extend(ids_of(version));
        }
        versions.push(need);
    }
    for (need, version) in versions.iter_mut().zip(&resolved_profile.images).filter(|(need, _)| need.is_unused()) {
        let unneeded: BTreeSet<String> = ids_of(version).filter(|id| !needed.contains(id)).collect();
        need.images = unneeded.into_iter().collect();
    }
    let locked =
        lock.into_iter().flat_map(|lock| lock.images.values()).map(|locked| locked.reference.value.to_lowercase());
    let elsewhere: BTreeSet<String> = needed.into_iter().chain(listed).chain(locked).collect();
    let images = of_cloud.filter(|image| !elsewhere.contains(&image.reference.value.to_lowercase())).map(|image| {
        UnusedImage { id: image.reference.value.clone(), name: image.name.clone(), region: image.location().to_owned() }
    });
    Ok(Unused { versions, images: images.collect(), documents: objects.len() })
}

/// Image names of a version at the cloud, in lower case, because clouds ignore case.
fn ids_of(version: &SelectableVersion) -> impl Iterator<Item = String> + '_ {
    let names = version.flavors.iter().flat_map(|flavor| flavor.anywhere.iter().chain(flavor.by_region.values()));
    names.map(|name| name.value.to_lowercase())
}

/// Why each version must be kept even if it has no users, by its position in the resolved profile.
fn kept_versions(selectable: &[SelectableVersion], now: Timestamp) -> Vec<Option<String>> {
    let stage_of = |version: &SelectableVersion| ImageVersionStage {
        version: version.version.clone(),
        stage: version.classification,
        expires: version.expires,
        architectures: version.architectures.clone(),
    };
    let mut by_image: BTreeMap<&str, Vec<ImageVersionStage>> = BTreeMap::new();
    let mut positions = Vec::with_capacity(selectable.len());
    for version in selectable {
        let of_image = by_image.entry(&version.image).or_default();
        positions.push((version.image.as_str(), of_image.len()));
        of_image.push(stage_of(version));
    }
    let kept = positions.iter().map(|(image, position)| kept_image_version(by_image.get(image)?, *position, now));
    kept.collect()
}
