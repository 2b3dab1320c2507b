//! Records every version of a Worker in order, through a watch.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A watch that runs until dropped.
pub(crate) struct History {
    versions: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl History {
    /// Starts with the next version of any Worker in the namespace.
    pub(crate) async fn follow(workers: &Api<DynamicObject>) -> Result<Self> {
        let versions = Arc::<Mutex<Vec<Value>>>::default();
        let now = workers.list(&Default::default()).await?.metadata.resource_version.unwrap_or_default();
        let mut watch = workers.watch(&WatchParams::default(), &now).await?.boxed();
        let written = Arc::clone(&versions);
        let task = tokio::spawn(async move {
            while let Ok(Some(event)) = watch.try_next().await {
                if let WatchEvent::Added(worker) | WatchEvent::Modified(worker) = event {
                    let worker = serde_json::to_value(worker).unwrap_or_default();
                    written.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                }
            }
        });
        Ok(Self { versions, task })
    }

    /// The versions so far.
    pub(crate) fn versions(&self) -> Vec<Value> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The distinct last operations in the status.
    pub(crate) fn operations(&self) -> Vec<Value> {
        let versions = self.versions();
        let mut operations: Vec<_> = versions
            .iter()
            .map(|version| version["status"]["lastOperation"].clone())
            .filter(|last| !last.is_null())
            .collect();
        operations.dedup();
        operations
    }

    /// Fails if progress ever decreases within an operation.
    pub(crate) fn ensure_progress_only_grows(&self) -> Result<()> {
        for pair in self.operations().windows(2) {
            let [before, after] = [&pair[0], &pair[1]];
            let begins = before["state"] != "Processing" || before["type"] != after["type"];
            let grows = before["progress"].as_i64() <= after["progress"].as_i64();
            ensure!(begins || grows, "progress goes back from\n{before}\nto\n{after}");
        }
        Ok(())
    }

    /// Fails if a status write only changes times.
    pub(crate) fn ensure_every_status_has_a_description(&self) -> Result<()> {
        for pair in self.versions().windows(2) {
            let [before, after] = [&pair[0], &pair[1]].map(without_times);
            ensure!(before != after, "a version that says nothing new:\n{:#}", pair[1]["status"]);
        }
        Ok(())
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The parts of a Worker that users and gardenlet read. The start time of an operation counts, because gardenlet
/// compares it with its request.
fn without_times(worker: &Value) -> Value {
    let mut facts = worker.clone();
    for member in ["resourceVersion", "managedFields"] {
        facts["metadata"][member].take();
    }
    for time in ["/status/lastOperation/lastUpdateTime", "/status/lastError/lastUpdateTime"] {
        if let Some(time) = facts.pointer_mut(time) {
            time.take();
        }
    }
    facts
}
