//! State of a store: what it remembers of objects, and which of two versions wins.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use tokio::time::Instant;

use crate::cluster::identity::Identity;
use crate::cluster::store::Kept;

pub(super) struct State<T> {
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, Entry<T>>>,
    /// Objects deleted by this process, by UID. The watch may still report earlier versions of them.
    pub(super) own_deletions: BTreeMap<String, OwnDeletion>,
    /// Namespaces in which a read returned an object whose deletion by this process had been confirmed.
    pub(super) undone: Vec<String>,
    /// Objects missing from the last list of the watch, by UID, with the time of the request that returned them. That
    /// request was sent before or during the list, so it may be older or newer. Either the watch reports the object
    /// soon, or it is deleted.
    pub(super) unlisted: BTreeMap<String, Instant>,
    /// Number of reads under way, by the time at which they began.
    pub(super) reads: BTreeMap<u64, usize>,
    /// UIDs of objects deleted since the oldest of these reads began, with the time.
    pub(super) deleted: BTreeMap<String, u64>,
    /// Namespaces that were listed separately and that the watch has not caught up with.
    listed: BTreeMap<String, Listed>,
    /// The newest version that the watch has reported; its events are ordered.
    observed: u64,
    /// Logical clock of this store.
    pub(super) time: u64,
    /// The relist under way.
    pub(super) list: Option<List>,
    /// When the last complete relist was requested.
    list_requested: Option<u64>,
    pub(super) is_fresh: bool,
}

pub(super) struct List {
    pub(super) began: u64,
    /// Listed names, by namespace.
    pub(super) seen: HashMap<String, HashSet<String>>,
    /// UIDs of listed objects that this process has deleted since the list began. The watch will report their deletion.
    pub(super) own_deletions_seen: HashSet<String>,
    /// Namespaces of listed objects that this process had deleted before the list began, so their deletion was
    /// confirmed but not done.
    pub(super) undone: Vec<String>,
}

/// A list of one namespace: its version, and when it arrived.
struct Listed {
    version: u64,
    time: u64,
}

/// A deletion by this process.
pub(super) struct OwnDeletion {
    pub(super) namespace: String,
    pub(super) time: u64,
    pub(super) at: Instant,
}

pub(super) struct Entry<T> {
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) object: Arc<T>,
    /// The version last reported by the watch.
    pub(super) observed: u64,
    /// Versions that this process has written and the watch has not reported yet.
    pub(super) own: Vec<u64>,
    /// When the object was last received, from any source.
    pub(super) heard: u64,
}

/// When a read or a write was sent, by the store's logical clock and in real time.
#[derive(Clone, Copy)]
pub(super) struct ReadRequest {
    pub(super) time: u64,
    pub(super) at: Instant,
}

/// Source of an object.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Watch,
    /// A relist that was requested at this time.
    List(u64),
    /// A read.
    Read(ReadRequest),
    /// A write by this process.
    Write(ReadRequest),
}

impl Source {
    /// Whether this source was requested at that time or later and returns the complete state.
    fn is_response_since(self, time: u64) -> bool {
        match self {
            Self::List(requested) | Self::Read(ReadRequest { time: requested, .. }) => time <= requested,
            Self::Watch | Self::Write(_) => false,
        }
    }

    /// When it was requested, if a relist was requested since.
    fn requested_before(self, list: Option<u64>) -> Option<Instant> {
        match self {
            Self::Read(requested) | Self::Write(requested) => {
                list.filter(|list| requested.time <= *list).map(|_| requested.at)
            }
            Self::Watch | Self::List(_) => None,
        }
    }

    fn is_watch(self) -> bool {
        matches!(self, Self::Watch | Self::List(_))
    }
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            namespaces: BTreeMap::new(),
            own_deletions: BTreeMap::new(),
            undone: Vec::new(),
            unlisted: BTreeMap::new(),
            reads: BTreeMap::new(),
            deleted: BTreeMap::new(),
            listed: BTreeMap::new(),
            observed: 0,
            time: 0,
            list: None,
            list_requested: None,
            is_fresh: false,
        }
    }
}

impl<T: Kept> State<T> {
    /// Stores an object unless a newer version is known. Known versions are not decoded again. Returns whether the
    /// change is external.
    pub(super) fn put(&mut self, identity: Identity, read: impl FnOnce() -> T, source: Source) -> bool {
        if source.is_watch() && self.was_deleted(&identity, source) || self.stays_deleted(&identity, source) {
            return false;
        }
        let Identity { namespace, name, uid, version } = identity;
        self.time += 1;
        let heard = self.time;
        let entries = self.namespaces.entry(namespace).or_default();
        let record = entries.get_mut(&name);
        // Versions only decrease when a backup is restored.
        let moves_back =
            record.as_ref().is_some_and(|record| record.version > version && source.is_response_since(record.heard));
        let same = record.filter(|record| record.uid == uid && !moves_back);
        let (mut observed, mut own) =
            same.map_or_else(Default::default, |record| (record.observed, mem::take(&mut record.own)));
        let is_change = match source {
            Source::Watch => observed < version && !own.contains(&version),
            // A list returns only the last own write, not the external changes before it that this process has not
            // read.
            Source::List(_) => observed < version,
            Source::Read(_) | Source::Write(_) => false,
        };
        if source.is_watch() {
            self.unlisted.remove(&uid);
            observed = observed.max(version);
            own.retain(|own| *own > observed);
        } else if matches!(source, Source::Write(_)) && observed < version {
            own.push(version);
        }
        match entries.get_mut(&name) {
            Some(record) if record.uid == uid && record.version == version && !moves_back => {
                // The watch may report a version before the response to its write arrives.
                if T::OWN_WRITES_DIFFER && !matches!(source, Source::Write(_)) {
                    record.object = Arc::new(read());
                }
                (record.observed, record.own, record.heard) = (observed, own, heard);
            }
            Some(record) if record.uid == uid && record.version > version && !moves_back => {
                (record.observed, record.own, record.heard) = (observed, own, heard);
            }
            // A newer object, recreated with the same name.
            Some(record) if record.version >= version && !moves_back => {}
            _ => {
                // A newer version of an unconfirmed object does not confirm it.
                let is_new = entries.get(&name).is_none_or(|record| record.uid != uid);
                let requested = if is_new { source.requested_before(self.list_requested) } else { None };
                let unlisted = requested.map(|at| (uid.clone(), at));
                let entry = Entry { uid, version, object: Arc::new(read()), observed, own, heard };
                if let Some(before) = entries.insert(name, entry)
                    && is_new
                {
                    self.unlisted.remove(&before.uid);
                }
                self.unlisted.extend(unlisted);
            }
        }
        is_change
    }

    /// Records that all objects of a namespace are known at a version.
    pub(super) fn is_listed(&mut self, namespace: &str, version: u64) {
        self.time += 1;
        if version > self.observed {
            self.listed.insert(namespace.to_owned(), Listed { version, time: self.time });
        }
    }

    /// Forgets the list of a namespace. Only for a namespace that is listed again before anything depends on it.
    pub(super) fn forget_list(&mut self, namespace: &str) {
        self.listed.remove(namespace);
    }

    /// Whether this process has deleted the object and no later request has returned it.
    fn stays_deleted(&mut self, Identity { namespace, uid, .. }: &Identity, source: Source) -> bool {
        match self.own_deletions.get(uid) {
            Some(deletion) if source.is_response_since(deletion.time) => {
                self.own_deletions.remove(uid);
                if matches!(source, Source::Read(_)) {
                    self.undone.push(namespace.clone());
                }
                false
            }
            deletion => deletion.is_some(),
        }
    }

    /// Whether a watch reports an object that was already deleted when its namespace was last listed.
    fn was_deleted(&self, identity: &Identity, source: Source) -> bool {
        let Identity { namespace, name, uid, version } = identity;
        let is_past = |listed: &Listed| *version <= listed.version && !source.is_response_since(listed.time);
        let record = self.namespaces.get(namespace).and_then(|entries| entries.get(name));
        self.listed.get(namespace).is_some_and(is_past) && record.is_none_or(|record| record.uid != *uid)
    }

    /// Records that the watch has reported everything up to this version, so it no longer lags behind older lists.
    pub(super) fn advance_to(&mut self, version: u64) {
        if self.observed < version {
            self.observed = version;
            self.listed.retain(|_, listed| listed.version > version);
        }
    }

    /// Records that the watch restarts from a list requested at that time. Versions may have decreased because of a
    /// restored backup.
    pub(super) fn reappears(&mut self, requested: u64) {
        self.observed = 0;
        self.list_requested = Some(requested);
        self.listed.retain(|_, listed| listed.time > requested);
    }

    /// Records the deletion of the object with this UID.
    pub(super) fn note_deleted(&mut self, uid: &str) {
        self.unlisted.remove(uid);
        if !self.reads.is_empty() {
            self.time += 1;
            self.deleted.insert(uid.to_owned(), self.time);
        }
    }

    pub(super) fn take(&mut self, namespace: &str, name: &str, uid: &str) -> bool {
        let Some(entries) = self.namespaces.get_mut(namespace) else { return false };
        if entries.get(name).is_none_or(|entry| entry.uid != uid) {
            return false;
        }
        entries.remove(name);
        if entries.is_empty() {
            self.namespaces.remove(namespace);
        }
        true
    }

    #[cfg(test)]
    pub(super) fn remembers_no_list(&self) -> bool {
        self.listed.is_empty()
    }
}
