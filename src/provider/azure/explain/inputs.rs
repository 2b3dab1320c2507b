//! Inputs of an Azure pool that no other provider has, each with the document it comes from.

use crate::api::gardener::WorkerPool;
use crate::provider::azure::AzureWorker;
use crate::provider::azure::cloud::AzureCloud;
use crate::provider::azure::documents::{SubnetLayout, WorkerConfig};
use crate::provider::azure::machine_class::is_confidential;
use crate::provider::azure::pool::PoolUnit;
use crate::provider::explanation::{EffectiveInput, Origin};

impl AzureWorker<'_> {
    pub(super) fn explain_inputs(
        &self,
        pool: &WorkerPool,
        config: Option<&WorkerConfig>,
        placements: &[PoolUnit<'_>],
    ) -> Vec<EffectiveInput> {
        let region = &self.context.worker.spec.region;
        let infrastructure = &self.infrastructure;
        let of_infrastructure =
            |path: &str, name, value: &str| EffectiveInput::of(Origin::InfrastructureStatus, path, name, value);
        let mut inputs = vec![
            EffectiveInput::of(Origin::Worker, "spec.region", "region", region),
            EffectiveInput::of(Origin::Worker, "spec.region", "cloud", AzureCloud::of_region(region).name()),
            of_infrastructure("resourceGroup.name", "resource group", &infrastructure.resource_group.name),
            of_infrastructure("networks.vnet.name", "virtual network", &infrastructure.networks.vnet.name),
        ];
        inputs.extend(self.explain_subnets(placements));
        if let Some(identity) = &infrastructure.identity {
            inputs.push(of_infrastructure("identity.id", "identity", &identity.id));
        }
        inputs.extend(self.explain_network(pool));
        if is_confidential(&pool.machine_type) {
            inputs.push(EffectiveInput::of(Origin::Worker, "machineType", "security", "confidential VM"));
        }
        inputs.extend(config.map(explain_config).unwrap_or_default());
        inputs
    }

    fn explain_subnets(&self, placements: &[PoolUnit<'_>]) -> Vec<EffectiveInput> {
        let path = "networks.subnets";
        if !self.infrastructure.zoned {
            let scale_sets = placements.iter().filter_map(|placement| match placement {
                PoolUnit::ScaleSet { scale_set, .. } => Some(EffectiveInput::of(
                    Origin::ProviderStatus,
                    format!("vmoDependencies[{}].name", scale_set.pool_name),
                    "scale set",
                    scale_set.name.as_str(),
                )),
                PoolUnit::Zone { .. } => None,
            });
            let subnet =
                EffectiveInput::of(Origin::InfrastructureStatus, path, "subnet", self.nodes_subnet.name.as_str());
            return scale_sets.chain([subnet]).collect();
        }
        if self.infrastructure.networks.layout == SubnetLayout::SingleSubnet {
            let name = &self.nodes_subnet.name;
            return vec![EffectiveInput::of(Origin::InfrastructureStatus, path, "subnet", name.as_str())];
        }
        let of_zone = |placement: &PoolUnit<'_>| {
            let PoolUnit::Zone { zone, subnet, subnet_counts, .. } = placement else { return None };
            let hash = if *subnet_counts { "in the hash" } else { "migrated, not in the hash" };
            let value = format!("{} for zone {zone} ({hash})", subnet.name);
            Some(EffectiveInput::of(Origin::InfrastructureStatus, format!("{path}[zone={zone}]"), "subnet", value))
        };
        placements.iter().filter_map(of_zone).collect()
    }

    /// Whether the network is accelerated, as far as machine type and image can be told.
    fn explain_network(&self, pool: &WorkerPool) -> Option<EffectiveInput> {
        let image = self.image(self.images.select(pool).selected.ok()?);
        let accelerated = self.is_accelerated(pool, &image).ok()?;
        let path = if self.old_format { "spec.providerConfig.machineTypes" } else { "spec.machineTypes" };
        let value = if accelerated { "accelerated" } else { "basic" };
        Some(EffectiveInput::of(Origin::CloudProfile, path, "network", value))
    }
}

/// What the provider config says or leaves to its defaults.
fn explain_config(config: &WorkerConfig) -> Vec<EffectiveInput> {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        diagnostics_profile,
        volume,
        data_volumes,
        capacity_reservation,
    } = config;
    let of_config = |path: &str, name, value: String| {
        EffectiveInput::of(Origin::Worker, format!("providerConfig.{path}"), name, value)
    };
    let caching = volume.as_ref().and_then(|volume| volume.caching.as_deref());
    let mut inputs = vec![EffectiveInput::or_default(
        Origin::Worker,
        "providerConfig.volume.caching",
        "root disk caching",
        caching,
        "None",
    )];
    for volume in data_volumes {
        if let Some(image) = volume.image_ref.as_ref().and_then(|image| image.references().preferred()) {
            let value = format!("{}: {} {}", volume.name, image.member(), image.value());
            inputs.push(of_config("dataVolumes", "data volume image", value));
        }
    }
    if let Some(diagnostics) = diagnostics_profile {
        let place = diagnostics.storage_uri.as_deref().map_or("a managed account", without_query);
        let value = if diagnostics.enabled { format!("on, to {place}") } else { "off".to_owned() };
        inputs.push(of_config("diagnosticsProfile", "boot diagnostics", value));
    }
    let reservation = capacity_reservation.as_ref();
    if let Some(group) = reservation.and_then(|reservation| reservation.capacity_reservation_group_id.clone()) {
        inputs.push(of_config("capacityReservation.capacityReservationGroupID", "capacity reservation", group));
    }
    if let Some(template) = node_template {
        inputs.push(of_config("nodeTemplate.capacity", "capacity override", template.capacity_text()));
    }
    inputs
}

/// A shared-access signature may stand behind the question mark.
fn without_query(uri: &str) -> &str {
    uri.split_once('?').map_or(uri, |(address, _)| address)
}
