//! Who uses the versions of a CloudProfile: the one answer to "may I delete this version?". A version is used when a document of
//! the landscape names it (a Shoot, a NamespacedCloudProfile, a Worker with the images that it keeps, a ShootState), and when
//! maintenance will move a pool to it: without it, that pool would be forced to a version that its owner did not choose.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::requested_names::RequestedNames;
use super::users::{Needs, Reader, UsersError, parent, title};
use wire::api::gotext::version::Version;
use wire::capabilities::Classification;

/// Users of a version that are named.
const MAX_EXAMPLES: usize = 3;

/// A version that a Shoot will have after maintenance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedVersion {
    /// The image; `None` for Kubernetes.
    pub image: Option<String>,
    /// The version that it is moved to.
    pub version: String,
    /// The Shoot, and when it is moved.
    pub user: String,
}

/// The users of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionUse {
    /// How many documents and planned moves use it.
    pub users: usize,
    /// Some of them.
    pub examples: Vec<String>,
}

impl VersionUse {
    fn add(&mut self, user: &str) {
        self.users += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(user.to_owned());
        }
    }
}

/// The image, `None` for Kubernetes, and the version.
type Key = (Option<String>, String);

/// The versions of a profile with their users.
#[derive(Debug, Default)]
pub struct VersionUsers(BTreeMap<Key, VersionUse>);

impl VersionUsers {
    /// Starts without users. Each version has the name of its image, or `None` for Kubernetes.
    pub fn new(listed: impl IntoIterator<Item = (Option<String>, String)>) -> Self {
        Self(listed.into_iter().map(|key| (key, VersionUse::default())).collect())
    }

    /// Adds what a document names; `user` is its title.
    pub(super) fn add(&mut self, user: &str, needs: &Needs) {
        if needs.versions.is_empty() && needs.open.is_empty() && needs.kubernetes.is_empty() {
            return;
        }
        for ((image, version), found) in &mut self.0 {
            let is_named = match image {
                None => needs.kubernetes.iter().any(|prefix| begins_with(version, prefix)),
                Some(image) => {
                    let is_open = |(name, prefix): &(String, String)| {
                        (name.is_empty() || name == image) && begins_with(version, prefix)
                    };
                    needs.versions.contains(&(image.clone(), version.clone())) || needs.open.iter().any(is_open)
                }
            };
            if is_named {
                found.add(user);
            }
        }
    }

    /// Adds what the objects of a landscape name of the versions of a profile; `provider` is its `spec.type`.
    ///
    /// # Errors
    /// When an object can't be understood: then it is unknown what it uses.
    pub fn add_objects(&mut self, profile: &str, provider: &str, objects: &[Value]) -> Result<(), UsersError> {
        let requested = RequestedNames::new(std::iter::empty());
        let parents: BTreeMap<String, String> = objects.iter().filter_map(parent).collect();
        let reader = Reader { profile, provider, requested: &requested, parents: &parents };
        for object in objects {
            self.add(&title(object), &reader.needs(object)?);
        }
        Ok(())
    }

    /// Adds a move of maintenance.
    pub fn plan(&mut self, planned: &PlannedVersion) {
        if let Some(found) = self.0.get_mut(&(planned.image.clone(), planned.version.clone())) {
            found.add(&planned.user);
        }
    }

    /// The users of a version.
    #[must_use]
    pub fn of(&self, image: Option<&str>, version: &str) -> VersionUse {
        self.0.get(&(image.map(str::to_owned), version.to_owned())).cloned().unwrap_or_default()
    }
}

/// Whether a version is meant by its first numbers.
fn begins_with(version: &str, prefix: &str) -> bool {
    let rest = version.strip_prefix(prefix.trim_end_matches('.'));
    rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('.'))
}

/// A version of one image, as far as it decides whether another version may be deleted.
#[derive(Clone, Debug)]
pub struct ImageVersionStage {
    /// The version.
    pub version: String,
    /// Its stage at the moment of the question.
    pub stage: Classification,
    /// When it expires, if that is known.
    pub expires: Option<Timestamp>,
    /// CPU architectures that it supports.
    pub architectures: Vec<String>,
}

/// Why a version of an image must be kept even if it has no users, for example because new pools get the newest one.
#[must_use]
pub fn kept_image_version(versions: &[ImageVersionStage], position: usize, now: Timestamp) -> Option<String> {
    let version = versions.get(position)?;
    if versions.len() == 1 {
        return Some("it is the only version of this image".to_owned());
    }
    if !is_for_new_pools(version, now) {
        return None;
    }
    let is_newest = |architecture: &String| {
        let rivals = versions
            .iter()
            .filter(|rival| rival.stage == version.stage && rival.architectures.contains(architecture))
            .filter(|rival| is_for_new_pools(rival, now));
        rivals
            .max_by_key(|rival| Version::parse(&rival.version).ok())
            .is_some_and(|newest| newest.version == version.version)
    };
    let is_kept = version.architectures.iter().any(is_newest);
    is_kept.then(|| format!("the newest {} version", version.stage.word()))
}

fn is_for_new_pools(version: &ImageVersionStage, now: Timestamp) -> bool {
    version.expires.is_none_or(|expires| expires > now)
        && matches!(version.stage, Classification::Supported | Classification::Preview | Classification::Unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_moves_are_users() {
        let mut users = VersionUsers::new([(Some("os".to_owned()), "1.0.0".to_owned()), (None, "1.33.1".to_owned())]);
        let user = "Shoot a/b, from 2026-03-01 on".to_owned();
        users.plan(&PlannedVersion { image: Some("os".to_owned()), version: "1.0.0".to_owned(), user: user.clone() });
        assert_eq!(users.of(Some("os"), "1.0.0"), VersionUse { users: 1, examples: vec![user] });
        assert_eq!(users.of(None, "1.33.1").users, 0);
    }

    #[test]
    fn kubernetes_versions_of_documents_are_users() {
        let mut users = VersionUsers::new([(None, "1.33.1".to_owned()), (None, "1.34.0".to_owned())]);
        let mut needs = Needs::default();
        needs.kubernetes.insert("1.33".to_owned());
        users.add("Shoot a/b", &needs);
        assert_eq!((users.of(None, "1.33.1").users, users.of(None, "1.34.0").users), (1, 0));
    }
}
