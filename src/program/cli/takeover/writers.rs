//! Detects other writers of machine objects from Go extension Deployments, leader leases and managed fields.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::cli::preview::pairs::Loaded;
use decisions::worker::status::every_node_ready::HealthCheck;
use runtime::process::election::LEASE;

/// The worker controller's name in the Go extension's `--disable-controllers`.
const WORKER_CONTROLLER: &str = "worker";

/// Deployment name of the Go extension for a Worker type.
pub(super) fn deployment_name(worker_type: &str) -> String {
    format!("gardener-extension-provider-{worker_type}")
}

/// Leader election lease of the Go extension for a Worker type.
pub(super) fn lease_name(worker_type: &str) -> String {
    format!("provider-{worker_type}-leader-election")
}

/// Other writers, as far as they can be detected.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Writers {
    pub(super) go_extensions: Vec<GoExtension>,
    /// Leader leases of this controller and of Go extensions.
    pub(super) leases: Vec<LeaderLease>,
    /// Field managers of Workers and MachineDeployments.
    pub(super) managers: Vec<Manager>,
    /// Workers whose condition `EveryNodeReady` another health check wrote. This controller does not overwrite it.
    pub(super) health_checks_of_others: usize,
    /// Resources that could not be read, with the reason.
    pub(super) unknown: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GoExtension {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) replicas: i64,
    /// Whether it reconciles Workers when it runs.
    pub(super) reconciles_workers: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaderLease {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Empty if there is no leader.
    pub(super) holder: String,
    pub(super) renewed: Option<String>,
    #[serde(skip)]
    is_ours: bool,
}

/// A field manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manager {
    pub(super) name: String,
    /// Number of Workers and MachineDeployments with its fields.
    pub(super) objects: usize,
    /// Time of its last write.
    pub(super) last: Option<String>,
}

impl Writers {
    /// Adds an object if it is evidence of a writer for Workers of these types.
    pub(super) fn see(&mut self, object: &Value, worker_types: &[String]) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let namespace = text("/metadata/namespace");
        let name = text("/metadata/name");
        match object["kind"].as_str() {
            Some("Deployment") if worker_types.iter().any(|of_type| deployment_name(of_type) == name) => {
                let replicas = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
                let reconciles_workers =
                    !disabled_controllers(object).iter().any(|disabled| disabled == WORKER_CONTROLLER);
                self.go_extensions.push(GoExtension { namespace, name, replicas, reconciles_workers });
            }
            Some("Lease") => {
                let is_ours = name == LEASE;
                if is_ours || worker_types.iter().any(|of_type| lease_name(of_type) == name) {
                    let renewed = Some(text("/spec/renewTime")).filter(|time| !time.is_empty());
                    let holder = text("/spec/holderIdentity");
                    self.leases.push(LeaderLease { namespace, name, holder, renewed, is_ours });
                }
            }
            _ => {}
        }
    }

    /// Counts the field managers of Workers and MachineDeployments, and health checks of other controllers.
    pub(super) fn count_managers<'a>(&mut self, workers: impl Iterator<Item = &'a Loaded>) {
        let mut managers: BTreeMap<String, Manager> = BTreeMap::new();
        for loaded in workers {
            let conditions = loaded.inputs.worker.value.pointer("/status/conditions").and_then(Value::as_array);
            let is_theirs = conditions.is_some_and(|present| HealthCheck::OfWriter.leaves(present));
            self.health_checks_of_others += usize::from(is_theirs);
            let deployments = loaded.live.deployments.values().map(|deployment| &deployment.document);
            for object in deployments.chain([&loaded.inputs.worker.value]) {
                for (name, last) in managers_of(object) {
                    let manager = managers.entry(name.clone()).or_insert(Manager { name, objects: 0, last: None });
                    manager.objects += 1;
                    manager.last = manager.last.take().max(last);
                }
            }
        }
        self.managers = managers.into_values().collect();
    }

    /// Whether a Go extension reconciles Workers while this controller is the leader.
    pub(super) fn both_write(&self) -> bool {
        let we_lead = self.leases.iter().any(|lease| lease.is_ours && !lease.holder.is_empty());
        let they_run = self.go_extensions.iter().any(|theirs| theirs.reconciles_workers && theirs.replicas > 0);
        we_lead && they_run
    }
}

/// Distinct field managers of an object, with the time of their last write.
fn managers_of(object: &Value) -> BTreeMap<String, Option<String>> {
    let mut managers: BTreeMap<String, Option<String>> = BTreeMap::new();
    let fields = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    for entry in fields.into_iter().flatten() {
        let Some(name) = entry["manager"].as_str() else { continue };
        let time = entry["time"].as_str().map(str::to_owned);
        let last = managers.entry(name.to_owned()).or_default();
        *last = last.take().max(time);
    }
    managers
}

/// The controllers in the containers' `--disable-controllers` flags.
fn disabled_controllers(deployment: &Value) -> Vec<String> {
    const FLAG: &str = "--disable-controllers";
    let mut disabled = Vec::new();
    let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    for container in containers.into_iter().flatten() {
        let mut words = ["command", "args"]
            .into_iter()
            .flat_map(|member| container[member].as_array().into_iter().flatten())
            .filter_map(Value::as_str);
        while let Some(word) = words.next() {
            let value = match word.strip_prefix(FLAG) {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            disabled.extend(value.into_iter().flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()));
        }
    }
    disabled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(arguments: Value, replicas: i64) -> Value {
        json!({
            "kind": "Deployment", "metadata": {"namespace": "extension", "name": "gardener-extension-provider-azure"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"args": arguments}]}}},
        })
    }

    fn lease(name: &str, holder: &str) -> Value {
        json!({"kind": "Lease", "metadata": {"namespace": "extension", "name": name}, "spec": {"holderIdentity": holder}})
    }

    fn seen(objects: &[Value]) -> Writers {
        let mut writers = Writers::default();
        objects.iter().for_each(|object| writers.see(object, &["azure".to_owned()]));
        writers
    }

    #[test]
    fn the_worker_controller_of_the_go_extension_is_on_unless_it_is_disabled_by_its_name() {
        for (arguments, reconciles) in [
            (json!([]), true),
            (json!(["--disable-controllers=worker"]), false),
            (json!(["--disable-controllers=bastion,worker", "--x"]), false),
            (json!(["--disable-controllers", "worker"]), false),
            (json!(["--disable-controllers=workers"]), true),
            (json!(["--disable-controllers-of=worker"]), true),
            (json!(["--disable-controllers"]), true),
        ] {
            let writers = seen(&[deployment(arguments.clone(), 1)]);
            assert_eq!(writers.go_extensions[0].reconciles_workers, reconciles, "{arguments}");
        }
        assert_eq!(
            seen(&[json!({"kind": "Deployment", "metadata": {"name": "gardener-extension-provider-gcp"}})])
                .go_extensions,
            []
        );
    }

    #[test]
    fn both_write_when_we_lead_and_the_go_controller_is_on() {
        let on = deployment(json!([]), 1);
        let off = deployment(json!(["--disable-controllers=worker"]), 1);
        let leads = lease(LEASE, "a");
        let free = lease(LEASE, "");
        assert!(seen(&[on.clone(), leads.clone()]).both_write());
        assert!(!seen(&[on.clone(), free]).both_write());
        assert!(!seen(&[off, leads.clone()]).both_write());
        assert!(!seen(&[deployment(json!([]), 0), leads]).both_write());
        assert!(!seen(&[on, lease("provider-azure-leader-election", "b")]).both_write());
    }
}
