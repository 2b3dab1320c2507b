//! The resource version that this process wrote last, by uid of the Worker: what the watch still shows from before is not
//! acted on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::{Resource, ResourceExt};

use crate::api::gardener::Worker;

/// How long a Worker that is gone may still be shown by the watch.
const SHOWN_AFTER_ITS_END: Duration = Duration::from_secs(60);

/// What was written last.
#[derive(Default)]
pub(super) struct Written(Mutex<HashMap<String, Newest>>);

/// The last that is known of a Worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newest {
    /// It was written in this version.
    Version(u64),
    /// It was let go then, and nothing held it any more.
    Gone(Instant),
}

impl Written {
    /// The answer to a write.
    pub(super) fn remember(&self, worker: &Worker) {
        if let (Some(uid), Some(version)) = (worker.uid(), version_of(worker)) {
            self.lock().insert(uid, Newest::Version(version));
        }
    }

    /// Whether this is from before the last write.
    pub(super) fn is_older(&self, worker: &impl Resource) -> bool {
        let uid = worker.meta().uid.as_deref().unwrap_or_default();
        match self.lock().get(uid) {
            Some(Newest::Version(written)) => version_of(worker).is_some_and(|seen| seen < *written),
            Some(Newest::Gone(_)) => true,
            None => false,
        }
    }

    /// The Worker is gone; the watch tells so later. Those that went long before are forgotten.
    pub(super) fn gone(&self, uid: &str, now: Instant) {
        let mut all = self.lock();
        all.retain(|_, newest| match newest {
            Newest::Version(_) => true,
            Newest::Gone(then) => now.saturating_duration_since(*then) < SHOWN_AFTER_ITS_END,
        });
        all.insert(uid.to_owned(), Newest::Gone(now));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Newest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resource versions of one kind are numbers that grow (documented since Kubernetes 1.35, true since ever).
fn version_of(object: &impl Resource) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worker(version: &str) -> Worker {
        let document = json!({"metadata": {"uid": "u", "resourceVersion": version}, "spec": {"type": "azure"}});
        serde_json::from_str(&document.to_string()).unwrap()
    }

    #[test]
    fn what_the_watch_shows_late_is_not_acted_on() {
        let (written, now) = (Written::default(), Instant::now());
        assert!(!written.is_older(&worker("7")));
        written.remember(&worker("9"));
        assert!(written.is_older(&worker("8")) && !written.is_older(&worker("9")) && !written.is_older(&worker("10")));
        written.gone("u", now);
        assert!(written.is_older(&worker("10")), "it is gone, whatever the watch shows");
        written.gone("other", now + SHOWN_AFTER_ITS_END);
        assert!(!written.is_older(&worker("10")), "forgotten");
    }
}
