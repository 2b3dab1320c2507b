//! One Worker with two pools in three zones and the real machine-controller-manager: the duration of each flow, and its
//! part after the last event of a machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::runtime::watcher;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::controller;
use crate::figures::{head, row};
use crate::load::{self, Size, namespace, resource, worker_name};
use crate::workers::Workers;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, Deletion, MachineControllerManager};

const SIZE: Size = Size { pools: 2, zones: 3 };
const LONG: Duration = Duration::from_secs(600);

pub(crate) async fn run() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = namespace("machines");
    let names = std::slice::from_ref(&namespace);
    load::prepare(&client, names, SIZE).await?;
    let workers = Workers::follow(&client);
    let machines = MachineControllerManager::start(&control_plane, &namespace, Deletion::AsShipped).await?;
    let events = Events::follow(&client, &namespace);
    let process = controller::start(&control_plane, &control_plane.kubeconfig_file(CONTROLLER)?)?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    head(
        "One Worker, 2 pools × 3 zones, the real machine-controller-manager",
        &["flow", "requested to the end, s", "from the last machine event before to the end, s"],
    );
    let worker = resource("extensions.gardener.cloud/v1alpha1", "Worker");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &worker);
    let name = worker_name(&namespace);
    let report = |flow: &str, start: Instant, end: Instant| {
        let last = events.last_before(end).map_or(f64::NAN, |last| (end - last).as_secs_f64());
        row(&[&flow, &format!("{:.2}", (end - start).as_secs_f64()), &format!("{last:.2}")]);
    };

    let mut start = Instant::now();
    load::create(&client, load::worker(&namespace, SIZE)).await?;
    let done = workers.done(names, &HashMap::new(), LONG).await.context("create")?;
    report("create", start, *done.get(&namespace).context("not created")?);

    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = workers.stamps();
    start = Instant::now();
    api.patch(name, &PatchParams::default(), &Patch::Merge(load::roll(&namespace, SIZE, 1))).await?;
    let done = workers.done(names, &before, LONG).await.context("roll")?;
    report("roll of one pool", start, *done.get(&namespace).context("not rolled")?);

    tokio::time::sleep(Duration::from_secs(2)).await;
    start = Instant::now();
    api.delete(name, &DeleteParams::default()).await?;
    workers
        .until(LONG, |cached| {
            let left = cached.get(&namespace).map(|seen| seen.worker["status"]["lastOperation"].to_string());
            ensure!(left.is_none(), "the Worker is there: {}", left.unwrap_or_default());
            Ok(())
        })
        .await
        .context("delete")?;
    report("delete", start, Instant::now());
    process.stop(Duration::from_secs(5)).await?;
    machines.stop().await?;
    control_plane.stop().await
}

/// Times of changes of machines, machine sets and machine deployments. Dropping it ends the watches.
struct Events {
    times: Arc<Mutex<Vec<Instant>>>,
    watches: Vec<JoinHandle<()>>,
}

impl Events {
    fn follow(client: &Client, namespace: &str) -> Self {
        let times = Arc::<Mutex<Vec<Instant>>>::default();
        let watches = ["Machine", "MachineSet", "MachineDeployment"].map(|kind| {
            let resource = resource("machine.sapcloud.io/v1alpha1", kind);
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
            let times = Arc::clone(&times);
            tokio::spawn(watcher::watcher(api, watcher::Config::default()).for_each(move |event| {
                if matches!(event, Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_))) {
                    times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                }
                std::future::ready(())
            }))
        });
        Self { times, watches: watches.into() }
    }

    fn last_before(&self, end: Instant) -> Option<Instant> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.iter().filter(|time| **time <= end).max().copied()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}
