//! Pure: the condition `EveryNodeReady`, which gardenlet copies to the Shoot's condition of that name
//! (docs/contract.md), and its owner: after a takeover, the health check of the Go extension may still write it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::machines::node_count::is_about_nodes;
use crate::worker::machines::progress::{LONGEST_DESCRIPTION, fault};
use crate::worker::status::conditions::{Condition, ConditionType, is_denied};
use wire::api::bounded_text::beginning;

const HEALTHY: &str = "HealthCheckSuccessful";
const UNHEALTHY: &str = "HealthCheckUnsuccessful";
const UNKNOWN: &str = "ConditionCheckError";

/// Messages of this controller or their prefixes. The Go extension uses others, so a message identifies its writer.
const ALL_HEALTHY: &str = "All machine deployments are healthy.";
const HIBERNATED: &str = "The shoot is hibernated.";
const MACHINE: &str = "Machine";
const DEPLOYMENT: &str = "Machine deployment";
const CHECK_FAILED: &str = "The health check can't be made:";

/// Owner of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthCheck {
    /// The controller that has written it; this one if it is not recorded.
    OfWriter,
    /// This controller, even if another one writes it (`--health-check`).
    Ours,
}

impl HealthCheck {
    /// Whether another controller's condition is recorded and stays.
    #[must_use]
    pub fn leaves(self, present: &[Value]) -> bool {
        let mut recorded = present.iter().filter(|recorded| ConditionType::EveryNodeReady.is_recorded_in(recorded));
        self == Self::OfWriter
            && recorded.any(|recorded| !is_our_message(recorded["message"].as_str().unwrap_or_default()))
    }

    /// Whether nodes have to be counted first: healthy machine deployments are not enough for a condition that was not
    /// true.
    #[must_use]
    pub fn waits_for_nodes(self, condition: &Condition, present: &[Value]) -> bool {
        self == Self::Ours && condition.message == ALL_HEALTHY && is_denied(present, condition.condition_type)
    }

    /// Whether an operation writes the condition.
    #[must_use]
    pub fn is_written_by_operations(self, condition: &Condition, present: &[Value]) -> bool {
        !self.leaves(present) && !self.waits_for_nodes(condition, present)
    }
}

fn is_our_message(message: &str) -> bool {
    let about = |what| message.strip_prefix(what).is_some_and(|rest: &str| rest.starts_with(" \""));
    let is_about_machines = about(MACHINE) || about(DEPLOYMENT);
    [ALL_HEALTHY, HIBERNATED].contains(&message)
        || message.starts_with(CHECK_FAILED)
        || is_about_machines
        || is_about_nodes(message)
}

/// Derives the condition from the faults of existing machine deployments. gardenlet reads it at any time.
#[must_use]
pub fn every_node_ready(deployments: &BTreeMap<String, LiveDeployment>, hibernated: bool) -> Condition {
    let of_type = ConditionType::EveryNodeReady;
    if hibernated {
        return Condition::met(of_type, HEALTHY, HIBERNATED);
    }
    let mut failed = deployments.values().flat_map(|deployment| &deployment.failed_machines);
    if let Some(machine) = failed.next() {
        let description = beginning(&machine.description, LONGEST_DESCRIPTION);
        let message = format!("{MACHINE} {:?} failed: {description}{}", machine.name, besides(failed.count()));
        return Condition { codes: machine.codes.clone(), ..Condition::unmet(of_type, UNHEALTHY, message) };
    }
    let mut faults = deployments.iter().filter_map(|(name, deployment)| Some((name, fault(&deployment.object)?)));
    match faults.next() {
        None => Condition::met(of_type, HEALTHY, ALL_HEALTHY),
        Some((name, fault)) => {
            let fault = beginning(&fault, LONGEST_DESCRIPTION);
            let message = format!("{DEPLOYMENT} {name:?} is unhealthy: {fault}{}", besides(faults.count()));
            Condition::unmet(of_type, UNHEALTHY, message)
        }
    }
}

/// Text with the number of further faults.
fn besides(count: usize) -> String {
    if count == 0 { String::new() } else { format!("; and {count} more") }
}

/// The faults of machine deployments can't be determined.
#[must_use]
pub fn every_node_unknown(why: &str) -> Condition {
    Condition::unknown(ConditionType::EveryNodeReady, UNKNOWN, format!("{CHECK_FAILED} {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::azure::Azure;
    use crate::worker::status::conditions::ConditionStatus;
    use wire::api::gardener::ErrorCode;

    fn deployment(change: impl FnOnce(&mut Value)) -> BTreeMap<String, LiveDeployment> {
        let mut document = json!({
            "metadata": {"name": "a-z1", "generation": 2},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
                "conditions": [{"type": "Available", "status": "True"}],
            },
        });
        change(&mut document);
        [("a-z1".to_owned(), LiveDeployment::read(document, &Azure).unwrap())].into()
    }

    #[test]
    fn nodes_are_ready_when_no_deployment_has_a_fault() {
        assert_eq!(every_node_ready(&deployment(|_| {}), false).status, ConditionStatus::True);
        assert_eq!(every_node_ready(&BTreeMap::new(), false).status, ConditionStatus::True);
        for change in [
            |document: &mut Value| document["metadata"]["generation"] = json!(3),
            |document: &mut Value| document["status"]["conditions"] = json!([]),
            |document: &mut Value| document["status"]["conditions"][0]["status"] = json!("False"),
        ] {
            let deployments = deployment(change);
            let condition = every_node_ready(&deployments, false);
            assert!(
                condition.status == ConditionStatus::False && condition.reason == "HealthCheckUnsuccessful",
                "{condition:?}"
            );
            assert_eq!(every_node_ready(&deployments, true).message, "The shoot is hibernated.");
        }
        let operation = json!({"description": "no room", "errorCode": "ResourceExhausted"});
        let failed = json!([{"name": "m1", "lastOperation": operation}]);
        let condition = every_node_ready(&deployment(|document| document["status"]["failedMachines"] = failed), false);
        assert_eq!(condition.message, "Machine \"m1\" failed: no room");
        assert_eq!(condition.codes, [ErrorCode::InfraResourcesDepleted].into());
        let operation = json!({"description": "no room"});
        let failed = json!(["m1", "m2", "m3"].map(|name| json!({"name": name, "lastOperation": operation})));
        let condition = every_node_ready(&deployment(|document| document["status"]["failedMachines"] = failed), false);
        assert_eq!(condition.message, "Machine \"m1\" failed: no room; and 2 more");
    }

    #[test]
    fn failed_check_is_unknown() {
        let condition = every_node_unknown("no answer");
        assert_eq!((condition.status, condition.reason), (ConditionStatus::Unknown, "ConditionCheckError"));
    }

    #[test]
    fn keeps_condition_of_other_controller() {
        let recorded = |message: &str| [json!({"type": "EveryNodeReady", "status": "False", "message": message})];
        for theirs in [
            "All health checks successful",
            "Shoot is hibernated",
            "machine \"m1\" failed: no room",
            "machine deployment \"a-z1\" in namespace \"shoot--p--s\" is unhealthy: no replicas",
            "",
        ] {
            assert!(HealthCheck::OfWriter.leaves(&recorded(theirs)), "{theirs}");
            assert!(!HealthCheck::Ours.leaves(&recorded(theirs)), "{theirs}");
        }
        let failed = deployment(|document| {
            document["status"]["failedMachines"] = json!([{"name": "m1", "lastOperation": {"description": "no room"}}]);
        });
        let unhealthy = deployment(|document| document["status"]["conditions"] = json!([]));
        for ours in [
            every_node_ready(&BTreeMap::new(), false),
            every_node_ready(&BTreeMap::new(), true),
            every_node_ready(&failed, false),
            every_node_ready(&unhealthy, false),
            every_node_unknown("no answer"),
        ] {
            assert!(!HealthCheck::OfWriter.leaves(&recorded(&ours.message)), "{ours:?}");
        }
        assert!(!HealthCheck::OfWriter.leaves(&[json!({"type": "PoolsReady", "message": "theirs"})]), "nobody has it");
    }

    #[test]
    fn waits_for_node_count_before_true() {
        let recorded = |status: &str| [json!({"type": "EveryNodeReady", "status": status, "message": "m"})];
        let healthy = every_node_ready(&BTreeMap::new(), false);
        let unhealthy = every_node_ready(&deployment(|document| document["status"]["conditions"] = json!([])), false);
        assert!(HealthCheck::Ours.waits_for_nodes(&healthy, &recorded("False")));
        assert!(!HealthCheck::Ours.waits_for_nodes(&healthy, &recorded("True")), "it stays true");
        assert!(!HealthCheck::Ours.waits_for_nodes(&unhealthy, &recorded("False")), "nodes could say nothing better");
        assert!(!HealthCheck::OfWriter.waits_for_nodes(&healthy, &recorded("False")), "nobody counts them");
    }

    #[test]
    fn operation_writes_condition_unless_owned_elsewhere() {
        let recorded =
            |message: &str, status: &str| [json!({"type": "EveryNodeReady", "status": status, "message": message})];
        let healthy = every_node_ready(&BTreeMap::new(), false);
        for (health_check, present, is_written) in [
            (HealthCheck::OfWriter, recorded("theirs", "True"), false),
            (HealthCheck::OfWriter, recorded(ALL_HEALTHY, "True"), true),
            (HealthCheck::Ours, recorded("theirs", "True"), true),
            (HealthCheck::Ours, recorded("theirs", "False"), false),
        ] {
            assert_eq!(health_check.is_written_by_operations(&healthy, &present), is_written, "{present:?}");
        }
        assert!(HealthCheck::OfWriter.is_written_by_operations(&healthy, &[]));
    }
}
