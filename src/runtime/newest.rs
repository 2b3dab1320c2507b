//! The resource version that this process wrote last, by uid of the Worker: what the watch still shows from before is not
//! acted on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kube::{Resource, ResourceExt};

use crate::api::gardener::Worker;

/// What was written last.
#[derive(Default)]
pub(super) struct Written(Mutex<HashMap<String, u64>>);

impl Written {
    /// The answer to a write.
    pub(super) fn remember(&self, worker: &Worker) {
        if let (Some(uid), Some(version)) = (worker.uid(), version_of(worker)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, version);
        }
    }

    /// Whether this is from before the last write.
    pub(super) fn is_older(&self, worker: &impl Resource) -> bool {
        let uid = worker.meta().uid.as_deref().unwrap_or_default();
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(uid).copied();
        written.zip(version_of(worker)).is_some_and(|(written, seen)| seen < written)
    }

    /// The Worker is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// Resource versions of one kind are numbers that grow (documented since Kubernetes 1.35, true since ever).
fn version_of(object: &impl Resource) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
