//! Recovery from a fault without further events: after the fault, only the object under test changes. A cache that
//! needs another event to catch up is still stale then. The Worker is steady, and some kinds have no objects, because
//! its pools have no machines.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::flow::{Flow, confirm};
use crate::life::{Ends, LONG, Life};
use crate::observer::Seen;
use crate::report::{Row, Times};
use crate::world::World;
use test_support::cluster::eventually;
use test_support::proxy::{Call, Refusal, Treatment};
use test_support::shoot::{Documents, Kind, pool};

/// Number of watches of a controller.
const WATCHES: usize = 8;
/// A failed machine is reported after half a minute; the rest is for busy machines.
const REPORTED_WITHIN: Duration = Duration::from_secs(30 + 30);

/// A temporary fault that affects all watches at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    /// The only connection is reset.
    Reset,
    /// The connection is reset, and the first new watches fail.
    Refused,
    /// New watches start and end with an error.
    Error,
    /// New watches start and end because their version has expired.
    TooOld,
    /// New watches cannot start because their version has expired.
    TooOldToBegin,
    /// New watches start and end immediately.
    EndsAtOnce,
}

impl WatchFault {
    pub(crate) const ALL: [Self; 6] =
        [Self::Reset, Self::Refused, Self::Error, Self::TooOld, Self::TooOldToBegin, Self::EndsAtOnce];

    fn name(self) -> &'static str {
        match self {
            Self::Reset => "all connections reset",
            Self::Refused => "all connections reset, watches refused",
            Self::Error => "watches that end with an error",
            Self::TooOld => "watches that end because they are too far behind",
            Self::TooOldToBegin => "watches that can't go on because they are too far behind",
            Self::EndsAtOnce => "watches that end as soon as they begin",
        }
    }

    /// The failure of a watch, and how often it occurs.
    fn refusal(self) -> Option<(Refusal, usize)> {
        match self {
            Self::Reset => None,
            // More often than a request is retried.
            Self::Refused => Some((Refusal::Unavailable, 7)),
            Self::Error => Some((Refusal::WatchError(500), 1)),
            Self::TooOld => Some((Refusal::WatchError(410), 1)),
            Self::TooOldToBegin => Some((Refusal::Expired, 1)),
            Self::EndsAtOnce => Some((Refusal::Empty, 3)),
        }
    }
}

/// A steady Worker, with each fault before each kind of change.
pub(crate) async fn run(world: &World, ends: &Ends, fault: WatchFault) -> Result<Row> {
    let steady = SteadyWorker::begin(world, ends).await?;
    let outcome = steady.reports_changes_after(async || steady.inflict(fault).await, 1).await;
    let mut violations = steady.life.end().await?;
    violations.extend(outcome.err().map(|error| format!("recovery from {}: {error:#}", fault.name())));
    Ok(Row {
        what: format!("recovery from {}", fault.name()),
        covered: "3 changes".to_owned(),
        recovery: Times::of(Vec::new()),
        violations,
        ..Row::default()
    })
}

/// A Worker without changes.
pub(crate) struct SteadyWorker<'a> {
    pub(crate) life: Life<'a>,
    /// Number of requests for the shoot, excluding relists.
    requests: Arc<AtomicUsize>,
    /// Number of watches that reached the API server.
    watches: Arc<AtomicUsize>,
}

impl<'a> SteadyWorker<'a> {
    pub(crate) async fn begin(world: &'a World, ends: &Ends) -> Result<Self> {
        let life = Life::begin(world, "recovery", ends).await?;
        let steady = Self { life, requests: Arc::default(), watches: Arc::default() };
        steady.count(|_| Treatment::Forward);
        steady.life.shoot.create(without_machines).await?;
        let seen = |seen: &Seen| Flow::Create.ensure_over(seen, 0);
        steady.until(LONG, "the Worker is created", seen).await?;
        Ok(steady)
    }

    /// Checks that a change of one object is reported although nothing else changes after the fault. A no-op must need
    /// as few requests as before, at the latest at the given attempt.
    pub(crate) async fn reports_changes_after(&self, fault: impl AsyncFn() -> Result<()>, no_ops: usize) -> Result<()> {
        // The first one writes state that later ones find.
        self.no_op().await?;
        let before = self.no_op().await?;

        fault().await.context("the fault")?;
        self.no_op_costs_again(before, no_ops).await?;

        fault().await.context("the fault")?;
        self.failed_machine_is_reported().await?;

        self.old_machine_by_hand().await?;
        fault().await.context("the fault")?;
        self.selected_machine_is_updated().await
    }

    /// Injects a fault into all watches. Returns when all have restarted.
    async fn inflict(&self, fault: WatchFault) -> Result<()> {
        let mut left: HashMap<(String, String), usize> = HashMap::new();
        self.count(move |call| match fault.refusal() {
            Some((refusal, times)) if call.watches => {
                let left = left.entry((call.path.clone(), call.selectors.clone())).or_insert(times);
                if *left == 0 {
                    return Treatment::Forward;
                }
                *left -= 1;
                Treatment::Refuse(refusal)
            }
            _ => Treatment::Forward,
        });
        self.life.controller.proxy.reset_connections();
        self.watches_begin().await
    }

    /// Waits until all watches have started since [`SteadyWorker::count`].
    pub(crate) async fn watches_begin(&self) -> Result<()> {
        eventually(LONG, "the watches begin anew", async || {
            let watches = self.watches.load(Ordering::Relaxed);
            ensure!(watches >= WATCHES, "{watches} of them");
            Ok(())
        })
        .await
    }

    /// Injects these faults, and counts the forwarded requests.
    pub(crate) fn count(&self, mut faults: impl FnMut(&Call) -> Treatment + Send + 'static) {
        self.watches.store(0, Ordering::Relaxed);
        let (requests, watches) = (Arc::clone(&self.requests), Arc::clone(&self.watches));
        self.life.set_faults(move |call| {
            let treatment = faults(call);
            let is_forwarded = matches!(treatment, Treatment::Forward);
            watches.fetch_add(usize::from(is_forwarded && call.watches), Ordering::Relaxed);
            requests.fetch_add(usize::from(is_forwarded && call.path.contains("NAMESPACE")), Ordering::Relaxed);
            treatment
        });
    }

    /// Requests a no-op. Returns the number of its requests.
    async fn no_op(&self) -> Result<usize> {
        self.life.settled().await?;
        let before = self.requests.load(Ordering::Relaxed);
        let since = confirm(&self.life.shoot).await?;
        self.until(LONG, "a request that finds everything done", |seen| Flow::Confirm.ensure_over(seen, since)).await?;
        self.life.settled().await?;
        Ok(self.requests.load(Ordering::Relaxed) - before)
    }

    /// Checks that a no-op needs as few requests as before, at the latest at the given attempt. A store that is never
    /// trusted again would permanently need more.
    async fn no_op_costs_again(&self, before: usize, tries: usize) -> Result<()> {
        let mut costs = Vec::new();
        while costs.last() != Some(&before) {
            ensure!(costs.len() < tries, "no-op reconciles cost {costs:?} requests; before it was {before}");
            costs.push(self.no_op().await?);
        }
        Ok(())
    }

    /// Checks that a failed machine and its deletion are reported.
    async fn failed_machine_is_reported(&self) -> Result<()> {
        let deployment = format!("{}-bow-z1", self.life.shoot.namespace);
        let failed = json!([{"name": "bow-z1-broken", "lastOperation": {"description": "no quota", "type": "Create"}}]);
        self.set_status(Kind::MachineDeployment, &deployment, json!({ "failedMachines": failed })).await?;
        self.until(REPORTED_WITHIN, "the failed machine is reported", |seen| every_node_is(seen, "False")).await?;
        self.set_status(Kind::MachineDeployment, &deployment, json!({ "failedMachines": null })).await?;
        self.until(REPORTED_WITHIN, "all nodes are ready again", |seen| every_node_is(seen, "True")).await
    }

    /// Creates one old machine, not yet selected for update, in pool stern, which is updated manually.
    async fn old_machine_by_hand(&self) -> Result<()> {
        let (shoot, namespace) = (&self.life.shoot, &self.life.shoot.namespace);
        let get = async |name: &str| -> Result<Value> {
            let deployment = shoot.get(Kind::MachineDeployment, &format!("{namespace}-{name}")).await?;
            deployment.with_context(|| format!("there is no {name}"))
        };
        let (stern, bow) = (get("stern-z3").await?, get("bow-z1").await?);
        let owner = |kind: &str, owner: &Value| {
            json!([{
                "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": kind,
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            }])
        };
        let create = async |kind: Kind, name: &str, owners: Value, spec: Value| -> Result<Value> {
            let (api_version, kind_name) = ("machine.sapcloud.io/v1alpha1", format!("{kind:?}"));
            let metadata = json!({"name": name, "namespace": namespace, "ownerReferences": owners});
            let object = json!({"apiVersion": api_version, "kind": kind_name, "metadata": metadata, "spec": spec});
            let created = shoot.api(kind).create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            Ok(serde_json::to_value(created)?)
        };
        // Any existing class other than the pool's current one.
        let class = bow["spec"]["template"]["spec"]["class"].clone();
        let spec = json!({"replicas": 1, "template": {"spec": {"class": class}}});
        let set = create(Kind::MachineSet, "stern-old", owner("MachineDeployment", &stern), spec).await?;
        self.set_status(Kind::MachineSet, "stern-old", json!({"replicas": 1})).await?;
        create(Kind::Machine, "stern-machine", owner("MachineSet", &set), json!({ "class": class })).await?;
        self.set_in_place("CandidateForUpdate").await?;
        self.life.settled().await.map(drop)
    }

    /// Checks that an operation starts when a user selects the machine.
    async fn selected_machine_is_updated(&self) -> Result<()> {
        let before = self.life.shoot.worker().await?["status"]["lastOperation"].clone();
        self.set_in_place("SelectedForUpdate").await?;
        self.until(LONG, "the update by hand begins", |seen| {
            let last = &worker(seen)?["status"]["lastOperation"];
            ensure!(*last != before, "nothing has happened: {last}");
            Ok(())
        })
        .await
    }

    async fn set_in_place(&self, reason: &str) -> Result<()> {
        let condition = json!({"type": "InPlaceUpdate", "status": "True", "reason": reason});
        self.set_status(Kind::Machine, "stern-machine", json!({ "conditions": [condition] })).await
    }

    async fn set_status(&self, kind: Kind, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        let patched = self.life.shoot.api(kind).patch_status(name, &PatchParams::default(), &patch).await;
        patched.map(drop).with_context(|| format!("the status of {kind:?} {name}"))
    }

    async fn until(&self, deadline: Duration, what: &str, check: impl FnMut(&Seen) -> Result<()>) -> Result<()> {
        self.life.world.observer.until(&self.life.shoot.namespace, deadline, what, check).await
    }
}

/// Pools that the autoscaler has scaled to zero, one of them with manual updates.
fn without_machines(documents: &mut Documents) {
    let worker = documents.of_kind("Worker");
    for name in ["bow", "stern"] {
        pool(worker, name)["minimum"] = json!(0);
    }
    pool(worker, "stern")["updateStrategy"] = json!("ManualInPlaceUpdate");
}

fn worker(seen: &Seen) -> Result<&Value> {
    let worker = seen.now.get(&(Kind::Worker, "fleet".to_owned()));
    worker.map(|worker| &**worker).context("there is no Worker")
}

fn every_node_is(seen: &Seen, status: &str) -> Result<()> {
    let conditions = &worker(seen)?["status"]["conditions"];
    let every_node = conditions.as_array().into_iter().flatten().find(|one| one["type"] == "EveryNodeReady");
    ensure!(every_node.is_some_and(|condition| condition["status"] == status), "{conditions}");
    Ok(())
}
