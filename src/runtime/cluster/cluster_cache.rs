//! I/O: caches the required parts of Clusters and rereads changed ones. A CloudProfile is most of a Cluster, so equal
//! ones are shared. Data for version forecasts is cached only if forecasts are enabled.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{GetParams, Request};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::cluster::error::ReadError;
use crate::cluster::store::Store;
use profiles::cloud_profile::architecture_fields::apply_defaults;
use wire::api::gardener::{CloudProfile, Cluster, ClusterSpec, ProfileObject, VersionedShoot};
use wire::api::gotext::json::{DecodeError, decode_lenient};
use wire::api::metadata::without_managers;

/// Cache of Clusters.
#[derive(Default)]
pub struct ClusterCache {
    /// Resource versions from a metadata watch.
    pub versions: Store<()>,
    read: Mutex<BTreeMap<String, ReadCluster>>,
    profiles: Shared<CloudProfile>,
    /// CloudProfiles for version forecasts; `None` if forecasts are disabled.
    whole_profiles: Option<Shared<ProfileObject>>,
}

struct ReadCluster {
    version: u64,
    cluster: Arc<Cluster>,
    shoot_versions: Option<ReadVersions>,
}

/// Data of a Cluster for version forecasts.
pub struct ShootVersions {
    pub shoot: VersionedShoot,
    /// The CloudProfile without `providerConfig`.
    pub profile: Arc<ProfileObject>,
}

/// Data for version forecasts, or why decoding failed.
pub(crate) type ReadVersions = Result<Arc<ShootVersions>, Arc<str>>;

impl ClusterCache {
    /// Enables caching of data for version forecasts.
    pub(crate) fn with_versions(self) -> Self {
        Self { whole_profiles: Some(Shared::default()), ..self }
    }

    /// Forecast data of the last read Cluster with this name; `None` if forecasts are disabled.
    pub fn shoot_versions(&self, name: &str) -> Option<ReadVersions> {
        self.read.lock().get(name)?.shoot_versions.clone()
    }

    /// Reads the current Cluster, or `None` if it does not exist.
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
        let undecodable = |source| ReadError::Cluster { name: name.to_owned(), source };
        let document: ClusterText = decode_lenient(&text).map_err(undecodable)?;
        let profiles = self.whole_profiles.as_ref();
        let shoot_versions = profiles.map(|profiles| shoot_versions(&document.spec, profiles));
        let cluster = Arc::new(cluster(document, &self.profiles).map_err(undecodable)?);
        let version = cluster.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        if let Some(version) = version {
            let read = ReadCluster { version, cluster: Arc::clone(&cluster), shoot_versions };
            self.read.lock().insert(name.to_owned(), read);
        }
        Ok(Some(cluster))
    }

    /// Like [`read`](Self::read), but uses the cached Cluster unless the watch reports a newer version.
    ///
    /// # Errors
    /// When it can't be read or decoded.
    pub(crate) async fn read_if_newer(&self, client: &Client, name: &str) -> Result<Option<Arc<Cluster>>, ReadError> {
        let observed = if self.versions.is_fresh() { self.versions.version("", name) } else { None };
        if let Some(observed) = observed {
            let read = self.read.lock();
            if let Some(read) = read.get(name).filter(|read| observed <= read.version) {
                return Ok(Some(Arc::clone(&read.cluster)));
            }
        }
        self.read(client, name).await
    }

    /// Removes a Cluster that is no longer needed.
    pub fn forget(&self, name: &str) {
        self.read.lock().remove(name);
    }
}

fn cluster(document: ClusterText, profiles: &Shared<CloudProfile>) -> Result<Cluster, DecodeError> {
    let ClusterSpecText { cloud_profile, shoot } = document.spec;
    let cloud_profile = cloud_profile.map(|text| profiles.decoded(text.get(), |_| {})).transpose();
    let shoot = shoot.map(|text| decode_lenient(text.get())).transpose();
    Ok(Cluster {
        metadata: document.metadata,
        spec: ClusterSpec {
            cloud_profile: cloud_profile.map_err(|error| error.within("spec.cloudProfile"))?,
            shoot: shoot.map_err(|error| error.within("spec.shoot"))?,
        },
    })
}

fn shoot_versions(spec: &ClusterSpecText, profiles: &Shared<ProfileObject>) -> ReadVersions {
    let read = || {
        let [profile, shoot] =
            [&spec.cloud_profile, &spec.shoot].map(|text| text.as_ref().map_or("{}", |text| text.get()));
        let mut shoot: VersionedShoot = decode_lenient(shoot).map_err(|error| error.within("spec.shoot"))?;
        // Drop all other metadata, because thousands of Shoots are cached.
        shoot.metadata = ObjectMeta { deletion_timestamp: shoot.metadata.deletion_timestamp, ..ObjectMeta::default() };
        let without_provider = |profile: &mut ProfileObject| {
            profile.spec.provider_config = None;
            apply_defaults(&mut profile.spec);
        };
        let profile = profiles.decoded(profile, without_provider);
        Ok(Arc::new(ShootVersions { shoot, profile: profile.map_err(|error| error.within("spec.cloudProfile"))? }))
    };
    read().map_err(|error: DecodeError| error.to_string().into())
}

/// Decoded documents by the digest of their text, kept while they are in use.
struct Shared<T>(Mutex<BTreeMap<[u8; 32], Weak<T>>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: DeserializeOwned> Shared<T> {
    /// Returns the decoded document, shared if possible. `change` is applied after decoding.
    fn decoded(&self, text: &str, change: impl FnOnce(&mut T)) -> Result<Arc<T>, DecodeError> {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let shared = self.documents().get(&digest).and_then(Weak::upgrade);
        if let Some(shared) = shared {
            return Ok(shared);
        }
        let mut decoded = decode_lenient(text)?;
        change(&mut decoded);
        let decoded = Arc::new(decoded);
        let mut documents = self.documents();
        documents.retain(|_, document| document.strong_count() > 0);
        documents.insert(digest, Arc::downgrade(&decoded));
        Ok(decoded)
    }

    fn documents(&self) -> parking_lot::MutexGuard<'_, BTreeMap<[u8; 32], Weak<T>>> {
        self.0.lock()
    }
}

/// A Cluster whose large parts are not decoded yet.
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;

    use super::*;
    use crate::cluster::identity::Identity;
    use crate::cluster::test_support::{ApiServer, document, refusal};

    const PROFILE: &str = r#"{"spec": {"machineTypes": [{"name": "m"}]}}"#;

    fn text(profile: &str, shoot: &str) -> String {
        format!(
            r#"{{"metadata": {{"name": "c"}}, "spec": {{"cloudProfile": {profile}, "shoot": {shoot}, "seed": {{}}}}}}"#
        )
    }

    fn decoded(profiles: &Shared<CloudProfile>, profile: &str, shoot: &str) -> Result<Cluster, DecodeError> {
        cluster(decode_lenient(&text(profile, shoot))?, profiles)
    }

    #[test]
    fn shares_equal_profiles_while_used() {
        let profiles = Shared::default();
        let first = decoded(&profiles, PROFILE, "{}").unwrap();
        let second = decoded(&profiles, PROFILE, r#"{"spec": {"region": "r"}}"#).unwrap();
        let other = decoded(&profiles, "{}", "{}").unwrap();
        let shared = first.spec.cloud_profile.as_ref().unwrap();
        assert!(Arc::ptr_eq(shared, second.spec.cloud_profile.as_ref().unwrap()));
        assert!(!Arc::ptr_eq(shared, other.spec.cloud_profile.as_ref().unwrap()));
        assert_eq!(second.spec.shoot.unwrap().spec.region, "r");
        drop((first, second.spec.cloud_profile));
        decoded(&profiles, r#"{"kind": "CloudProfile"}"#, "null").unwrap();
        assert_eq!(profiles.documents().len(), 2, "the first one is gone, the other one and the new one are there");
    }

    #[test]
    fn errors_have_full_path() {
        let error = |profile, shoot| decoded(&Shared::default(), profile, shoot).unwrap_err().to_string();
        let profile = error(r#"{"spec": {"machineTypes": [{"name": 3}]}}"#, "{}");
        assert!(profile.starts_with("spec.cloudProfile.spec.machineTypes[0].name"), "{profile}");
        let shoot = error(PROFILE, r#"{"spec": 3}"#);
        assert!(shoot.starts_with("spec.shoot.spec"), "{shoot}");
        assert!(error("3", "{}").starts_with("spec.cloudProfile: "));
    }

    /// An API server with a Cluster in the given version; version 0 responds with the given error.
    fn serving(version: &Arc<AtomicU64>, (code, reason): (u16, &'static str)) -> ApiServer {
        let version = Arc::clone(version);
        ApiServer::new(move |_| match version.load(Ordering::Relaxed) {
            0 => refusal(code, reason),
            version => {
                let shoot = json!({"metadata": {"name": "s", "deletionTimestamp": "2026-11-25T10:00:00Z"},
                    "spec": {"kubernetes": {"version": "1.33.2"}}});
                let profile = json!({"metadata": {"name": "p"}, "spec": {"type": "azure", "providerConfig": {"a": 1}}});
                let metadata = json!({"name": "c", "resourceVersion": version.to_string()});
                document(&json!({"metadata": metadata, "spec": {"cloudProfile": profile, "shoot": shoot}}))
            }
        })
    }

    #[tokio::test]
    async fn rereads_cluster_only_after_change() {
        let version = Arc::new(AtomicU64::new(5));
        let server = serving(&version, (404, "NotFound"));
        let cache = ClusterCache::default();
        let observed = |version| {
            let identity = Identity { namespace: String::new(), name: "c".to_owned(), uid: "u".to_owned(), version };
            cache.versions.event(identity, || ());
        };
        let read = async || {
            let cluster = cache.read_if_newer(&server.client, "c").await.unwrap().unwrap();
            (cluster.metadata.resource_version.clone().unwrap(), server.lines())
        };
        let requested = vec!["GET /apis/extensions.gardener.cloud/v1alpha1/clusters/c".to_owned()];
        let nothing = vec![];
        let in_version = |version: &str, lines: &Vec<String>| (version.to_owned(), lines.clone());
        observed(5);
        assert_eq!(read().await, in_version("5", &requested), "nobody has read it yet");
        assert_eq!(read().await, in_version("5", &nothing));
        version.store(7, Ordering::Relaxed);
        assert_eq!(read().await, in_version("5", &nothing), "no watch shows that it has changed");
        observed(6);
        assert_eq!(read().await, in_version("7", &requested));
        assert_eq!(read().await, in_version("7", &nothing), "it is newer than what the watch shows");
        cache.versions.mark_stale();
        assert_eq!(read().await, in_version("7", &requested), "nobody knows what the watch has missed");
        cache.versions.mark_resumed();
        assert_eq!(read().await, in_version("7", &nothing));
        cache.forget("c");
        assert_eq!(read().await, in_version("7", &requested), "it was forgotten");
    }

    #[tokio::test]
    async fn only_not_found_returns_none() {
        let read = async |refusal| {
            let server = serving(&Arc::default(), refusal);
            let read = ClusterCache::default().read(&server.client, "c").await;
            read.map(|cluster| cluster.is_some()).map_err(|error| error.to_string())
        };
        assert_eq!(read((404, "NotFound")).await, Ok(false));
        for (code, reason) in [(403, "Forbidden"), (500, "InternalError")] {
            let expected = format!("Cluster \"c\" can't be read: the API server answers {code} {reason}");
            assert_eq!(read((code, reason)).await, Err(expected));
        }
    }

    #[tokio::test]
    async fn caches_forecast_data_of_clusters() {
        let version = Arc::new(AtomicU64::new(5));
        let server = serving(&version, (500, "InternalError"));
        let without = ClusterCache::default();
        without.read(&server.client, "c").await.unwrap();
        assert!(without.shoot_versions("c").is_none(), "nobody wants a forecast");

        let cache = ClusterCache::default().with_versions();
        assert!(cache.shoot_versions("c").is_none(), "nobody has read it yet");
        cache.read(&server.client, "c").await.unwrap();
        let versions = cache.shoot_versions("c").unwrap().unwrap();
        let ShootVersions { shoot, profile } = &*versions;
        assert_eq!(shoot.spec.kubernetes.version.as_deref(), Some("1.33.2"));
        assert!(shoot.metadata.deletion_timestamp.is_some() && shoot.metadata.name.is_none());
        assert!(profile.spec.provider_config.is_none(), "the provider's half is not kept");
        version.store(0, Ordering::Relaxed);
        assert!(cache.read(&server.client, "c").await.is_err());
        assert!(cache.shoot_versions("c").is_none(), "it may be another one by now");
    }
}
