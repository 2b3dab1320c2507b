//! The state of the machine deployments of each pool, as machine-controller-manager reports it.

use serde::Serialize;

use super::facts::{Facts, ObjectKind};
use super::finding::{Finding, FindingKind};
use super::paste_command::{CommandCluster, PasteCommand, word};
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::machines::progress::fault;
use decisions::worker::plan::stops::{PAUSED_ANNOTATION, STOP_ANNOTATION};
use wire::api::machine::MachineDeployment;

/// A MachineDeployment, or a pool without one. The numbers count machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRow {
    /// Name of the pool.
    pub pool: String,
    /// Name of the machine deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Target number of machines.
    pub desired: i32,
    /// Existing machines.
    pub present: i32,
    /// Machines of the current class.
    pub updated: i32,
    /// Available machines, including old ones.
    pub available: i32,
    /// The state of the MachineDeployment.
    pub state: PoolState,
}

/// The state of a MachineDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PoolState {
    /// It waits for nothing.
    Ready,
    /// Machines are missing, old or unhealthy.
    WaitingForMachines,
    /// Machines can't be created, deleted or kept healthy.
    MachinesFailed,
    /// It has no machine set for its class.
    NoMachineSet,
    /// machine-controller-manager has not observed the last change.
    NotObserved,
    /// It is paused.
    Paused,
    /// It is frozen.
    Frozen,
    /// It is being deleted.
    Deleting,
    /// The pool has no machine deployment.
    NoDeployment,
}

impl PoolState {
    /// The state in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::WaitingForMachines => "waits for machines",
            Self::MachinesFailed => "machines failed",
            Self::NoMachineSet => "waits for a machine set",
            Self::NotObserved => "not observed yet",
            Self::Paused => "paused",
            Self::Frozen => "frozen",
            Self::Deleting => "being deleted",
            Self::NoDeployment => "no machine deployment",
        }
    }
}

/// The subject of findings about a pool.
pub(super) fn subject(pool: &str) -> String {
    format!("pool {pool}")
}

/// The rows, and the findings about MachineDeployments.
pub(super) fn rows(facts: &Facts<'_>) -> (Vec<PoolRow>, Vec<Finding>) {
    let mut rows = Vec::new();
    let mut findings = Vec::new();
    for (name, live) in &facts.deployments {
        let row = row(facts, name, live);
        findings.extend(finding(facts, &row, live));
        rows.push(row);
    }
    let without = facts.worker.spec.pools.iter().filter(|pool| rows.iter().all(|row| row.pool != pool.name));
    let without: Vec<String> = without.map(|pool| pool.name.clone()).collect();
    if facts.is_known(ObjectKind::MachineDeployment) && !facts.is_being_deleted() {
        for pool in without {
            findings.push(FindingKind::NoDeployment.found(format!("pool {pool}"), "has no machine deployment"));
            rows.push(PoolRow {
                pool,
                deployment: None,
                desired: 0,
                present: 0,
                updated: 0,
                available: 0,
                state: PoolState::NoDeployment,
            });
        }
    }
    let location = |row: &PoolRow| facts.worker.spec.pools.iter().position(|pool| pool.name == row.pool);
    rows.sort_by_key(|row| (location(row).unwrap_or(usize::MAX), row.deployment.clone()));
    (rows, findings)
}

fn row(facts: &Facts<'_>, name: &str, live: &LiveDeployment) -> PoolRow {
    let status = &live.object.status;
    PoolRow {
        pool: live.pool().unwrap_or_default().to_owned(),
        deployment: Some(name.to_owned()),
        desired: live.object.spec.replicas,
        present: status.replicas,
        updated: status.updated_replicas,
        available: status.available_replicas,
        state: state(facts, live),
    }
}

fn state(facts: &Facts<'_>, live: &LiveDeployment) -> PoolState {
    let object = &live.object;
    let status = &object.status;
    if object.metadata.deletion_timestamp.is_some() {
        return PoolState::Deleting;
    }
    // In a hibernated shoot machine-controller-manager does not run, so it observes no changes.
    if facts.is_hibernated() && status.replicas == 0 {
        return PoolState::Ready;
    }
    if object.spec.paused {
        return PoolState::Paused;
    }
    if status.observed_generation < object.metadata.generation.unwrap_or_default() {
        return PoolState::NotObserved;
    }
    if !live.failed_machines.is_empty() {
        return PoolState::MachinesFailed;
    }
    if is_frozen(object) {
        return PoolState::Frozen;
    }
    let class = &object.spec.template.spec.class.name;
    let has_set = facts.machine_sets.iter().any(|set| set.spec.template.spec.class.name == *class);
    if facts.is_known(ObjectKind::MachineSet) && !has_set {
        return PoolState::NoMachineSet;
    }
    let old = status.replicas - status.updated_replicas;
    let is_complete = status.unavailable_replicas <= status.preserved_failed_replicas.max(0)
        && (old == 0 || is_manual_update(object))
        && status.replicas >= object.spec.replicas
        && fault(object).is_none();
    if is_complete { PoolState::Ready } else { PoolState::WaitingForMachines }
}

fn is_frozen(deployment: &MachineDeployment) -> bool {
    deployment
        .status
        .conditions
        .iter()
        .any(|condition| condition.condition_type == "Frozen" && condition.status == "True")
}

fn is_manual_update(deployment: &MachineDeployment) -> bool {
    deployment.spec.strategy.as_ref().is_some_and(|strategy| strategy.is_manual_in_place())
}

fn finding(facts: &Facts<'_>, row: &PoolRow, live: &LiveDeployment) -> Option<Finding> {
    let name = row.deployment.as_deref().unwrap_or_default();
    let subject = subject(&row.pool);
    let namespace = facts.namespace();
    let found = |kind: FindingKind, message: String| kind.found(subject.clone(), message).of_deployment(name);
    Some(match row.state {
        PoolState::Paused if live.has_pause_mark() => {
            let text = format!(
                "kubectl -n {} patch machinedeployment {} --type merge -p '{{\"metadata\":{{\"annotations\":{{\"{PAUSED_ANNOTATION}\":null}}}},\"spec\":{{\"paused\":null}}}}'",
                word(namespace),
                word(name)
            );
            let command = PasteCommand { cluster: CommandCluster::Seed, text };
            let message = format!("machine deployment {name} is paused because of the annotation {STOP_ANNOTATION}");
            let step =
                "The controller ends the pause together with the stop. If it no longer runs, end the pause yourself:";
            Finding { command: Some(command), ..found(FindingKind::Paused, message).next(step) }
        }
        PoolState::Paused => {
            let text = format!(
                "kubectl -n {} patch machinedeployment {} --type merge -p '{{\"spec\":{{\"paused\":null}}}}'",
                word(namespace),
                word(name)
            );
            let command = PasteCommand { cluster: CommandCluster::Seed, text };
            let step = "Find out who has paused it and why. Then let it continue:";
            let paused = found(FindingKind::Paused, format!("machine deployment {name} is paused")).next(step);
            Finding { command: Some(command), ..paused }
        }
        PoolState::Frozen => found(FindingKind::Frozen, format!("machine deployment {name} is frozen")),
        PoolState::NotObserved => {
            let message =
                format!("machine-controller-manager has not seen the last change of machine deployment {name}");
            found(FindingKind::NotObserved, message)
        }
        PoolState::NoMachineSet => {
            let class = &live.object.spec.template.spec.class.name;
            let message = format!("machine deployment {name} has no machine set for its class {class}");
            found(FindingKind::NoMachineSet, message)
        }
        PoolState::WaitingForMachines => {
            let fault = fault(&live.object).map(|fault| format!(": {fault}")).unwrap_or_default();
            let message = format!(
                "machine deployment {name}: {} of {} machines are available, {} updated{fault}",
                row.available, row.desired, row.updated
            );
            found(FindingKind::DeploymentUnhealthy, message)
        }
        PoolState::Ready if is_manual_update(&live.object) && row.present > row.updated => {
            let old = row.present - row.updated;
            let old = if old == 1 { "1 old machine waits".to_owned() } else { format!("{old} old machines wait") };
            let message = format!("{old} until a person selects it for its update ({name})");
            found(FindingKind::MachinesToSelect, message)
        }
        _ => return None,
    })
}
