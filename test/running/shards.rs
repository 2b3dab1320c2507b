//! Processes that share the Workers of a seed, with the real sharder. Each Worker has one writer at a time, whether a
//! process joins, leaves, is killed, or resumes after its Workers were reassigned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use futures::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt as _};
use tokio::task::JoinHandle;

use crate::controller::Controller;
use test_support::cluster::{
    self, ADMIN, AuditLog, CONTROLLER, ControlPlane, FAKER, Faker, Mark, Program, RING, Request, SHARDS, Sharder,
    eventually,
};
use test_support::shoot::{Kind, SOON, Shoot};

/// Long enough to distinguish one lease duration from two on a busy machine.
const LEASE: Duration = Duration::from_secs(12);
/// How long the Workers of a killed shard may wait after its lease on an idle machine.
const TAKEOVER: Duration = Duration::from_secs(2);
/// Additional time for busy machines.
const BUSY: Duration = Duration::from_secs(6);
const WORKERS: usize = 24;
const SHARD_LABEL: &str = "shard.alpha.sharding.timebertt.dev/gardener-extension-worker";
const DRAIN_LABEL: &str = "drain.alpha.sharding.timebertt.dev/gardener-extension-worker";

/// A seed with its Workers, and their assignment.
struct Seed {
    control_plane: ControlPlane,
    sharder: Sharder,
    leases: String,
    shoots: Vec<Shoot>,
    owners: Owners,
    audit: AuditLog,
    began: Mark,
    _machines: Faker,
}

/// Shards of each Worker over time by namespace, from a watch.
struct Owners {
    seen: Arc<Mutex<BTreeMap<String, Worker>>>,
    watch: JoinHandle<()>,
}

#[derive(Clone, Default)]
struct Worker {
    shards: Vec<String>,
    is_drained: bool,
}

impl Owners {
    fn follow(client: Client) -> Self {
        let seen = Arc::<Mutex<BTreeMap<String, Worker>>>::default();
        let workers: Api<DynamicObject> = Api::all_with(client, &Kind::Worker.resource());
        let events = watcher::watcher(workers, watcher::Config::default());
        let into = Arc::clone(&seen);
        let watch = tokio::spawn(events.for_each(move |event| {
            if let Ok(Event::Apply(worker) | Event::InitApply(worker)) = event {
                let mut seen = into.lock().unwrap_or_else(PoisonError::into_inner);
                let cached = seen.entry(worker.namespace().unwrap_or_default()).or_default();
                cached.is_drained = worker.labels().contains_key(DRAIN_LABEL);
                let shard = worker.labels().get(SHARD_LABEL).cloned().unwrap_or_default();
                if cached.shards.last() != Some(&shard) {
                    cached.shards.push(shard);
                }
            }
            std::future::ready(())
        }));
        Self { seen, watch }
    }

    fn seen(&self) -> BTreeMap<String, Worker> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The namespaces of a shard's Workers.
    fn of(&self, shard: &str) -> BTreeSet<String> {
        let has = |worker: &Worker| worker.shards.last().is_some_and(|last| last == shard);
        self.seen().into_iter().filter(|(_, worker)| has(worker)).map(|(namespace, _)| namespace).collect()
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Seed {
    async fn start() -> Result<Self> {
        let control_plane = cluster::ControlPlane::start().await?;
        let sharder = Sharder::start(&control_plane).await?;
        let leases = control_plane.namespace("extension").await?;
        let owners = Owners::follow(control_plane.client(ADMIN).await?);
        let machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::from_secs(1));
        let audit = control_plane.audit().await?;
        let began = audit.mark().await?;
        request_without_identity(&control_plane).await?;
        let shoots = Vec::new();
        Ok(Self { control_plane, sharder, leases, shoots, owners, audit, began, _machines: machines })
    }

    /// A shard's process, with its own name and user.
    fn shard(&self, name: &str) -> Result<Controller> {
        self.controller(name, name, |program| program.flag("shard-ring", RING).flag("shard-name", name))
    }

    /// A process without shards, as leader or standby.
    fn leader(&self, name: &str) -> Result<Controller> {
        self.controller(name, CONTROLLER, |program| program)
    }

    fn controller(&self, name: &str, user: &str, change: impl FnOnce(Program) -> Program) -> Result<Controller> {
        Controller::start(&self.control_plane, name, user, |program| {
            let program = program.flag("leader-election-namespace", &self.leases);
            change(program.flag("leader-election-lease-seconds", LEASE.as_secs().to_string()))
        })
    }

    async fn create_workers(&mut self) -> Result<()> {
        let control_plane = &self.control_plane;
        let shoots = (0..WORKERS).map(async |_| {
            let shoot = Shoot::new(control_plane, "shared").await?;
            shoot.create(|_| {}).await?;
            anyhow::Ok(shoot)
        });
        self.shoots = try_join_all(shoots).await?;
        Ok(())
    }

    fn shoots_of<'a>(&'a self, namespaces: &'a BTreeSet<String>) -> impl Iterator<Item = &'a Shoot> {
        self.shoots.iter().filter(|shoot| namespaces.contains(&shoot.namespace))
    }

    /// Requests a reconcile of these Workers.
    async fn request(&self, namespaces: &BTreeSet<String>) -> Result<()> {
        try_join_all(self.shoots_of(namespaces).map(|shoot| shoot.change_worker(|_| {}))).await.map(drop)
    }

    async fn succeeded(&self, namespaces: &BTreeSet<String>) -> Result<()> {
        try_join_all(self.shoots_of(namespaces).map(Shoot::succeeded)).await.map(drop)
    }

    fn all(&self) -> BTreeSet<String> {
        self.shoots.iter().map(|shoot| shoot.namespace.clone()).collect()
    }

    /// Waits until each Worker is assigned to one of these shards, each shard has some, and none is being drained. On a
    /// busy machine a shard may get no Workers at first. The final assignment does not depend on that, because names
    /// are the same in each run.
    async fn assigned_to(&self, shards: &[&str]) -> Result<()> {
        eventually(SOON, &format!("all Workers are assigned to {shards:?}"), async || {
            let owned: BTreeMap<&str, BTreeSet<String>> =
                shards.iter().map(|shard| (*shard, self.owners.of(shard))).collect();
            let drained: Vec<String> =
                self.owners.seen().into_iter().filter(|(_, worker)| worker.is_drained).map(|(name, _)| name).collect();
            let counts: BTreeMap<&str, usize> = owned.iter().map(|(shard, workers)| (*shard, workers.len())).collect();
            let is_shared = owned.values().all(|workers| !workers.is_empty());
            let everything: BTreeSet<String> = owned.into_values().flatten().collect();
            ensure!(everything == self.all() && is_shared, "they have {counts:?} of {WORKERS}");
            ensure!(drained.is_empty(), "{drained:?} are drained");
            Ok(())
        })
        .await
    }

    /// Checks that each Worker was written by its shards one after the other: no earlier shard writes after the next
    /// one has started.
    async fn one_writer_at_a_time(&self) -> Result<()> {
        let mut writers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let is_write = |request: &Request| request.writes() && request.code < 400 && SHARDS.contains(&&*request.user);
        for Request { user, namespace, .. } in self.audit.all_requests(self.began).await?.into_iter().filter(is_write) {
            let writers = writers.entry(namespace).or_default();
            if writers.last() != Some(&user) {
                writers.push(user);
            }
        }
        for (namespace, Worker { shards, .. }) in self.owners.seen() {
            let written = writers.remove(&namespace).unwrap_or_default();
            let mut owners = shards.iter();
            let is_in_order = written.iter().all(|writer| owners.any(|owner| owner == writer));
            ensure!(!written.is_empty() && is_in_order, "{namespace} had {shards:?}, and was written by {written:?}");
        }
        Ok(())
    }
}

/// An unauthenticated request, for which the audit log has no user. This also happens if a process is killed during a
/// request.
async fn request_without_identity(control_plane: &ControlPlane) -> Result<()> {
    let mut config = control_plane.config(ADMIN).await?;
    config.auth_info.token = Some("nobody's".to_owned().into());
    let leases = Api::<Lease>::all(Client::try_from(config)?).list(&ListParams::default()).await;
    ensure!(matches!(&leases, Err(kube::Error::Api(status)) if status.code == 401), "{leases:?}");
    Ok(())
}

#[tokio::test]
async fn four_shards_share_a_seed_and_no_worker_has_two_writers() -> Result<()> {
    let mut seed = Seed::start().await?;
    let mut shards = instead_of_a_leader(&seed).await?;
    seed.create_workers().await?;
    seed.succeeded(&seed.all()).await?;
    seed.assigned_to(&SHARDS[..4]).await?;
    for (name, shard) in SHARDS.iter().zip(&shards) {
        let workers = seed.owners.of(name).len();
        ensure!(0 < workers && workers < WORKERS, "{name} has {workers} of {WORKERS}");
        let metrics = shard.metrics().await?;
        ensure!(metrics.contains("gardener_extension_worker_leader 1"), "{name} does not say that it holds its lease");
    }
    seed.one_writer_at_a_time().await?;

    a_fifth_joins(&seed, &mut shards).await?;
    one_is_killed(&seed, &mut shards).await?;
    one_is_suspended(&seed, &mut shards).await?;
    one_is_stopped(&seed, &mut shards).await?;
    seed.one_writer_at_a_time().await?;
    a_leader_continues(&seed, shards).await?;
    seed.control_plane.stop().await
}

/// As in an upgrade, the new processes start before the old one ends.
async fn instead_of_a_leader(seed: &Seed) -> Result<Vec<Controller>> {
    let leader = seed.leader("before")?;
    leader.ready("ready\n").await?;
    let shards = SHARDS[..4].iter().map(|name| seed.shard(name)).collect::<Result<Vec<_>>>()?;
    for shard in &shards {
        shard.ready("standing by").await?;
    }
    leader.process.stop(SOON).await?;
    for shard in &shards {
        shard.ready("ready\n").await?;
    }
    seed.sharder.has_shards(4).await?;
    Ok(shards)
}

/// The reverse: the leader waits until the last shard has ended, and needs no label.
async fn a_leader_continues(seed: &Seed, shards: Vec<Controller>) -> Result<()> {
    let leader = seed.leader("after")?;
    leader.ready("standing by").await?;
    for shard in shards {
        ensure!(leader.metrics().await?.contains("gardener_extension_worker_leader 0"), "it leads beside a shard");
        shard.process.stop(SOON).await?;
    }
    let last = seed.shoots.first().context("there are Workers")?;
    last.change_worker(|_| {}).await?;
    leader.ready("ready\n").await?;
    last.succeeded().await?;
    last.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    last.deleted().await
}

/// Some Workers are drained during their operations, and none is lost.
#[allow(clippy::print_stdout, reason = "the figures are for docs/reliability-evidence.md")]
async fn a_fifth_joins(seed: &Seed, shards: &mut Vec<Controller>) -> Result<()> {
    seed.request(&seed.all()).await?;
    shards.push(seed.shard(SHARDS[4])?);
    seed.sharder.has_shards(5).await?;
    eventually(SOON, "the fifth gets Workers", async || {
        ensure!(!seed.owners.of(SHARDS[4]).is_empty(), "it has none");
        Ok(())
    })
    .await?;
    seed.assigned_to(&SHARDS).await?;
    seed.succeeded(&seed.all()).await?;
    seed.request(&seed.all()).await?;
    seed.succeeded(&seed.all()).await?;
    println!("a fifth shard joined: {} of {WORKERS} Workers were handed over", seed.owners.of(SHARDS[4]).len());
    seed.one_writer_at_a_time().await
}

#[allow(clippy::print_stdout, reason = "the figures are for docs/reliability-evidence.md")]
async fn one_is_killed(seed: &Seed, shards: &mut Vec<Controller>) -> Result<()> {
    let orphans = seed.owners.of(SHARDS[0]);
    let killed = shards.remove(0);
    killed.process.signal("KILL")?;
    let since = Instant::now();
    seed.request(&orphans).await?;
    seed.assigned_to(&SHARDS[1..]).await?;
    let taken_over = since.elapsed();
    seed.succeeded(&orphans).await?;
    let done = since.elapsed();
    println!(
        "one shard was killed: its {} Workers are others' after {taken_over:.1?}, and what was asked of them is done after {done:.1?}",
        orphans.len()
    );
    ensure!(taken_over <= LEASE + TAKEOVER + BUSY, "taken over after {taken_over:?}, with a lease of {LEASE:?}");
    seed.one_writer_at_a_time().await
}

/// It resumes with pending requests, after another shard has processed them.
async fn one_is_suspended(seed: &Seed, shards: &mut Vec<Controller>) -> Result<()> {
    let orphans = seed.owners.of(SHARDS[1]);
    let suspended = shards.remove(0);
    suspended.process.signal("STOP")?;
    seed.request(&orphans).await?;
    seed.assigned_to(&SHARDS[2..]).await?;
    seed.succeeded(&orphans).await?;
    let awake = seed.audit.mark().await?;
    seed.request(&orphans).await?;
    suspended.process.signal("CONT")?;
    let status = suspended.process.wait(SOON).await?;
    ensure!(!status.success(), "losing its lease is an error: {status}");
    let requests = seed.audit.requests(SHARDS[1], awake).await?;
    let writes: Vec<Request> = requests.into_iter().filter(Request::writes).collect();
    ensure!(writes.is_empty(), "written after it woke: {writes:?}");
    seed.succeeded(&orphans).await
}

/// It releases its lease, so no other shard waits for its expiry.
#[allow(clippy::print_stdout, reason = "the figures are for docs/reliability-evidence.md")]
async fn one_is_stopped(seed: &Seed, shards: &mut Vec<Controller>) -> Result<()> {
    let orphans = seed.owners.of(SHARDS[2]);
    let stopped = shards.remove(0);
    seed.request(&orphans).await?;
    let since = Instant::now();
    stopped.process.signal("TERM")?;
    let status = stopped.process.wait(SOON).await?;
    ensure!(status.success(), "{status}\n{}", stopped.process.last_lines(15));
    seed.assigned_to(&SHARDS[3..]).await?;
    let taken_over = since.elapsed();
    println!("one shard was stopped: its {} Workers are others' after {taken_over:.1?}", orphans.len());
    ensure!(taken_over < LEASE, "taken over after {taken_over:?}: its lease has run out");
    seed.succeeded(&orphans).await
}
