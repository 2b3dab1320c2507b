//! The provider spec of a machine class, as machine-controller-manager's GCP driver decodes it.

use serde_json::{Value, json};

use super::documents::{Gpu, ServiceAccount, WorkerConfig};
use super::network::{network_interfaces, stack};
use super::zonal::{GPU, GcpWorker};
use crate::provider::machine_class::without_nulls;
use crate::provider::zonal::PoolInputs;
use wire::api::machine::MachineClassNodeTemplate;

/// Scope of machines with the infrastructure's service account.
const DEFAULT_SCOPE: &str = "https://www.googleapis.com/auth/compute";
/// Machine types without live migration.
const WITHOUT_LIVE_MIGRATION: &[&str] =
    &["z3-highmem-176-standardlssd", "z3-highmem-88-highlssd", "z3-highmem-192-highlssd-metal"];
/// Suffixes of machine types without live migration.
const WITHOUT_LIVE_MIGRATION_SUFFIXES: &[&str] = &["-metal", "-1t", "-4t", "-8t"];

impl GcpWorker<'_> {
    pub(super) fn provider_spec(
        &self,
        inputs: &PoolInputs<'_, Self>,
        zone: &str,
        node_template: Option<&MachineClassNodeTemplate>,
    ) -> Value {
        let pool = inputs.pool;
        // Lists every member of the provider config, so that a new one can't be forgotten.
        let WorkerConfig {
            _api_version: _,
            _kind: _,
            gpu,
            // Part of the disks.
            volume: _,
            boot_volume: _,
            data_volumes: _,
            min_cpu_platform,
            service_account,
            // Part of the node template of the class.
            node_template: _,
        } = &inputs.config;
        let mut disks = inputs.shared.disks.clone();
        if let Some(boot) = disks.iter_mut().find(|disk| disk["boot"] == true) {
            boot["image"] = inputs.image.reference.value.as_str().into();
        }
        let technical_id = self.technical_id();
        let worker = self.context.worker.metadata.name.as_deref().unwrap_or_default();
        let has_gpus =
            node_template.and_then(|template| template.capacity.get(GPU)).is_some_and(|gpus| !gpus.is_zero());
        let stays = has_gpus || lacks_live_migration(&pool.machine_type);
        let stack = stack(&self.infrastructure, self.context.shoot);
        let gpu = gpu
            .as_ref()
            .map(|Gpu { accelerator_type, count }| json!({"acceleratorType": accelerator_type, "count": count}));
        without_nulls(json!({
            "canIpForward": true,
            "deletionProtection": false,
            "description": format!("Machine of Shoot {worker} created by machine-controller-manager."),
            "disks": disks,
            "gpu": gpu,
            "labels": inputs.shared.labels,
            "machineType": pool.machine_type,
            "metadata": [{"key": "block-project-ssh-keys", "value": "TRUE"}],
            "minCpuPlatform": min_cpu_platform.as_ref().filter(|platform| !platform.is_empty()),
            "networkInterfaces": network_interfaces(&self.subnet, stack.as_ref()),
            "scheduling": {
                "automaticRestart": true,
                "onHostMaintenance": if stays { "TERMINATE" } else { "MIGRATE" },
                "preemptible": false,
            },
            "serviceAccounts": self.service_accounts(service_account.as_ref()),
            "tags": [technical_id, format!("kubernetes-io-cluster-{technical_id}"), "kubernetes-io-role-node"],
            "region": self.region(),
            "zone": zone,
        }))
    }

    /// The pool's service account, by default that of the infrastructure.
    fn service_accounts(&self, own: Option<&ServiceAccount>) -> Option<Value> {
        if let Some(ServiceAccount { email, scopes }) = own {
            return Some(json!([{"email": email, "scopes": scopes}]));
        }
        let email = Some(&self.infrastructure.service_account_email).filter(|email| !email.is_empty())?;
        Some(json!([{"email": email, "scopes": [DEFAULT_SCOPE]}]))
    }
}

fn lacks_live_migration(machine_type: &str) -> bool {
    machine_type.starts_with("h4d-")
        || WITHOUT_LIVE_MIGRATION.contains(&machine_type)
        || WITHOUT_LIVE_MIGRATION_SUFFIXES.iter().any(|ending| machine_type.ends_with(ending))
}
