//! CloudProfiles, shared by content. A landscape has thousands of Workers and a handful of profiles, so each profile is
//! decoded and compared once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;

use super::cause::Cause;
use super::difference::{Change, ChangedObject, apply, difference};
use decisions::provider::Providers;
use decisions::worker::plan::class_images::ImagePolicy;
use profiles::cloud_profile::architecture_fields::apply_defaults;
use wire::api::gardener::{CloudProfile, ProfileObject, ProfileSpec};
use wire::api::gotext::json::{DecodeError, decode_lenient, to_go_json};

/// One CloudProfile, as a document and decoded.
#[derive(Debug)]
pub struct SharedCloudProfile {
    /// The document.
    pub document: Value,
    /// The part that planning needs.
    pub decoded: CloudProfile,
    /// The full profile, decoded when a Shoot or its maintenance needs it.
    complete: OnceLock<Result<ProfileSpec, DecodeError>>,
}

impl SharedCloudProfile {
    /// Decodes a document.
    ///
    /// # Errors
    /// If a field has the wrong type.
    pub fn read(document: Value) -> Result<Self, DecodeError> {
        Ok(Self { decoded: decode_lenient(&to_go_json(&document))?, document, complete: OnceLock::new() })
    }

    /// The full profile, as the API server decodes it.
    ///
    /// # Errors
    /// If a field has the wrong type.
    pub(super) fn complete(&self) -> Result<&ProfileSpec, DecodeError> {
        let complete = self.complete.get_or_init(|| {
            let mut profile: ProfileObject = decode_lenient(&to_go_json(&self.document))?;
            apply_defaults(&mut profile.spec);
            Ok(profile.spec)
        });
        complete.as_ref().map_err(Clone::clone)
    }

    /// The profile's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.decoded.metadata.name.as_deref().unwrap_or_default()
    }
}

/// All CloudProfiles read so far, the changes between pairs of them, and the providers that plan from them.
#[derive(Debug, Default)]
pub struct CloudProfiles {
    providers: Providers,
    image_policy: ImagePolicy,
    hasher: RandomState,
    known: Mutex<HashMap<u64, Vec<Arc<SharedCloudProfile>>>>,
    steps: Mutex<HashMap<(usize, usize), Arc<ProfileStep>>>,
}

impl CloudProfiles {
    /// An empty collection for these providers.
    #[must_use]
    pub fn new(providers: Providers) -> Self {
        Self { providers, ..Self::default() }
    }

    /// The same collection for a controller with this image policy.
    #[must_use]
    pub fn with_image_policy(self, image_policy: ImagePolicy) -> Self {
        Self { image_policy, ..self }
    }

    /// The controller's policy for changed images of existing classes.
    #[must_use]
    pub fn image_policy(&self) -> ImagePolicy {
        self.image_policy
    }

    /// The providers that plan from the profiles.
    #[must_use]
    pub fn providers(&self) -> Providers {
        self.providers
    }

    /// Returns the profile with that content, and decodes it only if it is new.
    ///
    /// # Errors
    /// If a field has the wrong type.
    pub fn share(&self, document: Value) -> Result<Arc<SharedCloudProfile>, DecodeError> {
        let hash = self.hasher.hash_one(&document);
        let find = |known: &HashMap<u64, Vec<Arc<SharedCloudProfile>>>| {
            known.get(&hash).and_then(|same| same.iter().find(|profile| profile.document == document).cloned())
        };
        if let Some(profile) = find(&self.known.lock()) {
            return Ok(profile);
        }
        // Decoding needs no lock. Two threads may decode the same profile; the first result is kept.
        let profile = Arc::new(SharedCloudProfile::read(document)?);
        let mut known = self.known.lock();
        let same = known.entry(hash).or_default();
        if let Some(earlier) = same.iter().find(|earlier| earlier.document == profile.document) {
            return Ok(Arc::clone(earlier));
        }
        same.push(Arc::clone(&profile));
        Ok(profile)
    }

    /// The changes between two profiles of this collection.
    #[must_use]
    pub fn step(&self, old: &Arc<SharedCloudProfile>, new: &Arc<SharedCloudProfile>) -> Arc<ProfileStep> {
        // The collection keeps every profile, so addresses are never reused.
        let key = (Arc::as_ptr(old).addr(), Arc::as_ptr(new).addr());
        let mut steps = self.steps.lock();
        Arc::clone(steps.entry(key).or_insert_with(|| {
            Arc::new(ProfileStep {
                changes: difference(&ChangedObject::CloudProfile, &old.document, &new.document, &["spec"]),
                old: Arc::clone(old),
                between: Mutex::default(),
                causes: Mutex::default(),
            })
        }))
    }
}

type ReadProfile = Result<Arc<SharedCloudProfile>, DecodeError>;

/// The changes between two profiles, and the profiles with some of these changes.
#[derive(Debug)]
pub struct ProfileStep {
    /// Every change.
    pub changes: Vec<Change>,
    old: Arc<SharedCloudProfile>,
    between: Mutex<HashMap<Vec<usize>, ReadProfile>>,
    /// Causes found so far, by cache key.
    causes: Mutex<HashMap<String, Vec<Cause>>>,
}

impl ProfileStep {
    /// The causes found for a pool with this cache key.
    #[must_use]
    pub fn known_causes(&self, cache_key: &str) -> Option<Vec<Cause>> {
        self.causes.lock().get(cache_key).cloned()
    }

    /// Stores causes for other pools with the same cache key.
    pub fn keep_causes(&self, cache_key: String, causes: &[Cause]) {
        self.causes.lock().insert(cache_key, causes.to_vec());
    }

    /// The old profile with some of the changes.
    ///
    /// # Errors
    /// If the resulting profile can't be decoded.
    pub fn with(&self, chosen: &[usize]) -> ReadProfile {
        if chosen.is_empty() {
            return Ok(Arc::clone(&self.old));
        }
        let known = self.between.lock().get(chosen).cloned();
        known.unwrap_or_else(|| {
            let changes = chosen.iter().filter_map(|index| self.changes.get(*index));
            let profile = SharedCloudProfile::read(apply(&self.old.document, changes)).map(Arc::new);
            let mut between = self.between.lock();
            between.entry(chosen.to_vec()).or_insert(profile).clone()
        })
    }
}
