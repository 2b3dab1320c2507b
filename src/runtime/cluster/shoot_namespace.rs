//! Reads and writes of a reconcile in the shoot namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;

use crate::cluster::cache::SeedCache;
use crate::cluster::error::ReadError;
use crate::cluster::machine_reads;
use crate::cluster::machine_writes::MachineObjectWriter;
use decisions::provider::Provider;
use decisions::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use decisions::worker::plan::orphans::MachineControllerManagerState;
use decisions::worker::request::other_workers::OtherWorkers;
use wire::api::deployment::Deployment;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// The namespace of one shoot in the seed.
#[derive(Clone)]
pub struct ShootNamespace {
    client: Client,
    namespace: String,
    cache: Arc<SeedCache>,
    provider: &'static dyn Provider,
    uses_store: bool,
    others: OtherWorkers,
}

impl ShootNamespace {
    /// Creates the access to a namespace. The Worker's provider maps machine failures to error codes.
    #[must_use]
    pub fn new(
        client: Client,
        cache: Arc<SeedCache>,
        namespace: impl Into<String>,
        provider: &'static dyn Provider,
    ) -> Self {
        Self { client, namespace: namespace.into(), cache, provider, uses_store: true, others: OtherWorkers::default() }
    }

    /// Bypasses the store for machine objects.
    #[must_use]
    pub fn without_store(self) -> Self {
        Self { uses_store: false, ..self }
    }

    /// The same namespace with its other Workers, whose machine objects are left out.
    #[must_use]
    pub fn beside(self, others: OtherWorkers) -> Self {
        Self { others, ..self }
    }

    /// The other Workers of the namespace.
    #[must_use]
    pub fn others(&self) -> &OtherWorkers {
        &self.others
    }

    /// A client of the seed, for requests without a method here.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.namespace
    }

    /// The Cluster of the shoot, or `None` if it does not exist. Unless the flag forces a read, the cached Cluster is
    /// used while the watch reports no newer version.
    ///
    /// # Errors
    /// When it can't be read or decoded.
    pub async fn cluster(&self, again: bool) -> Result<Option<Arc<Cluster>>, ReadError> {
        let clusters = &self.cache.clusters;
        match again {
            true => clusters.read(&self.client, &self.namespace).await,
            false => clusters.read_if_newer(&self.client, &self.namespace).await,
        }
    }

    /// The Secrets that a Worker refers to. Unless the flag forces a read, cached ones are used where available.
    ///
    /// # Errors
    /// When one can't be read.
    pub async fn secrets(&self, worker: &Worker, again: bool) -> Result<Secrets, ReadError> {
        match again {
            true => self.cache.secrets.read(&self.client, worker).await,
            false => self.cache.secrets.read_unknown(&self.client, worker).await,
        }
    }

    /// The current credentials of a Worker; empty if they are missing.
    ///
    /// # Errors
    /// When they can't be read.
    pub async fn credentials(&self, worker: &Worker) -> Result<Secrets, ReadError> {
        self.cache.secrets.read_credentials(&self.client, worker).await
    }

    /// Packs the cached Secrets of an operation that has ended.
    pub fn pack_secrets(&self, secrets: &Secrets) {
        self.cache.secrets.pack(secrets);
    }

    /// Removes these Secrets from the cache, so that they are read again.
    pub fn forget_secrets(&self, secrets: &Secrets) {
        self.cache.secrets.forget(secrets);
    }

    /// All machine objects, possibly slightly stale. Sufficient for writes with a resource version, and for waiting.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn machine_objects(&self) -> Result<MachineObjects, ReadError> {
        if self.uses_store && self.cache.machine_objects.is_fresh() {
            return self.own_objects(BTreeMap::new());
        }
        self.read_machine_objects().await
    }

    /// Whether the watches of all machine objects are up to date.
    #[must_use]
    pub fn store_is_fresh(&self) -> bool {
        self.cache.machine_objects.is_fresh()
    }

    /// The machine deployments in the store.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn stored_deployments(&self) -> Result<BTreeMap<String, LiveDeployment>, ReadError> {
        let deployments = self.cache.machine_objects.deployments_of(&self.namespace, self.provider, BTreeMap::new())?;
        Ok(self.others.deployments_without_theirs(deployments))
    }

    /// All machine objects, freshly listed for irreversible decisions. Classes and their Secrets are listed before the
    /// objects that use them, so a class missing here was missing while its machine existed.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn read_machine_objects(&self) -> Result<MachineObjects, ReadError> {
        let cache = &self.cache.machine_objects;
        machine_reads::renew_classes(&self.client, &self.namespace, cache).await?;
        let MachineObjects { classes, class_secrets, .. } = cache.classes_of(&self.namespace)?;
        machine_reads::renew_users_of_classes(&self.client, &self.namespace, cache).await?;
        let users = cache.of_namespace(&self.namespace, self.provider, BTreeMap::new())?;
        let live = MachineObjects { classes, class_secrets, ..users };
        Ok(self.others.without_theirs(&self.namespace, live))
    }

    /// All machine objects, with the users of classes (deployments, machine sets and machines) freshly listed.
    /// Unchanged deployments are reused from `known`.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn read_users_of_classes(
        &self,
        cached: BTreeMap<String, LiveDeployment>,
    ) -> Result<MachineObjects, ReadError> {
        machine_reads::renew_users_of_classes(&self.client, &self.namespace, &self.cache.machine_objects).await?;
        self.own_objects(cached)
    }

    fn own_objects(&self, cached: BTreeMap<String, LiveDeployment>) -> Result<MachineObjects, ReadError> {
        let live = self.cache.machine_objects.of_namespace(&self.namespace, self.provider, cached)?;
        Ok(self.others.without_theirs(&self.namespace, live))
    }

    /// Whether machine-controller-manager should be running.
    ///
    /// # Errors
    /// When its Deployment can't be read.
    pub async fn machine_controller(&self) -> Result<MachineControllerManagerState, ReadError> {
        let deployment = self.machine_controller_deployment().await?;
        Ok(match deployment.is_some_and(|deployment| deployment.replicas() > 0) {
            true => MachineControllerManagerState::Running,
            false => MachineControllerManagerState::Stopped,
        })
    }

    /// The Deployment of machine-controller-manager, or `None` if it does not exist.
    ///
    /// # Errors
    /// When it can't be read.
    pub async fn machine_controller_deployment(&self) -> Result<Option<Deployment>, ReadError> {
        machine_reads::machine_controller(&self.client, &self.namespace).await
    }

    /// Writer for machine objects.
    #[must_use]
    pub fn apis(&self) -> MachineObjectWriter {
        MachineObjectWriter::new(self.client.clone(), self.namespace.clone(), Arc::clone(&self.cache), self.provider)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::{Request, Response};
    use futures::future;
    use k8s_openapi::ByteString;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;
    use crate::cluster::identity::Identity;
    use crate::cluster::test_support::{ApiServer, document, incompressible, list};
    use decisions::provider::{Providers, azure::Azure};

    /// Plural names of the kinds of machine objects that exist.
    type Objects = &'static [&'static str];

    /// The namespace in an API server that serves `before` for the first `lists` requests and `after` from then on.
    fn changing(before: Objects, lists: usize, after: Objects) -> ShootNamespace {
        let responded = AtomicUsize::new(0);
        let service = service_fn(move |request: Request<Body>| {
            let there = if responded.fetch_add(1, Ordering::Relaxed) < lists { before } else { after };
            let plural = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let items: Vec<Value> = there.iter().filter(|kind| **kind == plural).map(|_| object()).collect();
            let list = json!({"metadata": {"resourceVersion": "7"}, "items": items});
            future::ok::<_, kube::Error>(Response::new(Body::from(list.to_string().into_bytes())))
        });
        let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
        ShootNamespace::new(Client::new(service, "default"), cache, "shoot--p--s", &Azure)
    }

    /// An object that serves as any kind: a class, or an object that uses it.
    fn object() -> Value {
        let class = json!({"kind": "MachineClass", "name": "web-z1"});
        json!({
            "metadata": {"name": "web-z1", "namespace": "shoot--p--s", "uid": "u", "resourceVersion": "5",
                "labels": {"gardener.cloud/purpose": "machineclass"}},
            "spec": {"class": class, "template": {"spec": {"class": class}}},
        })
    }

    #[tokio::test]
    async fn lists_classes_before_their_users() {
        const ALL: Objects = &["machinedeployments", "machinesets", "machines", "machineclasses", "secrets"];
        for lists in 0..=5 {
            let live = changing(ALL, lists, &[]).read_machine_objects().await.unwrap();
            for class in live.used_classes() {
                let is_whole = live.classes.contains_key(class) && live.class_secrets.contains_key(class);
                assert!(is_whole, "after {lists} lists everything went, and {class} seems used and missing");
            }
        }
    }

    #[tokio::test]
    async fn finds_objects_created_during_read() {
        for [maker, made] in [["machinedeployments", "machinesets"], ["machinesets", "machines"]] {
            for lists in 0..=5 {
                let (before, after): (Objects, Objects) = (leaked(maker), leaked(made));
                let live = changing(before, lists, after).read_machine_objects().await.unwrap();
                assert!(live.uses_classes(), "neither {maker} nor {made} was seen, although one was always there");
            }
        }
    }

    fn leaked(kind: &'static str) -> Objects {
        vec![kind].leak()
    }

    /// A class and its Secret are deleted while their users are listed: the watch reports that before the list arrives.
    #[tokio::test]
    async fn keeps_class_deleted_during_read() {
        let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
        let observed = Arc::clone(&cache);
        let server = ApiServer::new(move |requested| {
            if requested.last() == "machinedeployments" {
                let [namespace, name, uid] = ["shoot--p--s", "web-z1", "u"].map(str::to_owned);
                let deleted = Identity { namespace, name, uid, version: 8 };
                observed.machine_objects.classes.event_deleted(&deleted);
                observed.machine_objects.class_secrets.event_deleted(&deleted);
            }
            list(&[object()])
        });
        let shoot = ShootNamespace::new(server.client.clone(), cache, "shoot--p--s", &Azure);
        let live = shoot.read_machine_objects().await.unwrap();
        assert!(live.classes.contains_key("web-z1") && live.class_secrets.contains_key("web-z1"));
    }

    #[tokio::test]
    async fn sends_no_request_while_store_is_fresh() {
        let server = ApiServer::new(|_| list(&[]));
        let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
        let shoot = ShootNamespace::new(server.client.clone(), Arc::clone(&cache), "shoot--p--s", &Azure);
        let requests = async |shoot: &ShootNamespace| {
            shoot.machine_objects().await.unwrap();
            server.lines().len()
        };
        let objects = &cache.machine_objects;
        assert_eq!((shoot.store_is_fresh(), requests(&shoot).await), (false, 5), "no watch has begun");
        objects.deployments.mark_resumed();
        objects.classes.mark_resumed();
        objects.class_secrets.mark_resumed();
        objects.machine_sets.mark_resumed();
        objects.machines.mark_resumed();
        assert_eq!((shoot.store_is_fresh(), requests(&shoot).await), (true, 0));
        assert_eq!(requests(&shoot.clone().without_store()).await, 5, "who wants them anew gets them anew");
        objects.machines.mark_stale();
        assert_eq!((shoot.store_is_fresh(), requests(&shoot).await), (false, 5));
    }

    #[tokio::test]
    async fn caches_secrets_unless_large_or_forgotten() {
        let worker = json!({"metadata": {"namespace": "shoot--p--s", "name": "w"}, "spec": {"type": "azure", "region": "r",
            "secretRef": {"namespace": "shoot--p--s", "name": "cloudprovider"}, "pools": []}});
        let worker: Worker = serde_json::from_value(worker).unwrap();
        for (length, is_kept) in [(9, true), (9 << 20, false)] {
            let secret = json!({"metadata": {"name": "cloudprovider", "resourceVersion": "5"},
                "data": {"key": ByteString(incompressible(length))}});
            let server = ApiServer::new(move |_| document(&secret));
            let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
            let shoot = ShootNamespace::new(server.client.clone(), cache, "shoot--p--s", &Azure);
            let secrets = shoot.credentials(&worker).await.unwrap();
            assert!(secrets.get("shoot--p--s", "cloudprovider").is_some());
            let requests = async || {
                shoot.secrets(&worker, false).await.unwrap();
                server.lines().len()
            };
            assert_eq!(requests().await, 1, "only for the credentials that were read");
            shoot.pack_secrets(&secrets);
            assert_eq!(requests().await, usize::from(!is_kept), "{length} bytes");
            shoot.forget_secrets(&secrets);
            assert_eq!(requests().await, 1);
        }
    }
}
