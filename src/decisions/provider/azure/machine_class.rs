//! The provider spec of a machine class, as machine-controller-manager's Azure driver decodes it.

use serde_json::{Value, json};

use super::AzureWorker;
use super::cloud::AzureCloud;
use super::disks::{data_disks, os_disk};
use super::documents::{CapacityReservation, DiagnosticsProfile, WorkerConfig};
use super::pool::{Placement, PoolInputs};
use super::tags::machine_tags;
use crate::provider::PoolProblem;
use crate::provider::machine_class::without_nulls;

impl AzureWorker<'_> {
    pub(super) fn provider_spec(
        &self,
        inputs: &PoolInputs<'_>,
        placement: &Placement<'_>,
    ) -> Result<Value, PoolProblem> {
        let pool = inputs.pool;
        let worker = self.context.worker;
        let infrastructure = &self.infrastructure;
        // Lists every member of the provider config, so that a new one can't be forgotten.
        let WorkerConfig {
            _api_version: _,
            _kind: _,
            // Part of the node template of the class.
            node_template: _,
            diagnostics_profile,
            volume,
            data_volumes,
            capacity_reservation,
        } = &inputs.config;
        let diagnostics = diagnostics_profile
            .as_ref()
            .map(|DiagnosticsProfile { enabled, storage_uri }| json!({"enabled": enabled, "storageURI": storage_uri}));
        let reservation = capacity_reservation.as_ref().and_then(|reservation| {
            let CapacityReservation { capacity_reservation_group_id } = reservation;
            capacity_reservation_group_id.as_ref().map(|id| json!({"capacityReservationGroupID": id}))
        });
        let confidential = is_confidential(&pool.machine_type);
        let security = || json!({"securityType": "ConfidentialVM", "uefiSettings": {"vtpmEnabled": true}});
        let machine_set = match placement {
            Placement::Zone { .. } => None,
            Placement::ScaleSet { scale_set, .. } => Some(json!({"id": scale_set.id, "kind": "vmo"})),
        };
        let network = &infrastructure.networks.vnet;
        Ok(without_nulls(json!({
            "cloudConfiguration": {"name": AzureCloud::of_region(&worker.spec.region).name()},
            "location": worker.spec.region,
            "resourceGroup": infrastructure.resource_group.name,
            "subnetInfo": {
                "vnetName": network.name,
                "vnetResourceGroup": network.resource_group,
                "subnetName": placement.subnet().name,
            },
            "tags": machine_tags(&self.context.shoot.status.technical_id, &pool.labels),
            "properties": {
                "securityProfile": confidential.then(security),
                "zone": placement.zone().map(zone_value),
                "machineSet": machine_set,
                "identityID": infrastructure.identity.as_ref().map(|identity| &identity.id),
                "networkProfile": inputs.accelerated.then(|| json!({"acceleratedNetworking": true})),
                "diagnosticsProfile": diagnostics,
                "hardwareProfile": {"vmSize": pool.machine_type},
                "osProfile": {
                    "adminUsername": "core",
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": true,
                        // A single key, because the driver declares an object instead of a list.
                        "ssh": {"publicKeys": {"path": "/home/core/.ssh/authorized_keys", "keyData": self.ssh_key()}},
                    },
                },
                "storageProfile": {
                    "imageReference": inputs.image.reference(),
                    "osDisk": os_disk(pool, volume.as_ref(), confidential)?,
                    "dataDisks": data_disks(pool, data_volumes)?,
                },
                "capacityReservation": reservation,
            },
        })))
    }

    /// The public key without the trailing line break of key files.
    fn ssh_key(&self) -> Option<String> {
        let key = self.context.worker.spec.ssh_public_key.as_ref()?;
        let text = String::from_utf8_lossy(&key.0).trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }
}

/// Formats a zone for the driver: as a number if possible.
fn zone_value(zone: &str) -> Value {
    let is_number = !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| zone.parse::<i32>().ok()).flatten();
    number.map_or_else(|| Value::from(zone), Value::from)
}

/// Whether the machine type has confidential computing: `Standard_DC…` and `Standard_EC…`.
pub(super) fn is_confidential(machine_type: &str) -> bool {
    let machine_type = machine_type.to_lowercase();
    machine_type.starts_with("standard_ec") || machine_type.starts_with("standard_dc")
}
