//! The watches of a seed: what they show goes into the stores, and every change is passed on to whoever reconciles.
//!
//! ```text
//!  Workers (whole)              ─► the Worker itself; of a shard, only its own
//!  Clusters (metadata)          ─► the Workers of the namespace of that name
//!  MachineDeployments, MachineSets, Machines, MachineClasses,
//!  Secrets of classes,
//!  credentials (metadata)       ─► the Workers of the same namespace
//! ```
//!
//! An echo of what this process has written is no change: whoever wrote it knows the answer.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, Shared, join_all};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, warn};

use crate::api::gardener::{Cluster, Worker};
use crate::cluster::CREDENTIALS;
use crate::cluster::cache::SeedCache;
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::cluster::machine_objects::{Cached, DeploymentText};
use crate::cluster::retry_layer::ANSWER_DEADLINE;
use crate::cluster::store::{Kept, Relisted, Store};
use crate::cluster::trimmed::Trimmed;
use crate::cluster::watch_start::telling;
use crate::process::jitter::random_half;
use crate::process::shard::Shard;
use crate::worker::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machine_objects::Digested;

/// Objects in one page of a list: Secrets are large, and a page is in memory as a whole.
const PAGE: u32 = 100;
/// How often is checked whether something is in doubt.
const DOUBTS: Duration = Duration::from_secs(5);
/// Seconds after which the API server ends a watch, which then goes on. A watch that has lost its other end without a word is
/// given up a little later.
const WATCH: u32 = 120;

/// What the watches have shown, as far as it is about Workers.
#[derive(Debug)]
pub(crate) enum Change {
    /// A Worker was changed by somebody else.
    Worker(Identity),
    /// Something was changed in the namespace of a shoot.
    Namespace(String),
    /// An object was changed there that a reconcile compares with what is planned; of a deleted one it is the last version.
    PlannedObject { namespace: String, version: u64 },
    /// Something is still there in the namespace of a shoot that this process had deleted.
    DeletionUndone(String),
    /// A Worker is gone, or another shard's: its uid, and what it was.
    WorkerGone(Arc<Guarded<Worker>>),
}

/// Running watches.
pub(crate) struct Watches {
    /// What they show.
    pub(crate) changes: mpsc::UnboundedReceiver<Change>,
    /// Resolves once each watch has shown everything there is.
    pub(crate) filled: Shared<BoxFuture<'static, ()>>,
    /// What has not been shown yet.
    pub(crate) missing: Missing,
    /// Ends the watches when dropped.
    pub(crate) tasks: JoinSet<()>,
}

impl Watches {
    /// Starts all. What they show goes into the cache; of Workers, only those of this shard.
    pub(crate) fn start(client: &Client, cache: &Arc<SeedCache>, shard: Option<&Shard>) -> Self {
        let (changes, receiver) = mpsc::unbounded_channel();
        let (filled, missing, tasks) = Default::default();
        let mut start = Start { client, cache, changes: Changes(changes), filled, missing, tasks };
        start.workers(shard);
        start.clusters();
        start.credentials();
        start.machine_objects::<DeploymentText>();
        start.machine_objects::<Digested<Value>>();
        start.machine_objects::<Digested<Secret>>();
        start.machine_objects::<LiveMachineSet>();
        start.machine_objects::<LiveMachine>();
        let filled = join_all(start.filled).map(drop).boxed().shared();
        Self { changes: receiver, filled, missing: start.missing, tasks: start.tasks }
    }
}

/// Follows all objects of a kind for ever, and calls `changed` whenever somebody else has changed one, or the store has
/// everything there is. `kept` is what the store has of an object: of its identity and its text.
pub(crate) async fn follow_all<K, T>(
    client: &Client,
    store: Arc<Store<T>>,
    kept: impl Fn(&Identity, &str) -> Option<T>,
    changed: impl Fn(),
) where
    K: Resource<DynamicType = ()>,
    T: Kept + Send + Sync + 'static,
{
    let (resumed, doubted) = (Arc::clone(&store), Arc::clone(&store));
    let kind = ApiResource::erase::<K>(&());
    let api = Api::<Trimmed>::all_with(telling(client, move || resumed.mark_resumed()), &kind);
    let is_in_doubt = move || doubted.doubts_a_deletion(Instant::now());
    let mut events =
        pin!(listing_anew(watching(api, watcher::Config::default()), is_in_doubt).backoff(Pause::default()));
    while let Some(event) = events.next().await {
        let event = event.inspect_err(|error| debug!(%error, "a watch has failed")).ok();
        let is_complete = matches!(event, Some(Event::InitDone));
        let identify = |object: Trimmed| {
            let kept = kept(&object.identity, object.text.get())?;
            Some((object.identity, || kept))
        };
        put(&store, event, identify, |_| changed());
        if is_complete {
            changed();
        }
    }
}

/// Kinds of which not everything was shown yet. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Missing(Arc<Mutex<BTreeSet<&'static str>>>);

impl Missing {
    fn kinds(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kinds().iter().copied().collect::<Vec<_>>().join(", "))
    }
}

/// Where changes go. When nobody receives them any more, the process is about to end.
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
    /// One that another shard gets is gone from a watch that selects those of this one.
    fn workers(&mut self, shard: Option<&Shard>) {
        let (cache, changes) = (Arc::clone(self.cache), self.changes.clone());
        let config = watcher::Config { label_selector: shard.map(Shard::selector), ..watcher::Config::default() };
        let events = self.events::<Guarded<Worker>, _>(&(), config, |cache| &cache.workers.0);
        self.follow("Worker", events, move |event| {
            if let Some(Event::Delete(worker)) = &event {
                changes.send(Change::WorkerGone(Arc::new(worker.clone())));
            }
            let identify = |worker: Guarded<Worker>| Some((Identity::of(&worker)?, || worker));
            let change = |identity: &Identity| changes.send(Change::Worker(identity.clone()));
            for (_, gone) in put(&cache.workers.0, event, identify, change).gone {
                changes.send(Change::WorkerGone(gone));
            }
        });
    }

    fn clusters(&mut self) {
        let (cache, changes) = (Arc::clone(self.cache), self.changes.clone());
        let config = watcher::Config::default();
        let events = self.events::<PartialObjectMeta<Cluster>, _>(&(), config, |cache| &cache.clusters.versions);
        self.follow("Cluster", events, move |event| {
            let identify = |cluster: PartialObjectMeta<Cluster>| Some((Identity::of(&cluster)?, || ()));
            let change = |identity: &Identity| changes.of_namespace(identity.name.clone());
            put(&cache.clusters.versions, event, identify, change);
        });
    }

    /// That they changed is passed on, and that machine-controller-manager has released them; nothing of them is kept.
    fn credentials(&mut self) {
        let config = watcher::Config::default().fields(&format!("metadata.name={CREDENTIALS}"));
        let events = self.watch::<PartialObjectMeta<Secret>>(&(), config, || {}, || false);
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
        let (cache, changes) = (Arc::clone(self.cache), self.changes.clone());
        let kind = ApiResource::erase::<T::Kind>(&());
        let events = self.events::<Trimmed, _>(&kind, config, |cache| T::store(&cache.machine_objects));
        self.follow(<T::Kind as k8s_openapi::Resource>::KIND, events, move |event| {
            let objects = &cache.machine_objects;
            let identify = |Trimmed { identity, text, .. }| Some((identity, move || objects.kept(text.get())));
            let change = |identity: &Identity| {
                let (namespace, version) = (identity.namespace.clone(), identity.version);
                changes.send(match T::IS_PLANNED {
                    true => Change::PlannedObject { namespace, version },
                    false => Change::Namespace(namespace),
                });
            };
            let Relisted { reduced, gone: _, undone } = put(T::store(objects), event, identify, change);
            reduced.into_iter().for_each(|namespace| changes.of_namespace(namespace));
            undone.into_iter().for_each(|namespace| changes.send(Change::DeletionUndone(namespace)));
        });
    }

    /// What a watch shows for ever, of which a store is kept.
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
        let (resumed, doubted) = (Arc::clone(self.cache), Arc::clone(self.cache));
        let is_in_doubt = move || store(&doubted).doubts_a_deletion(Instant::now());
        self.watch(kind, config, move || store(&resumed).mark_resumed(), is_in_doubt)
    }

    /// What a watch shows for ever. `resumed` is called whenever it has begun; it lists everything anew when that is in doubt.
    fn watch<K>(
        &self,
        kind: &K::DynamicType,
        config: watcher::Config,
        resumed: impl Fn() + Clone + Send + 'static,
        is_in_doubt: impl Fn() -> bool + Send + 'static,
    ) -> BoxStream<'static, watcher::Result<Event<K>>>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api = Api::<K>::all_with(telling(self.client, resumed), kind);
        listing_anew(watching(api, config), is_in_doubt).backoff(Pause::default()).boxed()
    }

    /// Hands each event over; `None` stands for a failure.
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
        missing.kinds().insert(kind);
        self.tasks.spawn(async move {
            let mut events = pin!(events);
            while let Some(event) = events.next().await {
                let is_complete = matches!(event, Ok(Event::InitDone));
                match event {
                    Ok(event) => take(Some(event)),
                    Err(error) => {
                        debug!(%error, "a watch has failed");
                        take(None);
                    }
                }
                if let Some(filled) = filled.take_if(|_| is_complete) {
                    missing.kinds().remove(kind);
                    // Nobody waits for it any more.
                    let _ = filled.send(());
                }
            }
        });
    }
}

/// How a watch gets what is there when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitialList {
    /// As events, one after the other: nothing is in memory as a whole.
    Streamed,
    /// In pages, from an API server that does not stream lists.
    Paged,
}

/// Begins to watch, each time anew.
fn watching<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let paged = config.page_size(PAGE).timeout(WATCH);
    move |initial_list| {
        let config = match initial_list {
            InitialList::Streamed => paged.clone().streaming_lists(),
            InitialList::Paged => paged.clone(),
        };
        watcher(api.clone(), config).boxed()
    }
}

/// Whether an API server says that it does not stream lists, or does not know what that is.
fn refuses_to_stream(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    matches!(status.code, 400 | 422)
}

/// kube lists everything anew when a watch ends because it is too far behind, but not when it can't even begin: then it would
/// ask for the same for ever. Nor does it know that something is in doubt, that an API server does not stream lists, or that
/// a streamed list has stopped halfway.
fn listing_anew<K: 'static>(
    watch: impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>,
    is_in_doubt: impl Fn() -> bool,
) -> impl Stream<Item = watcher::Result<Event<K>>> {
    let streamed = InitialList::Streamed;
    let watching = Watching {
        events: watch(streamed),
        initial_list: streamed,
        listing_since: None,
        check_at: Instant::now() + DOUBTS,
    };
    stream::unfold((watching, watch, is_in_doubt), async |(mut watching, watch, is_in_doubt)| {
        let event = loop {
            let Ok(event) = timeout_at(watching.check_at, watching.events.next()).await else {
                watching.check(&watch, &is_in_doubt);
                continue;
            };
            let event = event?;
            if watching.initial_list == InitialList::Streamed && event.as_ref().is_err_and(refuses_to_stream) {
                debug!("the API server does not stream lists; they are read in pages");
                watching.initial_list = InitialList::Paged;
                watching.events = watch(InitialList::Paged);
                continue;
            }
            break event;
        };
        watching.listing_since = match &event {
            Ok(Event::Init | Event::InitApply(_)) => Some(Instant::now()),
            _ => None,
        };
        if matches!(&event, Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410) {
            watching.events = watch(watching.initial_list);
        }
        if watching.check_at <= Instant::now() {
            watching.check(&watch, &is_in_doubt);
        }
        Some((event, (watching, watch, is_in_doubt)))
    })
}

/// A watch that goes on.
struct Watching<K> {
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    initial_list: InitialList,
    /// When the last object of a list came that is not complete yet.
    listing_since: Option<Instant>,
    /// When is looked next whether something is in doubt.
    check_at: Instant,
}

impl<K> Watching<K> {
    /// Begins anew where nothing else would help.
    fn check(
        &mut self,
        watch: impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>,
        is_in_doubt: impl Fn() -> bool,
    ) {
        self.check_at = Instant::now() + DOUBTS;
        // Requests for pages have deadlines of their own.
        let is_streamed = self.initial_list == InitialList::Streamed;
        let has_stopped = is_streamed && self.listing_since.is_some_and(|since| since.elapsed() > ANSWER_DEADLINE);
        if has_stopped {
            warn!("a list has stopped before its end; everything is listed anew");
        } else if is_in_doubt() {
            warn!("no watch shows that something is gone that was deleted; everything is listed anew");
        } else {
            return;
        }
        self.listing_since = None;
        self.events = watch(self.initial_list);
    }
}

/// Puts what an event shows into a store, and calls `change` with what somebody else has done. `identify` says who an object is, and
/// how what is kept of it is read, which costs more.
fn put<K, T: Kept, R: FnOnce() -> T>(
    store: &Store<T>,
    event: Option<Event<K>>,
    identify: impl Fn(K) -> Option<(Identity, R)>,
    mut change: impl FnMut(&Identity),
) -> Relisted<T> {
    let mut shown = |object: K, put: fn(&Store<T>, Identity, R) -> bool| {
        if let Some((identity, read)) = identify(object)
            && put(store, identity.clone(), read)
        {
            change(&identity);
        }
    };
    match event {
        // The watch has failed; it goes on from where it was.
        None => store.mark_stale(),
        Some(Event::Init) => store.begin_relist(),
        Some(Event::InitApply(object)) => shown(object, Store::relist),
        Some(Event::InitDone) => return store.end_relist(),
        Some(Event::Apply(object)) => shown(object, Store::event),
        Some(Event::Delete(object)) => {
            if let Some((identity, _)) = identify(object) {
                store.event_deleted(&identity);
                change(&identity);
            }
        }
    }
    Relisted::default()
}

/// Pauses of a watch that fails again and again: short, because nothing is seen meanwhile. kube's own grow to half a minute,
/// so after an outage Workers would wait as long although the API server is back. Each is up to half longer, so that the
/// watches of many controllers don't come back together.
#[derive(Default)]
struct Pause {
    failures: u32,
}

impl Pause {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(1);
}

impl Iterator for Pause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = Self::FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        Some(pause + pause.mul_f64(random_half()))
    }
}

impl Backoff for Pause {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body as AnswerBody;
    use axum::http::{Request, Response};
    use futures::future;
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;
    use crate::cluster::test_support::{ApiServer, document, streamed};
    use crate::provider::Providers;

    const LONG: Duration = Duration::from_secs(30);

    /// An object of that name, in a namespace of that name if it is in one.
    fn object(name: &str) -> Value {
        let namespace = if name == "clusters" { Value::Null } else { format!("of-{name}").into() };
        let metadata = json!({"name": name, "namespace": namespace, "uid": name, "resourceVersion": "3"});
        json!({"metadata": metadata, "spec": {}})
    }

    /// An API server with an object of each kind that is called as the kind; credentials are those that are asked for by name.
    fn one_of_each() -> ApiServer {
        ApiServer::new(|asked| match (asked.query.contains("sendInitialEvents=true"), asked.last()) {
            (false, _) => document(&json!({})),
            (true, "secrets") if asked.query.contains("fieldSelector") => streamed(&[object("credentials")]),
            (true, kind) => streamed(&[object(kind)]),
        })
    }

    /// What is watched: the path, and what is selected.
    fn watched(server: &ApiServer) -> BTreeSet<String> {
        let watched = server.asked().into_iter().map(|asked| {
            let is_selector = |parameter: &&str| parameter.contains("Selector=");
            let selectors: Vec<&str> = asked.query.split('&').filter(is_selector).collect();
            let selectors = selectors.join("&").replace("%2F", "/").replace("%3D", "=");
            let form = if asked.accept.contains("PartialObjectMetadata") { "metadata" } else { "objects" };
            format!("{form} {} {selectors}", asked.line.trim_start_matches("GET ")).trim_end().to_owned()
        });
        watched.collect()
    }

    #[tokio::test]
    async fn each_kind_is_watched_and_wakes_the_workers_of_its_namespace() {
        const MACHINES: &str = "objects /apis/machine.sapcloud.io/v1alpha1";
        const GARDENER: &str = "/apis/extensions.gardener.cloud/v1alpha1";
        let shard = Shard::new("r", "a").unwrap();
        for (shard, selector) in [(None, ""), (Some(&shard), " labelSelector=shard.alpha.sharding.timebertt.dev/r=a")] {
            let (server, cache) = (one_of_each(), Arc::new(SeedCache::new(Providers::SHIPPED, false)));
            let mut watches = Watches::start(&server.client, &cache, shard);
            tokio::time::timeout(LONG, watches.filled.clone()).await.unwrap();
            assert_eq!(watches.missing.to_string(), "");
            let mut shown = BTreeSet::new();
            while let Ok(change) = watches.changes.try_recv() {
                shown.insert(match change {
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
            assert_eq!(shown, woken.collect::<BTreeSet<_>>());
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
    async fn all_objects_of_a_kind_are_followed_as_far_as_they_are_kept() {
        let server = ApiServer::new(|_| streamed(&[object("a"), object("left-out")]));
        let (store, changes) = (Arc::<Store<()>>::default(), Mutex::new(Vec::new()));
        let (complete, kept) =
            (tokio::sync::Notify::new(), |object: &Identity, _: &str| (object.name == "a").then_some(()));
        let changed = || {
            changes.lock().unwrap().push(store.is_fresh());
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
        assert_eq!(*changes.lock().unwrap(), [false, true], "once for what has changed, and once for the whole");
    }

    /// What a new watch shows first: of an API server that streams lists, or of one that does not.
    async fn shown_first(streams: bool) -> (Vec<String>, Vec<String>) {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let queries = Arc::clone(&asked);
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let (is_watch, begins_with_list) = (query.contains("watch=true"), query.contains("sendInitialEvents=true"));
            queries.lock().unwrap().push(query);
            let object = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "3"}});
            let (status, text) = match (is_watch, begins_with_list && streams) {
                (true, true) => {
                    let end = json!({"k8s.io/initial-events-end": "true"});
                    let bookmark = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"resourceVersion": "7", "annotations": end}});
                    let events =
                        [json!({"type": "ADDED", "object": object}), json!({"type": "BOOKMARK", "object": bookmark})];
                    (200, events.map(|event| format!("{event}\n")).concat())
                }
                (true, false) => {
                    let refusal = json!({"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422,
                        "message": "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"});
                    (422, refusal.to_string())
                }
                _ => (200, json!({"metadata": {"resourceVersion": "7"}, "items": [object]}).to_string()),
            };
            let pieces = stream::iter([Ok::<_, kube::Error>(text)]).chain(stream::pending());
            let body = if is_watch && status == 200 { AnswerBody::from_stream(pieces) } else { text_of(pieces) };
            future::ok::<_, kube::Error>(Response::builder().status(status).body(body).unwrap())
        });
        let api = Api::<Secret>::all(telling(&kube::Client::new(service, "default"), || {}));
        let events = listing_anew(watching(api, watcher::Config::default()), || false);
        let first: Vec<_> = events.take(3).map(|event| event.unwrap().to_string()).collect().await;
        let asked = asked.lock().unwrap().clone();
        (first, asked)
    }

    fn text_of(pieces: impl Stream<Item = Result<String, kube::Error>> + Send + 'static) -> AnswerBody {
        AnswerBody::from_stream(pieces.take(1))
    }

    #[tokio::test]
    async fn the_newest_list_is_streamed_where_the_api_server_does_that() {
        for streams in [true, false] {
            let (first, asked) = shown_first(streams).await;
            assert_eq!(first, ["Init", "InitApply(a)", "InitDone"], "streams: {streams}");
            assert!(asked.iter().all(|query| !query.contains("resourceVersion=0")), "not of any age: {asked:?}");
            assert_eq!(asked.len(), if streams { 1 } else { 2 }, "{asked:?}");
        }
    }

    type Events = Vec<watcher::Result<Event<Secret>>>;

    /// Which lists are begun, of a watch that shows `events` a second apart and then nothing, within five minutes.
    async fn begun(events: impl Fn(usize) -> Events, is_in_doubt: impl Fn() -> bool) -> Vec<InitialList> {
        let begun = Arc::<Mutex<Vec<InitialList>>>::default();
        let watch = |list: InitialList| {
            let number = begun.lock().unwrap().len();
            begun.lock().unwrap().push(list);
            let slowly = stream::iter(events(number)).then(async |event| {
                tokio::time::sleep(Duration::from_secs(1)).await;
                event
            });
            slowly.chain(stream::pending()).boxed()
        };
        let shown = listing_anew(watch, is_in_doubt).for_each(async |_| {});
        assert!(tokio::time::timeout(Duration::from_secs(300), shown).await.is_err(), "a watch never ends");
        begun.lock().unwrap().clone()
    }

    fn refused(code: u16) -> watcher::Result<Event<Secret>> {
        let status = kube::core::Status { code, ..kube::core::Status::default() };
        Err(watcher::Error::WatchStartFailed(kube::Error::Api(Box::new(status))))
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_listed_anew_only_where_nothing_else_helps() {
        use InitialList::{Paged, Streamed};
        let listed = || vec![Ok(Event::Init), Ok(Event::InitDone)];
        assert_eq!(begun(|_| listed(), || false).await, [Streamed], "a quiet watch is left alone");
        let long_ago = |number| if number == 0 { vec![refused(410)] } else { listed() };
        assert_eq!(begun(long_ago, || false).await, [Streamed; 2], "what it goes on from is forgotten");
        assert_eq!(begun(|_| vec![refused(500)], || false).await, [Streamed], "kube tries that again by itself");
        let stops = |number| if number == 0 { vec![Ok(Event::Init)] } else { listed() };
        assert_eq!(begun(stops, || false).await, [Streamed; 2], "a streamed list has stopped");
        let in_pages = |number| if number == 0 { vec![refused(422)] } else { vec![Ok(Event::Init)] };
        assert_eq!(begun(in_pages, || false).await, [Streamed, Paged], "pages have deadlines of their own");
        assert!(begun(|_| listed(), || true).await.len() > 2, "in doubt");
        // However much it shows, it is looked at.
        let busy = |_| (0..300).map(|_| Ok(Event::Apply(Secret::default()))).collect();
        assert!(begun(busy, || true).await.len() > 2, "in doubt");
        assert_eq!(begun(busy, || false).await, [Streamed]);
        let long_list = |_| {
            let objects = (0..200).map(|_| Ok(Event::InitApply(Secret::default())));
            [Ok(Event::Init)].into_iter().chain(objects).chain([Ok(Event::InitDone)]).collect()
        };
        assert_eq!(begun(long_list, || false).await, [Streamed], "a list goes on however long it takes");
        let start = Instant::now();
        assert_eq!(begun(|_| listed(), || start.elapsed() < DOUBTS).await, [Streamed], "it has only begun");
    }

    #[test]
    fn a_watch_tries_again_within_two_seconds_however_long_it_has_failed() {
        let mut pause = Pause::default();
        let pauses: Vec<Duration> = pause.by_ref().take(100).collect();
        assert!(pauses[0] < Duration::from_millis(200), "{:?}", pauses[0]);
        assert!(pauses.iter().all(|pause| *pause < Duration::from_secs(2)), "{pauses:?}");
        assert!(pauses[50..].iter().all(|pause| *pause >= Pause::LONGEST), "an API server needs peace: {pauses:?}");
        assert!(pauses[50..].windows(2).any(|two| two[0] != two[1]), "not all at the same time");
        pause.reset();
        assert!(pause.next().is_some_and(|pause| pause < Duration::from_millis(200)));
    }

    #[test]
    fn a_log_names_the_watches_that_are_missing() {
        let missing = Missing::default();
        missing.kinds().extend(["Worker", "Machine"]);
        assert_eq!(missing.to_string(), "Machine, Worker");
    }
}
