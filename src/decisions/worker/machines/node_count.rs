//! Pure: compares the nodes of a shoot with its machines, for the condition `EveryNodeReady`. Thresholds and messages
//! match Gardener's, because users and tools search for them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::status::conditions::{Condition, ConditionStatus, ConditionType};

/// How long missing nodes, and how long surplus nodes, are tolerated.
const SCALING_UP: Duration = Duration::from_secs(5 * 60);
const SCALING_DOWN: Duration = Duration::from_secs(15 * 60);

const UNHEALTHY: &str = "HealthCheckUnsuccessful";
const PROGRESSING: &str = "HealthCheckProgressing";

/// Prefixes of the messages, which identify the writer of the condition.
const CHECK_FAILED: &str = "Not enough machine objects created yet";
const NOT_READY: &str = "Not enough ready worker nodes registered in the cluster";
const TOO_MANY: &str = "Too many worker nodes are registered. Exceeding maximum desired machine count";
const DRAINING: &str = "Machines wait to be completely drained from pods";

/// Nodes of a shoot that machine-controller-manager manages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCount {
    /// All of these nodes.
    pub registered: usize,
    /// Ready and schedulable nodes.
    pub ready: usize,
}

/// Target and preserved machines of a Worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCount {
    /// Replicas of machine deployments that are not being deleted.
    pub desired: usize,
    /// Failed machines that are preserved on purpose.
    pub preserved: usize,
}

impl MachineCount {
    /// Sums up the machine deployments of a shoot.
    #[must_use]
    pub fn of(deployments: &BTreeMap<String, LiveDeployment>) -> Self {
        let sum = |of: fn(&LiveDeployment) -> i32| {
            deployments.values().map(|deployment| usize::try_from(of(deployment)).unwrap_or_default()).sum()
        };
        Self {
            desired: sum(|deployment| match deployment.object.metadata.deletion_timestamp {
                None => deployment.object.spec.replicas,
                Some(_) => 0,
            }),
            preserved: sum(|deployment| deployment.object.status.preserved_failed_replicas),
        }
    }

    /// Whether the number of nodes matches and enough of them are ready.
    #[must_use]
    pub fn is_met_by(self, nodes: NodeCount) -> bool {
        nodes.registered == self.desired && nodes.ready + self.preserved >= self.desired
    }
}

/// Number of machine objects of a shoot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveMachines {
    /// Machines that are not being deleted.
    pub staying: usize,
    /// Machines that are being deleted.
    pub deleting: usize,
}

/// The mismatch as a message, and how long it is tolerated.
fn mismatch(nodes: NodeCount, target: MachineCount, live: LiveMachines) -> Option<(String, Duration)> {
    let (NodeCount { registered, ready }, desired) = (nodes, target.desired);
    if ready + target.preserved < desired {
        return Some(match registered < desired && live.staying < desired {
            true => (format!("{CHECK_FAILED} ({}/{desired}).", live.staying), SCALING_UP),
            false => (format!("{NOT_READY} ({ready}/{desired})."), SCALING_UP),
        });
    }
    if registered.saturating_sub(live.deleting) > desired {
        return Some((format!("{TOO_MANY} ({registered}/{desired})."), SCALING_DOWN));
    }
    (registered > desired).then(|| {
        let advice = "check pod disruption budgets and pending finalizers";
        (format!("{DRAINING} ({} beyond {desired}); {advice}.", registered - desired), SCALING_DOWN)
    })
}

/// The condition if the nodes don't match the machines.
#[must_use]
pub fn nodes_mismatch(
    nodes: NodeCount,
    target: MachineCount,
    live: LiveMachines,
    present: &[Value],
    now: Timestamp,
) -> Option<Condition> {
    let (message, threshold) = mismatch(nodes, target, live)?;
    let unmet = Condition::unmet(ConditionType::EveryNodeReady, UNHEALTHY, message);
    Some(match may_progress(present, threshold, now) {
        true => Condition { status: ConditionStatus::Progressing, reason: PROGRESSING, ..unmet },
        false => unmet,
    })
}

/// Whether scaling may take longer: it has just started, or has not exceeded the threshold. A recorded failure stays
/// one.
fn may_progress(present: &[Value], threshold: Duration, now: Timestamp) -> bool {
    let recorded = present.iter().find(|recorded| ConditionType::EveryNodeReady.is_recorded_in(recorded));
    let Some(recorded) = recorded.filter(|recorded| recorded["status"] != "True") else { return true };
    let since = recorded["lastTransitionTime"].as_str().and_then(|since| since.parse::<Timestamp>().ok());
    let passed = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok());
    recorded["status"] != "False" && passed.is_none_or(|passed| passed <= threshold)
}

/// Whether this check has written the message.
pub(crate) fn is_about_nodes(message: &str) -> bool {
    [CHECK_FAILED, NOT_READY, TOO_MANY, DRAINING].iter().any(|beginning| message.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nodes(registered: usize, ready: usize) -> NodeCount {
        NodeCount { registered, ready }
    }

    fn target(desired: usize) -> MachineCount {
        MachineCount { desired, preserved: 0 }
    }

    fn live(staying: usize, deleting: usize) -> LiveMachines {
        LiveMachines { staying, deleting }
    }

    #[test]
    fn compares_nodes_with_target_machines() {
        let message = |nodes, desired, live| mismatch(nodes, target(desired), live).map(|(message, _)| message);
        assert_eq!(message(nodes(3, 3), 3, live(3, 0)), None);
        assert_eq!(message(nodes(0, 0), 0, live(0, 0)), None);
        for (nodes, live, begins, numbers) in [
            (nodes(2, 2), live(2, 0), CHECK_FAILED, "(2/3)"),
            (nodes(2, 2), live(3, 0), NOT_READY, "(2/3)"),
            (nodes(3, 1), live(3, 0), NOT_READY, "(1/3)"),
            (nodes(3, 2), live(2, 1), NOT_READY, "(2/3)"),
            (nodes(4, 4), live(3, 0), TOO_MANY, "(4/3)"),
            (nodes(4, 3), live(3, 1), DRAINING, "(1 beyond 3)"),
        ] {
            let message = message(nodes, 3, live).unwrap();
            assert!(message.starts_with(begins) && message.contains(numbers) && is_about_nodes(&message), "{message}");
        }
    }

    #[test]
    fn tolerates_preserved_machines() {
        let target = MachineCount { desired: 3, preserved: 1 };
        assert!(target.is_met_by(nodes(3, 2)));
        assert!(!target.is_met_by(nodes(3, 1)) && !target.is_met_by(nodes(4, 3)) && !target.is_met_by(nodes(2, 2)));
        assert_eq!(mismatch(nodes(3, 2), target, live(3, 0)), None);
        assert!(mismatch(nodes(3, 1), target, live(3, 0)).is_some());
    }

    #[test]
    fn tolerates_scaling_until_threshold() {
        let recorded = |status: &str, minutes: i64| {
            let since = Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_mins(minutes);
            [json!({"type": "EveryNodeReady", "status": status, "lastTransitionTime": since.to_string()})]
        };
        let result = |present: &[Value], number: usize| {
            let mismatch = nodes_mismatch(nodes(number, number), target(3), live(3, 0), present, Timestamp::UNIX_EPOCH);
            let condition = mismatch.unwrap();
            (condition.status, condition.reason)
        };
        let progressing = (ConditionStatus::Progressing, PROGRESSING);
        let failed = (ConditionStatus::False, UNHEALTHY);
        assert_eq!(result(&[], 2), progressing);
        assert_eq!(result(&recorded("True", 600), 2), progressing);
        assert_eq!(result(&recorded("Progressing", 2), 2), progressing);
        assert_eq!(result(&recorded("Progressing", 6), 2), failed);
        assert_eq!(result(&recorded("Progressing", 6), 4), progressing, "draining takes longer");
        assert_eq!(result(&recorded("Progressing", 16), 4), failed);
        assert_eq!(result(&recorded("False", 1), 2), failed, "once failed, it stays");
        assert_eq!(result(&recorded("Unknown", 1), 2), progressing);
    }
}
