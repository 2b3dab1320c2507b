//! The fields of a Machine that show what it waits for: its phase and the last operation of machine-controller-manager.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde_with::apply;

use super::finding::FindingKind;
use wire::api::gotext::json::null_as_default;
use wire::api::metadata::without_managers;

/// The fields of a Machine that show what it waits for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct MachineDocument {
    #[serde(default, deserialize_with = "without_managers")]
    pub(super) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) spec: MachineSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) status: MachineStatus,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct MachineSpec {
    pub(super) class: ClassName,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ClassName {
    pub(super) name: String,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MachineStatus {
    pub(super) current_status: CurrentStatus,
    pub(super) last_operation: LastOperation,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CurrentStatus {
    phase: String,
    /// Until when machine-controller-manager preserves the machine, if it does.
    preserve_expiry_time: Option<String>,
}

/// The last operation of machine-controller-manager.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LastOperation {
    pub(super) description: String,
    pub(super) error_code: Option<String>,
    last_update_time: Option<String>,
    state: String,
    #[serde(rename = "type")]
    operation_type: String,
}

/// A machine in `MachineDeployment.status.failedMachines`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FailedMachine {
    pub(super) name: String,
    pub(super) last_operation: LastOperation,
}

impl MachineDocument {
    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Name of the MachineDeployment, from a label.
    pub(super) fn deployment(&self) -> &str {
        let labels = self.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get("name")).map(String::as_str).unwrap_or_default()
    }

    /// Name of the node, from a label.
    pub(super) fn node(&self) -> Option<&str> {
        self.metadata.labels.as_ref()?.get("node").map(String::as_str).filter(|node| !node.is_empty())
    }

    /// The last time at which machine-controller-manager worked on the machine, as far as it shows.
    pub(super) fn last_change(&self) -> Option<Timestamp> {
        let metadata = &self.metadata;
        let times = [moment(metadata.creation_timestamp.as_ref()), moment(metadata.deletion_timestamp.as_ref())];
        times.into_iter().chain([self.status.last_operation.moment()]).flatten().max()
    }

    pub(super) fn waits_for(&self) -> Option<FindingKind> {
        let last = &self.status.last_operation;
        let failed = last.is_failed();
        if self.metadata.deletion_timestamp.is_some() || last.operation_type == "Delete" {
            return Some(match failed {
                _ if last.is_drain_blocked() => FindingKind::DrainBlocked,
                true => FindingKind::DeletionFailed,
                false => FindingKind::Terminating,
            });
        }
        match self.status.current_status.phase.as_str() {
            "Unknown" => Some(FindingKind::Unhealthy),
            "Failed" if self.status.current_status.preserve_expiry_time.is_some() => Some(FindingKind::Preserved),
            "Failed" | "CrashLoopBackOff" => Some(last.failure()),
            "Pending" | "" if failed => Some(last.failure()),
            "Pending" | "" => Some(FindingKind::NotJoined),
            _ => None,
        }
    }

    pub(super) fn since(&self, kind: FindingKind) -> Option<Timestamp> {
        match kind {
            FindingKind::NotJoined => moment(self.metadata.creation_timestamp.as_ref()),
            FindingKind::Terminating | FindingKind::DrainBlocked | FindingKind::DeletionFailed => {
                moment(self.metadata.deletion_timestamp.as_ref())
            }
            _ => self.status.last_operation.moment(),
        }
    }
}

impl LastOperation {
    fn is_failed(&self) -> bool {
        self.state == "Failed" || self.error_code.is_some()
    }

    /// The failure, if the machine is not being deleted.
    pub(super) fn failure(&self) -> FindingKind {
        match self.operation_type.as_str() {
            "Create" => FindingKind::CreationFailed,
            "Delete" => FindingKind::DeletionFailed,
            _ => FindingKind::Unhealthy,
        }
    }

    fn is_drain_blocked(&self) -> bool {
        let words = self.description.to_lowercase();
        words.contains("disruption budget")
            || self.is_failed() && ["drain", "evict"].iter().any(|word| words.contains(word))
    }

    fn moment(&self) -> Option<Timestamp> {
        self.last_update_time.as_ref()?.parse().ok()
    }
}

/// A time in an object's metadata.
pub(super) fn moment(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn preserved_machines_wait_for_their_release() {
        let waits_for = |status: Value, operation: &str| {
            let last = json!({"type": operation, "state": "Failed"});
            let machine = json!({"status": {"currentStatus": status, "lastOperation": last}});
            serde_json::from_value::<MachineDocument>(machine).unwrap().waits_for()
        };
        let failed = json!({"phase": "Failed"});
        let preserved = json!({"phase": "Failed", "preserveExpiryTime": "2026-11-28T10:00:00Z"});
        let running = json!({"phase": "Running", "preserveExpiryTime": "2026-11-28T10:00:00Z"});
        assert_eq!(waits_for(failed, "Create"), Some(FindingKind::CreationFailed));
        assert_eq!(waits_for(preserved.clone(), "Create"), Some(FindingKind::Preserved));
        assert_eq!(waits_for(preserved, "Delete"), Some(FindingKind::DeletionFailed));
        assert_eq!(waits_for(running, "HealthCheck"), None);
    }
}
