//! The newest known version of each object of one kind, from a watch, an own write or a read. Resource versions of all
//! objects come from one counter of the API server, so no clock is needed to compare them.
//!
//! Five rules keep the store consistent:
//!
//! * A read is stored later than the API server served it. It must not bring back an object deleted in the meantime,
//!   because the watch would not report the deletion again. So the store remembers deletions while a read is under way.
//! * A watch event is a change unless this process wrote that very version, even if a newer version is known, because
//!   the writer of the newer version may not have read this one. A list omits intermediate versions. So an own write in
//!   a list is a change too: it may contain an earlier request of another client that no event reported.
//! * A watch may lag behind a read. An object missing from the list of a namespace does not come back through older
//!   versions of it that a lagging watch reports.
//! * The response to a later request overrides everything remembered. This covers deletions that were confirmed but not
//!   done, and backups that were restored.
//! * An object returned by an older request but missing from the list may be deleted. It stays unconfirmed until the
//!   watch reports it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use profiles::images::objects::image::ImageObject;
use tokio::time::Instant;

use crate::cluster::identity::Identity;
use crate::cluster::store::state::{List, OwnDeletion, ReadRequest, Source, State};

/// How long the watch may take to confirm an own deletion or an unlisted object before the store is relisted.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(15);

mod state;

/// An object in the store.
pub trait Kept {
    /// Whether own writes are stored in another form than watched objects, until the watch reports them.
    const OWN_WRITES_DIFFER: bool = false;
}

/// Stores only the existence of an object.
impl Kept for () {}

impl Kept for ImageObject {}

pub struct Store<T>(Mutex<State<T>>);

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A read, or a write of one object, that is under way.
pub struct Read<'a, T> {
    store: &'a Store<T>,
    requested: ReadRequest,
}

/// Objects that a complete relist shows to be deleted.
pub(crate) struct Relisted<T> {
    /// Namespaces that have lost objects, including those deleted by this process. Their Workers wait for the deletion
    /// event, which a watch that starts after the list never sends.
    pub(crate) reduced: Vec<String>,
    /// UID and last version of objects that other clients deleted.
    pub(crate) removed: Vec<(String, Arc<T>)>,
    /// Namespaces in which an object deleted by this process still exists.
    pub(crate) undone: Vec<String>,
}

impl<T> Default for Relisted<T> {
    fn default() -> Self {
        Self { reduced: Vec::new(), removed: Vec::new(), undone: Vec::new() }
    }
}

impl<T> Store<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock()
    }
}

impl<T: Kept> Store<T> {
    /// Applies a watch event and decodes only unknown versions. Returns whether the change is external.
    pub fn event(&self, identity: Identity, read: impl FnOnce() -> T) -> bool {
        let mut state = self.state();
        state.is_fresh |= state.list.is_none();
        state.advance_to(identity.version);
        state.put(identity, read, Source::Watch)
    }

    /// Applies a deletion event, which is always a change, because the deleting client had read the last version.
    pub fn event_deleted(&self, identity: &Identity) {
        let mut state = self.state();
        state.is_fresh |= state.list.is_none();
        state.advance_to(identity.version);
        state.own_deletions.remove(&identity.uid);
        state.note_deleted(&identity.uid);
        state.take(&identity.namespace, &identity.name, &identity.uid);
    }

    /// Begins a relist of the watch.
    pub(crate) fn begin_relist(&self) {
        let mut state = self.state();
        let began = state.time;
        let undone = Vec::new();
        state.list = Some(List { began, seen: HashMap::new(), own_deletions_seen: HashSet::new(), undone });
    }

    /// Applies an object of the relist and decodes only unknown versions. Returns whether the change is external.
    pub(crate) fn relist(&self, identity: Identity, read: impl FnOnce() -> T) -> bool {
        let mut state = self.state();
        let deleted = state.own_deletions.get(&identity.uid).map(|deletion| deletion.time);
        let Some(list) = &mut state.list else { return state.put(identity, read, Source::Watch) };
        list.seen.entry(identity.namespace.clone()).or_default().insert(identity.name.clone());
        match deleted {
            Some(deleted) if deleted > list.began => drop(list.own_deletions_seen.insert(identity.uid.clone())),
            Some(_) => list.undone.push(identity.namespace.clone()),
            None => {}
        }
        let source = Source::List(list.began);
        state.put(identity, read, source)
    }

    /// Completes the relist: removes objects missing from the list, unless a response has returned them since it began.
    pub(crate) fn end_relist(&self, now: Instant) -> Relisted<T> {
        let mut state = self.state();
        let Some(list) = state.list.take() else { return Relisted::default() };
        let List { began, seen, own_deletions_seen, mut undone } = list;
        undone.append(&mut state.undone);
        state.reappears(began);
        let mut reduced = Vec::new();
        let mut removed = Vec::new();
        let mut unlisted = BTreeMap::new();
        state.namespaces.retain(|namespace, entries| {
            let before = removed.len();
            let listed = seen.get(namespace);
            entries.retain(|name, entry| {
                let is_listed = listed.is_some_and(|names| names.contains(name));
                let stays = is_listed || entry.heard > began;
                if !stays {
                    removed.push((entry.uid.clone(), Arc::clone(&entry.object)));
                } else if !is_listed {
                    unlisted.insert(entry.uid.clone(), now);
                }
                stays
            });
            if removed.len() > before {
                reduced.push(namespace.clone());
            }
            !entries.is_empty()
        });
        state.unlisted = unlisted;
        removed.iter().for_each(|(uid, _)| state.note_deleted(uid));
        let unseen = state.own_deletions.iter().filter(|(uid, _)| !own_deletions_seen.contains(*uid));
        reduced.extend(unseen.map(|(_, own_deletions)| own_deletions.namespace.clone()));
        // The list confirms the deletion of all others.
        state.own_deletions.retain(|uid, _| own_deletions_seen.contains(uid));
        state.is_fresh = true;
        Relisted { reduced, removed, undone }
    }

    /// Marks the store as stale after a watch failure, because events may be missing.
    pub(crate) fn mark_stale(&self) {
        self.state().is_fresh = false;
    }

    /// Marks the store as fresh once the watch has resumed, because missed events are on their way. Waiting for an
    /// event would not work: there may be no change, or no object at all.
    pub fn mark_resumed(&self) {
        let mut state = self.state();
        state.is_fresh |= state.list.is_none();
    }

    /// Whether the watch is up to date, as far as is known.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.state().is_fresh
    }

    /// Records a deletion by this process that the API server has confirmed.
    pub fn own_deletion(&self, namespace: &str, name: &str, uid: &str, now: Instant) {
        let mut state = self.state();
        state.note_deleted(uid);
        state.time += 1;
        let deletion = OwnDeletion { namespace: namespace.to_owned(), time: state.time, at: now };
        if state.take(namespace, name, uid) {
            state.own_deletions.insert(uid.to_owned(), deletion);
        }
    }

    /// Whether a relist is needed: the watch did not confirm a deletion or an unlisted object in time, or a read
    /// returned an object that this process had deleted.
    #[must_use]
    pub(crate) fn is_unconfirmed(&self, now: Instant) -> bool {
        let state = self.state();
        let is_late = |since: &Instant| now.saturating_duration_since(*since) >= CONFIRMATION_TIMEOUT;
        !state.undone.is_empty()
            || state.own_deletions.values().any(|deletion| is_late(&deletion.at))
            || state.unlisted.values().any(is_late)
    }

    /// Begins a read or a write. Call it before the request is sent.
    #[must_use]
    pub fn read(&self) -> Read<'_, T> {
        let mut state = self.state();
        let began = state.time;
        *state.reads.entry(began).or_default() += 1;
        Read { store: self, requested: ReadRequest { time: began, at: Instant::now() } }
    }

    /// The objects of a namespace, sorted by name.
    #[must_use]
    pub(crate) fn of_namespace(&self, namespace: &str) -> Vec<(String, Arc<T>)> {
        let state = self.state();
        let entries = state.namespaces.get(namespace).into_iter().flatten();
        entries.map(|(name, entry)| (name.clone(), Arc::clone(&entry.object))).collect()
    }

    /// All objects, sorted by namespace and name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<T>> {
        let state = self.state();
        state.namespaces.values().flat_map(|entries| entries.values()).map(|entry| Arc::clone(&entry.object)).collect()
    }

    /// Namespace, name and object of all objects that match.
    pub(crate) fn matching(&self, is_match: impl Fn(&T) -> bool) -> Vec<(String, String, Arc<T>)> {
        let state = self.state();
        let entries = state
            .namespaces
            .iter()
            .flat_map(|(namespace, entries)| entries.iter().map(move |(name, entry)| (namespace, name, &entry.object)));
        let matching = entries.filter(|(_, _, object)| is_match(object));
        matching.map(|(namespace, name, object)| (namespace.clone(), name.clone(), Arc::clone(object))).collect()
    }

    /// The newest known version of an object.
    #[must_use]
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.state().namespaces.get(namespace)?.get(name).map(|entry| Arc::clone(&entry.object))
    }

    /// Forgets the list of a namespace that has no Worker any more. The watch of a kind without changes never catches
    /// up with it, so it would stay.
    pub(crate) fn forget_list(&self, namespace: &str) {
        self.state().forget_list(namespace);
    }

    /// Whether the store has any object of the namespace.
    #[must_use]
    pub fn has_any_of(&self, namespace: &str) -> bool {
        self.state().namespaces.get(namespace).is_some_and(|objects| !objects.is_empty())
    }

    #[must_use]
    pub fn names(&self, namespace: &str) -> Vec<String> {
        self.state().namespaces.get(namespace).into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// The resource version of the stored object.
    #[must_use]
    pub fn version(&self, namespace: &str, name: &str) -> Option<u64> {
        self.state().namespaces.get(namespace)?.get(name).map(|entry| entry.version)
    }
}

impl<T: Kept> Read<'_, T> {
    /// Applies a list of a namespace at a version. Known versions are not decoded again.
    pub(crate) fn of_namespace(self, namespace: &str, version: u64, objects: Vec<(Identity, impl FnOnce() -> T)>) {
        let mut state = self.store.state();
        let listed: HashSet<&str> = objects.iter().map(|(identity, _)| identity.name.as_str()).collect();
        let mut removed = Vec::new();
        if let Some(entries) = state.namespaces.get_mut(namespace) {
            entries.retain(|name, entry| {
                let is_newer = entry.version > version && entry.heard > self.requested.time;
                let stays = is_newer || listed.contains(name.as_str());
                if !stays {
                    removed.push(entry.uid.clone());
                }
                stays
            });
        }
        removed.iter().for_each(|uid| state.note_deleted(uid));
        for (identity, read) in objects {
            if state.deleted.get(&identity.uid).is_none_or(|time| *time <= self.requested.time) {
                state.put(identity, read, Source::Read(self.requested));
            }
        }
        state.is_listed(namespace, version);
    }
}

impl<T: Kept> Read<'_, T> {
    /// Applies the response to a write. An object that the watch has meanwhile reported as deleted does not come back,
    /// because the watch would not report the deletion again. An object written after its confirmed deletion exists.
    /// Known versions are not decoded again.
    pub fn of_write(self, identity: Identity, read: impl FnOnce() -> T) {
        let mut state = self.store.state();
        if state.own_deletions.get(&identity.uid).is_some_and(|deletion| deletion.time <= self.requested.time) {
            state.own_deletions.remove(&identity.uid);
        }
        if state.deleted.get(&identity.uid).is_none_or(|time| *time <= self.requested.time) {
            state.put(identity, read, Source::Write(self.requested));
        }
    }
}

impl<T> Drop for Read<'_, T> {
    fn drop(&mut self) {
        let mut state = self.store.state();
        if let Some(reads) = state.reads.get_mut(&self.requested.time) {
            *reads -= 1;
            if *reads == 0 {
                state.reads.remove(&self.requested.time);
            }
        }
        match state.reads.first_key_value().map(|(began, _)| *began) {
            Some(oldest) => state.deleted.retain(|_, time| *time > oldest),
            None => state.deleted = BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Kept for u64 {}

    impl Kept for i32 {}

    /// A kind whose own writes differ from watched objects.
    #[derive(Debug, PartialEq)]
    struct Differs(&'static str);

    impl Kept for Differs {
        const OWN_WRITES_DIFFER: bool = true;
    }

    fn object(name: &str, uid: &str, version: u64) -> Identity {
        Identity { namespace: "ns".to_owned(), name: name.to_owned(), uid: uid.to_owned(), version }
    }

    fn nothing() -> Vec<(Identity, fn() -> u64)> {
        Vec::new()
    }

    fn names(store: &Store<u64>) -> Vec<(String, u64)> {
        store.of_namespace("ns").into_iter().map(|(name, object)| (name, *object)).collect()
    }

    #[test]
    fn newer_version_wins() {
        let store = Store::default();
        store.read().of_write(object("a", "u", 5), || 5);
        assert!(!store.event(object("a", "u", 5), || 5), "the echo of a write is no change");
        assert_eq!(names(&store), [("a".to_owned(), 5)]);
        assert!(store.event(object("a", "u", 6), || 6));
        assert!(!store.event(object("a", "u", 6), || 6), "shown before");
        store.read().of_write(object("a", "u", 5), || 5);
        assert_eq!(names(&store), [("a".to_owned(), 6)], "an answer that comes late");
    }

    #[test]
    fn does_not_decode_cached_version() {
        let unread = || -> u64 { panic!("read again") };
        let store = Store::default();
        store.read().of_write(object("a", "u", 5), || 5);
        assert!(!store.event(object("a", "u", 5), unread), "written by this process");
        store.begin_relist();
        assert!(!store.relist(object("a", "u", 5), unread), "shown before");
        assert!(store.event(object("a", "u", 6), || 6));
        store.read().of_write(object("a", "u", 6), unread);
        store.read().of_write(object("a", "u", 5), unread);
        store.read().of_namespace("ns", 7, vec![(object("a", "u", 6), unread)]);
        assert_eq!(names(&store), [("a".to_owned(), 6)], "neither is what comes late, nor what is listed");
        let store = Store::default();
        store.event(object("a", "u", 6), || 6);
        assert!(store.event(object("a", "v", 6), || 7), "another object of that name");
    }

    #[test]
    fn watch_replaces_own_write() {
        let store = Store::default();
        store.read().of_write(object("a", "u", 5), || Differs("written"));
        assert!(!store.event(object("a", "u", 5), || Differs("shown")));
        assert_eq!(store.get("ns", "a").as_deref(), Some(&Differs("shown")));
        assert!(store.event(object("a", "u", 6), || Differs("shown")), "before the answer to who has written it");
        store.read().of_write(object("a", "u", 6), || Differs("written"));
        assert_eq!(store.get("ns", "a").as_deref(), Some(&Differs("shown")), "nothing shows it once more");
    }

    #[test]
    fn older_external_event_is_change() {
        let store = Store::default();
        store.event(object("a", "u", 3), || 3);
        store.read().of_write(object("a", "u", 5), || 5);
        assert!(store.event(object("a", "u", 4), || 4), "whoever wrote had read 3");
        assert!(!store.event(object("a", "u", 5), || 5));
        store.read().of_namespace("ns", 8, vec![(object("a", "u", 8), || 8)]);
        assert_eq!(names(&store), [("a".to_owned(), 8)], "an old event changes nothing");
        assert!(store.event(object("a", "u", 8), || 8), "it was read for somebody, perhaps not for whom it is about");
    }

    /// Another client requests something while the watch is down; then this process writes the object without having
    /// read that.
    #[test]
    fn own_write_in_list_is_change() {
        let store = Store::default();
        store.event(object("a", "u", 3), || 3);
        store.read().of_write(object("a", "u", 5), || 5);
        store.begin_relist();
        assert!(store.relist(object("a", "u", 5), || 5), "4 may have been a request");
        store.end_relist(Instant::now());
        store.begin_relist();
        assert!(!store.relist(object("a", "u", 5), || 5), "it was shown");
        store.end_relist(Instant::now());
    }

    #[test]
    fn own_writes_are_no_changes() {
        let store = Store::default();
        assert!(store.event(object("a", "u", 3), || 3));
        store.read().of_write(object("a", "u", 5), || 5);
        store.read().of_write(object("a", "u", 4), || 4);
        assert_eq!(store.get("ns", "a").as_deref(), Some(&5), "an answer that came late changes nothing");
        assert!(!store.event(object("a", "u", 4), || 4) && !store.event(object("a", "u", 5), || 5), "both own writes");
        assert!(store.event(object("a", "u", 6), || 6), "somebody else's");
        store.read().of_write(object("a", "u", 8), || 8);
        assert!(store.event(object("a", "u", 7), || 7), "what came before the write was not read by whoever wrote");
        assert_eq!(store.get("ns", "a").as_deref(), Some(&8), "and is read together with what was written");
    }

    /// A machine set is deleted after the API server has listed it and before the list arrives.
    #[test]
    fn list_does_not_restore_deleted_object() {
        let store = Store::default();
        store.event(object("a", "u", 5), || 5);
        let first = store.read();
        let second = store.read();
        store.event_deleted(&object("a", "u", 7));
        first.of_namespace("ns", 6, vec![(object("a", "u", 5), || 5)]);
        assert_eq!(names(&store), []);
        second.of_namespace("ns", 6, vec![(object("a", "u", 5), || 5)]);
        assert_eq!(names(&store), [], "nor by another list");

        store.event(object("b", "b", 8), || 8);
        let older = store.read();
        store.read().of_namespace("ns", 10, nothing());
        older.of_namespace("ns", 9, vec![(object("b", "b", 8), || 8)]);
        assert_eq!(names(&store), [], "a newer list has shown that it is gone");
        assert!(store.state().deleted.is_empty(), "remembered only while somebody reads");
        let older = store.read();
        store.event_deleted(&object("b", "b", 9));
        let newer = store.read();
        drop(older);
        assert!(store.state().deleted.is_empty(), "who reads since then gets no answer that has it");
        drop(newer);
        store.read().of_namespace("ns", 12, vec![(object("c", "c", 11), || 11)]);
        assert_eq!(names(&store), [("c".to_owned(), 11)]);
    }

    /// A shoot moves back to this seed while a watch lags by five seconds; its classes were deleted before they were
    /// listed.
    #[test]
    fn late_watch_does_not_restore_deleted_object() {
        let store = Store::default();
        store.event(object("a", "u", 3), || 3);
        store.begin_relist();
        store.read().of_namespace("ns", 10, vec![(object("b", "b", 9), || 9)]);
        assert!(!store.relist(object("a", "u", 3), || 3), "the watch begins with what was before");
        assert!(store.relist(object("b", "b", 8), || 8), "that is there still, and shown for the first time");
        store.end_relist(Instant::now());
        assert_eq!(names(&store), [("b".to_owned(), 9)]);
        assert!(!store.event(object("a", "u", 4), || 4), "it shows what came next");
        store.event_deleted(&object("a", "u", 5));
        store.event(Identity { namespace: "other".to_owned(), ..object("a", "w", 6) }, || 6);
        assert_eq!(store.names("other"), ["a"], "of another namespace nothing is known");
        assert!(store.event(object("a", "v", 11), || 11), "made anew");
        assert_eq!(names(&store), [("a".to_owned(), 11), ("b".to_owned(), 9)]);
        assert!(store.state().remembers_no_list(), "the watch has caught up");

        store.read().of_namespace("ns", 11, nothing());
        assert!(store.state().remembers_no_list(), "it is not behind");
        store.read().of_namespace("ns", 20, nothing());
        assert!(!store.state().remembers_no_list());
        store.begin_relist();
        assert!(store.relist(object("a", "u", 3), || 3), "asked for later: a backup was restored");
        store.end_relist(Instant::now());
        assert!(store.event(object("c", "c", 4), || 4));
        assert!(store.state().remembers_no_list());
    }

    /// machine-controller-manager removes its finalizer from a deployment before the response to its deletion arrives.
    #[test]
    fn write_response_does_not_restore_deleted_object() {
        let store = Store::default();
        store.event(object("a", "u", 5), || 5);
        let requested = store.read();
        store.event_deleted(&object("a", "u", 7));
        requested.of_write(object("a", "u", 6), || 6);
        assert_eq!(names(&store), []);
        assert!(store.state().deleted.is_empty(), "remembered only while somebody asks");

        let requested = store.read();
        store.event_deleted(&object("b", "before", 8));
        requested.of_write(object("b", "after", 9), || 9);
        assert_eq!(names(&store), [("b".to_owned(), 9)], "made anew under the same name");
    }

    #[test]
    fn old_event_does_not_restore_deleted_object() {
        let store = Store::default();
        store.event(object("a", "u", 5), || 5);
        store.own_deletion("ns", "a", "u", Instant::now());
        assert!(!store.event(object("a", "u", 6), || 6), "from before the deletion");
        assert_eq!(names(&store), []);
        store.event_deleted(&object("a", "u", 7));
        assert!(store.event(object("a", "another", 8), || 8), "made anew");
        store.event_deleted(&object("a", "u", 7));
        assert_eq!(names(&store), [("a".to_owned(), 8)]);
    }

    #[test]
    fn old_version_does_not_replace_recreated_object() {
        let store = Store::default();
        store.event(object("a", "anew", 8), || 8);
        store.event(object("a", "before", 6), || 6);
        store.read().of_write(object("a", "before", 7), || 7);
        assert_eq!(names(&store), [("a".to_owned(), 8)]);
    }

    #[test]
    fn relist_removes_unlisted_objects() {
        let store = Store::default();
        for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
            store.event(object(name, name, version), || version);
        }
        store.mark_stale();
        store.begin_relist();
        assert!(!store.is_fresh(), "not before the list is complete");
        assert!(!store.relist(object("a", "a", 1), || 1), "no a change");
        assert!(store.relist(object("b", "b", 9), || 9));
        store.read().of_write(object("d", "d", 10), || 10);
        assert_eq!(store.end_relist(Instant::now()).reduced, ["ns"], "it has lost c");
        assert!(store.is_fresh());
        let expected = [("a", 1), ("b", 9), ("d", 10)].map(|(name, version)| (name.to_owned(), version));
        assert_eq!(names(&store), expected, "d was written after the list began");
    }

    /// A Worker waits only for its own deletion, and the watch was down meanwhile.
    #[test]
    fn relist_confirms_own_deletions() {
        let store = Store::default();
        for name in ["a", "b", "c"] {
            store.event(object(name, name, 1), || 1);
        }
        store.mark_stale();
        store.own_deletion("ns", "a", "a", Instant::now());
        store.begin_relist();
        store.own_deletion("ns", "b", "b", Instant::now());
        store.relist(object("c", "c", 1), || 1);
        assert_eq!(store.end_relist(Instant::now()).reduced, ["ns", "ns"], "a and b; no event will tell of them");
        store.begin_relist();
        store.own_deletion("ns", "c", "c", Instant::now());
        store.relist(object("c", "c", 1), || 1);
        assert_eq!(store.end_relist(Instant::now()).reduced, [""; 0], "an event will tell of c");
        assert_eq!(names(&store), []);
    }

    #[test]
    fn later_response_overrides_own_deletion() {
        let store = Store::default();
        let begin = || {
            store.event(object("a", "u", 5), || 5);
            let before = store.read();
            store.own_deletion("ns", "a", "u", Instant::now());
            before.of_namespace("ns", 6, vec![(object("a", "u", 5), || 5)]);
            assert_eq!(names(&store), [], "asked before it was deleted");
        };
        begin();
        store.read().of_namespace("ns", 7, vec![(object("a", "u", 5), || 5)]);
        assert_eq!(names(&store), [("a".to_owned(), 5)], "asked later: it is there");
        assert!(store.is_unconfirmed(Instant::now()), "whoever has asked may have decided already what has to go");
        store.begin_relist();
        store.relist(object("a", "u", 5), || 5);
        assert_eq!(store.end_relist(Instant::now()).undone, ["ns"]);
        assert!(!store.is_unconfirmed(Instant::now()), "once");
        begin();
        store.begin_relist();
        assert!(store.relist(object("a", "u", 5), || 5), "whoever has deleted it has to know");
        assert_eq!(store.end_relist(Instant::now()).undone, ["ns"]);
        assert_eq!(names(&store), [("a".to_owned(), 5)]);
        begin();
        store.read().of_write(object("a", "u", 6), || 6);
        assert_eq!(names(&store), [("a".to_owned(), 6)], "written later: it is there");
        let before = store.read();
        store.own_deletion("ns", "a", "u", Instant::now());
        before.of_write(object("a", "u", 7), || 7);
        assert_eq!(names(&store), [], "written before it was deleted");
    }

    /// A list that begins while a write or a read is under way may be older or newer than its response. A newer list
    /// omits objects deleted in between.
    #[test]
    fn unlisted_object_is_unconfirmed_until_watched() {
        type Reply = fn(Read<'_, u64>);
        let responses: [Reply; 2] = [
            |write| write.of_write(object("a", "u", 6), || 6),
            |read| read.of_namespace("ns", 6, vec![(object("a", "u", 5), || 5)]),
        ];
        for (response, is_after_the_list) in
            responses.into_iter().flat_map(|response| [(response, true), (response, false)])
        {
            let listed = || {
                let store = Store::default();
                let requested = store.read();
                store.begin_relist();
                if is_after_the_list {
                    store.end_relist(Instant::now());
                    response(requested);
                } else {
                    response(requested);
                    assert_eq!(
                        store.end_relist(Instant::now()).reduced,
                        [""; 0],
                        "it may have been made after the list"
                    );
                }
                let now = Instant::now();
                assert!(store.get("ns", "a").is_some() && !store.is_unconfirmed(now));
                assert!(store.is_unconfirmed(now + CONFIRMATION_TIMEOUT));
                (store, now + CONFIRMATION_TIMEOUT)
            };
            let (store, late) = listed();
            store.begin_relist();
            assert_eq!(store.end_relist(late).reduced, ["ns"], "it had gone");
            assert_eq!((names(&store), store.is_unconfirmed(late + CONFIRMATION_TIMEOUT)), (Vec::new(), false));
            let (store, late) = listed();
            store.begin_relist();
            store.relist(object("a", "u", 7), || 7);
            store.end_relist(late);
            assert!(!store.is_unconfirmed(late + CONFIRMATION_TIMEOUT), "the next list has it");
            let (store, late) = listed();
            store.event(object("a", "u", 7), || 7);
            assert!(!store.is_unconfirmed(late), "it is there");
            let (store, late) = listed();
            store.event_deleted(&object("a", "u", 7));
            assert!(!store.is_unconfirmed(late), "it is gone");
            let (store, late) = listed();
            store.read().of_namespace("ns", 8, nothing());
            assert!(!store.is_unconfirmed(late), "a later answer has it not");
            let (store, late) = listed();
            store.event(object("a", "v", 8), || 8);
            assert!(!store.is_unconfirmed(late), "it was made anew");
        }
        let store = Store::default();
        let now = Instant::now();
        let first = store.read();
        let second = store.read();
        store.begin_relist();
        first.of_write(object("a", "u", 6), || 6);
        store.end_relist(now);
        second.of_write(object("a", "u", 7), || 7);
        assert!(store.is_unconfirmed(now + CONFIRMATION_TIMEOUT), "both were asked for before the list");
        let store = Store::default();
        store.begin_relist();
        store.relist(object("b", "w", 3), || 3);
        store.end_relist(Instant::now());
        store.read().of_write(object("a", "u", 6), || 6);
        assert!(!store.is_unconfirmed(Instant::now() + CONFIRMATION_TIMEOUT), "it was asked for after the list");
    }

    #[test]
    fn unconfirmed_deletion_requires_relist() {
        let store = Store::default();
        let start = Instant::now();
        store.event(object("a", "u", 5), || 5);
        store.own_deletion("ns", "a", "u", start);
        assert!(!store.is_unconfirmed(start) && store.is_unconfirmed(start + CONFIRMATION_TIMEOUT));
        store.event_deleted(&object("a", "u", 7));
        assert!(!store.is_unconfirmed(start + CONFIRMATION_TIMEOUT), "it is gone");
    }

    /// etcd was restored from a backup: versions are lower, and objects created since the backup are missing.
    #[test]
    fn restored_backup_overrides_store() {
        let remembering = || {
            let store = Store::default();
            store.event(object("a", "a", 100), || 100);
            store.read().of_write(object("a", "a", 110), || 110);
            store.event(object("b", "b", 105), || 105);
            store
        };
        let store = remembering();
        store.read().of_namespace("ns", 50, vec![(object("a", "a", 40), || 40)]);
        assert_eq!(names(&store), [("a".to_owned(), 40)]);
        assert!(store.event(object("a", "a", 51), || 51), "and what comes then is a change");
        let store = remembering();
        store.begin_relist();
        assert!(store.relist(object("a", "a", 40), || 40), "a change");
        assert_eq!(store.end_relist(Instant::now()).reduced, ["ns"], "b is gone");
        assert_eq!(names(&store), [("a".to_owned(), 40)]);
    }

    #[test]
    fn namespace_list_keeps_newer_objects() {
        let store = Store::default();
        for (name, version) in [("a", 1), ("b", 2)] {
            store.event(object(name, name, version), || version);
        }
        let read = store.read();
        store.event(object("c", "c", 8), || 8);
        store.event(object("d", "d", 7), || 7);
        read.of_namespace("ns", 7, vec![(object("a", "a", 6), || 6)]);
        assert_eq!(names(&store), [("a".to_owned(), 6), ("c".to_owned(), 8)], "but of everything up to it");
    }

    #[test]
    fn resumed_watch_makes_store_fresh() {
        let store = Store::default();
        assert!(!store.is_fresh(), "nothing was listed yet");
        store.begin_relist();
        store.mark_resumed();
        assert!(!store.is_fresh(), "not before the list is complete");
        drop(store.end_relist(Instant::now()));
        store.mark_stale();
        assert!(!store.is_fresh());
        store.mark_resumed();
        assert!(store.is_fresh(), "nothing need change for it: there may be no object at all");
        store.mark_stale();
        store.event(object("a", "a", 1), || 1);
        assert!(store.is_fresh(), "an event shows it as well");
        store.mark_stale();
        store.event_deleted(&object("a", "a", 2));
        assert!(store.is_fresh(), "be it that something is gone");
    }

    #[test]
    fn returns_objects_of_all_namespaces() {
        let store = Store::default();
        store.event(object("a", "u", 3), || 3);
        let other = Identity { namespace: "other".to_owned(), ..object("a", "v", 4) };
        store.event(other, || 4);
        let mut all: Vec<i32> = store.all().iter().map(|object| **object).collect();
        all.sort_unstable();
        assert_eq!(all, [3, 4]);
        assert_eq!((store.names("ns"), store.of_namespace("other").len()), (vec!["a".to_owned()], 1));
    }
}
