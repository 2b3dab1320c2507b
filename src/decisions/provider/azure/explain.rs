//! Explains an Azure pool. Each input is evaluated on its own, so that one error does not hide the others.

use super::AzureWorker;
use super::cloud::AzureCloud;
use super::config_members::config_members;
use super::documents::{SubnetLayout, WorkerConfig};
use super::hash_data::config_items;
use super::machine_class::is_confidential;
use super::pool::Placement;
use crate::pool::hash::HashItems;
use crate::pool::names::{class_name, deployment_name};
use crate::provider::documents::pool_config;
use crate::provider::explanation::{EffectiveInput, Origin, PlacementPlan};
use crate::provider::{PoolProblem, ProviderExplanation};
use wire::api::gardener::WorkerPool;

impl AzureWorker<'_> {
    pub(super) fn explain(&self, pool: &WorkerPool) -> ProviderExplanation {
        let config: Result<WorkerConfig, _> = pool_config(pool);
        let hash_items = config.as_ref().ok().map(|config| config_items(pool, config));
        let placements = self.placements(pool).unwrap_or_default();
        ProviderExplanation {
            inputs: self.explain_inputs(pool, config.ok().as_ref(), &placements),
            image: self.images.explain(pool),
            placements: placements
                .iter()
                .filter_map(|placement| {
                    let items = hash_items.as_ref().and_then(|items| items.as_ref().ok());
                    self.explain_placement(pool, items, placement).ok()
                })
                .collect(),
        }
    }

    /// Counts and names of a placement, without a class if the pool can't be hashed.
    fn explain_placement(
        &self,
        pool: &WorkerPool,
        config_items: Option<&HashItems>,
        placement: &Placement<'_>,
    ) -> Result<PlacementPlan, PoolProblem> {
        let technical_id = &self.context.shoot.status.technical_id;
        let suffix = placement.name_suffix();
        let hashed = config_items.and_then(|items| self.hash(pool, items, placement).ok());
        let class = hashed.map(|hashed| (class_name(technical_id, &pool.name, &hashed.hash, &suffix), hashed.items));
        let deployment = deployment_name(technical_id, &pool.name, &suffix);
        Ok(PlacementPlan::of(placement.zone(), deployment, placement.bounds(pool)?, class))
    }

    fn explain_inputs(
        &self,
        pool: &WorkerPool,
        config: Option<&WorkerConfig>,
        placements: &[Placement<'_>],
    ) -> Vec<EffectiveInput> {
        let region = &self.context.worker.spec.region;
        let infrastructure = &self.infrastructure;
        let mut inputs = vec![
            EffectiveInput::of(Origin::Worker, "spec.region", "region", region),
            EffectiveInput::of(Origin::Worker, "spec.region", "cloud", AzureCloud::of_region(region).name()),
            EffectiveInput::of_infrastructure(
                "resourceGroup.name",
                "resource group",
                &infrastructure.resource_group.name,
            ),
            EffectiveInput::of_infrastructure(
                "networks.vnet.name",
                "virtual network",
                &infrastructure.networks.vnet.name,
            ),
        ];
        inputs.extend(self.explain_subnets(placements));
        if let Some(identity) = &infrastructure.identity {
            inputs.push(EffectiveInput::of_infrastructure("identity.id", "identity", &identity.id));
        }
        inputs.extend(self.explain_network(pool));
        if is_confidential(&pool.machine_type) {
            inputs.push(EffectiveInput::of(Origin::Worker, "machineType", "security", "confidential VM"));
        }
        inputs.extend(config.map(|config| config_members(config).inputs).unwrap_or_default());
        inputs
    }

    fn explain_subnets(&self, placements: &[Placement<'_>]) -> Vec<EffectiveInput> {
        let path = "networks.subnets";
        if !self.infrastructure.zoned {
            let scale_sets = placements.iter().filter_map(|placement| match placement {
                Placement::ScaleSet { scale_set, .. } => Some(EffectiveInput::of(
                    Origin::ProviderStatus,
                    format!("vmoDependencies[{}].name", scale_set.pool_name),
                    "scale set",
                    scale_set.name.as_str(),
                )),
                Placement::Zone { .. } => None,
            });
            let subnet = EffectiveInput::of_infrastructure(path, "subnet", &self.nodes_subnet.name);
            return scale_sets.chain([subnet]).collect();
        }
        if self.infrastructure.networks.layout == SubnetLayout::SingleSubnet {
            return vec![EffectiveInput::of_infrastructure(path, "subnet", &self.nodes_subnet.name)];
        }
        let of_zone = |placement: &Placement<'_>| {
            let Placement::Zone { zone, subnet, subnet_counts, .. } = placement else { return None };
            let hash = if *subnet_counts { "in the hash" } else { "migrated, not in the hash" };
            let value = format!("{} for zone {zone} ({hash})", subnet.name);
            Some(EffectiveInput::of_infrastructure(&format!("{path}[zone={zone}]"), "subnet", value))
        };
        placements.iter().filter_map(of_zone).collect()
    }

    /// Whether the network is accelerated, if machine type and image can be determined.
    fn explain_network(&self, pool: &WorkerPool) -> Option<EffectiveInput> {
        let image = self.image(self.images.select(pool).selected.ok()?);
        let accelerated = self.is_accelerated(pool, &image).ok()?;
        let path = if self.old_format { "spec.providerConfig.machineTypes" } else { "spec.machineTypes" };
        let value = if accelerated { "accelerated" } else { "basic" };
        Some(EffectiveInput::of(Origin::CloudProfile, path, "network", value))
    }
}
