//! 500 Workers roll at the same time and their machines take minutes. Measures how soon each status reports a change,
//! and how soon another Worker gets its machine deployments.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use crate::controller;
use crate::figures::{head, row, spread};
use crate::load::{self, SIDE_BY_SIDE, Size, namespace, resource, worker_name};
use crate::workers::Workers;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, FAKER, Faker, memory, processor_seconds};

const WORKERS: usize = 500;
const SIZE: Size = Size { pools: 1, zones: 3 };
/// Longer than the whole measurement, so that only the benchmark changes anything.
const MACHINES_TAKE: Duration = Duration::from_secs(3600);
/// Interval between changes: 20 per second.
const PERIOD: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(600);

pub(crate) async fn run() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let names: Vec<String> = (0..WORKERS).map(|number| namespace(&format!("{number:04}"))).collect();
    let one_more = namespace("more");
    let all: Vec<String> = names.iter().cloned().chain([one_more.clone()]).collect();
    load::prepare(&client, &all, SIZE).await?;
    let workers = Workers::follow(&client);
    let process = controller::start(&control_plane, &control_plane.kubeconfig_file(CONTROLLER)?)?;
    let pid = process.id().await?;
    {
        let _faker = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
        let created =
            names.iter().map(async |namespace| load::create(&client, load::worker(namespace, SIZE)).await.map(drop));
        stream::iter(created.collect::<Vec<_>>()).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;
        workers.done(&names, &HashMap::new(), LONG).await.context("creation")?;
    }

    let (used, start) = (processor_seconds(pid)?, Instant::now());
    let faker = Faker::start(control_plane.client(FAKER).await?, None, MACHINES_TAKE);
    let worker = resource("extensions.gardener.cloud/v1alpha1", "Worker");
    let rolled = names.iter().map(async |namespace| {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &worker);
        let patch = Patch::Merge(load::roll(namespace, SIZE, SIZE.pools));
        api.patch(worker_name(namespace), &PatchParams::default(), &patch).await.map(drop)
    });
    stream::iter(rolled.collect::<Vec<_>>()).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;
    workers
        .until(LONG, |cached| {
            let waits = names.iter().filter(|namespace| {
                let description =
                    cached.get(*namespace).map(|seen| &seen.worker["status"]["lastOperation"]["description"]);
                description
                    .and_then(|text| text.as_str())
                    .is_some_and(|text| text.starts_with("Waiting until machines"))
            });
            ensure!(waits.count() == WORKERS, "not all of them wait for machines");
            Ok(())
        })
        .await?;
    head("500 Workers roll at once", &["what", "figure"]);
    row(&[&"until all tell that they wait for machines", &format!("{:.1} s", start.elapsed().as_secs_f64())]);
    // The faker has reported a roll in progress everywhere. From here on, only the benchmark changes anything.
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(faker);

    let mut ticks = tokio::time::interval(PERIOD);
    let mut changed = Vec::new();
    let mut more = None;
    for (number, namespace) in names.iter().enumerate() {
        ticks.tick().await;
        if number == WORKERS / 2 {
            more = Some(tokio::spawn(deployed(client.clone(), one_more.clone())));
        }
        let before = workers.of(namespace).context("a Worker is missing")?;
        let before = before.worker["status"]["lastOperation"]["description"].clone();
        one_machine_is_there(&client, namespace).await?;
        changed.push((namespace.clone(), before, Instant::now()));
    }
    let mut reported = HashMap::new();
    workers
        .until(LONG, |cached| {
            for (namespace, before, since) in &changed {
                if let Some(seen) = cached.get(namespace).filter(|_| !reported.contains_key(namespace))
                    && seen.worker["status"]["lastOperation"]["description"] != *before
                {
                    reported.insert(namespace.clone(), seen.at.saturating_duration_since(*since));
                }
            }
            ensure!(reported.len() == WORKERS, "{} of {WORKERS} tell what has changed", reported.len());
            Ok(())
        })
        .await?;
    row(&[
        &"from a change to the status, 20 changes a second: median / p95 / longest",
        &format!("{} s", spread(reported.into_values().collect())),
    ]);
    let more = more.context("nobody has asked for one more")?.await??;
    row(&[&"one more Worker: until its deployments are there", &format!("{:.2} s", more.as_secs_f64())]);
    row(&[&"processor for all this", &format!("{:.1} s", processor_seconds(pid)? - used)]);
    row(&[&"RSS at most", &format!("{:.1} MiB", memory(pid, "VmHWM")?)]);
    process.stop(Duration::from_secs(5)).await?;
    control_plane.stop().await
}

/// Writes what machine-controller-manager writes when the first new machine of a deployment is ready.
async fn one_machine_is_there(client: &kube::Client, namespace: &str) -> Result<()> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &resource("machine.sapcloud.io/v1alpha1", "MachineDeployment"));
    let status = json!({"status": {"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    api.patch_status(&format!("{namespace}-pool-1-z1"), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// Duration until all deployments of a new Worker exist.
async fn deployed(client: kube::Client, namespace: String) -> Result<Duration> {
    let start = Instant::now();
    load::create(&client, load::worker(&namespace, SIZE)).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(client, &namespace, &resource("machine.sapcloud.io/v1alpha1", "MachineDeployment"));
    while api.list(&Default::default()).await?.items.len() < SIZE.zones {
        ensure!(start.elapsed() < LONG, "one more Worker is not deployed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(start.elapsed())
}
