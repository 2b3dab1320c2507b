//! Watches all Workers and records when each of them changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::Client;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::load::{OPERATION, resource};

/// The last version of a Worker, and when it was observed.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) worker: Arc<Value>,
    pub(crate) at: Instant,
}

pub(crate) type Cached = HashMap<String, Seen>;

/// The watch. Dropping it ends it.
pub(crate) struct Workers {
    cached: watch::Receiver<Cached>,
    task: JoinHandle<()>,
}

impl Workers {
    pub(crate) fn follow(client: &Client) -> Self {
        let api: Api<DynamicObject> =
            Api::all_with(client.clone(), &resource("extensions.gardener.cloud/v1alpha1", "Worker"));
        let (sender, cached) = watch::channel(Cached::new());
        let events = watcher::watcher(api, watcher::Config::default());
        let task = tokio::spawn(events.for_each(move |event| {
            let at = Instant::now();
            match event {
                Ok(watcher::Event::Apply(worker) | watcher::Event::InitApply(worker)) => {
                    let namespace = worker.namespace().unwrap_or_default();
                    let worker = Arc::new(serde_json::to_value(worker).unwrap_or_default());
                    sender.send_modify(|cached| drop(cached.insert(namespace, Seen { worker, at })));
                }
                Ok(watcher::Event::Delete(worker)) => {
                    sender.send_modify(|cached| drop(cached.remove(&worker.namespace().unwrap_or_default())));
                }
                Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => {}
            }
            std::future::ready(())
        }));
        Self { cached, task }
    }

    pub(crate) fn of(&self, namespace: &str) -> Option<Seen> {
        self.cached.borrow().get(namespace).cloned()
    }

    /// Time of the last update of each Worker's operation.
    pub(crate) fn stamps(&self) -> HashMap<String, Value> {
        let cached = self.cached.borrow();
        cached.iter().map(|(namespace, seen)| (namespace.clone(), stamp(&seen.worker))).collect()
    }

    /// Waits until all Workers have succeeded with a stamp other than `before`. Returns the times.
    pub(crate) async fn done(
        &self,
        namespaces: &[String],
        before: &HashMap<String, Value>,
        deadline: Duration,
    ) -> Result<HashMap<String, Instant>> {
        let mut done = HashMap::new();
        self.until(deadline, |cached| {
            for namespace in namespaces {
                if let Some(seen) = cached.get(namespace).filter(|_| !done.contains_key(namespace))
                    && is_done(&seen.worker)
                    && before.get(namespace) != Some(&stamp(&seen.worker))
                {
                    done.insert(namespace.clone(), seen.at);
                }
            }
            let missing = namespaces.iter().find(|namespace| !done.contains_key(*namespace));
            match missing {
                None => Ok(()),
                Some(first) => bail!(
                    "{} of {} are done; {first} is {}",
                    done.len(),
                    namespaces.len(),
                    cached.get(first).map_or(Value::Null, |seen| seen.worker["status"]["lastOperation"].clone())
                ),
            }
        })
        .await?;
        Ok(done)
    }

    /// Waits until `check` succeeds.
    pub(crate) async fn until(&self, deadline: Duration, mut check: impl FnMut(&Cached) -> Result<()>) -> Result<()> {
        let (end, mut cached) = (Instant::now() + deadline, self.cached.clone());
        loop {
            let missing = match check(&cached.borrow_and_update()) {
                Ok(()) => return Ok(()),
                Err(missing) => missing,
            };
            if tokio::time::timeout_at(end, cached.changed()).await.is_err() {
                return Err(missing.context(format!("not within {deadline:?}")));
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn stamp(worker: &Value) -> Value {
    worker["status"]["lastOperation"]["lastUpdateTime"].clone()
}

fn is_done(worker: &Value) -> bool {
    worker["metadata"]["annotations"][OPERATION].is_null() && worker["status"]["lastOperation"]["state"] == "Succeeded"
}
