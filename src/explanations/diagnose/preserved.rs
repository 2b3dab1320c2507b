//! Preserved failed machines where the machines themselves were not read: as machine deployments count them, otherwise
//! as the Shoot's constraint reports them.

use super::facts::{Facts, ObjectKind};
use super::finding::{Finding, FindingKind};
use super::pools::subject;
use wire::api::bounded_text::beginning;

/// The Shoot's constraint about preserved failed machines.
const CONSTRAINT: &str = "PreservedFailedMachinesAbsent";
/// Maximum length of the constraint's message, in characters.
const LONGEST_MESSAGE: usize = 500;

const STEP: &str = "When you have seen enough, release each of them with the annotation \
                    node.machine.sapcloud.io/preserve=false. This lists the machines, and the preserved ones have failed:";

/// The findings about preserved machines, unless machines were read.
pub(super) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    if facts.is_known(ObjectKind::Machine) {
        return Vec::new();
    }
    if facts.is_known(ObjectKind::MachineDeployment) {
        return counted(facts);
    }
    constraint(facts).into_iter().collect()
}

/// One finding for each machine deployment with preserved failed machines.
fn counted(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (deployment, live) in &facts.deployments {
        let preserved = live.object.status.preserved_failed_replicas;
        if preserved <= 0 {
            continue;
        }
        let machines = if preserved == 1 { "machine" } else { "machines" };
        let message = format!(
            "machine deployment {deployment} counts {preserved} preserved failed {machines}, which nothing replaces"
        );
        let pool = live.pool().unwrap_or_default();
        findings.push(FindingKind::Preserved.found(subject(pool), message).of_deployment(deployment).next(STEP));
    }
    findings
}

/// What the Shoot in the Cluster reports. The Cluster has the Shoot as of its last reconcile.
fn constraint(facts: &Facts<'_>) -> Option<Finding> {
    let cluster = facts.documents().iter().find(|object| object["kind"] == "Cluster")?;
    let constraints = cluster.pointer("/spec/shoot/status/constraints")?.as_array()?;
    let reported = constraints.iter().find(|constraint| constraint["type"] == CONSTRAINT)?;
    if reported["status"] != "False" {
        return None;
    }
    let text = |member: &str| reported[member].as_str().unwrap_or_default();
    let message = format!("its constraint {CONSTRAINT} is False: {}", beginning(text("message"), LONGEST_MESSAGE));
    let since = reported["lastTransitionTime"].as_str().and_then(|time| time.parse().ok());
    Some(FindingKind::Preserved.found("the Shoot", message).since(since).next(STEP))
}
