//! Objects of one kind, each as a watch has shown it, as this process has written it or as it has read it, whichever is
//! newer. Versions of all objects come from one counter of the API server, so "newer" needs no clock.
//!
//! Two rules keep it true:
//!
//! * What was read is put here later than the API server said it. What has gone in between must not come back by it: no
//!   watch would ever tell again that it is gone. So removals are remembered as long as a read is under way.
//! * What a watch shows is news unless it is the very version that this process has written. That a newer one is known
//!   says nothing: whoever brought it here need not have looked at it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

/// Who an object is, and which version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its namespace; empty for what is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: an object that was made anew under the same name has another one.
    pub uid: String,
    /// Its resource version.
    pub version: u64,
}

impl Identity {
    /// Reads it from an object.
    ///
    /// # Errors
    /// When the text is no object of an API server.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            #[serde(default)]
            namespace: String,
            name: String,
            uid: String,
            resource_version: String,
        }
        let Object { metadata } = serde_json::from_str(text)?;
        let version = metadata.resource_version.parse().map_err(serde::de::Error::custom)?;
        Ok(Self { namespace: metadata.namespace, name: metadata.name, uid: metadata.uid, version })
    }
}

/// All objects of one kind.
pub struct Shelf<T>(Mutex<State<T>>);

struct State<T> {
    namespaces: HashMap<String, BTreeMap<String, Entry<T>>>,
    /// What this process has deleted, by uid: the watch may still show what was before.
    vanished: HashMap<String, Vanished>,
    /// Reads that are under way, by the time at which they began.
    reads: BTreeMap<u64, usize>,
    /// Uids of what has gone since the oldest of these reads began, with the time.
    gone: HashMap<String, u64>,
    /// Counts what this process does to objects.
    time: u64,
    /// The list of a watch that has begun anew.
    list: Option<List>,
    is_trusted: bool,
}

struct List {
    began: u64,
    seen: HashSet<(String, String)>,
    /// Uids of what this process has deleted and the list still has: the watch will show that it goes.
    vanishing: HashSet<String>,
}

/// What this process has deleted: where, and when.
struct Vanished {
    namespace: String,
    time: u64,
}

struct Entry<T> {
    uid: String,
    version: u64,
    object: Arc<T>,
    /// The version that the watch showed last.
    shown: u64,
    /// The version that this process wrote last, and when.
    own: u64,
    written: u64,
}

/// Where an object comes from.
#[derive(Clone, Copy)]
enum Source {
    Watch,
    Read,
    /// Written by this process at that time.
    Write(u64),
}

/// A read of the API server that is under way.
pub struct Read<'a, T> {
    shelf: &'a Shelf<T>,
    began: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            namespaces: HashMap::new(),
            vanished: HashMap::new(),
            reads: BTreeMap::new(),
            gone: HashMap::new(),
            time: 0,
            list: None,
            is_trusted: false,
        }))
    }
}

impl<T> Shelf<T> {
    /// A watch shows an object. Tells whether that is news.
    pub fn show(&self, identity: Identity, object: T) -> bool {
        let mut state = self.state();
        state.is_trusted |= state.list.is_none();
        state.put(identity, object, Source::Watch)
    }

    /// A watch shows that an object is gone, which is always news: whoever has deleted it has looked at what was before.
    pub fn show_gone(&self, identity: &Identity) {
        let mut state = self.state();
        state.is_trusted |= state.list.is_none();
        state.vanished.remove(&identity.uid);
        state.note_gone(&identity.uid);
        state.take(&identity.namespace, &identity.name, &identity.uid);
    }

    /// A watch begins anew: it lists everything.
    pub fn begin_list(&self) {
        let mut state = self.state();
        state.list = Some(List { began: state.time, seen: HashSet::new(), vanishing: HashSet::new() });
    }

    /// An object of this list. Tells whether that is news.
    pub fn list(&self, identity: Identity, object: T) -> bool {
        let mut state = self.state();
        let vanishes = state.vanished.contains_key(&identity.uid);
        if let Some(list) = &mut state.list {
            list.seen.insert((identity.namespace.clone(), identity.name.clone()));
            if vanishes {
                list.vanishing.insert(identity.uid.clone());
            }
        }
        state.put(identity, object, Source::Watch)
    }

    /// The list is complete: what was not in it is gone, unless this process has written it meanwhile. Returns the
    /// namespaces that have lost something, be it by this process: whoever has deleted it waits for the watch to show that
    /// it is gone, and the watch, which begins after the list, never will.
    pub fn end_list(&self) -> Vec<String> {
        let mut state = self.state();
        let Some(List { began, seen, vanishing }) = state.list.take() else { return Vec::new() };
        let (mut poorer, mut gone) = (Vec::new(), Vec::new());
        state.namespaces.retain(|namespace, entries| {
            let before = gone.len();
            entries.retain(|name, entry| {
                let stays = entry.written > began || seen.contains(&(namespace.clone(), name.clone()));
                if !stays {
                    gone.push(entry.uid.clone());
                }
                stays
            });
            if gone.len() > before {
                poorer.push(namespace.clone());
            }
            !entries.is_empty()
        });
        gone.iter().for_each(|uid| state.note_gone(uid));
        let unseen = state.vanished.iter().filter(|(uid, _)| !vanishing.contains(*uid));
        poorer.extend(unseen.map(|(_, vanished)| vanished.namespace.clone()));
        state.vanished.retain(|_, vanished| vanished.time > began);
        state.is_trusted = true;
        poorer
    }

    /// The watch has failed: until it shows something again, nobody knows what it has missed.
    pub fn doubt(&self) {
        self.state().is_trusted = false;
    }

    /// Whether the watch is believed to show everything.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.state().is_trusted
    }

    /// This process has written the object.
    pub fn written(&self, identity: Identity, object: T) {
        let mut state = self.state();
        state.time += 1;
        let time = state.time;
        state.put(identity, object, Source::Write(time));
    }

    /// This process has deleted the object, and it is gone.
    pub fn deleted(&self, namespace: &str, name: &str, uid: &str) {
        let mut state = self.state();
        state.note_gone(uid);
        let time = state.time;
        if state.take(namespace, name, uid) {
            state.vanished.insert(uid.to_owned(), Vanished { namespace: namespace.to_owned(), time });
        }
    }

    /// The API server is about to be asked for objects.
    #[must_use]
    pub fn read(&self) -> Read<'_, T> {
        let mut state = self.state();
        let began = state.time;
        *state.reads.entry(began).or_default() += 1;
        Read { shelf: self, began }
    }

    /// The objects of a namespace, in the order of their names.
    #[must_use]
    pub fn of_namespace(&self, namespace: &str) -> Vec<(String, Arc<T>)> {
        let state = self.state();
        let entries = state.namespaces.get(namespace).into_iter().flatten();
        entries.map(|(name, entry)| (name.clone(), Arc::clone(&entry.object))).collect()
    }

    /// The version in which an object is known.
    #[must_use]
    pub fn version(&self, namespace: &str, name: &str) -> Option<u64> {
        self.state().namespaces.get(namespace)?.get(name).map(|entry| entry.version)
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Read<'_, T> {
    /// The answer: all objects of a namespace as they were at a version.
    pub fn of_namespace(self, namespace: &str, version: u64, objects: Vec<(Identity, T)>) {
        let mut state = self.shelf.state();
        let listed: HashSet<&str> = objects.iter().map(|(identity, _)| identity.name.as_str()).collect();
        let mut gone = Vec::new();
        if let Some(entries) = state.namespaces.get_mut(namespace) {
            entries.retain(|name, entry| {
                let stays = entry.version > version || listed.contains(name.as_str());
                if !stays {
                    gone.push(entry.uid.clone());
                }
                stays
            });
        }
        gone.iter().for_each(|uid| state.note_gone(uid));
        for (identity, object) in objects {
            if state.gone.get(&identity.uid).is_none_or(|time| *time <= self.began) {
                state.put(identity, object, Source::Read);
            }
        }
    }
}

impl<T> Drop for Read<'_, T> {
    fn drop(&mut self) {
        let mut state = self.shelf.state();
        if let Some(reads) = state.reads.get_mut(&self.began) {
            *reads -= 1;
            if *reads == 0 {
                state.reads.remove(&self.began);
            }
        }
        match state.reads.first_key_value().map(|(began, _)| *began) {
            Some(oldest) => state.gone.retain(|_, time| *time > oldest),
            None => state.gone = HashMap::new(),
        }
    }
}

impl<T> State<T> {
    /// Puts an object where nothing newer is known. Tells whether it is news.
    fn put(&mut self, identity: Identity, object: T, source: Source) -> bool {
        let Identity { namespace, name, uid, version } = identity;
        if self.vanished.contains_key(&uid) {
            return false;
        }
        let entries = self.namespaces.entry(namespace).or_default();
        let known = entries.get(&name).filter(|known| known.uid == uid);
        let (mut shown, mut own, mut written) =
            known.map_or((0, 0, 0), |known| (known.shown, known.own, known.written));
        let is_news = match source {
            Source::Watch => shown < version && own != version,
            Source::Read | Source::Write(_) => false,
        };
        match source {
            Source::Watch => shown = shown.max(version),
            Source::Read => {}
            Source::Write(time) => (own, written) = (own.max(version), time),
        }
        match entries.get_mut(&name) {
            Some(known) if known.version >= version => {
                if known.uid == uid {
                    (known.shown, known.own, known.written) = (shown, own, written);
                }
            }
            _ => drop(entries.insert(name, Entry { uid, version, object: Arc::new(object), shown, own, written })),
        }
        is_news
    }

    /// An object of that uid is gone for good.
    fn note_gone(&mut self, uid: &str) {
        if !self.reads.is_empty() {
            self.time += 1;
            self.gone.insert(uid.to_owned(), self.time);
        }
    }

    fn take(&mut self, namespace: &str, name: &str, uid: &str) -> bool {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, uid: &str, version: u64) -> Identity {
        Identity { namespace: "ns".to_owned(), name: name.to_owned(), uid: uid.to_owned(), version }
    }

    fn names(shelf: &Shelf<u64>) -> Vec<(String, u64)> {
        shelf.of_namespace("ns").into_iter().map(|(name, object)| (name, *object)).collect()
    }

    #[test]
    fn the_newer_version_wins_whoever_tells_it() {
        let shelf = Shelf::default();
        shelf.written(object("a", "u", 5), 5);
        assert!(!shelf.show(object("a", "u", 5), 5), "the echo of a write is no news");
        assert_eq!(names(&shelf), [("a".to_owned(), 5)]);
        assert!(shelf.show(object("a", "u", 6), 6));
        assert!(!shelf.show(object("a", "u", 6), 6), "shown before");
        shelf.written(object("a", "u", 5), 5);
        assert_eq!(names(&shelf), [("a".to_owned(), 6)], "an answer that comes late");
    }

    #[test]
    fn what_others_did_before_a_write_is_news_although_it_is_known() {
        let shelf = Shelf::default();
        shelf.show(object("a", "u", 3), 3);
        shelf.written(object("a", "u", 5), 5);
        assert!(shelf.show(object("a", "u", 4), 4), "whoever wrote had looked at 3");
        assert!(!shelf.show(object("a", "u", 5), 5));
        shelf.read().of_namespace("ns", 8, vec![(object("a", "u", 8), 8)]);
        assert_eq!(names(&shelf), [("a".to_owned(), 8)], "an old event changes nothing");
        assert!(shelf.show(object("a", "u", 8), 8), "it was read for somebody, perhaps not for whom it is about");
    }

    /// A machine set vanishes after the API server has listed it, and before the list arrives.
    #[test]
    fn what_goes_while_a_list_is_under_way_does_not_come_back_by_it() {
        let shelf = Shelf::default();
        shelf.show(object("a", "u", 5), 5);
        let (first, second) = (shelf.read(), shelf.read());
        shelf.show_gone(&object("a", "u", 7));
        first.of_namespace("ns", 6, vec![(object("a", "u", 5), 5)]);
        assert_eq!(names(&shelf), []);
        second.of_namespace("ns", 6, vec![(object("a", "u", 5), 5)]);
        assert_eq!(names(&shelf), [], "nor by another list");

        shelf.show(object("b", "b", 8), 8);
        let older = shelf.read();
        shelf.read().of_namespace("ns", 10, vec![]);
        older.of_namespace("ns", 9, vec![(object("b", "b", 8), 8)]);
        assert_eq!(names(&shelf), [], "a newer list has shown that it is gone");
        assert!(shelf.state().gone.is_empty(), "remembered only while somebody reads");
        shelf.read().of_namespace("ns", 12, vec![(object("c", "c", 11), 11)]);
        assert_eq!(names(&shelf), [("c".to_owned(), 11)]);
    }

    #[test]
    fn what_was_deleted_does_not_come_back_by_an_old_event() {
        let shelf = Shelf::default();
        shelf.show(object("a", "u", 5), 5);
        shelf.deleted("ns", "a", "u");
        assert!(!shelf.show(object("a", "u", 6), 6), "from before the deletion");
        assert_eq!(names(&shelf), []);
        shelf.show_gone(&object("a", "u", 7));
        assert!(shelf.show(object("a", "another", 8), 8), "made anew");
        shelf.show_gone(&object("a", "u", 7));
        assert_eq!(names(&shelf), [("a".to_owned(), 8)]);
    }

    #[test]
    fn a_list_of_everything_takes_away_what_is_not_in_it() {
        let shelf = Shelf::default();
        for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
            shelf.show(object(name, name, version), version);
        }
        shelf.doubt();
        shelf.begin_list();
        assert!(!shelf.is_trusted(), "not before the list is complete");
        assert!(!shelf.list(object("a", "a", 1), 1), "no news");
        assert!(shelf.list(object("b", "b", 9), 9));
        shelf.written(object("d", "d", 10), 10);
        assert_eq!(shelf.end_list(), ["ns"], "it has lost c");
        assert!(shelf.is_trusted());
        let expected = [("a", 1), ("b", 9), ("d", 10)].map(|(name, version)| (name.to_owned(), version));
        assert_eq!(names(&shelf), expected, "d was written after the list began");
    }

    /// Its own deletion is all that a Worker waits for, and the watch was broken meanwhile.
    #[test]
    fn a_list_without_what_this_process_has_deleted_is_news() {
        let shelf = Shelf::default();
        for name in ["a", "b", "c"] {
            shelf.show(object(name, name, 1), 1);
        }
        shelf.doubt();
        shelf.deleted("ns", "a", "a");
        shelf.begin_list();
        shelf.deleted("ns", "b", "b");
        shelf.list(object("c", "c", 1), 1);
        assert_eq!(shelf.end_list(), ["ns", "ns"], "a and b; no event will tell of them");
        shelf.begin_list();
        shelf.deleted("ns", "c", "c");
        shelf.list(object("c", "c", 1), 1);
        assert_eq!(shelf.end_list(), [""; 0], "an event will tell of c");
        assert_eq!(names(&shelf), []);
    }

    #[test]
    fn a_list_of_a_namespace_knows_nothing_of_what_came_after_it() {
        let shelf = Shelf::default();
        for (name, version) in [("a", 1), ("b", 2), ("c", 8)] {
            shelf.show(object(name, name, version), version);
        }
        shelf.read().of_namespace("ns", 7, vec![(object("a", "a", 6), 6)]);
        assert_eq!(names(&shelf), [("a".to_owned(), 6), ("c".to_owned(), 8)]);
    }

    #[test]
    fn trust_comes_back_with_the_next_event() {
        let shelf = Shelf::default();
        assert!(!shelf.is_trusted(), "nothing was listed yet");
        shelf.begin_list();
        shelf.end_list();
        shelf.doubt();
        assert!(!shelf.is_trusted());
        shelf.show(object("a", "a", 1), 1);
        assert!(shelf.is_trusted(), "the watch goes on from where it was");
    }
}
