//! Pure step: what the machines of a Worker are waited for (docs/status.md), each deployment for itself.
//!
//! ```text
//!  planned deployment ─┐
//!  live deployment     ├─► phase ──► DeploymentProgress ─┐
//!  its sets, machines ─┘   (phase.rs)                    ├─► Progress ──► text for people (text.rs)
//!                                          … of each one ┘
//! ```
//!
//! The Go extension also demands two machine sets for a deployment that rolls. machine-controller-manager removes the
//! emptied old one at once, so that rule can stay false for ever; a machine set of the wanted class says the same.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::provider::WantedDeployment;
use crate::worker::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machine_objects::{FailedMachine, MachineObjects};
use crate::worker::plan::Plan;

mod phase;
mod text;

pub use phase::fault;
pub(crate) use text::LONGEST_DESCRIPTION;
pub use text::{failed_deletions_text, failed_machines_text};

/// What a deployment waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All machines run with the wanted class, or wait for a person to select them.
    Ready,
    /// machine-controller-manager has not seen the last change.
    Unobserved,
    /// There is no machine set of the wanted class.
    WithoutMachineSet,
    /// Machines are missing, old or unhealthy.
    Pending,
    /// Machines could not be made.
    Failed(Vec<FailedMachine>),
}

/// Whether a shoot shall hibernation, and who puts it to hibernation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hibernation {
    /// It shall run.
    NotWanted,
    /// machine-controller-manager runs: it sees every change, and what it has not seen is not done.
    InProgress,
    /// machine-controller-manager is scaled down and sees no change; what counts is that no machine is left.
    Done,
}

impl Hibernation {
    /// Whether the shoot shall hibernation.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        self != Self::NotWanted
    }
}

/// Progress of one deployment. Numbers are machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentProgress {
    /// Name of the pool.
    pub pool: String,
    /// Name of the deployment.
    pub deployment: String,
    /// What it waits for.
    pub phase: Phase,
    /// Whether machine-controller-manager reports no fault of the deployment.
    pub is_healthy: bool,
    /// Whether its class has replaced another one.
    pub rolls: bool,
    /// Machines wanted.
    pub desired: i32,
    /// Machines there are.
    pub present: i32,
    /// Machines of the wanted template.
    pub updated: i32,
    /// Machines available, also old ones.
    pub available: i32,
    /// Machines missing.
    pub unavailable: i32,
    /// Failed machines that are kept on purpose.
    pub preserved: i32,
    /// Old machines that nobody need update now, because a person selects them.
    pub unselected: i32,
    /// Old machines that a person has selected to be updated where they are, and that are not done yet.
    pub selected: i32,
    /// Since when it has its class, where machine-controller-manager should have made a machine set and has not.
    pub untaken_since: Option<Timestamp>,
}

#[cfg(test)]
impl DeploymentProgress {
    /// Of a deployment of pool `a` that wants no machines.
    pub(crate) fn ready() -> Self {
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

/// A change that machine-controller-manager does nothing about.
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
    /// The namespace of the shoot.
    pub namespace: String,
    /// One entry per planned deployment, in the order of the plan.
    pub deployments: Vec<DeploymentProgress>,
    /// The shoot shall be hibernated: ready means that no machine is left.
    pub hibernated: bool,
}

/// Judges the planned deployments. `live` are the objects after the writes of this reconcile.
#[must_use]
pub fn progress(plan: &Plan, namespace: &str, live: &MachineObjects, hibernation: Hibernation) -> Progress {
    let sets = machine_sets_by_deployment(&live.machine_sets);
    let machines = machines_by_deployment(&live.machines, &sets);
    let judge = |wanted: &WantedDeployment| {
        let sets = sets.get(wanted.name.0.as_str()).map(Vec::as_slice).unwrap_or_default();
        let machines = machines.get(wanted.name.0.as_str()).map(Vec::as_slice).unwrap_or_default();
        let owned = phase::Owned { sets, machines };
        phase::judge(wanted, live.deployments.get(&wanted.name.0), &owned, hibernation)
    };
    Progress {
        namespace: namespace.to_owned(),
        deployments: plan.machines().map(|machine| judge(&machine.deployment)).collect(),
        hibernated: hibernation.is_wanted(),
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
    /// The changes that machine-controller-manager has done nothing about, the oldest first. Deployments that wait for
    /// anything else, however long, say nothing about machine-controller-manager.
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

    /// Whether every planned deployment is where it shall be.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.deployments.iter().all(|deployment| deployment.phase == Phase::Ready)
    }

    /// Deployments with machines that could not be made.
    pub fn failed(&self) -> impl Iterator<Item = (&DeploymentProgress, &[FailedMachine])> {
        self.deployments.iter().filter_map(|deployment| match &deployment.phase {
            Phase::Failed(machines) => Some((deployment, machines.as_slice())),
            _ => None,
        })
    }

    /// Names of the pools that wait for machines, in order; those of which machines failed are not among them.
    #[must_use]
    pub fn pending_pools(&self) -> Vec<&str> {
        self.pools_where(|deployment| !matches!(deployment.phase, Phase::Ready | Phase::Failed(_)))
    }

    /// Names of the pools with old machines that a person has to select, in order.
    #[must_use]
    pub fn unselected_pools(&self) -> Vec<&str> {
        self.pools_where(|deployment| deployment.unselected > 0)
    }

    fn pools_where(&self, is_meant: impl Fn(&DeploymentProgress) -> bool) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let meant = self.deployments.iter().filter(|deployment| is_meant(deployment));
        meant.map(|deployment| deployment.pool.as_str()).filter(|pool| seen.insert(*pool)).collect()
    }

    /// How far the machines are, from 0 to 100.
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
                // While a pool rolls there are more machines than wanted; they are no progress.
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
    use crate::worker::machine_objects::LiveDeployment;

    /// A shoot that has moved here, and is hibernated before machine-controller-manager has run.
    #[test]
    fn machines_that_are_back_and_have_no_owner_yet_are_waited_for() {
        let machine = machine_plan();
        let name = machine.deployment.name.0.clone();
        let pool =
            PoolPlan { pool: "a".to_owned(), machines: vec![machine], status_image: json!({}), in_place_hash: None };
        let plan = Plan { pools: vec![Ok(pool)], provider_status: json!({}) };
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
    fn machines_belong_to_the_deployment_that_owns_their_machine_set() {
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
    fn the_change_that_nothing_has_been_done_about_for_longest_comes_first() {
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
