//! I/O: Clusters, read when they have changed, cut to what is needed of them. Clusters that embed the same CloudProfile,
//! which is most of each, share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{GetParams, Request};
use kube::{Client, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::api::gardener::{CloudProfile, Cluster, ClusterSpec};
use crate::api::gotext::json::{DecodeError, decode_lenient};
use crate::api::metadata::without_managers;
use crate::cluster::error::ReadError;
use crate::cluster::store::Store;

/// What is known of Clusters.
#[derive(Default)]
pub(crate) struct ClusterCache {
    /// Their versions, as a watch of metadata shows them.
    pub(crate) versions: Store<()>,
    read: Mutex<HashMap<String, ReadCluster>>,
    profiles: CloudProfiles,
}

struct ReadCluster {
    version: u64,
    cluster: Arc<Cluster>,
}

impl ClusterCache {
    /// The Cluster of that name as it is now, `None` when there is none.
    ///
    /// # Errors
    /// When it can't be read or decoded.
    pub(crate) async fn read(&self, client: &Client, name: &str) -> Result<Option<Arc<Cluster>>, ReadError> {
        self.forget(name);
        let api_error = |source| ReadError::Api { what: format!("Cluster {name:?}"), source };
        let request = Request::new(Cluster::url_path(&(), None))
            .get(name, &GetParams::default())
            .map_err(|error| api_error(kube::Error::BuildRequest(error)))?;
        let text = match client.request_text(request).await {
            Ok(text) => text,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            Err(error) => return Err(api_error(error)),
        };
        let cluster = self.profiles.cluster(&text);
        let cluster = cluster.map_err(|source| ReadError::Cluster { name: name.to_owned(), source })?;
        let cluster = Arc::new(cluster);
        let version = cluster.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        if let Some(version) = version {
            let read = ReadCluster { version, cluster: Arc::clone(&cluster) };
            self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), read);
        }
        Ok(Some(cluster))
    }

    /// The same, without a request where a watch shows no newer version than the one that was read before.
    ///
    /// # Errors
    /// When it can't be read or decoded.
    pub(crate) async fn read_if_newer(&self, client: &Client, name: &str) -> Result<Option<Arc<Cluster>>, ReadError> {
        let shown = self.versions.version("", name).filter(|_| self.versions.is_fresh());
        if let Some(shown) = shown {
            let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(read) = read.get(name).filter(|read| shown <= read.version) {
                return Ok(Some(Arc::clone(&read.cluster)));
            }
        }
        self.read(client, name).await
    }

    /// Nobody needs the Cluster any more.
    pub(crate) fn forget(&self, name: &str) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// CloudProfiles by a digest of their text, as long as somebody uses them.
#[derive(Default)]
struct CloudProfiles(Mutex<HashMap<[u8; 32], Weak<CloudProfile>>>);

impl CloudProfiles {
    /// Decodes a Cluster.
    fn cluster(&self, text: &str) -> Result<Cluster, DecodeError> {
        let document: ClusterText = decode_lenient(text)?;
        let cloud_profile = document.spec.cloud_profile.map(|text| self.share(text.get())).transpose();
        Ok(Cluster {
            metadata: document.metadata,
            spec: ClusterSpec {
                cloud_profile: cloud_profile.map_err(|error| error.within("spec.cloudProfile"))?,
                shoot: document
                    .spec
                    .shoot
                    .map(|text| decode_lenient(text.get()).map_err(|error| error.within("spec.shoot")))
                    .transpose()?,
            },
        })
    }

    fn share(&self, text: &str) -> Result<Arc<CloudProfile>, DecodeError> {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let shared = self.profiles().get(&digest).and_then(Weak::upgrade);
        if let Some(shared) = shared {
            return Ok(shared);
        }
        let decoded = Arc::new(decode_lenient(text)?);
        let mut profiles = self.profiles();
        profiles.retain(|_, profile| profile.strong_count() > 0);
        profiles.insert(digest, Arc::downgrade(&decoded));
        Ok(decoded)
    }

    fn profiles(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Weak<CloudProfile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Cluster of which the large parts are not decoded yet.
#[derive(Deserialize)]
struct ClusterText {
    #[serde(default, deserialize_with = "without_managers")]
    metadata: ObjectMeta,
    spec: ClusterSpecText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterSpecText {
    cloud_profile: Option<Box<RawValue>>,
    shoot: Option<Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = r#"{"spec": {"machineTypes": [{"name": "m"}]}}"#;

    fn cluster(profile: &str, shoot: &str) -> String {
        format!(
            r#"{{"metadata": {{"name": "c"}}, "spec": {{"cloudProfile": {profile}, "shoot": {shoot}, "seed": {{}}}}}}"#
        )
    }

    #[test]
    fn equal_profiles_are_kept_once_and_not_longer_than_needed() {
        let profiles = CloudProfiles::default();
        let first = profiles.cluster(&cluster(PROFILE, "{}")).unwrap();
        let second = profiles.cluster(&cluster(PROFILE, r#"{"spec": {"region": "r"}}"#)).unwrap();
        let other = profiles.cluster(&cluster("{}", "{}")).unwrap();
        let shared = first.spec.cloud_profile.as_ref().unwrap();
        assert!(Arc::ptr_eq(shared, second.spec.cloud_profile.as_ref().unwrap()));
        assert!(!Arc::ptr_eq(shared, other.spec.cloud_profile.as_ref().unwrap()));
        assert_eq!(second.spec.shoot.unwrap().spec.region, "r");
        drop((first, second.spec.cloud_profile));
        profiles.cluster(&cluster(r#"{"kind": "CloudProfile"}"#, "null")).unwrap();
        assert_eq!(profiles.profiles().len(), 2, "the first one is gone, the other one and the new one are there");
    }

    #[test]
    fn errors_name_the_path_from_the_cluster_on() {
        let error = |text: String| CloudProfiles::default().cluster(&text).unwrap_err().to_string();
        let profile = error(cluster(r#"{"spec": {"machineTypes": [{"name": 3}]}}"#, "{}"));
        assert!(profile.starts_with("spec.cloudProfile.spec.machineTypes[0].name"), "{profile}");
        let shoot = error(cluster(PROFILE, r#"{"spec": 3}"#));
        assert!(shoot.starts_with("spec.shoot.spec"), "{shoot}");
        assert!(error(cluster("3", "{}")).starts_with("spec.cloudProfile: "));
    }
}
