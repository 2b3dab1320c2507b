//! Finds versions of a profile, and images at a cloud, that are not in use. Anything unclear is treated as a use.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::asked_names::AskedNames;
use super::catalogue::Catalogue;
use super::lock::Lock;
use super::users::{Needs, Reader, objects, parent, title};
use crate::api::gotext::version::Version;
use crate::capabilities::Classification;
use crate::offer::offered::OfferedVersion;
use crate::offer::profile::Profile;

pub use super::users::UsersError;

/// Maximum number of examples of users per version.
const NAMED: usize = 3;

/// Unused versions and images, and why the others are needed.
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

/// Finds the unused parts of a profile. `documents` is the landscape: Shoots, NamespacedCloudProfiles, Workers,
/// ShootStates, machine classes and others.
///
/// # Errors
/// If a document can't be decoded, because then its uses are unknown.
pub fn unused(
    profile: &Profile,
    documents: Vec<Value>,
    catalogue: &Catalogue,
    lock: Option<&Lock>,
    now: Timestamp,
) -> Result<Unused, UsersError> {
    let documents = objects(documents)?;
    if !documents.iter().any(|document| document["kind"] == "Shoot" || document["kind"] == "Worker") {
        return Err(UsersError::NoUsers);
    }
    let offer = profile.offer(now);
    let mut listed: BTreeSet<String> = offer.images.iter().flat_map(ids_of).collect();
    let of_cloud = catalogue.images().iter().filter(|image| image.provider == profile.spec.provider_type);
    let at_cloud = of_cloud.clone().map(|image| image.reference.value.clone());
    let asked = AskedNames::new(listed.iter().cloned().chain(at_cloud));
    let parents: BTreeMap<String, String> = documents.iter().filter_map(parent).collect();
    let reader =
        Reader { profile: profile.name(), provider: &profile.spec.provider_type, asked: &asked, parents: &parents };
    let mut ids: BTreeSet<String> = BTreeSet::new();
    let mut users = Users::default();
    for document in std::iter::once(&profile.document).chain(&documents) {
        let mut needs = reader.needs(document)?;
        ids.append(&mut needs.ids);
        listed.append(&mut needs.listed);
        users.add(document, &needs, &offer.images);
    }
    let unneeded: Vec<Option<String>> =
        (0..offer.images.len()).map(|position| kept(&offer.images, position, now)).collect();
    let mut needed = ids.clone();
    let mut versions: Vec<VersionNeed> = Vec::new();
    for (position, (version, kept)) in offer.images.iter().zip(unneeded).enumerate() {
        let (count, mut examples) = users.of(position);
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
    for (need, version) in versions.iter_mut().zip(&offer.images).filter(|(need, _)| need.is_unused()) {
        let unneeded: BTreeSet<String> = ids_of(version).filter(|id| !needed.contains(id)).collect();
        need.images = unneeded.into_iter().collect();
    }
    let locked =
        lock.into_iter().flat_map(|lock| lock.images.values()).map(|locked| locked.reference.value.to_lowercase());
    let elsewhere: BTreeSet<String> = needed.into_iter().chain(listed).chain(locked).collect();
    let images = of_cloud.filter(|image| !elsewhere.contains(&image.reference.value.to_lowercase())).map(|image| {
        UnusedImage { id: image.reference.value.clone(), name: image.name.clone(), region: image.place().to_owned() }
    });
    Ok(Unused { versions, images: images.collect(), documents: documents.len() })
}

/// Image names of a version at the cloud, in lower case, because clouds ignore case.
fn ids_of(version: &OfferedVersion) -> impl Iterator<Item = String> + '_ {
    let names = version.flavors.iter().flat_map(|flavor| flavor.anywhere.iter().chain(flavor.by_region.values()));
    names.map(|name| name.value.to_lowercase())
}

/// Users of versions, by index in the offer.
#[derive(Default)]
struct Users(BTreeMap<usize, (usize, Vec<String>)>);

impl Users {
    fn add(&mut self, document: &Value, needs: &Needs, offered: &[OfferedVersion]) {
        if needs.versions.is_empty() && needs.open.is_empty() {
            return;
        }
        for (position, version) in offered.iter().enumerate() {
            let pair = (version.image.clone(), version.version.clone());
            let is_open = |(image, prefix): &(String, String)| {
                (image.is_empty() || *image == version.image) && begins_with(&version.version, prefix)
            };
            if needs.versions.contains(&pair) || needs.open.iter().any(is_open) {
                let (count, examples) = self.0.entry(position).or_default();
                *count += 1;
                if examples.len() < NAMED {
                    examples.push(title(document));
                }
            }
        }
    }

    fn of(&self, position: usize) -> (usize, Vec<String>) {
        self.0.get(&position).cloned().unwrap_or_default()
    }
}

/// Whether a version begins with these numbers.
fn begins_with(version: &str, prefix: &str) -> bool {
    let rest = version.strip_prefix(prefix.trim_end_matches('.'));
    rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('.'))
}

/// Why a version has to stay even if it is unused: new pools get the newest one.
fn kept(offered: &[OfferedVersion], position: usize, now: Timestamp) -> Option<String> {
    let version = offered.get(position)?;
    let others = || offered.iter().filter(|other| other.image == version.image);
    if others().count() == 1 {
        return Some("an image needs a version".to_owned());
    }
    let number = |version: &OfferedVersion| Version::parse(&version.version).ok();
    let is_new = |version: &OfferedVersion| {
        let is_active = version.expires.is_none_or(|expires| expires > now);
        is_active
            && matches!(
                version.classification,
                Classification::Supported | Classification::Preview | Classification::Unavailable
            )
    };
    let is_newest = |architecture: &String| {
        let rivals = others().filter(|other| {
            other.classification == version.classification && other.architectures.contains(architecture)
        });
        rivals
            .filter(|other| is_new(other))
            .max_by_key(|other| number(other))
            .is_some_and(|newest| newest.version == version.version)
    };
    let newest = is_new(version) && version.architectures.iter().any(is_newest);
    newest.then(|| format!("the newest {} version", version.classification.word()))
}
