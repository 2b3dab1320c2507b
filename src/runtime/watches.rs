//! The watches: what they show goes into what the process knows, and every piece of news leads to the Workers that it is
//! about.
//!
//! ```text
//!  Workers (whole)              ─► their own
//!  Clusters (metadata)          ─► those of the namespace of that name
//!  MachineDeployments, MachineSets, Machines, MachineClasses,
//!  Secrets of classes,
//!  credentials (metadata)       ─► those of the same namespace
//! ```
//!
//! An echo of what this process has written is no news: whoever wrote it knows the answer.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared, join_all};
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::debug;

use super::controller::Shared as Controller;
use super::decode_guard::Guarded;
use super::newest::Newest;
use super::news::{News, WorkerRef};
use super::shown::Shown;
use super::tries::random_half;
use crate::api::gardener::{Cluster, Worker};
use crate::api::machine::{Machine, MachineSet};
use crate::worker::delete::CREDENTIALS;
use crate::worker::live::Digested;
use crate::worker::mirror::shelf::{Identity, Shelf};
use crate::worker::mirror::{DeploymentText, Mirrored};

/// Objects in one page of a list: Secrets are large, and a page is in memory as a whole.
const PAGE: u32 = 100;
/// Seconds after which the API server ends a watch, which then goes on. A watch that has lost its other end without a word is
/// given up a little later.
const WATCH: u32 = 120;

/// Running watches.
pub(super) struct Watches {
    /// Workers that there is news about.
    pub(super) news: mpsc::UnboundedReceiver<WorkerRef>,
    /// Resolves once each watch has shown everything there is.
    pub(super) filled: Shared<BoxFuture<'static, ()>>,
    /// Ends the watches when dropped.
    pub(super) tasks: JoinSet<()>,
}

impl Watches {
    /// Starts all. Workers are put where `workers` writes.
    pub(super) fn start(shared: &Arc<Controller>, workers: Writer<Guarded<Worker>>) -> Self {
        let (news, arrived) = News::new();
        let mut start = Start { shared, news: &news, filled: Vec::new(), tasks: JoinSet::new() };
        start.workers(workers);
        start.clusters();
        start.credentials();
        start.machine_objects::<DeploymentText>();
        start.machine_objects::<Digested<Value>>();
        start.machine_objects::<Digested<Secret>>();
        start.machine_objects::<MachineSet>();
        start.machine_objects::<Machine>();
        let filled = join_all(start.filled).map(drop).boxed().shared();
        Self { news: arrived, filled, tasks: start.tasks }
    }
}

struct Start<'a> {
    shared: &'a Arc<Controller>,
    news: &'a News,
    filled: Vec<oneshot::Receiver<()>>,
    tasks: JoinSet<()>,
}

impl Start<'_> {
    fn workers(&mut self, mut writer: Writer<Guarded<Worker>>) {
        let (events, shared, news) =
            (self.events(watcher::Config::default()), Arc::clone(self.shared), self.news.clone());
        let mut listed = Vec::new();
        self.follow(events, move |event: Option<Event<Guarded<Worker>>>| {
            // A watch that has failed goes on from where it was; what it shows is always checked against what was written.
            let Some(event) = event else { return };
            writer.apply_watcher_event(&event);
            match event {
                Event::Init => listed.clear(),
                // The store has the objects of a list only when all are there.
                Event::InitApply(worker) => listed.push(worker),
                Event::InitDone => listed.drain(..).for_each(|worker| tell(&shared.newest, &news, &worker)),
                Event::Apply(worker) => tell(&shared.newest, &news, &worker),
                Event::Delete(worker) => {
                    shared.forget(&worker);
                    news.gone(&worker.namespace().unwrap_or_default(), &worker.name_any());
                }
            }
        });
    }

    fn clusters(&mut self) {
        let events = self.events::<PartialObjectMeta<Cluster>>(watcher::Config::default());
        let (knowledge, news) = (Arc::clone(&self.shared.knowledge), self.news.clone());
        self.follow(events, move |event| {
            let identity = |cluster: &PartialObjectMeta<Cluster>| Identity {
                namespace: String::new(),
                name: cluster.name_any(),
                uid: cluster.uid().unwrap_or_default(),
                version: cluster.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default(),
            };
            let shelf = &knowledge.clusters.versions;
            put(shelf, event, |cluster| (identity(&cluster), ()), |identity| news.of_namespace(&identity.name));
        });
    }

    /// That they changed is news, and that machine-controller-manager has released them; nothing of them is kept.
    fn credentials(&mut self) {
        let config = watcher::Config::default().fields(&format!("metadata.name={CREDENTIALS}"));
        let (events, news) = (self.events::<PartialObjectMeta<Secret>>(config), self.news.clone());
        self.follow(events, move |event| match event {
            Some(Event::InitApply(secret) | Event::Apply(secret) | Event::Delete(secret)) => {
                news.of_namespace(&secret.namespace().unwrap_or_default());
            }
            None | Some(Event::Init | Event::InitDone) => {}
        });
    }

    fn machine_objects<T: Mirrored + Clone>(&mut self) {
        let config = watcher::Config { label_selector: T::SELECTOR.map(str::to_owned), ..Default::default() };
        let events = self.events::<Shown<T>>(config);
        let (knowledge, news) = (Arc::clone(&self.shared.knowledge), self.news.clone());
        self.follow(events, move |event| {
            let shelf = T::shelf(&knowledge.mirror);
            let tell = |identity: &Identity| news.of_namespace(&identity.namespace);
            for namespace in put(shelf, event, |shown| (shown.identity, shown.object), tell) {
                news.of_namespace(&namespace);
            }
        });
    }

    fn events<K>(&self, config: watcher::Config) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        watcher(Api::<K>::all(self.shared.client.clone()), config.page_size(PAGE).timeout(WATCH))
            .backoff(Pause::default())
    }

    /// Hands each event over; `None` stands for a failure.
    fn follow<K: Send + 'static>(
        &mut self,
        events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
        mut take: impl FnMut(Option<Event<K>>) + Send + 'static,
    ) {
        let (filled, receiver) = oneshot::channel();
        self.filled.push(receiver);
        let mut filled = Some(filled);
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
                    // Nobody waits for it any more.
                    let _ = filled.send(());
                }
            }
        });
    }
}

/// Tells of a Worker unless the watch only shows what this process has written.
fn tell(newest: &Newest, news: &News, worker: &Guarded<Worker>) {
    let is_echo = newest.is_echo(worker);
    news.lives(&worker.namespace().unwrap_or_default(), &worker.name_any());
    if !is_echo {
        news.of_worker(&worker.namespace().unwrap_or_default(), &worker.name_any());
    }
}

/// Puts what an event shows onto a shelf, and tells of what is new. Returns the namespaces that have lost something
/// unseen.
fn put<K, T>(
    shelf: &Shelf<T>,
    event: Option<Event<K>>,
    read: impl Fn(K) -> (Identity, T),
    mut tell: impl FnMut(&Identity),
) -> Vec<String> {
    let mut shown = |object: K, put: fn(&Shelf<T>, Identity, T) -> bool| {
        let (identity, object) = read(object);
        if put(shelf, identity.clone(), object) {
            tell(&identity);
        }
    };
    match event {
        None => shelf.doubt(),
        Some(Event::Init) => shelf.begin_list(),
        Some(Event::InitApply(object)) => shown(object, Shelf::list),
        Some(Event::InitDone) => return shelf.end_list(),
        Some(Event::Apply(object)) => shown(object, Shelf::show),
        Some(Event::Delete(object)) => {
            let (identity, _) = read(object);
            shelf.show_gone(&identity);
            tell(&identity);
        }
    }
    Vec::new()
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
    use super::*;

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
}
