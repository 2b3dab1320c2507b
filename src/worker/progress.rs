//! Pure step: what the machines of a Worker are waited for (spec/azure-worker.md section 13).
//!
//! The Go extension also demands two machine sets for a deployment that rolls. machine-controller-manager removes the
//! emptied old one at once, so that rule can stay false for ever; a machine set of the wanted class says the same.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::live::{Live, MachineObjects};
use super::plan::Plan;
use crate::api::machine::{Machine, MachineDeployment, MachineSet};
use crate::provider::WantedDeployment;

/// What a deployment waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All machines run with the wanted class.
    Ready,
    /// machine-controller-manager has not seen the last change.
    Unobserved,
    /// There is no machine set of the wanted class.
    WithoutMachineSet,
    /// Machines are missing, old or unhealthy.
    Pending,
    /// Machines could not be made: name and the driver's text.
    Failed(Vec<FailedMachineText>),
}

/// A machine that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedMachineText {
    /// Name of the Machine.
    pub machine: String,
    /// The driver's text.
    pub description: String,
    /// The driver's code, such as `ResourceExhausted`.
    pub error_code: Option<String>,
}

/// Progress of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentProgress {
    /// Name of the pool.
    pub pool: String,
    /// Name of the deployment.
    pub deployment: String,
    /// What it waits for.
    pub phase: Phase,
    /// Machines wanted.
    pub desired: i32,
    /// Machines there are.
    pub present: i32,
    /// Machines of the wanted template.
    pub updated: i32,
    /// Machines available, at most those wanted.
    pub available: i32,
    /// Machines missing.
    pub unavailable: i32,
    /// Old machines that a person has selected to be updated where they are, and that are not done yet.
    pub selected: i32,
}

/// A change that machine-controller-manager does nothing about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Name of the deployment.
    pub deployment: String,
    /// When its machine class was changed.
    pub since: Timestamp,
}

/// Whether a shoot shall sleep, and who puts it to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// It shall not.
    Unwanted,
    /// machine-controller-manager runs: it sees every change, and what it has not seen is not done.
    FallsAsleep,
    /// machine-controller-manager sleeps too and sees no change; what counts is that no machine is left.
    Asleep,
}

impl Sleep {
    /// Whether the shoot shall sleep.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        self != Self::Unwanted
    }
}

/// Progress of a Worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// One entry per planned deployment, in the order of the plan.
    pub deployments: Vec<DeploymentProgress>,
    /// The shoot shall sleep: ready means that no machine is left.
    pub hibernated: bool,
}

/// Judges the planned deployments. `deployments` are the objects after the writes of this pass.
#[must_use]
pub fn progress(
    plan: &Plan,
    deployments: &BTreeMap<String, Live<MachineDeployment>>,
    live: &MachineObjects,
    sleep: Sleep,
) -> Progress {
    let sets = machine_sets_by_deployment(&live.machine_sets);
    let judge = |wanted: &WantedDeployment| {
        let sets = sets.get(wanted.name.0.as_str()).map(Vec::as_slice).unwrap_or_default();
        let by_hand = by_hand(wanted, sets, &live.machines);
        let deployment = deployments.get(&wanted.name.0).map(|live| &live.object);
        deployment_progress(wanted, deployment, sets, by_hand, sleep)
    };
    Progress {
        deployments: plan.machines().map(|machine| judge(&machine.deployment)).collect(),
        hibernated: sleep.is_wanted(),
    }
}

/// How old machines stand that a person updates where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByHand {
    /// Machines of old machine sets, which nobody need update now.
    old: i32,
    /// Those of them that a person has selected.
    selected: i32,
}

/// Only pools that are updated by hand may keep old machines (spec section 13.1, rule 7).
fn by_hand(wanted: &WantedDeployment, sets: &[&MachineSet], machines: &[Machine]) -> Option<ByHand> {
    if !wanted.strategy.is_manual_in_place() {
        return None;
    }
    let old: Vec<&&MachineSet> =
        sets.iter().filter(|set| set.spec.template.spec.class.name != wanted.class_name.0).collect();
    let names: BTreeSet<&str> = old.iter().filter_map(|set| set.metadata.name.as_deref()).collect();
    let is_of_old_set = |machine: &&Machine| {
        let owners = machine.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.kind == "MachineSet" && names.contains(owner.name.as_str()))
    };
    let selected = machines.iter().filter(is_of_old_set).filter(|machine| is_selected(machine)).count();
    Some(ByHand {
        old: old.iter().map(|set| set.status.replicas).sum(),
        selected: i32::try_from(selected).unwrap_or(i32::MAX),
    })
}

/// Whether a person has selected a machine to be updated where it is, and that is not done yet.
#[must_use]
pub fn is_selected(machine: &Machine) -> bool {
    let mut conditions = machine.status.conditions.iter();
    conditions.any(|condition| condition.condition_type == "InPlaceUpdate" && condition.reason != "CandidateForUpdate")
}

/// Machine sets by the deployment that owns them; without any owner their label says it.
fn machine_sets_by_deployment(sets: &[MachineSet]) -> BTreeMap<&str, Vec<&MachineSet>> {
    let mut by_deployment: BTreeMap<&str, Vec<&MachineSet>> = BTreeMap::new();
    for set in sets {
        let owners = set.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = if owners.is_empty() {
            set.metadata.labels.as_ref().and_then(|labels| labels.get("name")).map(String::as_str)
        } else {
            owners.iter().find(|owner| owner.kind == "MachineDeployment").map(|owner| owner.name.as_str())
        };
        if let Some(owner) = owner {
            by_deployment.entry(owner).or_default().push(set);
        }
    }
    by_deployment
}

fn deployment_progress(
    wanted: &WantedDeployment,
    live: Option<&MachineDeployment>,
    sets: &[&MachineSet],
    by_hand: Option<ByHand>,
    sleep: Sleep,
) -> DeploymentProgress {
    let absent = MachineDeployment::default();
    let live_or_absent = live.unwrap_or(&absent);
    let status = &live_or_absent.status;
    let phase = live.map_or(Phase::Unobserved, |live| phase(wanted, live, sets, by_hand, sleep));
    let desired = live_or_absent.spec.replicas;
    // While a pool rolls there are more machines than wanted; they are no progress.
    let available = status.available_replicas.min(desired);
    DeploymentProgress {
        pool: wanted.pool_name.clone(),
        deployment: wanted.name.0.clone(),
        desired,
        present: status.replicas,
        // Until the last change is seen, the status counts machines of the template before it.
        updated: if phase == Phase::Unobserved { 0 } else { status.updated_replicas },
        available,
        unavailable: status.unavailable_replicas.max(desired - available),
        selected: by_hand.map_or(0, |by_hand| by_hand.selected),
        phase,
    }
}

fn phase(
    wanted: &WantedDeployment,
    live: &MachineDeployment,
    sets: &[&MachineSet],
    by_hand: Option<ByHand>,
    sleep: Sleep,
) -> Phase {
    let status = &live.status;
    if sleep == Sleep::Asleep && status.replicas == 0 && status.failed_machines.is_empty() {
        return Phase::Ready;
    }
    // What is told of an older generation, failed machines too, says nothing of the wish as it is now.
    if status.observed_generation < live.metadata.generation.unwrap_or_default() {
        return Phase::Unobserved;
    }
    if !status.failed_machines.is_empty() {
        let failed = status.failed_machines.iter().map(|failed| FailedMachineText {
            machine: failed.name.clone(),
            description: failed.last_operation.description.clone(),
            error_code: failed.last_operation.error_code.clone(),
        });
        return Phase::Failed(failed.collect());
    }
    if sleep.is_wanted() {
        return if status.replicas == 0 { Phase::Ready } else { Phase::Pending };
    }
    if !sets.iter().any(|set| set.spec.template.spec.class.name == wanted.class_name.0) {
        return Phase::WithoutMachineSet;
    }
    let ByHand { old, selected } = by_hand.unwrap_or_default();
    let is_complete = status.unavailable_replicas <= status.preserved_failed_replicas.max(0)
        && status.updated_replicas + old == status.replicas
        && status.replicas == live.spec.replicas
        && selected == 0;
    // While a pool waits for a person, it does not progress, and that is no fault.
    let waits_for_person = by_hand.is_some() && status.updated_replicas != status.replicas;
    if is_complete && is_healthy(live, waits_for_person) { Phase::Ready } else { Phase::Pending }
}

/// Whether the conditions of a deployment are those of a healthy one. That of a pool which waits for a person may say that it
/// doesn't progress.
#[must_use]
pub fn is_healthy(deployment: &MachineDeployment, waits_for_person: bool) -> bool {
    let condition = |name: &str| {
        deployment
            .status
            .conditions
            .iter()
            .find(|condition| condition.condition_type == name)
            .map(|condition| condition.status.as_str())
    };
    condition("Available") == Some("True")
        && (waits_for_person || condition("Progressing").is_none_or(|status| status == "True"))
        && ["ReplicaFailure", "Frozen"].iter().all(|name| condition(name).is_none_or(|status| status == "False"))
}

impl Progress {
    /// The deployment that has waited for a machine set for the longest time, since its class was changed. Deployments that
    /// wait for anything else, however long, say nothing about machine-controller-manager.
    #[must_use]
    pub fn without_machine_set(&self, deployments: &BTreeMap<String, Live<MachineDeployment>>) -> Option<Stuck> {
        let without = self.deployments.iter().filter(|deployment| deployment.phase == Phase::WithoutMachineSet);
        without
            .filter_map(|deployment| {
                let since = deployments.get(&deployment.deployment)?.class_changed()?;
                Some(Stuck { deployment: deployment.deployment.clone(), since })
            })
            .min_by_key(|stuck| stuck.since)
    }

    /// Whether every planned deployment is where it shall be.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.deployments.iter().all(|deployment| deployment.phase == Phase::Ready)
    }

    /// Machines that could not be made, with their deployments.
    pub fn failed_machines(&self) -> impl Iterator<Item = (&DeploymentProgress, &FailedMachineText)> {
        self.deployments.iter().flat_map(|deployment| match &deployment.phase {
            Phase::Failed(machines) => machines.iter().map(move |machine| (deployment, machine)).collect::<Vec<_>>(),
            _ => Vec::new(),
        })
    }

    /// Names of the pools that are not ready, in order.
    #[must_use]
    pub fn pending_pools(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let pending = self.deployments.iter().filter(|deployment| deployment.phase != Phase::Ready);
        pending.map(|deployment| deployment.pool.as_str()).filter(|pool| seen.insert(*pool)).collect()
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
                let done = if self.hibernated { 0 } else { deployment.updated.min(deployment.available) };
                i64::from(done.max(0))
            })
            .sum();
        i32::try_from(done * 100 / total).unwrap_or(100).clamp(0, 100)
    }

    /// What is waited for, for people.
    #[must_use]
    pub fn waiting_text(&self) -> String {
        let sum = |number: fn(&DeploymentProgress) -> i32| self.deployments.iter().map(number).sum::<i32>();
        let pools = self.pending_pools().join(", ");
        if self.hibernated {
            return format!(
                "Waiting until all machines have been hibernated ({} still awake) in pools {pools}",
                sum(|d| d.present)
            );
        }
        let selected = sum(|d| d.selected);
        if selected > 0 {
            return format!("Waiting until {selected} old machines are updated... in pools {pools}");
        }
        let ready = self.deployments.iter().filter(|deployment| deployment.phase == Phase::Ready).count();
        let desired = sum(|d| d.desired);
        let mut text = format!(
            "Waiting until machines are available ({}/{desired} desired machine(s) available, {}/{desired} machine(s) \
             updated, {} machine(s) pending, {ready}/{} machinedeployments available) in pools {pools}",
            sum(|d| d.available),
            sum(|d| d.updated),
            sum(|d| d.unavailable),
            self.deployments.len(),
        );
        let old = sum(|d| (d.present - d.updated).max(0));
        if old > 0 {
            text.push_str(&format!("; {old} old machine(s) still to go"));
        }
        let stuck = self
            .deployments
            .iter()
            .find(|deployment| matches!(deployment.phase, Phase::Unobserved | Phase::WithoutMachineSet));
        if let Some(stuck) = stuck {
            text.push_str("; machine-controller-manager has not taken up ");
            text.push_str(&stuck.deployment);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::test_support::wanted_deployment;

    fn healthy() -> Value {
        json!({
            "metadata": {"name": "shoot--p--s-a-z1", "generation": 2},
            "spec": {"replicas": 2},
            "status": {
                "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
                "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}],
            },
        })
    }

    fn phase_of(document: &Value, class_of_set: &str, sleep: Sleep) -> Phase {
        let live: MachineDeployment = serde_json::from_value(document.clone()).unwrap();
        let set: MachineSet = serde_json::from_value(json!({
            "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "MachineDeployment", "name": "shoot--p--s-a-z1", "uid": "u"}]},
            "spec": {"template": {"spec": {"class": {"name": class_of_set}}}},
        }))
        .unwrap();
        phase(&wanted_deployment(), &live, &[&set], None, sleep)
    }

    /// The healthy deployment with one member changed.
    fn with(pointer: &str, value: Value) -> Value {
        let mut document = healthy();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[member] = value;
        document
    }

    #[test]
    fn ready_needs_every_machine_new_and_available() {
        let class = wanted_deployment().class_name.0;
        assert_eq!(phase_of(&healthy(), &class, Sleep::Unwanted), Phase::Ready);
        for (document, expected) in [
            (with("/metadata/generation", json!(3)), Phase::Unobserved),
            (with("/status/unavailableReplicas", json!(1)), Phase::Pending),
            (with("/status/updatedReplicas", json!(1)), Phase::Pending),
            (with("/spec/replicas", json!(3)), Phase::Pending),
            (with("/status/conditions", json!([])), Phase::Pending),
            (
                with(
                    "/status/conditions",
                    json!([{"type": "Available", "status": "True"}, {"type": "Frozen", "status": "True"}]),
                ),
                Phase::Pending,
            ),
        ] {
            assert_eq!(phase_of(&document, &class, Sleep::Unwanted), expected, "{document}");
        }
        assert_eq!(phase_of(&healthy(), "another-class", Sleep::Unwanted), Phase::WithoutMachineSet);
    }

    #[test]
    fn a_sleeping_shoot_is_ready_without_machines() {
        let class = wanted_deployment().class_name.0;
        let (unseen, empty) = (json!({"metadata": {"generation": 1}}), with("/status/replicas", json!(0)));
        for (document, sleep, expected) in [
            (&healthy(), Sleep::FallsAsleep, Phase::Pending),
            (&empty, Sleep::FallsAsleep, Phase::Ready),
            // Restored: its machines are there, but nobody has counted them yet.
            (&unseen, Sleep::FallsAsleep, Phase::Unobserved),
            (&unseen, Sleep::Asleep, Phase::Ready),
            (&healthy(), Sleep::Asleep, Phase::Pending),
        ] {
            assert_eq!(phase_of(document, &class, sleep), expected, "{sleep:?} {document}");
        }
    }

    #[test]
    fn failed_machines_are_told_with_their_code() {
        let failed =
            json!([{"name": "m1", "lastOperation": {"description": "no capacity", "errorCode": "ResourceExhausted"}}]);
        let phase =
            phase_of(&with("/status/failedMachines", failed), &wanted_deployment().class_name.0, Sleep::Unwanted);
        assert_eq!(
            phase,
            Phase::Failed(vec![FailedMachineText {
                machine: "m1".to_owned(),
                description: "no capacity".to_owned(),
                error_code: Some("ResourceExhausted".to_owned()),
            }])
        );
    }
}
