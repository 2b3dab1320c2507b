//! A seed with thousands of Workers: how soon the controller has loaded them, its memory, how soon a status reflects a
//! change, and that memory does not grow.

use std::collections::HashMap;
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::landscape::{Landscape, POOLS, Size, Statuses, is_done, percentile, request, requests, settled};
use test_support::cluster::{FAKER, Faker, SHARDS, processor_seconds};
use test_support::shoot::Kind;

const ZONES: [&str; 3] = ["1", "2", "3"];
/// 99 of 100 changes are in the status after this time.
const LONGEST_LAG: Duration = Duration::from_secs(2);
/// One of this many Workers is processed at a time.
const SHARE: usize = 100;
/// Permitted memory growth after the first third of the time.
const GROWTH: f64 = 1.02;

#[tokio::test]
#[ignore = "7,000 Workers (WORKERS has another number); runs by name, for the figures of docs/performance-evidence.md"]
async fn a_start_with_thousands_of_workers_takes_bounded_memory() -> Result<()> {
    let landscape = Landscape::new(Size { workers: workers()?, zones: &["1"] }).await?;
    start(&landscape, landscape.start(), 250.0).await.map(drop)
}

#[tokio::test]
#[ignore = "7,000 Workers (WORKERS has another number) with 63,000 machine deployments and 49,000 machines; runs by name, for the figures of docs/performance-evidence.md"]
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn a_start_with_the_largest_landscape_takes_bounded_memory() -> Result<()> {
    let landscape = largest().await?;
    let controller = start(&landscape, landscape.start(), 500.0).await?;
    let (began, before) = (Instant::now(), requests(&controller.metrics().await?, ""));
    landscape.patch(&landscape.namespaces, &request()).await?;
    let took = settled(&controller).await?.duration_since(began);
    let requested = requests(&controller.metrics().await?, "") - before;
    let memory = controller.peak_memory().await?;
    println!("a no-op for all: {took:.1?}, {requested} requests, {memory:.1} MiB at most");
    ensure!(memory <= 500.0, "{memory:.1} MiB");
    all_succeeded(&landscape).await
}

#[tokio::test]
#[ignore = "1 % of 7,000 Workers (WORKERS has another number) roll at once; runs by name, for the figures of docs/performance-evidence.md"]
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn statuses_follow_changes_within_two_seconds() -> Result<()> {
    let landscape = largest().await?;
    let controller = start(&landscape, landscape.start(), 500.0).await?;
    let lag = one_percent_rolls(&landscape, std::slice::from_ref(&controller)).await?;
    let memory = controller.peak_memory().await?;
    println!("{memory:.1} MiB at most");
    ensure!(lag <= LONGEST_LAG, "{lag:?}");
    ensure!(memory <= 500.0, "{memory:.1} MiB");
    Ok(())
}

#[tokio::test]
#[ignore = "four processes, started one after the other (AT_ONCE has another number), share 7,000 Workers (WORKERS has another number), of which 1 % roll at once; runs by name, for the figures of docs/performance-evidence.md"]
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn four_shards_share_the_largest_landscape() -> Result<()> {
    let landscape = largest().await?;
    let shards = &SHARDS[..4];
    landscape.divide(shards).await?;
    // A simultaneous start of four processes takes three times as long as four starts one after the other
    // (docs/performance-evidence.md).
    let starts = shards.iter().map(|shard| start(&landscape, landscape.start_shard(shard), 500.0));
    let controllers: Vec<Controller> = stream::iter(starts).buffered(number("AT_ONCE", 1)?).try_collect().await?;
    let lag = one_percent_rolls(&landscape, &controllers).await?;
    let memory = try_join_all(controllers.iter().map(Controller::peak_memory)).await?;
    println!("{memory:.1?} MiB at most");
    ensure!(lag <= LONGEST_LAG, "{lag:?}");
    ensure!(memory.iter().all(|memory| *memory <= 500.0), "{memory:.1?} MiB");
    Ok(())
}

/// Rolls one Worker of a hundred, with machines that never become ready. Returns the time after which 99 of 100 changes
/// of their machine deployments are in a status.
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn one_percent_rolls(landscape: &Landscape, controllers: &[Controller]) -> Result<Duration> {
    let statuses = Statuses::follow(&landscape.client).await?;
    let rolling = &landscape.namespaces[..landscape.namespaces.len().div_ceil(SHARE)];
    let machines = fakers(landscape, rolling, Duration::from_secs(3600)).await?;
    let began = Instant::now();
    landscape.patch(rolling, &roll(landscape, 1).await?).await?;
    let waits = |_: &str, status: &Value| {
        let description = status["last"]["description"].as_str().unwrap_or_default();
        description.starts_with("Waiting until machines")
    };
    let waiting = statuses.until(rolling, began, waits).await;
    // A process that has ended explains why its Workers do not wait.
    controllers.iter().try_for_each(|controller| controller.process.ensure_running())?;
    let waiting = waiting?;
    let took = waiting.values().max().map_or(Duration::ZERO, |last| last.duration_since(began));
    println!("{} Workers roll at once: all wait for machines after {took:.1?}", rolling.len());
    try_join_all(controllers.iter().map(settled)).await?;
    drop(machines);
    let mut lags = Vec::new();
    for pool in POOLS {
        for zone in ZONES {
            lags.extend(changes(landscape, &statuses, rolling, &format!("{pool}-z{zone}")).await?);
        }
    }
    let [median, of_hundred, longest] = [50, 99, 100].map(|percent| percentile(&mut lags, percent));
    println!(
        "{} changes, {} at once: in the status after {median:.2?} (median), {of_hundred:.2?} (p99), {longest:.2?} (longest)",
        lags.len(),
        rolling.len()
    );
    Ok(of_hundred)
}

#[tokio::test]
#[ignore = "7,000 Workers (WORKERS has another number) for 30 minutes (MINUTES has another number); runs by name, for the figures of docs/performance-evidence.md"]
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn nothing_grows_while_the_largest_landscape_is_worked_on() -> Result<()> {
    let landscape = largest().await?;
    let controller = start(&landscape, landscape.start(), 500.0).await?;
    let statuses = Statuses::follow(&landscape.client).await?;
    let minutes = number("MINUTES", 30)?;
    let shares: Vec<&[String]> = landscape.namespaces.chunks(landscape.namespaces.len().div_ceil(SHARE)).collect();
    let mut samples = Vec::new();
    // A Worker's first roll adds memory for earlier inputs of its classes. So after the first third, the same Workers
    // roll again.
    let third = minutes.div_ceil(3);
    let again = shares.iter().zip(shares.iter().cycle().skip(1)).take(third).cycle();
    for (minute, (rolling, requested)) in (0..minutes).zip(again) {
        let began = Instant::now();
        let machines = fakers(&landscape, rolling, Duration::ZERO).await?;
        landscape.patch(rolling, &roll(&landscape, minute + 1).await?).await?;
        landscape.patch(requested, &request()).await?;
        statuses.until(rolling, began, is_done).await?;
        statuses.until(requested, began, is_done).await?;
        drop(machines);
        let took = began.elapsed();
        settled(&controller).await?;
        samples.push(controller.memory("RssAnon").await?);
        println!(
            "minute {minute}: {} Workers rolled, {} no-ops in {took:.1?}, {samples:.1?} MiB",
            rolling.len(),
            requested.len()
        );
        tokio::time::sleep(Duration::from_secs(60).saturating_sub(began.elapsed())).await;
    }
    let most = |samples: &[f64]| samples.iter().copied().fold(0.0, f64::max);
    let (before, after) = (most(&samples[..third]), most(&samples[third..]));
    println!(
        "anonymous memory: {before:.1} MiB at most in the first third of {minutes} minutes, {after:.1} after that"
    );
    ensure!(after <= before * GROWTH, "{before:.1} MiB have become {after:.1}");
    Ok(())
}

/// Nine machine deployments and seven machines per Worker.
async fn largest() -> Result<Landscape> {
    Landscape::new(Size { workers: workers()?, zones: &ZONES }).await
}

fn workers() -> Result<usize> {
    number("WORKERS", 7000)
}

fn number(variable: &str, default: usize) -> Result<usize> {
    std::env::var(variable).map_or(Ok(default), |text| text.parse().with_context(|| variable.to_owned()))
}

/// Starts a controller, and waits until it has reconciled each of its Workers once and makes no more requests.
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn start(
    landscape: &Landscape,
    starting: impl Future<Output = Result<Controller>>,
    most_memory: f64,
) -> Result<Controller> {
    let apiserver = landscape.control_plane.apiserver().id().await?;
    let (began, before) = (Instant::now(), processor_seconds(apiserver)?);
    let controller = starting.await?;
    let cached = settled(&controller).await?.duration_since(began);
    let (its, own) = (processor_seconds(apiserver)? - before, processor_seconds(controller.process.id().await?)?);
    let memory = controller.peak_memory().await?;
    let metrics = controller.metrics().await?;
    let [lists, writes] = [&["list"][..], &["create", "patch", "update", "delete"]].map(|verbs| {
        verbs.iter().map(|verb| requests(&metrics, &format!("verb=\"{verb}\""))).fold(0.0, |all, count| all + count)
    });
    println!(
        "all known after {cached:.1?}, {own:.1} s of processor time and {its:.1} s of the API server's, {memory:.1} MiB at most, {lists} lists, {writes} writes"
    );
    ensure!(writes == 0.0, "{writes} writes although everything is as wanted");
    ensure!(memory <= most_memory, "{memory:.1} MiB");
    Ok(controller)
}

async fn all_succeeded(landscape: &Landscape) -> Result<()> {
    let workers: Api<DynamicObject> = Api::all_with(landscape.client.clone(), &Kind::Worker.resource());
    let all = workers.list(&ListParams::default()).await?.items;
    ensure!(all.len() == landscape.namespaces.len(), "{} Workers", all.len());
    for worker in all {
        let (requested, last) =
            (worker.annotations().get("gardener.cloud/timestamp"), &worker.data["status"]["lastOperation"]);
        let is_requested = worker.annotations().contains_key("gardener.cloud/operation");
        let is_completed = last["lastUpdateTime"]
            .as_str()
            .zip(requested)
            .is_some_and(|(reported, requested)| reported[..19] >= requested[..19]);
        ensure!(
            !is_requested && is_completed && last["state"] == "Succeeded",
            "{:?}: {last}",
            worker.metadata.annotations
        );
    }
    Ok(())
}

/// Fake machine-controller-managers for these namespaces.
async fn fakers(landscape: &Landscape, namespaces: &[String], after: Duration) -> Result<Vec<Faker>> {
    let client = landscape.control_plane.client(FAKER).await?;
    let namespaces = namespaces.iter();
    Ok(namespaces.map(|namespace| Faker::start_with_machines(client.clone(), Some(namespace), after)).collect())
}

/// A request with another node agent Secret for every pool, so that all machines roll.
async fn roll(landscape: &Landscape, number: usize) -> Result<Value> {
    let first = landscape.api(Kind::Worker, &landscape.namespaces[0]).get("fleet").await?;
    let mut pools = first.data["spec"]["pools"].clone();
    for pool in pools.as_array_mut().into_iter().flatten() {
        pool["nodeAgentSecretName"] = json!(format!("gardener-node-agent-{number:016}"));
    }
    let mut patch = request();
    patch["spec"] = json!({ "pools": pools });
    Ok(patch)
}

/// Writes what machine-controller-manager writes when the first new machine of a deployment is ready, in all of these
/// namespaces at the same time. Returns the delay of each status.
async fn changes(
    landscape: &Landscape,
    statuses: &Statuses,
    namespaces: &[String],
    deployment: &str,
) -> Result<Vec<Duration>> {
    let before: HashMap<String, Value> =
        namespaces.iter().map(|namespace| (namespace.clone(), statuses.description(namespace))).collect();
    let status = json!({"status": {"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    let began = Instant::now();
    let changed = namespaces.iter().map(async |namespace| {
        let now = Instant::now();
        let deployments = landscape.api(Kind::MachineDeployment, namespace);
        let name = format!("{namespace}-{deployment}");
        deployments.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        anyhow::Ok((namespace.clone(), now))
    });
    let changed: Vec<(String, Instant)> =
        stream::iter(changed.collect::<Vec<_>>()).buffer_unordered(namespaces.len()).try_collect().await?;
    let reported = |namespace: &str, status: &Value| status["last"]["description"] != before[namespace];
    let seen = statuses.until(namespaces, began, reported).await?;
    Ok(changed.iter().map(|(namespace, since)| seen[namespace].saturating_duration_since(*since)).collect())
}
