//! Memory is released when Workers are deleted.

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::landscape::{Statuses, is_done, settled};
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, FAKER, Faker, eventually};
use test_support::shoot::{Kind, Shoot};

/// Number of concurrent gardenlet requests.
const SIDE_BY_SIDE: usize = 16;
/// Time limit for deleting all Workers, sufficient for a busy machine.
const LATEST: Duration = Duration::from_secs(1800);
/// Permitted memory afterwards, relative to that before.
const GROWTH: f64 = 1.10;

#[tokio::test]
#[ignore = "2,000 Workers (WORKERS has another number) are made and deleted; runs by name, for the figures of docs/performance-evidence.md"]
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn memory_returns_after_two_thousand_deletions() -> Result<()> {
    let count = std::env::var("WORKERS").map_or(Ok(2000), |count| count.parse())?;
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let (namespaces, worker) = prepare(&control_plane, count).await?;
    let controller = Controller::start(&control_plane, "returns", CONTROLLER, |program| program)?;
    controller.ready("ready\n").await?;
    let _machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let mut samples = Vec::new();
    for come in [&namespaces[..count.div_ceil(10)], &namespaces] {
        let began = Instant::now();
        create(&client, come, &worker).await?;
        let there = sample(&controller).await?;
        delete(&client, come).await?;
        settled(&controller).await?;
        let left = sample(&controller).await?;
        println!(
            "{} Workers made and deleted in {:.0?}: {there} with them, {left} without",
            come.len(),
            began.elapsed()
        );
        samples.push(left.anonymous);
    }
    ensure!(samples[1] <= samples[0] * GROWTH, "{samples:.1?} MiB of anonymous memory");
    Ok(())
}

/// Memory in MiB: resident, and resident without file pages.
struct Sample {
    resident: f64,
    anonymous: f64,
}

impl Display for Sample {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB, {:.1} of them anonymous,", self.resident, self.anonymous)
    }
}

async fn sample(controller: &Controller) -> Result<Sample> {
    Ok(Sample { resident: controller.memory("VmRSS").await?, anonymous: controller.memory("RssAnon").await? })
}

/// Creates gardenlet's objects in this many shoot namespaces, without Workers. Returns the Worker of the first.
async fn prepare(control_plane: &ControlPlane, count: usize) -> Result<(Vec<String>, Value)> {
    let first = Shoot::new(control_plane, "shoot--come--0000").await?;
    let mut worker = Value::Null;
    first.create(|documents| worker = documents.take("Worker")).await?;
    let namespaces: Vec<String> =
        (0..count).map(|number| first.namespace.replace("0000", &format!("{number:04}"))).collect();
    control_plane.copy_namespace(&first.namespace, &namespaces[1..]).await?;
    Ok((namespaces, worker))
}

/// Creates their Workers, and waits until all have succeeded.
async fn create(client: &Client, namespaces: &[String], worker: &Value) -> Result<()> {
    let (statuses, began) = (Statuses::follow(client).await?, Instant::now());
    let created = namespaces.iter().map(async |namespace| {
        let mut worker = worker.clone();
        worker["metadata"]["namespace"] = json!(namespace);
        worker["spec"]["secretRef"]["namespace"] = json!(namespace);
        workers(client, namespace).create(&PostParams::default(), &serde_json::from_value(worker)?).await?;
        anyhow::Ok(())
    });
    stream::iter(created.collect::<Vec<_>>()).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;
    statuses.until(namespaces, began, is_done).await.map(drop)
}

/// Deletes their Workers, and waits for completion.
async fn delete(client: &Client, namespaces: &[String]) -> Result<()> {
    let deleted = namespaces
        .iter()
        .map(async |namespace| workers(client, namespace).delete("fleet", &DeleteParams::default()).await.map(drop));
    stream::iter(deleted.collect::<Vec<_>>()).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &Kind::Worker.resource());
    eventually(LATEST, "all Workers are gone", async || {
        let left = all.list_metadata(&ListParams::default().limit(1)).await?;
        ensure!(left.items.is_empty(), "{:?} more", left.metadata.remaining_item_count);
        Ok(())
    })
    .await
}

fn workers(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &Kind::Worker.resource())
}
