//! Objects of one kind, each as a watch has shown it or as this process has written it, whichever is newer.
//!
//! Versions of all objects come from one counter of the API server, so "newer" needs no clock.

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
    /// Uids of what this process has deleted, with the time: the watch may still show what was before.
    vanished: HashMap<String, u64>,
    /// Counts what this process does to objects.
    time: u64,
    /// The list of a watch that has begun anew.
    list: Option<List>,
    is_trusted: bool,
}

struct List {
    began: u64,
    seen: HashSet<(String, String)>,
}

struct Entry<T> {
    uid: String,
    version: u64,
    object: Arc<T>,
    /// When this process wrote it; 0 for what a watch has shown.
    written: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            namespaces: HashMap::new(),
            vanished: HashMap::new(),
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
        state.put(identity, object, 0)
    }

    /// A watch shows that an object is gone. Tells whether that is news.
    pub fn show_gone(&self, identity: &Identity) -> bool {
        let mut state = self.state();
        state.is_trusted |= state.list.is_none();
        state.vanished.remove(&identity.uid);
        state.take(&identity.namespace, &identity.name, |entry| entry.uid == identity.uid)
    }

    /// A watch begins anew: it lists everything.
    pub fn begin_list(&self) {
        let mut state = self.state();
        state.list = Some(List { began: state.time, seen: HashSet::new() });
    }

    /// An object of this list. Tells whether that is news.
    pub fn list(&self, identity: Identity, object: T) -> bool {
        let mut state = self.state();
        if let Some(list) = &mut state.list {
            list.seen.insert((identity.namespace.clone(), identity.name.clone()));
        }
        state.put(identity, object, 0)
    }

    /// The list is complete: what was not in it is gone, unless this process has written it meanwhile. Returns the
    /// namespaces that have lost something.
    pub fn end_list(&self) -> Vec<String> {
        let mut state = self.state();
        let Some(List { began, seen }) = state.list.take() else { return Vec::new() };
        let mut poorer = Vec::new();
        state.namespaces.retain(|namespace, entries| {
            let before = entries.len();
            entries.retain(|name, entry| entry.written > began || seen.contains(&(namespace.clone(), name.clone())));
            if entries.len() < before {
                poorer.push(namespace.clone());
            }
            !entries.is_empty()
        });
        state.vanished.retain(|_, time| *time > began);
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
        state.put(identity, object, time);
    }

    /// This process has deleted the object, and it is gone.
    pub fn deleted(&self, namespace: &str, name: &str, uid: &str) {
        let mut state = self.state();
        state.time += 1;
        let time = state.time;
        if state.take(namespace, name, |entry| entry.uid == uid) {
            state.vanished.insert(uid.to_owned(), time);
        }
    }

    /// All objects of a namespace as they were listed at a version.
    pub fn replace(&self, namespace: &str, version: u64, objects: Vec<(Identity, T)>) {
        let mut state = self.state();
        let listed: HashSet<String> = objects.iter().map(|(identity, _)| identity.name.clone()).collect();
        if let Some(entries) = state.namespaces.get_mut(namespace) {
            entries.retain(|name, entry| entry.version > version || listed.contains(name));
        }
        for (identity, object) in objects {
            state.put(identity, object, 0);
        }
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

impl<T> State<T> {
    fn put(&mut self, identity: Identity, object: T, written: u64) -> bool {
        let Identity { namespace, name, uid, version } = identity;
        if self.vanished.contains_key(&uid) {
            return false;
        }
        let entries = self.namespaces.entry(namespace).or_default();
        if entries.get(&name).is_some_and(|known| known.version >= version) {
            return false;
        }
        entries.insert(name, Entry { uid, version, object: Arc::new(object), written });
        true
    }

    fn take(&mut self, namespace: &str, name: &str, is_meant: impl Fn(&Entry<T>) -> bool) -> bool {
        let Some(entries) = self.namespaces.get_mut(namespace) else { return false };
        if !entries.get(name).is_some_and(is_meant) {
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
        assert!(!shelf.show(object("a", "u", 4), 4), "an older event is no news");
        assert_eq!(names(&shelf), [("a".to_owned(), 5)]);
        assert!(shelf.show(object("a", "u", 6), 6));
        shelf.written(object("a", "u", 5), 5);
        assert_eq!(names(&shelf), [("a".to_owned(), 6)], "an answer that comes late");
    }

    #[test]
    fn what_was_deleted_does_not_come_back_by_an_old_event() {
        let shelf = Shelf::default();
        shelf.show(object("a", "u", 5), 5);
        shelf.deleted("ns", "a", "u");
        assert!(!shelf.show(object("a", "u", 6), 6), "from before the deletion");
        assert_eq!(names(&shelf), []);
        assert!(!shelf.show_gone(&object("a", "u", 7)), "known already");
        assert!(shelf.show(object("a", "another", 8), 8), "made anew");
        assert!(!shelf.show_gone(&object("a", "u", 7)), "the deletion of the one before");
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

    #[test]
    fn a_list_of_a_namespace_knows_nothing_of_what_came_after_it() {
        let shelf = Shelf::default();
        for (name, version) in [("a", 1), ("b", 2), ("c", 8)] {
            shelf.show(object(name, name, version), version);
        }
        shelf.replace("ns", 7, vec![(object("a", "a", 6), 6)]);
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
