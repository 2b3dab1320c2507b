//! A hundred Workers (`WORKERS` has another number) with three pools in three zones: created, reconciled without changes, rolled. Measures requests,
//! CPU, memory and time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::Value;
use tokio::time::Instant;

use crate::controller::Controller;
use crate::digest::{OF_THE_GO_EXTENSION, digests};
use crate::figures::{head, row, spread};
use crate::load::{self, SIDE_BY_SIDE, Size, namespace, resource, worker_name};
use crate::workers::Workers;
use test_support::cluster::{ADMIN, AuditLog, CONTROLLER, ControlPlane, FAKER, Faker, memory, processor_seconds};

/// Number of Workers whose digests are compared with those of the Go extension.
const WORKERS: usize = 100;
const SIZE: Size = Size { pools: 3, zones: 3 };
/// Table columns.
pub(crate) const PHASES: [&str; 7] = [
    "phase",
    "requests per Worker",
    "processor s per Worker",
    "of the API server",
    "all done after s",
    "latency s: median / p95 / longest",
    "RSS MiB at most",
];
const LONG: Duration = Duration::from_secs(600);
/// Pause between phases, because timestamps have a resolution of seconds.
const PAUSE: Duration = Duration::from_millis(1100);
/// Time after a phase for its remaining requests.
const REST: Duration = Duration::from_secs(2);

pub(crate) async fn run() -> Result<()> {
    let digests = measure("Workers × 3 pools × 3 zones", &Controller::Ours, Load::Whole).await?;
    if number_of_workers()? != WORKERS {
        return Ok(());
    }
    for (what, theirs) in OF_THE_GO_EXTENSION {
        let ours = digests.get(what).map(String::as_str);
        ensure!(ours == Some(theirs), "the {what} are not those of the Go extension, {theirs}");
    }
    Ok(())
}

fn number_of_workers() -> Result<usize> {
    std::env::var("WORKERS").map_or(Ok(WORKERS), |number| number.parse().context("WORKERS is no number"))
}

/// The load on a controller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// All phases, with documents that use capabilities.
    Whole,
    /// Limited to features of older versions of the Go extension: without capabilities and without a roll. In a roll,
    /// they wait for a machine deployment's second machine set, which the faker never creates.
    BesideGo,
}

impl Load {
    fn document(self, document: Value) -> Value {
        match self {
            Self::Whole => document,
            Self::BesideGo => load::without_capabilities(document),
        }
    }
}

/// Measures a controller with this load. Returns the digests of the created objects.
pub(crate) async fn measure(
    title: &str,
    controller: &Controller,
    requested: Load,
) -> Result<BTreeMap<&'static str, String>> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let names: Vec<String> = (0..number_of_workers()?).map(|number| namespace(&format!("{number:04}"))).collect();
    let probe = namespace("probe");
    let all: Vec<String> = names.iter().cloned().chain([probe.clone()]).collect();
    load::prepare_with(&client, &all, SIZE, |document| requested.document(document)).await?;
    let workers = Workers::follow(&client);
    load::create(&client, requested.document(load::worker(&probe, SIZE))).await?;
    let _faker = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);

    let started = Instant::now();
    let process = controller.start(&control_plane, &control_plane.kubeconfig_file(CONTROLLER)?)?;
    let pid = process.id().await?;
    let is_reported = |seen: Value| seen["status"]["lastOperation"].is_object();
    workers
        .until(LONG, |cached| {
            let reported = cached.get(&probe).is_some_and(|seen| is_reported((*seen.worker).clone()));
            ensure!(reported, "the first Worker has no status");
            Ok(())
        })
        .await?;
    let first_status = workers.of(&probe).map_or(Duration::ZERO, |seen| seen.at - started);
    workers.done(std::slice::from_ref(&probe), &Default::default(), LONG).await?;
    tokio::time::sleep(REST).await;
    let [idle, of_files] = [memory(pid, "VmRSS")?, memory(pid, "RssFile")?];

    head(title, &PHASES);
    let bench = Bench { control_plane: &control_plane, client: &client, workers: &workers, names: &names, pid };
    let mut breakdown = Vec::new();
    breakdown.push(
        bench
            .phase("create", async |namespace| {
                load::create(&client, requested.document(load::worker(namespace, SIZE))).await.map(drop)
            })
            .await?,
    );
    for number in 1..=2 {
        breakdown.push(
            bench
                .phase(&format!("no-op {number}"), async |namespace| bench.patch(namespace, load::request()).await)
                .await?,
        );
    }
    if requested == Load::Whole {
        breakdown.push(
            bench
                .phase("roll", async |namespace| bench.patch(namespace, load::roll(namespace, SIZE, SIZE.pools)).await)
                .await?,
        );
    }
    head("Start, memory, size", &["what", "figure"]);
    row(&[&"from start to the first status", &format!("{:.2} s", first_status.as_secs_f64())]);
    row(&[&"RSS with one Worker", &format!("{idle:.1} MiB, of it {of_files:.1} pages of the program's file")]);
    row(&[&"RSS after the whole run", &format!("{:.1} MiB", memory(pid, "VmRSS")?)]);
    row(&[&"RSS at most", &format!("{:.1} MiB", memory(pid, "VmHWM")?)]);
    row(&[&"binary", &format!("{:.1} MiB", std::fs::metadata(controller.binary())?.len() as f64 / 1_048_576.0)]);
    let digests = digests(&client).await?;
    report(&breakdown, names.len(), &digests);
    process.stop(Duration::from_secs(5)).await?;
    control_plane.stop().await?;
    Ok(digests)
}

fn report(breakdown: &[Breakdown], workers: usize, digests: &BTreeMap<&str, String>) {
    head("Requests per Worker", &["phase", "requests"]);
    for (phase, requests) in breakdown {
        let requests: Vec<String> =
            requests.iter().map(|(what, count)| format!("{what} {:.2}", *count as f64 / workers as f64)).collect();
        row(&[phase, &requests.join(", ")]);
    }
    head("Digests", &["objects", "digest"]);
    for (what, digest) in digests {
        row(&[what, digest]);
    }
}

pub(crate) struct Bench<'a> {
    pub(crate) control_plane: &'a ControlPlane,
    pub(crate) client: &'a Client,
    pub(crate) workers: &'a Workers,
    pub(crate) names: &'a [String],
    pub(crate) pid: u32,
}

type Breakdown = (String, BTreeMap<String, usize>);

impl Bench<'_> {
    pub(crate) async fn phase(&self, name: &str, act: impl AsyncFn(&String) -> Result<()>) -> Result<Breakdown> {
        tokio::time::sleep(PAUSE).await;
        let audit: AuditLog = self.control_plane.audit().await?;
        let (before, mark) = (self.workers.stamps(), audit.mark().await?);
        // Reset the peak memory.
        std::fs::write(format!("/proc/{}/clear_refs", self.pid), "5")?;
        let apiserver = self.control_plane.apiserver().id().await?;
        let seconds = || anyhow::Ok([processor_seconds(self.pid)?, processor_seconds(apiserver)?]);
        let (before_phase, start) = (seconds()?, Instant::now());
        let requested: Vec<(String, Instant)> = stream::iter(self.names)
            .map(async |namespace| {
                let now = Instant::now();
                act(namespace).await?;
                anyhow::Ok((namespace.clone(), now))
            })
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        let done = self.workers.done(self.names, &before, LONG).await.with_context(|| name.to_owned())?;
        let all_done = done.values().max().map_or(Duration::ZERO, |last| *last - start);
        tokio::time::sleep(REST).await;
        let used = seconds()?;
        let [used, served] = [0, 1].map(|process| (used[process] - before_phase[process]) / self.names.len() as f64);
        let latencies =
            requested.iter().filter_map(|(namespace, requested)| Some(*done.get(namespace)? - *requested)).collect();
        let mut requests = BTreeMap::<String, usize>::new();
        for request in audit.requests(CONTROLLER, mark).await? {
            *requests.entry(format!("{} {}", request.verb, request.resource)).or_default() += 1;
        }
        let count = requests.values().sum::<usize>() as f64 / self.names.len() as f64;
        row(&[
            &name,
            &format!("{count:.1}"),
            &format!("{used:.4}"),
            &format!("{served:.4}"),
            &format!("{:.1}", all_done.as_secs_f64()),
            &spread(latencies),
            &format!("{:.1}", memory(self.pid, "VmHWM")?),
        ]);
        Ok((name.to_owned(), requests))
    }

    async fn patch(&self, namespace: &str, patch: Value) -> Result<()> {
        let resource = resource("extensions.gardener.cloud/v1alpha1", "Worker");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        api.patch(worker_name(namespace), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}
