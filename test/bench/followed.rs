//! All Workers as a watch shows them, and when each was done with what it was asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::landscape::workers;

/// A watch that goes on until this is dropped.
pub(crate) struct Followed {
    workers: Arc<Mutex<HashMap<String, Seen>>>,
    changed: watch::Receiver<()>,
    task: JoinHandle<()>,
}

/// What is known of a Worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Its status as it was shown last.
    pub(crate) status: Value,
    /// When the first status with an operation was shown.
    pub(crate) first_status: Option<Instant>,
    /// Whether an operation has begun since the Worker was asked.
    begun: bool,
    /// When it was done with what it was asked.
    done: Option<Instant>,
    /// Every text about the operation, with the time when it was shown.
    pub(crate) texts: Vec<(Instant, String)>,
}

impl Followed {
    /// Begins.
    pub(crate) fn start(client: Client) -> Self {
        let api: Api<DynamicObject> = Api::all_with(client, &workers());
        let known = Arc::<Mutex<HashMap<String, Seen>>>::default();
        let (sender, changed) = watch::channel(());
        let written = Arc::clone(&known);
        let task = tokio::spawn(async move {
            let mut events = watcher(api, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(worker) | Event::InitApply(worker)) = event {
                    let namespace = worker.metadata.namespace.clone().unwrap_or_default();
                    lock(&written).entry(namespace).or_default().see(&worker);
                    sender.send_replace(());
                }
            }
        });
        Self { workers: known, changed, task }
    }

    /// The Workers are about to be asked for something.
    pub(crate) fn expect(&self, namespaces: &[String]) {
        let mut workers = lock(&self.workers);
        for namespace in namespaces {
            let seen = workers.entry(namespace.clone()).or_default();
            (seen.begun, seen.done) = (false, None);
        }
    }

    /// Waits until all are done. Returns when each was.
    pub(crate) async fn done(&self, namespaces: &[String], deadline: Duration) -> Result<HashMap<String, Instant>> {
        let all = async {
            let mut changed = self.changed.clone();
            loop {
                changed.borrow_and_update();
                let workers = lock(&self.workers).clone_done(namespaces);
                if workers.len() == namespaces.len() {
                    return Ok(workers);
                }
                changed.changed().await.context("the watch has ended")?;
            }
        };
        match tokio::time::timeout(deadline, all).await {
            Ok(done) => done,
            Err(_) => {
                let workers = lock(&self.workers);
                let missing = namespaces.iter().filter(|namespace| workers[*namespace].done.is_none());
                let missing: Vec<_> = missing.take(3).map(|namespace| (namespace, &workers[namespace].status)).collect();
                bail!("not all Workers are done within {deadline:?}, for example {missing:#?}")
            }
        }
    }

    /// What is known of a Worker.
    pub(crate) fn seen(&self, namespace: &str) -> Seen {
        lock(&self.workers).get(namespace).cloned().unwrap_or_default()
    }

    /// Resolves with the next change of any Worker.
    pub(crate) async fn changed(&mut self) -> Result<()> {
        self.changed.changed().await.context("the watch has ended")
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

trait Done {
    fn clone_done(&self, namespaces: &[String]) -> HashMap<String, Instant>;
}

impl Done for HashMap<String, Seen> {
    fn clone_done(&self, namespaces: &[String]) -> HashMap<String, Instant> {
        let done = namespaces.iter().filter_map(|namespace| Some((namespace.clone(), self.get(namespace)?.done?)));
        done.collect()
    }
}

impl Seen {
    fn see(&mut self, worker: &DynamicObject) {
        let now = Instant::now();
        self.status = worker.data["status"].clone();
        let last = &self.status["lastOperation"];
        if last.is_null() {
            return;
        }
        self.first_status.get_or_insert(now);
        let text = last["description"].as_str().unwrap_or_default();
        if self.texts.last().is_none_or(|(_, known)| known != text) {
            self.texts.push((now, text.to_owned()));
        }
        let annotations = worker.metadata.annotations.as_ref();
        let is_asked = annotations.is_some_and(|annotations| annotations.contains_key("gardener.cloud/operation"));
        let is_current = self.status["observedGeneration"].as_i64() == worker.metadata.generation;
        match last["state"].as_str() {
            Some("Processing") => self.begun = true,
            Some("Succeeded") if self.begun && !is_asked && is_current => {
                self.done.get_or_insert(now);
            }
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
