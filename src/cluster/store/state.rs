//! What a store remembers of objects, and which of two versions counts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use tokio::time::Instant;

use crate::cluster::identity::Identity;
use crate::cluster::store::Kept;

pub(super) struct State<T> {
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, Entry<T>>>,
    /// What this process has deleted, by uid: the watch may still show what was before.
    pub(super) own_deletions: BTreeMap<String, OwnDeletion>,
    /// Namespaces in which a read has shown something that this process had deleted before: it was answered and not done.
    pub(super) undone: Vec<String>,
    /// Uids of what is there although the last list of the watch had it not, and since when: an answer has shown it that was asked for before
    /// that list, or came during it, so it may be newer than the list, or older. The watch shows it soon, or it has gone.
    pub(super) unlisted: BTreeMap<String, Instant>,
    /// Reads that are under way, by the time at which they began.
    pub(super) reads: BTreeMap<u64, usize>,
    /// Uids of what has gone since the oldest of these reads began, with the time.
    pub(super) gone: BTreeMap<String, u64>,
    /// Namespaces that were listed by themselves and that the watch has not caught up with.
    listed: BTreeMap<String, Listed>,
    /// The newest version that the watch has shown, which shows one after the other.
    shown: u64,
    /// Counts what happens here.
    pub(super) time: u64,
    /// The list of a watch that has begun anew.
    pub(super) list: Option<List>,
    /// When the last one that is complete was asked for.
    list_asked: Option<u64>,
    pub(super) is_fresh: bool,
}

pub(super) struct List {
    pub(super) began: u64,
    /// Names of what it has, by namespace.
    pub(super) seen: HashMap<String, HashSet<String>>,
    /// Uids of what this process has deleted since and the list still has: the watch will show that it goes.
    pub(super) own_deletions_seen: HashSet<String>,
    /// Namespaces of what this process had deleted before, and the list still has: it was answered and not done.
    pub(super) undone: Vec<String>,
}

/// A list of one namespace: the version of which it was, and when it came.
struct Listed {
    version: u64,
    time: u64,
}

/// What this process has deleted: where, and when.
pub(super) struct OwnDeletion {
    pub(super) namespace: String,
    pub(super) time: u64,
    pub(super) at: Instant,
}

pub(super) struct Entry<T> {
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) object: Arc<T>,
    /// The version that the watch showed last.
    pub(super) shown: u64,
    /// Versions that this process has written and the watch has not shown yet.
    pub(super) own: Vec<u64>,
    /// When something was heard of it last, from whomever.
    pub(super) heard: u64,
}

/// When a read or a write was asked for, here and by the clock.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) time: u64,
    pub(super) at: Instant,
}

/// Where an object comes from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Watch,
    /// The answer to a list of a watch that was asked for at that time.
    List(u64),
    /// The answer to a read.
    Read(Asked),
    /// Written by this process.
    Write(Asked),
}

impl Source {
    /// Whether it was asked for at that time or later, and the answer shows everything that was so then.
    fn is_answer_since(self, time: u64) -> bool {
        match self {
            Self::List(asked) | Self::Read(Asked { time: asked, .. }) => time <= asked,
            Self::Watch | Self::Write(_) => false,
        }
    }

    /// When it was asked for, if everything was listed since.
    fn asked_before(self, list: Option<u64>) -> Option<Instant> {
        match self {
            Self::Read(asked) | Self::Write(asked) => list.filter(|list| asked.time <= *list).map(|_| asked.at),
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
            gone: BTreeMap::new(),
            listed: BTreeMap::new(),
            shown: 0,
            time: 0,
            list: None,
            list_asked: None,
            is_fresh: false,
        }
    }
}

impl<T: Kept> State<T> {
    /// Puts an object where nothing newer is known; one that is known in that version is not read again. Tells whether it is a change.
    pub(super) fn put(&mut self, identity: Identity, read: impl FnOnce() -> T, source: Source) -> bool {
        if source.is_watch() && self.had_gone(&identity, source) || self.stays_deleted(&identity, source) {
            return false;
        }
        let Identity { namespace, name, uid, version } = identity;
        self.time += 1;
        let heard = self.time;
        let entries = self.namespaces.entry(namespace).or_default();
        let known = entries.get_mut(&name);
        // Versions grow, but for a backup that was restored.
        let goes_back =
            known.as_ref().is_some_and(|known| known.version > version && source.is_answer_since(known.heard));
        let same = known.filter(|known| known.uid == uid && !goes_back);
        let (mut shown, mut own) = same.map_or_else(Default::default, |known| (known.shown, mem::take(&mut known.own)));
        let is_change = match source {
            Source::Watch => shown < version && !own.contains(&version),
            // It shows an own write alone, and not what others did before it and nobody has read.
            Source::List(_) => shown < version,
            Source::Read(_) | Source::Write(_) => false,
        };
        if source.is_watch() {
            self.unlisted.remove(&uid);
            shown = shown.max(version);
            own.retain(|own| *own > shown);
        } else if matches!(source, Source::Write(_)) && shown < version {
            own.push(version);
        }
        match entries.get_mut(&name) {
            Some(known) if known.uid == uid && known.version == version && !goes_back => {
                // A watch may show it before the write is answered.
                if T::WRITTEN_DIFFERS && !matches!(source, Source::Write(_)) {
                    known.object = Arc::new(read());
                }
                (known.shown, known.own, known.heard) = (shown, own, heard);
            }
            Some(known) if known.uid == uid && known.version > version && !goes_back => {
                (known.shown, known.own, known.heard) = (shown, own, heard);
            }
            // Made anew under the same name, and newer than this.
            Some(known) if known.version >= version && !goes_back => {}
            _ => {
                // A newer version of what is in doubt settles nothing.
                let is_new = entries.get(&name).is_none_or(|known| known.uid != uid);
                let asked = source.asked_before(self.list_asked).filter(|_| is_new);
                let unlisted = asked.map(|at| (uid.clone(), at));
                let entry = Entry { uid, version, object: Arc::new(read()), shown, own, heard };
                if let Some(before) = entries.insert(name, entry).filter(|_| is_new) {
                    self.unlisted.remove(&before.uid);
                }
                self.unlisted.extend(unlisted);
            }
        }
        is_change
    }

    /// All objects of a namespace are known as they were at a version.
    pub(super) fn is_listed(&mut self, namespace: &str, version: u64) {
        self.time += 1;
        if version > self.shown {
            self.listed.insert(namespace.to_owned(), Listed { version, time: self.time });
        }
    }

    /// Whether this process has deleted an object, and no answer to a later question has it.
    fn stays_deleted(&mut self, Identity { namespace, uid, .. }: &Identity, source: Source) -> bool {
        match self.own_deletions.get(uid) {
            Some(deletion) if source.is_answer_since(deletion.time) => {
                self.own_deletions.remove(uid);
                if matches!(source, Source::Read(_)) {
                    self.undone.push(namespace.clone());
                }
                false
            }
            deletion => deletion.is_some(),
        }
    }

    /// A watch shows an object that had gone before its namespace was listed last.
    fn had_gone(&self, identity: &Identity, source: Source) -> bool {
        let Identity { namespace, name, uid, version } = identity;
        let is_past = |listed: &Listed| *version <= listed.version && !source.is_answer_since(listed.time);
        let known = self.namespaces.get(namespace).and_then(|entries| entries.get(name));
        self.listed.get(namespace).is_some_and(is_past) && known.is_none_or(|known| known.uid != *uid)
    }

    /// The watch has shown everything up to this version: it is not behind lists of it any more.
    pub(super) fn has_shown(&mut self, version: u64) {
        if self.shown < version {
            self.shown = version;
            self.listed.retain(|_, listed| listed.version > version);
        }
    }

    /// The watch begins anew with a list that was asked for at that time. Versions may be those of a backup that was restored.
    pub(super) fn shows_anew(&mut self, asked: u64) {
        self.shown = 0;
        self.list_asked = Some(asked);
        self.listed.retain(|_, listed| listed.time > asked);
    }

    /// An object of that uid is gone for good.
    pub(super) fn note_gone(&mut self, uid: &str) {
        self.unlisted.remove(uid);
        if !self.reads.is_empty() {
            self.time += 1;
            self.gone.insert(uid.to_owned(), self.time);
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
