//! Pure step: progress of a Worker's machines (docs/status.md), computed separately for each deployment.
//!
//! ```text
//!  planned deployment ─┐
//!  live deployment     ├─► phase ──► DeploymentProgress ─┐
//!  its sets, machines ─┘   (phase.rs)                    ├─► Progress ──► message (text.rs)
//!                                          … of each one ┘
//! ```
//!
//! The Go extension also requires two machine sets while a deployment rolls. machine-controller-manager deletes the
//! empty old one immediately, so that check may never succeed. A machine set of the target class is sufficient
//! evidence.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::provider::TargetDeployment;
use crate::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machines::machine_objects::{FailedMachine, LiveDeployment, MachineObjects};
use crate::worker::plan::Plan;

mod phase;
mod text;

pub use phase::fault;
pub(crate) use text::LONGEST_DESCRIPTION;
pub use text::{failed_deletions_text, failed_machines_text};

/// State of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All machines run with the target class, or wait for a user to select them.
    Ready,
    /// machine-controller-manager has not observed the last change.
    Unobserved,
    /// No machine set of the target class exists.
    WithoutMachineSet,
    /// Machines are missing, outdated or unhealthy.
    Pending,
    /// The machines keep their class until another zone of the pool is done or a stop ends, or a stop has paused their roll.
    Waiting,
    /// Machines failed.
    Failed(Vec<FailedMachine>),
}

/// Whether a shoot should be hibernated, and whether machine-controller-manager still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hibernation {
    /// The shoot should run.
    NotRequested,
    /// machine-controller-manager runs, so a change that it has not observed is not done.
    InProgress,
    /// machine-controller-manager is scaled down and observes no change; the hibernation is complete once no machine is
    /// left.
    Done,
}

impl Hibernation {
    /// Whether the shoot should be hibernated.
    #[must_use]
    pub fn is_required(self) -> bool {
        self != Self::NotRequested
    }
}

/// Progress of one deployment. Numbers count machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentProgress {
    /// Name of the pool.
    pub pool: String,
    /// Name of the deployment.
    pub deployment: String,
    /// State of the deployment.
    pub phase: Phase,
    /// Whether machine-controller-manager reports no fault of the deployment.
    pub is_healthy: bool,
    /// Whether its class has replaced another one.
    pub rolls: bool,
    /// Target number of machines.
    pub desired: i32,
    /// Existing machines.
    pub present: i32,
    /// Machines of the target template.
    pub updated: i32,
    /// Available machines, including old ones.
    pub available: i32,
    /// Unavailable machines.
    pub unavailable: i32,
    /// Failed machines that are preserved on purpose.
    pub preserved: i32,
    /// Old machines that need no update yet, because a user has to select them.
    pub unselected: i32,
    /// Old machines that a user has selected for an in-place update that is not complete.
    pub selected: i32,
    /// When the deployment got its class, if machine-controller-manager should have created a machine set and has not.
    pub untaken_since: Option<Timestamp>,
}

#[cfg(any(test, feature = "testing"))]
impl DeploymentProgress {
    /// Progress of a deployment of pool `a` without machines.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            pool: "a".to_owned(),
            deployment: "a-z1".to_owned(),
            phase: Phase::Ready,
            is_healthy: true,
            rolls: false,
            desired: 0,
            present: 0,
            updated: 0,
            available: 0,
            unavailable: 0,
            preserved: 0,
            unselected: 0,
            selected: 0,
            untaken_since: None,
        }
    }
}

/// A change that machine-controller-manager does not act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Name of the deployment.
    pub deployment: String,
    /// When its machine class was changed.
    pub since: Timestamp,
}

/// Progress of a Worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Shoot namespace.
    pub namespace: String,
    /// One entry per planned deployment, in the order of the plan.
    pub deployments: Vec<DeploymentProgress>,
    /// Whether the shoot should be hibernated, so that ready means that no machine is left.
    pub hibernated: bool,
}

/// Computes the progress of the planned deployments. `live` are the objects after the writes of this reconcile.
#[must_use]
pub fn progress(plan: &Plan, namespace: &str, live: &MachineObjects, hibernation: Hibernation) -> Progress {
    let owned = OwnedObjects::of(live);
    let evaluate = |target: &TargetDeployment| {
        let progress = owned.progress(target, live.deployments.get(&target.name.0), hibernation);
        if plan.waiting_zone(&target.name.0).is_some() {
            progress.waiting()
        } else if plan.stops.is_paused(&target.name.0) {
            progress.paused()
        } else {
            progress
        }
    };
    Progress {
        namespace: namespace.to_owned(),
        deployments: plan.machines().map(|machine| evaluate(&machine.deployment)).collect(),
        hibernated: hibernation.is_required(),
    }
}

/// Machine sets and machines by the deployment that they belong to.
pub(crate) struct OwnedObjects<'a> {
    sets: BTreeMap<&'a str, Vec<&'a LiveMachineSet>>,
    machines: BTreeMap<&'a str, Vec<&'a LiveMachine>>,
}

impl<'a> OwnedObjects<'a> {
    pub(crate) fn of(live: &'a MachineObjects) -> Self {
        let sets = machine_sets_by_deployment(&live.machine_sets);
        let machines = machines_by_deployment(&live.machines, &sets);
        Self { sets, machines }
    }

    /// Machines of a deployment.
    pub(crate) fn machines(&self, deployment: &str) -> &[&'a LiveMachine] {
        self.machines.get(deployment).map(Vec::as_slice).unwrap_or_default()
    }

    /// Progress of a deployment towards its target.
    pub(crate) fn progress(
        &self,
        target: &TargetDeployment,
        live: Option<&LiveDeployment>,
        hibernation: Hibernation,
    ) -> DeploymentProgress {
        let name = target.name.0.as_str();
        let sets = self.sets.get(name).map(Vec::as_slice).unwrap_or_default();
        let owned = phase::Owned { sets, machines: self.machines(name) };
        phase::evaluate(target, live, &owned, hibernation)
    }
}

impl DeploymentProgress {
    /// The same if the deployment waits for its planned class: none of its machines is done.
    fn waiting(self) -> Self {
        Self { updated: 0, ..self.paused() }
    }

    /// The same if the roll of the deployment is paused, so that machine-controller-manager does not have to act.
    fn paused(self) -> Self {
        let phase = if self.phase == Phase::Ready { Phase::Waiting } else { self.phase };
        Self { phase, untaken_since: None, ..self }
    }
}

/// Machine sets by the deployment that owns them.
fn machine_sets_by_deployment(sets: &[LiveMachineSet]) -> BTreeMap<&str, Vec<&LiveMachineSet>> {
    let mut by_deployment: BTreeMap<&str, Vec<&LiveMachineSet>> = BTreeMap::new();
    for set in sets {
        if let Some(deployment) = set.member.deployment() {
            by_deployment.entry(deployment).or_default().push(set);
        }
    }
    by_deployment
}

/// Machines by the deployment whose machine sets own them.
fn machines_by_deployment<'a>(
    machines: &'a [LiveMachine],
    sets: &BTreeMap<&'a str, Vec<&'a LiveMachineSet>>,
) -> BTreeMap<&'a str, Vec<&'a LiveMachine>> {
    let names = sets.iter().flat_map(|(deployment, sets)| sets.iter().map(move |set| (&*set.member.name, *deployment)));
    let of_set: BTreeMap<&str, &str> = names.collect();
    let mut by_deployment: BTreeMap<&str, Vec<&LiveMachine>> = BTreeMap::new();
    for machine in machines {
        let owned = machine.member.machine_set().and_then(|set| of_set.get(set).copied());
        if let Some(deployment) = owned.or_else(|| machine.member.labelled()) {
            by_deployment.entry(deployment).or_default().push(machine);
        }
    }
    by_deployment
}

impl Progress {
    /// Changes that machine-controller-manager has not acted on, oldest first. Deployments that wait for other reasons
    /// are left out, because they don't indicate a problem of machine-controller-manager.
    #[must_use]
    pub fn untaken(&self) -> Vec<Stuck> {
        let mut untaken: Vec<Stuck> = self
            .deployments
            .iter()
            .filter_map(|deployment| {
                Some(Stuck { deployment: deployment.deployment.clone(), since: deployment.untaken_since? })
            })
            .collect();
        untaken.sort_by_key(|stuck| stuck.since);
        untaken
    }

    /// Whether every planned deployment is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.deployments.iter().all(|deployment| deployment.phase == Phase::Ready)
    }

    /// Deployments with failed machines.
    pub fn failed(&self) -> impl Iterator<Item = (&DeploymentProgress, &[FailedMachine])> {
        self.deployments.iter().filter_map(|deployment| match &deployment.phase {
            Phase::Failed(machines) => Some((deployment, machines.as_slice())),
            _ => None,
        })
    }

    /// Names of the pools that wait for machines, in order. Deployments with failed machines are not considered.
    #[must_use]
    pub fn pending_pools(&self) -> Vec<&str> {
        self.pools_where(|deployment| !matches!(deployment.phase, Phase::Ready | Phase::Failed(_)))
    }

    /// Names of the pools with old machines that a user has to select, in order.
    #[must_use]
    pub fn unselected_pools(&self) -> Vec<&str> {
        self.pools_where(|deployment| deployment.unselected > 0)
    }

    fn pools_where(&self, is_meant: impl Fn(&DeploymentProgress) -> bool) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let meant = self.deployments.iter().filter(|deployment| is_meant(deployment));
        meant.map(|deployment| deployment.pool.as_str()).filter(|pool| seen.insert(*pool)).collect()
    }

    /// Progress of the machines from 0 to 100.
    #[must_use]
    pub fn percentage(&self) -> i32 {
        let total: i64 =
            self.deployments.iter().map(|deployment| i64::from(deployment.desired.max(deployment.present))).sum();
        if total <= 0 {
            return if self.is_ready() { 100 } else { 0 };
        }
        let done: i64 = self
            .deployments
            .iter()
            .map(|deployment| {
                // A rolling pool has more machines than its target; the surplus is not progress.
                let done = deployment.updated.min(deployment.available).min(deployment.desired);
                if self.hibernated { 0 } else { i64::from(done.max(0)) }
            })
            .sum();
        i32::try_from(done * 100 / total).unwrap_or(100).clamp(0, 100)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::PoolPlan;
    use crate::provider::test_support::{NAMESPACE, machine_plan};

    /// A shoot has moved here and is hibernated before machine-controller-manager has run.
    #[test]
    fn waits_for_restored_machines_without_owner() {
        let machine = machine_plan();
        let name = machine.deployment.name.0.clone();
        let pool =
            PoolPlan { pool: "a".to_owned(), machines: vec![machine], status_image: json!({}), in_place_hash: None };
        let plan = Plan { pools: vec![Ok(pool)], provider_status: json!({}), ..Plan::default() };
        let document = json!({"metadata": {"name": name}, "spec": {"replicas": 0}});
        let labelled = json!({"metadata": {"name": "m", "labels": {"name": name}}});
        let is_ready = |machines: Vec<LiveMachine>| {
            let mut live = MachineObjects { machines, ..MachineObjects::default() };
            live.machine_sets = vec![serde_json::from_value(labelled.clone()).unwrap()];
            live.deployments.insert(name.clone(), LiveDeployment::read_without_codes(document.clone()).unwrap());
            progress(&plan, NAMESPACE, &live, Hibernation::Done).is_ready()
        };
        assert!(is_ready(Vec::new()));
        assert!(!is_ready(vec![serde_json::from_value(labelled.clone()).unwrap()]));
        let of_another = json!({"metadata": {"name": "m", "labels": {"name": "another"}}});
        assert!(is_ready(vec![serde_json::from_value(of_another).unwrap()]));
    }

    #[test]
    fn assigns_machines_to_owning_deployment() {
        let owned = |name: &str, kind: &str, owner: &str| {
            let owner = json!({"apiVersion": "v1", "kind": kind, "name": owner, "uid": "u"});
            json!({"metadata": {"name": name, "ownerReferences": [owner]}})
        };
        let sets: Vec<LiveMachineSet> = vec![
            serde_json::from_value(owned("set-a", "MachineDeployment", "a-z1")).unwrap(),
            serde_json::from_value(owned("set-b", "MachineDeployment", "b-z1")).unwrap(),
        ];
        let by_deployment = machine_sets_by_deployment(&sets);
        assert_eq!(by_deployment.keys().copied().collect::<Vec<_>>(), ["a-z1", "b-z1"]);
        let machine = serde_json::from_value(owned("m", "MachineSet", "set-b")).unwrap();
        let machines = [machine];
        let machines = machines_by_deployment(&machines, &by_deployment);
        assert_eq!(machines.keys().copied().collect::<Vec<_>>(), ["b-z1"]);
    }

    #[test]
    fn lists_oldest_stuck_change_first() {
        let deployment = |name: &str, since: Option<&str>| DeploymentProgress {
            deployment: name.to_owned(),
            untaken_since: since.map(|since| since.parse().unwrap()),
            ..DeploymentProgress::ready()
        };
        let deployments = vec![
            deployment("a-z1", Some("2026-11-21T10:00:00Z")),
            deployment("a-z2", None),
            deployment("b-z1", Some("2026-11-21T09:00:00Z")),
        ];
        let untaken = Progress { deployments, ..Progress::default() }.untaken();
        let untaken: Vec<_> =
            untaken.iter().map(|stuck| (stuck.deployment.as_str(), stuck.since.to_string())).collect();
        let expected = [("b-z1", "2026-11-21T09:00:00Z"), ("a-z1", "2026-11-21T10:00:00Z")];
        assert_eq!(untaken, expected.map(|(deployment, since)| (deployment, since.to_owned())));
    }
}
