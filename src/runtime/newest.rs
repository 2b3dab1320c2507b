//! The newest version of each Worker: what the watch shows, or what this process has written since. Nobody acts on an
//! older one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::{Resource, ResourceExt};

use crate::api::gardener::Worker;

/// The version of a Worker that is gone.
const GONE: u64 = u64::MAX;

/// What was written last, by uid of the Worker.
#[derive(Default)]
pub(super) struct Newest(Mutex<HashMap<String, Written>>);

/// What there is newer than some version of a Worker.
#[derive(Debug)]
pub(super) enum Newer {
    /// Nothing.
    Nothing,
    /// What this process has written and the watch has not shown yet.
    Written(Arc<Worker>),
    /// What the watch has shown in the meantime.
    Shown,
}

#[derive(Default)]
struct Written {
    version: u64,
    /// Versions that this process has written and the watch has not shown yet.
    unseen: BTreeSet<u64>,
    /// The version that the watch showed last, since this process has written.
    shown: u64,
    /// The Worker, until the watch shows it.
    worker: Option<Arc<Worker>>,
}

impl Newest {
    /// The answer to a write.
    pub(super) fn written(&self, worker: Worker) -> Arc<Worker> {
        let worker = Arc::new(worker);
        if let (Some(uid), Some(version)) = (worker.uid(), version_of(&*worker)) {
            let mut known = self.known();
            let known = known.entry(uid).or_default();
            if known.shown < version {
                known.unseen.insert(version);
            }
            if known.version < version {
                known.version = version;
                known.worker = Some(Arc::clone(&worker));
            }
        }
        worker
    }

    /// Whether the watch shows only what this process has written, or what it has shown before. What somebody else has
    /// written in between is no echo, although a newer version is known: nobody may have looked at it.
    pub(super) fn is_echo(&self, shown: &impl Resource) -> bool {
        let mut known = self.known();
        let Some(known) = known.get_mut(uid_of(shown)) else { return false };
        let shown = version_of(shown).unwrap_or(u64::MAX);
        if shown >= known.version {
            known.worker = None;
        }
        if known.version == GONE || shown <= known.shown {
            return true;
        }
        known.shown = shown;
        let is_own = known.unseen.contains(&shown);
        known.unseen.retain(|version| *version > shown);
        is_own
    }

    /// What was written since a version that the watch has shown.
    pub(super) fn newer_than(&self, shown: &impl Resource) -> Newer {
        let known = self.known();
        let Some(known) = known.get(uid_of(shown)) else { return Newer::Nothing };
        match &known.worker {
            _ if version_of(shown).is_none_or(|shown| shown >= known.version) => Newer::Nothing,
            Some(worker) => Newer::Written(Arc::clone(worker)),
            None => Newer::Shown,
        }
    }

    /// The Worker was let go, and nothing held it any more; the watch shows so later.
    pub(super) fn gone(&self, uid: &str) {
        self.known().insert(uid.to_owned(), Written { version: GONE, ..Written::default() });
    }

    /// Whether the Worker is gone, whatever the watch still shows.
    pub(super) fn is_gone(&self, shown: &impl Resource) -> bool {
        self.known().get(uid_of(shown)).is_some_and(|known| known.version == GONE)
    }

    /// The watch shows that the Worker is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.known().remove(uid);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn uid_of(object: &impl Resource) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// Resource versions of one kind are numbers that grow (documented since Kubernetes 1.35, true since ever).
fn version_of(object: &impl Resource) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(version: &str) -> Worker {
        let text =
            format!(r#"{{"metadata": {{"uid": "u", "resourceVersion": "{version}"}}, "spec": {{"type": "azure"}}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_newest_version_is_what_was_written_until_the_watch_shows_it() {
        let newest = Newest::default();
        assert!(!newest.is_echo(&worker("3")), "nothing was written");
        newest.written(worker("5"));
        newest.written(worker("4"));
        let version = |shown: &str| match newest.newer_than(&worker(shown)) {
            Newer::Written(worker) => worker.resource_version(),
            Newer::Nothing => None,
            Newer::Shown => Some("shown".to_owned()),
        };
        assert_eq!(version("3").as_deref(), Some("5"), "an answer that came late changes nothing");
        assert_eq!(version("6"), None);
        assert!(newest.is_echo(&worker("4")), "the first write");
        assert_eq!(version("4").as_deref(), Some("5"));
        assert!(newest.is_echo(&worker("5")), "the write itself");
        assert_eq!(
            version("4").as_deref(),
            Some("shown"),
            "whoever took the Worker right before that must not act on it"
        );
        assert!(!newest.is_echo(&worker("6")), "somebody else's write");
        assert!(newest.is_echo(&worker("5")), "shown again by a list");
        newest.written(worker("8"));
        assert!(!newest.is_echo(&worker("7")), "a request that came before the write");
        assert_eq!(version("7").as_deref(), Some("8"), "which has to be looked at with what was written");
        newest.gone("u");
        assert!(newest.is_gone(&worker("7")) && newest.is_echo(&worker("7")), "whatever the watch shows");
        newest.forget("u");
        assert!(!newest.is_gone(&worker("7")));
    }
}
