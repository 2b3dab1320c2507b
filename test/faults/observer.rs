//! An independent observer that records every version of every object through its own watches, directly from the API
//! server.
//!
//! During an outage of the API server it sees nothing, and it may never see the last writes before the outage.
//! Afterwards it lists all objects; their revisions reveal the order of creations and updates, but deleted objects are
//! missing. Machines and their owners are recorded as deleted when the watch ended, and objects they need as deleted at
//! the time of the list, so that missed versions never violate an invariant. Missed versions in between are detected by
//! their generation (`invariants`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use test_support::cluster::{ADMIN, ControlPlane};
use test_support::shoot::Kind;

/// Watched kinds, in all namespaces.
const KINDS: [Kind; 8] = [
    Kind::Worker,
    Kind::Deployment,
    Kind::MachineDeployment,
    Kind::MachineSet,
    Kind::Machine,
    Kind::MachineClass,
    Kind::Secret,
    Kind::Event,
];

/// A version of an object.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The cluster-wide revision, which orders versions of all kinds.
    pub(crate) revision: u64,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// `None` for a deletion.
    pub(crate) object: Option<Arc<Value>>,
}

/// Objects of one namespace by kind and name.
pub(crate) type Objects = BTreeMap<(Kind, String), Arc<Value>>;

/// The watches. Dropping it ends them.
pub(crate) struct Observer {
    namespaces: Arc<Namespaces>,
    /// Number of active watches.
    going_on: watch::Sender<usize>,
    watches: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Namespaces(Mutex<HashMap<String, Arc<Namespace>>>);

#[derive(Default)]
struct Namespace {
    seen: Mutex<Seen>,
    /// Notifies of each version.
    bell: watch::Sender<()>,
}

/// The recorded versions of one namespace.
#[derive(Default)]
pub(crate) struct Seen {
    /// All versions; those of one kind are in order.
    pub(crate) versions: Vec<Version>,
    /// The last version of each object.
    pub(crate) now: Objects,
}

impl Observer {
    /// Starts with the existing objects.
    pub(crate) async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let namespaces = Arc::<Namespaces>::default();
        let going_on = watch::Sender::new(0);
        let mut watches = Vec::new();
        for kind in KINDS {
            let api = Api::all_with(control_plane.client(ADMIN).await?, &kind.resource());
            let follower = Follower { api, kind, namespaces: Arc::clone(&namespaces), going_on: going_on.clone() };
            let from = follower.list("").await?;
            watches.push(tokio::spawn(follower.follow(from)));
        }
        Ok(Self { namespaces, going_on, watches })
    }

    /// Waits until all watches are active again after an outage of the API server.
    pub(crate) async fn sees_everything(&self) {
        // The sender lives as long as the observer.
        let _ = self.going_on.subscribe().wait_for(|count| *count == KINDS.len()).await;
    }

    /// All versions in a namespace so far, in order.
    pub(crate) fn versions(&self, namespace: &str) -> Vec<Version> {
        let mut versions = self.namespaces.of(namespace).seen().versions.clone();
        versions.sort_by_key(|version| version.revision);
        versions
    }

    /// Discards a namespace.
    pub(crate) fn forget(&self, namespace: &str) {
        self.namespaces.lock().remove(namespace);
    }

    /// Calls `check` after each change in a namespace until it succeeds, for at most `deadline`.
    pub(crate) async fn until<T>(
        &self,
        namespace: &str,
        deadline: Duration,
        what: &str,
        mut check: impl FnMut(&Seen) -> Result<T>,
    ) -> Result<T> {
        let end = Instant::now() + deadline;
        let namespace = self.namespaces.of(namespace);
        let mut bell = namespace.bell.subscribe();
        loop {
            bell.borrow_and_update();
            let missing = match check(&namespace.seen()) {
                Ok(value) => return Ok(value),
                Err(missing) => missing,
            };
            // The sender lives as long as the namespace.
            if tokio::time::timeout_at(end, bell.changed()).await.is_err() {
                return Err(missing).with_context(|| format!("{what}: not within {deadline:?}"));
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

impl Namespaces {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Namespace>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, namespace: &str) -> Arc<Namespace> {
        Arc::clone(self.lock().entry(namespace.to_owned()).or_default())
    }

    fn see(&self, kind: Kind, mut object: DynamicObject, deleted: bool) {
        object.metadata.managed_fields = None;
        let (name, revision) = (object.name_any(), revision_of(&object.resource_version().unwrap_or_default()));
        let namespace = self.of(&object.namespace().unwrap_or_default());
        let object = (!deleted).then(|| Arc::new(serde_json::to_value(object).unwrap_or_default()));
        namespace.see(Version { revision, kind, name, object });
    }

    /// Records known objects of a kind that are missing in a list as deleted between two revisions.
    fn observe_deletion(&self, kind: Kind, listed: &HashSet<(String, String)>, between: (u64, u64)) {
        let revision = match kind {
            Kind::MachineDeployment | Kind::MachineSet | Kind::Machine => between.0,
            _ => between.1,
        };
        let namespaces: Vec<_> = self.lock().iter().map(|(name, known)| (name.clone(), Arc::clone(known))).collect();
        for (namespace, known) in namespaces {
            let of_kind = known.seen().now.keys().filter(|(other, _)| *other == kind).cloned().collect::<Vec<_>>();
            for (kind, name) in of_kind {
                if !listed.contains(&(namespace.clone(), name.clone())) {
                    known.see(Version { revision, kind, name, object: None });
                }
            }
        }
    }
}

fn revision_of(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

impl Namespace {
    fn see(&self, version: Version) {
        let mut seen = self.seen();
        let key = (version.kind, version.name.clone());
        match &version.object {
            Some(object) => seen.now.insert(key, Arc::clone(object)),
            None => seen.now.remove(&key),
        };
        seen.versions.push(version);
        drop(seen);
        self.bell.send_replace(());
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches one kind in all namespaces.
struct Follower {
    api: Api<DynamicObject>,
    kind: Kind,
    namespaces: Arc<Namespaces>,
    going_on: watch::Sender<usize>,
}

impl Follower {
    /// Resumes an ended watch, or relists if that fails because the API server was down.
    async fn follow(self, mut from: String) {
        loop {
            if self.watch(&mut from).await.is_ok() {
                continue;
            }
            // Wait before retrying while it is down.
            tokio::time::sleep(Duration::from_millis(100)).await;
            if let Ok(listed) = self.list(&from).await {
                from = listed;
            }
        }
    }

    /// Records all existing objects; versions up to `from` were seen already. Returns the version from which to watch.
    async fn list(&self, from: &str) -> Result<String> {
        let list = self.api.list(&ListParams::default()).await.with_context(|| format!("listing {:?}", self.kind))?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let between = (revision_of(from), revision_of(&version));
        let names = list.items.iter().map(|object| (object.namespace().unwrap_or_default(), object.name_any()));
        self.namespaces.observe_deletion(self.kind, &names.collect(), between);
        for object in list.items {
            self.namespaces.see(self.kind, object, false);
        }
        Ok(version)
    }

    async fn watch(&self, from: &mut String) -> Result<()> {
        let mut events = self.api.watch(&WatchParams::default(), from).await?.boxed();
        let _going_on = GoingOn::new(&self.going_on);
        while let Some(event) = events.try_next().await? {
            let (object, deleted) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    *from = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => bail!("{status:?}"),
            };
            object.resource_version().unwrap_or_default().clone_into(from);
            self.namespaces.see(self.kind, object, deleted);
        }
        Ok(())
    }
}

/// Counts a watch while it is active.
struct GoingOn<'a>(&'a watch::Sender<usize>);

impl<'a> GoingOn<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for GoingOn<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
