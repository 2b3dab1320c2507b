//! The watches of a seed. They fill the stores and pass every change on to the reconciler.
//!
//! ```text
//!  Workers (whole)              ─► the Worker itself; of a shard, only its own
//!  Clusters (metadata)          ─► the Workers of the namespace of that name
//!  MachineDeployments, MachineSets, Machines, MachineClasses,
//!  Secrets of classes,
//!  credentials (metadata)       ─► the Workers of the same namespace
//! ```
//!
//! An event that only echoes a write by this process is not a change, because the write has returned the same version.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::pin::pin;
use std::sync::Arc;

use futures::future::{BoxFuture, Shared, join_all};
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::CREDENTIALS;
use crate::cluster::cache::SeedCache;
use crate::cluster::decode_guard::LazyObject;
use crate::cluster::identity::Identity;
use crate::cluster::machine_objects::{Cached, DeploymentText};
use crate::cluster::store::{Kept, Relisted, Store};
use crate::cluster::trimmed::UndecodedObject;
use crate::cluster::watch_stream::{failure, watch_forever};
use crate::process::shard::Shard;
use decisions::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use decisions::worker::machines::machine_objects::DigestedObject;
use wire::api::gardener::{Cluster, Worker};

/// A change in the seed that concerns Workers.
#[derive(Debug)]
pub enum Change {
    /// Another client changed a Worker.
    Worker(Identity),
    /// An object in a shoot namespace changed.
    Namespace(String),
    /// An object that reconciles compare with the plan changed. `version` is its last version if it was deleted.
    PlannedObject { namespace: String, version: u64 },
    /// An object that this process had deleted still exists in the shoot namespace.
    DeletionUndone(String),
    /// A Worker was deleted or moved to another shard.
    WorkerDeleted(Arc<LazyObject<Worker>>),
}

pub struct Watches {
    /// Changes reported by the watches.
    pub changes: mpsc::UnboundedReceiver<Change>,
    /// Resolves once each watch has completed its initial list.
    pub filled: Shared<BoxFuture<'static, ()>>,
    /// Kinds whose initial list is not complete.
    pub missing: Missing,
    /// Aborts the watches when dropped.
    pub tasks: JoinSet<()>,
}

impl Watches {
    /// Starts all watches. They fill the cache; of Workers, only those of this shard.
    pub fn start(client: &Client, cache: &Arc<SeedCache>, shard: Option<&Shard>) -> Self {
        let (changes, receiver) = mpsc::unbounded_channel();
        let mut start = Start {
            client,
            cache,
            changes: Changes(changes),
            filled: Vec::default(),
            missing: Missing::default(),
            tasks: JoinSet::default(),
        };
        start.workers(shard);
        start.clusters();
        start.credentials();
        start.machine_objects::<DeploymentText>();
        start.machine_objects::<DigestedObject<Value>>();
        start.machine_objects::<DigestedObject<Secret>>();
        start.machine_objects::<LiveMachineSet>();
        start.machine_objects::<LiveMachine>();
        let filled = join_all(start.filled).map(drop).boxed().shared();
        Self { changes: receiver, filled, missing: start.missing, tasks: start.tasks }
    }
}

/// Watches all objects of a kind. Calls `changed` for each external change and after each complete list. `kept`
/// extracts the part of an object to store, from its identity and its text.
pub async fn follow_all<K, T>(
    client: &Client,
    store: Arc<Store<T>>,
    kept: impl Fn(&Identity, &str) -> Option<T>,
    changed: impl Fn(),
) where
    K: Resource<DynamicType = ()>,
    T: Kept + Send + Sync + 'static,
{
    let resumed = Arc::clone(&store);
    let doubted = Arc::clone(&store);
    let kind = ApiResource::erase::<K>(&());
    let is_unconfirmed = move || doubted.is_unconfirmed(Instant::now());
    let config = watcher::Config::default();
    let mut events =
        pin!(watch_forever::<UndecodedObject>(client, &kind, config, move || resumed.mark_resumed(), is_unconfirmed));
    while let Some(event) = events.next().await {
        let event = event.ok();
        let is_complete = matches!(event, Some(Event::InitDone));
        let identify = |object: UndecodedObject| {
            let kept = kept(&object.identity, object.text.get())?;
            Some((object.identity, || kept))
        };
        put(&store, event, identify, |_| changed());
        if is_complete {
            changed();
        }
    }
}

/// Kinds whose initial list is not complete, with the last failure of each watch. Clones share their state.
#[derive(Clone, Default)]
pub struct Missing(Arc<Mutex<BTreeMap<&'static str, Option<String>>>>);

impl Missing {
    fn kinds(&self) -> MutexGuard<'_, BTreeMap<&'static str, Option<String>>> {
        self.0.lock()
    }

    fn has_failed(&self, kind: &'static str, error: &watcher::Error) {
        if let Some(latest) = self.kinds().get_mut(kind) {
            *latest = Some(failure(error));
        }
    }
}

/// Prints only one failure, because all watches usually fail for the same reason.
impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds();
        formatter.write_str(&kinds.keys().copied().collect::<Vec<_>>().join(", "))?;
        match kinds.values().flatten().next() {
            Some(failure) => write!(formatter, "; {failure}"),
            None => Ok(()),
        }
    }
}

/// Sender of changes. Without a receiver, the process is about to exit.
#[derive(Clone)]
struct Changes(mpsc::UnboundedSender<Change>);

impl Changes {
    fn send(&self, change: Change) {
        let _ = self.0.send(change);
    }

    fn of_namespace(&self, namespace: String) {
        self.send(Change::Namespace(namespace));
    }
}

struct Start<'a> {
    client: &'a Client,
    cache: &'a Arc<SeedCache>,
    changes: Changes,
    filled: Vec<oneshot::Receiver<()>>,
    missing: Missing,
    tasks: JoinSet<()>,
}

impl Start<'_> {
    /// Watches Workers. A Worker that moves to another shard no longer matches the selector, so the watch reports it as
    /// deleted.
    fn workers(&mut self, shard: Option<&Shard>) {
        let cache = Arc::clone(self.cache);
        let changes = self.changes.clone();
        let config = watcher::Config { label_selector: shard.map(Shard::selector), ..watcher::Config::default() };
        let events = self.events::<LazyObject<Worker>, _>(&(), config, |cache| &cache.workers.0);
        self.follow("Worker", events, move |event| {
            if let Some(Event::Delete(worker)) = &event {
                changes.send(Change::WorkerDeleted(Arc::new(worker.clone())));
            }
            let identify = |worker: LazyObject<Worker>| Some((Identity::of(&worker)?, || worker));
            let change = |identity: &Identity| changes.send(Change::Worker(identity.clone()));
            for (_, deleted) in put(&cache.workers.0, event, identify, change).removed {
                changes.send(Change::WorkerDeleted(deleted));
            }
        });
    }

    fn clusters(&mut self) {
        let cache = Arc::clone(self.cache);
        let changes = self.changes.clone();
        let config = watcher::Config::default();
        let events = self.events::<PartialObjectMeta<Cluster>, _>(&(), config, |cache| &cache.clusters.versions);
        self.follow("Cluster", events, move |event| {
            let identify = |cluster: PartialObjectMeta<Cluster>| Some((Identity::of(&cluster)?, || ()));
            let change = |identity: &Identity| changes.of_namespace(identity.name.clone());
            put(&cache.clusters.versions, event, identify, change);
        });
    }

    /// Watches credentials: reports changes and the release by machine-controller-manager, but stores nothing.
    fn credentials(&mut self) {
        let config = watcher::Config::default().fields(&format!("metadata.name={CREDENTIALS}"));
        let events = watch_forever::<PartialObjectMeta<Secret>>(self.client, &(), config, || {}, || false);
        let changes = self.changes.clone();
        self.follow("Secret of credentials", events, move |event| match event {
            Some(Event::InitApply(secret) | Event::Apply(secret) | Event::Delete(secret)) => {
                changes.of_namespace(secret.namespace().unwrap_or_default());
            }
            None | Some(Event::Init | Event::InitDone) => {}
        });
    }

    fn machine_objects<T: Cached + Clone>(&mut self) {
        let config = watcher::Config { label_selector: T::SELECTOR.map(str::to_owned), ..Default::default() };
        let cache = Arc::clone(self.cache);
        let changes = self.changes.clone();
        let kind = ApiResource::erase::<T::Kind>(&());
        let events = self.events::<UndecodedObject, _>(&kind, config, |cache| T::store(&cache.machine_objects));
        self.follow(<T::Kind as k8s_openapi::Resource>::KIND, events, move |event| {
            let objects = &cache.machine_objects;
            let identify = |UndecodedObject { identity, text, .. }| Some((identity, move || objects.kept(text.get())));
            let change = |identity: &Identity| {
                let namespace = identity.namespace.clone();
                let version = identity.version;
                changes.send(match T::IS_PLANNED {
                    true => Change::PlannedObject { namespace, version },
                    false => Change::Namespace(namespace),
                });
            };
            let Relisted { reduced, removed: _, undone } = put(T::store(objects), event, identify, change);
            reduced.into_iter().for_each(|namespace| changes.of_namespace(namespace));
            undone.into_iter().for_each(|namespace| changes.send(Change::DeletionUndone(namespace)));
        });
    }

    /// An watch_forever watch that fills a store.
    fn events<K, T>(
        &self,
        kind: &K::DynamicType,
        config: watcher::Config,
        store: impl Fn(&SeedCache) -> &Store<T> + Copy + Send + 'static,
    ) -> BoxStream<'static, watcher::Result<Event<K>>>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
        T: Kept + Send + Sync + 'static,
    {
        let resumed = Arc::clone(self.cache);
        let doubted = Arc::clone(self.cache);
        let is_unconfirmed = move || store(&doubted).is_unconfirmed(Instant::now());
        watch_forever(self.client, kind, config, move || store(&resumed).mark_resumed(), is_unconfirmed)
    }

    /// Passes each event to `take`, and `None` for a failure.
    fn follow<K: Send + 'static>(
        &mut self,
        kind: &'static str,
        events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
        mut take: impl FnMut(Option<Event<K>>) + Send + 'static,
    ) {
        let (filled, receiver) = oneshot::channel();
        self.filled.push(receiver);
        let mut filled = Some(filled);
        let missing = self.missing.clone();
        missing.kinds().insert(kind, None);
        self.tasks.spawn(async move {
            let mut events = pin!(events);
            while let Some(event) = events.next().await {
                let is_complete = matches!(event, Ok(Event::InitDone));
                match event {
                    Ok(event) => take(Some(event)),
                    Err(error) => {
                        missing.has_failed(kind, &error);
                        take(None);
                    }
                }
                if let Some(filled) = filled.take_if(|_| is_complete) {
                    missing.kinds().remove(kind);
                    // The receiver may be dropped already.
                    let _ = filled.send(());
                }
            }
        });
    }
}

/// Applies an event to a store and calls `change` for each external change. `identify` returns the identity of an
/// object and a function that decodes the part to store, which costs more.
fn put<K, T: Kept, R: FnOnce() -> T>(
    store: &Store<T>,
    event: Option<Event<K>>,
    identify: impl Fn(K) -> Option<(Identity, R)>,
    mut change: impl FnMut(&Identity),
) -> Relisted<T> {
    let mut observed = |object: K, put: fn(&Store<T>, Identity, R) -> bool| {
        if let Some((identity, read)) = identify(object)
            && put(store, identity.clone(), read)
        {
            change(&identity);
        }
    };
    match event {
        // The watch has failed and will resume.
        None => store.mark_stale(),
        Some(Event::Init) => store.begin_relist(),
        Some(Event::InitApply(object)) => observed(object, Store::relist),
        Some(Event::InitDone) => return store.end_relist(Instant::now()),
        Some(Event::Apply(object)) => observed(object, Store::event),
        Some(Event::Delete(object)) => {
            if let Some((identity, _)) = identify(object) {
                store.event_deleted(&identity);
                change(&identity);
            }
        }
    }
    Relisted::default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use axum::body::Body as ResponseBody;
    use axum::http::Response;
    use serde_json::json;

    use super::*;
    use crate::cluster::test_support::{ApiServer, document, logged, refusal, streamed};
    use decisions::provider::Providers;

    const LONG: Duration = Duration::from_secs(30);

    /// An object with this name, in a namespace derived from the name unless its kind is cluster-scoped.
    fn object(name: &str) -> Value {
        let namespace = if name == "clusters" { Value::Null } else { format!("of-{name}").into() };
        let metadata = json!({"name": name, "namespace": namespace, "uid": name, "resourceVersion": "3"});
        json!({"metadata": metadata, "spec": {}})
    }

    /// An API server with one object of each kind, named after the kind. Credentials are those selected by name.
    fn one_of_each() -> ApiServer {
        ApiServer::new(|requested| match (requested.query.contains("sendInitialEvents=true"), requested.last()) {
            (false, _) => document(&json!({})),
            (true, "secrets") if requested.query.contains("fieldSelector") => streamed(&[object("credentials")]),
            (true, kind) => streamed(&[object(kind)]),
        })
    }

    /// Watched paths with their selectors.
    fn watched(server: &ApiServer) -> BTreeSet<String> {
        let watched = server.requested().into_iter().map(|requested| {
            let is_selector = |parameter: &&str| parameter.contains("Selector=");
            let selectors: Vec<&str> = requested.query.split('&').filter(is_selector).collect();
            let selectors = selectors.join("&").replace("%2F", "/").replace("%3D", "=");
            let form = if requested.accept.contains("PartialObjectMetadata") { "metadata" } else { "objects" };
            format!("{form} {} {selectors}", requested.line.trim_start_matches("GET ")).trim_end().to_owned()
        });
        watched.collect()
    }

    #[tokio::test]
    async fn requeues_workers_on_change_of_any_kind() {
        const MACHINES: &str = "objects /apis/machine.sapcloud.io/v1alpha1";
        const GARDENER: &str = "/apis/extensions.gardener.cloud/v1alpha1";
        let shard = Shard::new("r", "a").unwrap();
        for (shard, selector) in [(None, ""), (Some(&shard), " labelSelector=shard.alpha.sharding.timebertt.dev/r=a")] {
            let server = one_of_each();
            let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
            let mut watches = Watches::start(&server.client, &cache, shard);
            tokio::time::timeout(LONG, watches.filled.clone()).await.unwrap();
            assert_eq!(watches.missing.to_string(), "");
            let mut observed = BTreeSet::new();
            while let Ok(change) = watches.changes.try_recv() {
                observed.insert(match change {
                    Change::Worker(worker) => format!("Worker {}/{}", worker.namespace, worker.name),
                    Change::Namespace(namespace) => namespace,
                    Change::PlannedObject { namespace, version } => format!("{namespace} in version {version}"),
                    other => panic!("{other:?}"),
                });
            }
            let kinds = ["machinedeployments", "machineclasses", "secrets", "machinesets", "machines"];
            let woken = kinds.map(|kind| match kind {
                "machinesets" | "machines" => format!("of-{kind}"),
                planned => format!("of-{planned} in version 3"),
            });
            let woken = woken.into_iter().chain([
                "Worker of-workers/workers".to_owned(),
                "clusters".to_owned(),
                "of-credentials".to_owned(),
            ]);
            assert_eq!(observed, woken.collect::<BTreeSet<_>>());
            let machine_kinds = kinds.iter().filter(|kind| **kind != "secrets");
            let expected = machine_kinds.map(|kind| format!("{MACHINES}/{kind}")).chain([
                format!("objects {GARDENER}/workers{selector}"),
                format!("metadata {GARDENER}/clusters"),
                "objects /api/v1/secrets labelSelector=gardener.cloud/purpose=machineclass".to_owned(),
                "metadata /api/v1/secrets fieldSelector=metadata.name=cloudprovider".to_owned(),
            ]);
            assert_eq!(watched(&server), expected.collect::<BTreeSet<_>>());
            assert!(cache.workers.get("of-workers", "workers").is_some() && cache.machine_objects.is_fresh());
            assert_eq!(cache.clusters.versions.version("", "clusters"), Some(3));
        }
    }

    #[tokio::test]
    async fn follow_all_stores_selected_objects() {
        let server = ApiServer::new(|_| streamed(&[object("a"), object("left-out")]));
        let store = Arc::<Store<()>>::default();
        let changes = Mutex::new(Vec::new());
        let (complete, kept) =
            (tokio::sync::Notify::new(), |object: &Identity, _: &str| (object.name == "a").then_some(()));
        let changed = || {
            changes.lock().push(store.is_fresh());
            if store.is_fresh() {
                complete.notify_one();
            }
        };
        let following = follow_all::<Secret, _>(&server.client, Arc::clone(&store), kept, changed);
        let followed = async {
            tokio::select! {
                () = following => panic!("it has ended"),
                () = complete.notified() => {}
            }
        };
        tokio::time::timeout(LONG, followed).await.unwrap();
        assert_eq!(store.all().len(), 1);
        assert_eq!(store.names("of-a"), ["a"]);
        assert_eq!(*changes.lock(), [false, true], "once for what has changed, and once for the whole");
    }

    #[tokio::test(start_paused = true)]
    async fn names_incomplete_kinds_with_reason() {
        let server = ApiServer::new(|requested| match requested.last() {
            "machines" => refusal(403, "Forbidden"),
            "workers" => refusal(503, "ServiceUnavailable"),
            kind => streamed(&[object(kind)]),
        });
        let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
        let watching = async {
            let watches = Watches::start(&server.client, &cache, None);
            let filled = tokio::time::timeout(LONG, watches.filled.clone()).await;
            assert!(filled.is_err(), "all is there");
            watches.missing.to_string()
        };
        assert_eq!(watching.await, "Machine, Worker; the API server answers 403 Forbidden");
    }

    /// Log lines of half a minute in which the API server gives these responses to consecutive watch requests.
    async fn logged_of_watches(
        response: impl Fn(usize) -> Response<ResponseBody> + Send + Sync + 'static,
    ) -> Vec<String> {
        let count = AtomicUsize::new(0);
        let server = ApiServer::new(move |_| response(count.fetch_add(1, Ordering::Relaxed)));
        let store = Arc::<Store<()>>::default();
        let following = follow_all::<Secret, _>(&server.client, store, |_, _| Some(()), || {});
        let (_, log) = logged(tokio::time::timeout(LONG, following)).await;
        let ours = log.lines().filter_map(|line| line.split_once("gardener_extension_worker_runtime::"));
        ours.map(|(_, text)| text.to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn logs_forbidden_watch_once_per_reason() {
        let forbidden = |reason: &str| {
            let reason = format!("the API server answers {reason}");
            format!("cluster::watch_stream: a watch is not allowed kind=\"Secret\" reason={reason:?}")
        };
        assert_eq!(logged_of_watches(|_| refusal(403, "Forbidden")).await, [forbidden("403 Forbidden")]);
        let both = logged_of_watches(|count| match count {
            0..3 => refusal(403, "Forbidden"),
            _ => refusal(401, "Unauthorized"),
        });
        assert_eq!(both.await, ["403 Forbidden", "401 Unauthorized"].map(forbidden));
        assert_eq!(logged_of_watches(|_| refusal(503, "ServiceUnavailable")).await, [""; 0]);
    }
}
