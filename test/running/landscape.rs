//! A seed with thousands of Workers: one is created normally, the others are copies in etcd.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::controller::Controller;
use test_support::cluster::{
    ADMIN, CONTROLLER, ControlPlane, FAKER, Faker, Program, RING, eventually, processor_seconds,
};
use test_support::shoot::{Kind, Shoot};

/// Pools of each Worker.
pub(crate) const POOLS: [&str; 3] = ["bow", "mast", "stern"];
/// The first shoot's namespace, whose number is replaced in copies.
const FIRST: &str = "shoot--many--0000";
/// A controller without requests for this time has completed its work.
const QUIET: Duration = Duration::from_secs(3);
/// Time limit for that, sufficient for a busy machine.
const LATEST: Duration = Duration::from_secs(900);
/// The API server is idle if its CPU usage stays below this share for this many seconds.
const REST: (f64, u32) = (0.1, 5);
/// Pause between evaluations of all statuses.
const PAUSE: Duration = Duration::from_millis(100);
/// Number of concurrent gardenlet requests.
const SIDE_BY_SIDE: usize = 16;

/// The size of a seed.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) workers: usize,
    /// Zones of each pool. Each zone has a machine deployment with one machine; the last pool has only one machine in
    /// total.
    pub(crate) zones: &'static [&'static str],
}

impl Size {
    pub(crate) fn deployments(self) -> usize {
        POOLS.len() * self.zones.len()
    }
}

/// A seed in which all Workers have succeeded.
pub(crate) struct Landscape {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) namespaces: Vec<String>,
}

impl Landscape {
    /// Creates it. If `LANDSCAPE` is set, saves etcd's data in that folder and reuses existing data.
    pub(crate) async fn new(size: Size) -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        let client = control_plane.client(ADMIN).await?;
        let kept = std::env::var_os("LANDSCAPE").map(PathBuf::from);
        let folder = kept.map(|folder| folder.join(format!("{}x{}", size.workers, size.deployments())));
        if let Some(folder) = folder.as_ref().filter(|folder| folder.exists()) {
            control_plane.restore(folder).await?;
        } else {
            make(&control_plane, size).await?;
            if let Some(folder) = &folder {
                control_plane.back_up(folder)?;
            }
        }
        let namespaces = namespaces(&first(&client).await?, size.workers);
        let landscape = Self { control_plane, client, namespaces };
        landscape.is_cached().await?;
        Ok(landscape)
    }

    /// Waits until the API server has loaded everything from etcd and is idle, which can take minutes after the last
    /// writes.
    async fn is_cached(&self) -> Result<()> {
        let any = ListParams { limit: Some(1), resource_version: Some("0".to_owned()), ..ListParams::default() };
        for kind in Kind::OF_MACHINES.into_iter().chain([Kind::Worker, Kind::Secret]) {
            let api = self.api(kind, &self.namespaces[0]);
            eventually(LATEST, &format!("the API server lists {kind:?}"), async || {
                ensure!(!api.list_metadata(&any).await?.items.is_empty(), "there is none");
                Ok(())
            })
            .await?;
        }
        let (apiserver, (share, seconds)) = (self.control_plane.apiserver().id().await?, REST);
        let (end, mut quiet) = (Instant::now() + LATEST, 0);
        while quiet < seconds {
            ensure!(Instant::now() < end, "the API server does not come to rest");
            let before = processor_seconds(apiserver)?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            quiet = if processor_seconds(apiserver)? - before < share { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    /// Starts a process for all Workers.
    pub(crate) async fn start(&self) -> Result<Controller> {
        self.ready(Controller::start(&self.control_plane, "many", CONTROLLER, |program| program)?).await
    }

    /// Starts a process for the Workers of this shard.
    pub(crate) async fn start_shard(&self, shard: &str) -> Result<Controller> {
        let flags = |program: Program| {
            let program = program.flag("leader-election-namespace", &self.namespaces[0]);
            program.flag("shard-ring", RING).flag("shard-name", shard)
        };
        self.ready(Controller::start(&self.control_plane, shard, shard, flags)?).await
    }

    async fn ready(&self, controller: Controller) -> Result<Controller> {
        eventually(LATEST, "the controller is ready", async || {
            // Until it has its lease, it is ready as a standby.
            let (_, text) = controller.request("GET", "/readyz", "").await?;
            ensure!(text == "ready\n", "{text}");
            Ok(())
        })
        .await?;
        Ok(controller)
    }

    pub(crate) fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }

    /// Assigns an equal number of Workers to each shard, as the sharder does.
    pub(crate) async fn divide(&self, shards: &[&str]) -> Result<()> {
        let label = format!("shard.alpha.sharding.timebertt.dev/{RING}");
        for (location, shard) in shards.iter().enumerate() {
            let namespaces: Vec<String> =
                self.namespaces.iter().skip(location).step_by(shards.len()).cloned().collect();
            self.patch(&namespaces, &json!({"metadata": {"labels": {&label: shard}}})).await?;
        }
        self.is_cached().await
    }

    /// Patches the Workers of these namespaces concurrently.
    pub(crate) async fn patch(&self, namespaces: &[String], patch: &Value) -> Result<()> {
        let patched = namespaces.iter().map(async |namespace| {
            let workers = self.api(Kind::Worker, namespace);
            workers.patch("fleet", &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        });
        Ok(stream::iter(patched.collect::<Vec<_>>()).buffer_unordered(SIDE_BY_SIDE).try_collect().await?)
    }
}

/// gardenlet's merge patch to request a reconcile.
pub(crate) fn request() -> Value {
    let now = jiff::Timestamp::now().to_string();
    json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile", "gardener.cloud/timestamp": now}}})
}

/// The namespace of the first Worker.
async fn first(client: &Client) -> Result<String> {
    let workers: Api<DynamicObject> = Api::all_with(client.clone(), &Kind::Worker.resource());
    let found = workers.list_metadata(&ListParams::default().limit(1)).await?.items;
    found.first().and_then(|worker| worker.namespace()).context("there is no Worker")
}

/// This many namespaces, starting with the first.
fn namespaces(first: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| first.replace(FIRST, &format!("shoot--many--{number:04}"))).collect()
}

async fn make(control_plane: &ControlPlane, size: Size) -> Result<()> {
    let shoot = Shoot::new(control_plane, FIRST).await?;
    let controller = Controller::start(control_plane, "first", CONTROLLER, |program| program)?;
    let _machines = Faker::start_with_machines(control_plane.client(FAKER).await?, None, Duration::ZERO);
    shoot
        .create(|documents| {
            let pools = documents.of_kind("Worker")["spec"]["pools"].take();
            documents.of_kind("Worker")["spec"]["pools"] =
                POOLS.iter().map(|name| pool(&pools[0], name, size)).collect();
        })
        .await?;
    shoot.succeeded().await?;
    settled(&controller).await?;
    controller.process.stop(Duration::from_secs(5)).await?;
    let namespaces = namespaces(&shoot.namespace, size.workers);
    control_plane.copy_namespace(&shoot.namespace, &namespaces[1..]).await
}

fn pool(template: &Value, name: &str, size: Size) -> Value {
    let mut pool = template.clone();
    pool["name"] = json!(name);
    pool["zones"] = json!(size.zones);
    pool["minimum"] = json!(if name == POOLS[2] { 1 } else { size.zones.len() });
    pool["maximum"] = json!(3 * size.zones.len());
    pool["nodeAgentSecretName"] = json!(format!("gardener-node-agent-{name}-1111111111111111"));
    pool
}

/// Waits until the controller makes no more requests. Returns the time of its last request.
pub(crate) async fn settled(controller: &Controller) -> Result<Instant> {
    let last = std::cell::Cell::new((0.0, Instant::now()));
    eventually(LATEST, "the controller asks for nothing", async || {
        let requested = requests(&controller.metrics().await?, "");
        if requested != last.get().0 {
            last.set((requested, Instant::now()));
        }
        ensure!(last.get().1.elapsed() > QUIET, "{requested} requests, the last of them just now");
        Ok(())
    })
    .await?;
    Ok(last.get().1)
}

/// Number of requests in series with that label, excluding the repeated requests for its lease.
pub(crate) fn requests(metrics: &str, label: &str) -> f64 {
    let counts =
        |line: &&str| line.contains("requests_total") && !line.contains("resource=\"leases\"") && line.contains(label);
    let series = metrics.lines().filter(counts);
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).fold(0.0, |all, count| all + count)
}

type Cached = HashMap<String, (Arc<Value>, Instant)>;

/// The changed status of each Worker, and when it was observed.
pub(crate) struct Statuses {
    cached: watch::Receiver<Cached>,
    task: JoinHandle<Result<()>>,
}

impl Statuses {
    /// Starts with the next change.
    pub(crate) async fn follow(client: &Client) -> Result<Self> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &Kind::Worker.resource());
        let now = api.list_metadata(&ListParams::default().limit(1)).await?;
        let mut version = now.metadata.resource_version.context("a list has a version")?;
        let (sender, cached) = watch::channel(Cached::new());
        let task = tokio::spawn(async move {
            loop {
                let mut events = api.watch(&WatchParams::default(), &version).await?.boxed();
                while let Some(event) = events.try_next().await? {
                    let (WatchEvent::Added(worker) | WatchEvent::Modified(worker)) = event else { continue };
                    version = worker.resource_version().unwrap_or_default();
                    let (namespace, seen) = (worker.namespace().unwrap_or_default(), Instant::now());
                    let is_requested = worker.annotations().contains_key("gardener.cloud/operation");
                    let status =
                        Arc::new(json!({"asked": is_requested, "last": worker.data["status"]["lastOperation"]}));
                    sender.send_modify(|cached| drop(cached.insert(namespace, (status, seen))));
                }
            }
        });
        Ok(Self { cached, task })
    }

    /// The description of a Worker's last operation.
    pub(crate) fn description(&self, namespace: &str) -> Value {
        let cached = self.cached.borrow();
        cached.get(namespace).map(|(status, _)| status["last"]["description"].clone()).unwrap_or_default()
    }

    /// Waits until each of these Workers has a status observed after `since` that passes. Returns the times.
    pub(crate) async fn until(
        &self,
        namespaces: &[String],
        since: Instant,
        passes: impl Fn(&str, &Value) -> bool,
    ) -> Result<HashMap<String, Instant>> {
        let (end, mut passed, mut cached) = (Instant::now() + LATEST, HashMap::new(), self.cached.clone());
        loop {
            let now = cached.borrow_and_update().clone();
            for namespace in namespaces {
                let status = now.get(namespace).filter(|(status, seen)| *seen >= since && passes(namespace, status));
                if let Some((_, seen)) = status {
                    passed.entry(namespace.clone()).or_insert(*seen);
                }
            }
            let Some(missing) = namespaces.iter().find(|namespace| !passed.contains_key(*namespace)) else {
                return Ok(passed);
            };
            let so_far = format!("{} of {}; {missing}: {:?}", passed.len(), namespaces.len(), now.get(missing));
            ensure!(!self.task.is_finished(), "nobody follows the Workers any more");
            tokio::time::timeout_at(end.into(), cached.changed()).await.context(so_far)??;
            // Wait for further changes, because each evaluation checks all statuses.
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether gardenlet would consider the Worker ready.
pub(crate) fn is_done(_: &str, status: &Value) -> bool {
    status["asked"] == false && status["last"]["state"] == "Succeeded"
}

/// The percentile of the times.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}
