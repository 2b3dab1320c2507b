//! The CloudProfiles that Shoots refer to. A NamespacedCloudProfile is merged with its parent if that is known, so that
//! changes of either reach the Shoots. Otherwise its status has the merged profile.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::cloud_profile::{CloudProfiles, SharedCloudProfile};
use profiles::resolved_profile::{ProfileError, merged};

/// CloudProfiles that Shoots may refer to.
#[derive(Clone, Debug, Default)]
pub struct NamedProfiles {
    whole: BTreeMap<String, Arc<SharedCloudProfile>>,
    /// By namespace and name, separated by `/`.
    namespaced: BTreeMap<String, Arc<NamespacedProfile>>,
}

#[derive(Debug)]
struct NamespacedProfile {
    document: Value,
    /// The merged profile, by the address of its parent. Addresses stay unique, because [`CloudProfiles`] keeps every
    /// profile.
    merged: Mutex<HashMap<usize, Arc<SharedCloudProfile>>>,
}

impl NamedProfiles {
    /// Adds a CloudProfile or a NamespacedCloudProfile.
    ///
    /// # Errors
    /// If a field of a CloudProfile has the wrong type.
    pub fn add(&mut self, profile: Value, shared: &CloudProfiles) -> Result<(), ProfileError> {
        let of = |member: &str| profile["metadata"][member].as_str().unwrap_or_default().to_owned();
        if profile["kind"] == "NamespacedCloudProfile" {
            let name = format!("{}/{}", of("namespace"), of("name"));
            self.namespaced.insert(name, Arc::new(NamespacedProfile { document: profile, merged: Mutex::default() }));
        } else {
            self.whole.insert(of("name"), shared.share(profile)?);
        }
        Ok(())
    }

    /// The profile with this name, in the form of [`name_for`](Self::name_for). `None` if it is unknown, or if a
    /// NamespacedCloudProfile has neither a known parent nor a status.
    ///
    /// # Errors
    /// If a NamespacedCloudProfile can't be merged with its parent.
    pub fn get(&self, name: &str, shared: &CloudProfiles) -> Result<Option<Arc<SharedCloudProfile>>, ProfileError> {
        if let Some(whole) = self.whole.get(name) {
            return Ok(Some(Arc::clone(whole)));
        }
        let Some(namespaced) = self.namespaced.get(name) else { return Ok(None) };
        let parent = self.whole.get(namespaced.parent());
        let address = parent.map(|parent| Arc::as_ptr(parent).addr()).unwrap_or_default();
        let mut known = namespaced.merged.lock();
        if let Some(known) = known.get(&address) {
            return Ok(Some(Arc::clone(known)));
        }
        let mut document = match (parent, namespaced.document.pointer("/status/cloudProfileSpec")) {
            (Some(parent), _) => merged(&namespaced.document, &parent.document, shared.providers())?,
            (None, Some(merged)) => {
                let mut document = namespaced.document.clone();
                document["spec"] = merged.clone();
                document
            }
            (None, None) => return Ok(None),
        };
        document[EXTENSION] = namespaced.document["spec"].clone();
        let profile = shared.share(document)?;
        known.insert(address, Arc::clone(&profile));
        Ok(Some(profile))
    }

    /// The name of the profile to read for this name: itself, or the parent of a NamespacedCloudProfile.
    #[must_use]
    pub fn needed<'a>(&'a self, name: &'a str) -> &'a str {
        self.namespaced.get(name).map_or(name, |namespaced| namespaced.parent())
    }

    /// The parents of all NamespacedCloudProfiles.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.namespaced.values().map(|namespaced| namespaced.parent())
    }

    /// All profiles as they were added.
    pub fn documents(&self) -> impl Iterator<Item = (&str, &Value)> {
        let whole = self.whole.iter().map(|(name, profile)| (name.as_str(), &profile.document));
        whole.chain(self.namespaced.iter().map(|(name, profile)| (name.as_str(), &profile.document)))
    }

    /// Whether there are no profiles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.namespaced.is_empty()
    }

    /// Adds the profiles of `other`, which replace those with the same name.
    #[must_use]
    pub fn overlaid_by(mut self, other: &Self) -> Self {
        self.whole.retain(|name, _| !other.namespaced.contains_key(name));
        self.namespaced.retain(|name, _| !other.whole.contains_key(name));
        self.whole.extend(other.whole.iter().map(|(name, profile)| (name.clone(), Arc::clone(profile))));
        self.namespaced.extend(other.namespaced.iter().map(|(name, profile)| (name.clone(), Arc::clone(profile))));
        self
    }

    /// The name of the profile that a Shoot refers to. For a NamespacedCloudProfile, the project's namespace precedes
    /// it.
    #[must_use]
    pub fn name_for(shoot: &Value) -> String {
        let spec = &shoot["spec"];
        let reference = spec["cloudProfile"]["name"].as_str().or(spec["cloudProfileName"].as_str()).unwrap_or_default();
        match spec["cloudProfile"]["kind"].as_str() {
            Some("NamespacedCloudProfile") => {
                format!("{}/{reference}", shoot["metadata"]["namespace"].as_str().unwrap_or_default())
            }
            _ => reference.to_owned(),
        }
    }

    /// Whether both have the same profiles from the same collection.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let whole = |profiles: &'_ Self| -> Vec<(String, usize)> {
            profiles.whole.iter().map(|(name, profile)| (name.clone(), Arc::as_ptr(profile).addr())).collect()
        };
        let is_same_document = |name: &String, profile: &Arc<NamespacedProfile>| {
            other.namespaced.get(name).is_some_and(|other| other.document == profile.document)
        };
        whole(self) == whole(other)
            && self.namespaced.len() == other.namespaced.len()
            && self.namespaced.iter().all(|(name, profile)| is_same_document(name, profile))
    }
}

/// Field of a merged profile that has the `spec` of the NamespacedCloudProfile.
const EXTENSION: &str = "namespacedSpec";

impl NamespacedProfile {
    fn parent(&self) -> &str {
        self.document["spec"]["parent"]["name"].as_str().unwrap_or_default()
    }
}

impl SharedCloudProfile {
    /// The NamespacedCloudProfile that this profile was merged from, if `parent` is the name of its parent.
    #[must_use]
    pub fn extension_of(&self, parent: &str) -> Option<Value> {
        let spec = self.document.get(EXTENSION).filter(|spec| spec["parent"]["name"] == parent)?;
        Some(serde_json::json!({
            "kind": "NamespacedCloudProfile", "metadata": self.document["metadata"], "spec": spec,
        }))
    }
}
