//! News of Workers on their way from the watches to the controller.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc;

use super::decode_guard::Guarded;
use crate::api::gardener::Worker;

/// A Worker to look at.
pub(super) type WorkerRef = ObjectRef<Guarded<Worker>>;

/// Tells of Workers, one by one or all of a namespace. Clones tell the same.
#[derive(Clone)]
pub(super) struct News {
    /// Names by namespace.
    workers: Arc<Mutex<HashMap<String, BTreeSet<String>>>>,
    sender: mpsc::UnboundedSender<WorkerRef>,
}

impl News {
    /// News and where they arrive.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<WorkerRef>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { workers: Arc::default(), sender }, receiver)
    }

    /// There is a Worker of that name.
    pub(super) fn lives(&self, namespace: &str, name: &str) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.entry(namespace.to_owned()).or_default().insert(name.to_owned());
    }

    /// Something is new about a Worker.
    pub(super) fn of_worker(&self, namespace: &str, name: &str) {
        // Without a receiver the controller has ended, and nobody looks any more.
        let _ = self.sender.send(ObjectRef::new(name).within(namespace));
    }

    /// Something is new in a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for name in workers.get(namespace).into_iter().flatten() {
            self.of_worker(namespace, name);
        }
    }

    /// A Worker is gone.
    pub(super) fn gone(&self, namespace: &str, name: &str) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = workers.get_mut(namespace) {
            names.remove(name);
            if names.is_empty() {
                workers.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_of_a_namespace_reach_its_workers() {
        let (news, mut arrived) = News::new();
        let mut names = || std::iter::from_fn(|| arrived.try_recv().ok()).map(|worker| worker.name).collect::<Vec<_>>();
        news.of_namespace("a");
        assert!(names().is_empty(), "nobody lives there");
        news.lives("a", "one");
        news.lives("b", "two");
        news.of_worker("b", "two");
        assert_eq!(names(), ["two"]);
        news.of_namespace("a");
        assert_eq!(names(), ["one"]);
        news.gone("a", "one");
        news.of_namespace("a");
        assert!(names().is_empty());
    }
}
