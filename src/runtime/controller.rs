//! Watches and what they lead to: which Worker is looked at when.
//!
//! Watched are Workers, and everything that machine-controller-manager changes while machines come and go
//! (MachineDeployments, MachineSets, Machines). Each event of the latter leads to the Workers of its namespace; one that
//! waits for nothing costs no request. Clouds ring a bell when something that a Worker waits for has come to an end.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::channel::mpsc;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Config};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource, ResourceExt};
use tokio::sync::watch;
use tracing::{Instrument, debug, info, info_span, warn};

use super::ControllerArguments;
use super::decode_guard::Guarded;
use super::look::{LookError, look_at_worker};
use super::metrics::Metrics;
use super::newest::Written;
use super::pace::Pace;
use super::readiness::{Need, Readiness};
use super::retry::Retries;
use super::served::Served;
use super::tell::PoolStates;
use super::undecodable::tell_undecodable;
use super::write_gate::WriteGate;
use crate::api::gardener::Worker;
use crate::api::machine::{Machine, MachineDeployment, MachineSet};
use crate::cloud::{Bell, Clouds, WorkerName};
use crate::provider::Providers;
use crate::worker::garden::Garden;

/// What every look needs.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) garden: Garden,
    pub(super) clouds: Clouds,
    pub(super) recorder: Recorder,
    pub(super) served: Served,
    pub(super) metrics: Arc<Metrics>,
    pub(super) retries: Retries,
    pub(super) pace: Pace,
    pub(super) written: Written,
    pub(super) pool_states: PoolStates,
}

/// Runs until it is told to stop.
pub(super) async fn run(
    client: Client,
    gate: &WriteGate,
    arguments: &ControllerArguments,
    providers: Providers,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let served = Served::new(providers, &arguments.worker_types, &arguments.extension_classes)?;
    info!(worker_types = served.types(), classes = served.classes(), "starting");
    let (bell, rings) = mpsc::unbounded();
    let clouds = Clouds::new(arguments.azure(), gate.before_clouds(), ringing(bell));
    let reporter = Reporter { controller: "gardener-extension-worker".into(), instance: None };
    let shared = Arc::new(Shared {
        recorder: Recorder::new(client.clone(), reporter),
        client: client.clone(),
        garden: arguments.garden(),
        clouds,
        served,
        metrics: Arc::clone(metrics),
        retries: Retries::default(),
        pace: Pace::default(),
        written: Written::default(),
        pool_states: PoolStates::default(),
    });
    let workers: Api<Guarded<Worker>> = Api::all(client.clone());
    let controller = Controller::new(workers, watcher::Config::default())
        .with_config(Config::default().concurrency(arguments.worker_max_concurrent_reconciles));
    let store = controller.store();
    readiness.misses(Need::Caches, "Workers have not been listed yet");
    let filled = async {
        // The store's writer lives in the controller, which ends with the process.
        if store.wait_until_ready().await.is_ok() {
            readiness.has(Need::Caches);
        }
    };
    let run = controller
        .watches(metadata_of::<MachineDeployment>(&client), watcher::Config::default(), workers_of(&store))
        .watches(metadata_of::<MachineSet>(&client), watcher::Config::default(), workers_of(&store))
        .watches(metadata_of::<Machine>(&client), watcher::Config::default(), workers_of(&store))
        .reconcile_on(rings)
        .graceful_shutdown_on(async move {
            // Without a sender there is nobody left to run for.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
        .run(look_at, on_error, shared)
        .for_each(|result| async {
            if let Err(error) = result {
                debug!(%error, "watch");
            }
        });
    futures::join!(run, filled);
    Ok(())
}

/// A bell that leads to a look at the Worker for which something has come to an end at a cloud.
fn ringing(rings: mpsc::UnboundedSender<ObjectRef<Guarded<Worker>>>) -> Bell {
    Arc::new(move |worker: WorkerName| {
        // Without a receiver the process is about to end.
        let _ = rings.unbounded_send(ObjectRef::new(&worker.name).within(&worker.namespace));
    })
}

/// Only the metadata of machine objects is watched: each pass reads what it needs, and an object that can't be decoded
/// doesn't stop the stream.
fn metadata_of<K>(client: &Client) -> Api<PartialObjectMeta<K>>
where
    K: Resource<DynamicType = ()>,
{
    Api::all(client.clone())
}

/// The Workers in the namespace of a machine object.
fn workers_of<K: Resource>(store: &Store<Guarded<Worker>>) -> impl Fn(K) -> Vec<ObjectRef<Guarded<Worker>>> + use<K> {
    let store = store.clone();
    move |object| {
        let namespace = object.meta().namespace.as_deref();
        let state = store.state();
        let of_namespace = state.iter().filter(|worker| worker.meta().namespace.as_deref() == namespace);
        of_namespace.map(|worker| ObjectRef::from_obj(&**worker)).collect()
    }
}

async fn look_at(guarded: Arc<Guarded<Worker>>, shared: Arc<Shared>) -> Result<Action, LookError> {
    let namespace = guarded.namespace().unwrap_or_default();
    let span = info_span!("worker", namespace, name = guarded.name_any());
    async {
        match &guarded.object {
            Ok(worker) => look_at_worker(worker, &shared).await,
            Err(reason) => tell_undecodable(&guarded, reason, &shared).await,
        }
    }
    .instrument(span)
    .await
}

fn on_error(guarded: Arc<Guarded<Worker>>, error: &LookError, shared: Arc<Shared>) -> Action {
    let retry = shared.retries.failed(guarded.meta().uid.as_deref().unwrap_or_default(), Instant::now());
    let delay = retry.delay;
    warn!(namespace = guarded.namespace(), name = guarded.name_any(), %error, ?delay, "trying again");
    Action::requeue(delay)
}
