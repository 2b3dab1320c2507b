//! A pool of AWS for people: the same questions as the plan asks, answered one by one, so that an answer is shown also
//! where another one is an error.

use super::AwsWorker;
use super::config_members::config_members;
use super::documents::{InstanceProfileConfig, WorkerConfig};
use super::hash_data::provider_items;
use super::network::{IpFamilies, subnet_of_zone};
use crate::api::gardener::WorkerPool;
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashedPool, pool_hash};
use crate::pool::zones::positions;
use crate::provider::documents::pool_config;
use crate::provider::explanation::{EffectiveInput, Origin, PlacementPlan};
use crate::provider::{PoolProblem, ProviderExplanation};

impl AwsWorker<'_> {
    pub(super) fn explain(&self, pool: &WorkerPool) -> ProviderExplanation {
        let config: Option<WorkerConfig> = pool_config(pool).ok();
        let hashed = config.as_ref().and_then(|config| self.hash(pool, config).ok());
        ProviderExplanation {
            inputs: self.explain_inputs(pool, config.as_ref()),
            image: self.images.explain(pool),
            placements: self.explain_placements(pool, hashed.as_ref()),
        }
    }

    fn hash(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<HashedPool, PoolProblem> {
        Ok(pool_hash(pool, self.context.shoot, &provider_items(pool, config)?)?)
    }

    /// Numbers and names of each zone; without a class where the pool can't be hashed.
    fn explain_placements(&self, pool: &WorkerPool, hashed: Option<&HashedPool>) -> Vec<PlacementPlan> {
        let placements = positions(&pool.zones).filter_map(|(position, zone)| {
            let deployment = self.deployment_name(pool, position);
            let class = hashed.map(|hashed| (deployment.class_name(&hashed.hash), hashed.items.clone()));
            Some(PlacementPlan::of(Some(zone), deployment, Bounds::in_zone(pool, position).ok()?, class))
        });
        placements.collect()
    }
}

impl AwsWorker<'_> {
    pub(super) fn explain_inputs(&self, pool: &WorkerPool, config: Option<&WorkerConfig>) -> Vec<EffectiveInput> {
        let of_infrastructure =
            |path: &str, name, value: String| EffectiveInput::of(Origin::InfrastructureStatus, path, name, value);
        let mut inputs = vec![EffectiveInput::of(Origin::Worker, "spec.region", "region", self.region())];
        let subnets = pool.zones.iter().filter_map(|zone| {
            let subnet = subnet_of_zone(&self.infrastructure, zone).ok()?;
            Some(of_infrastructure("vpc.subnets", "subnet", format!("{subnet} for zone {zone}")))
        });
        inputs.extend(subnets);
        inputs.push(of_infrastructure("vpc.securityGroups", "security group", self.security_group.clone()));
        let key = &self.infrastructure.ec2.key_name;
        if !key.is_empty() {
            inputs.push(of_infrastructure("ec2.keyName", "key pair", key.clone()));
        }
        if IpFamilies::of_shoot(self.context.shoot).ipv6 {
            let path = "spec.networking.ipFamilies";
            inputs.push(EffectiveInput::of(Origin::Shoot, path, "IPv6", "one address and one prefix"));
        }
        if let Some(config) = config {
            inputs.extend(self.explain_instance_profile(config));
            inputs.extend(config_members(config).inputs);
        }
        inputs
    }

    fn explain_instance_profile(&self, config: &WorkerConfig) -> Option<EffectiveInput> {
        let InstanceProfileConfig { name, arn } = self.instance_profile(config).ok()?;
        let value = name.or(arn)?;
        Some(if config.iam_instance_profile.is_some() {
            EffectiveInput::of(Origin::Worker, "providerConfig.iamInstanceProfile", "instance profile", value)
        } else {
            EffectiveInput::of(Origin::InfrastructureStatus, "iam.instanceProfiles", "instance profile", value)
        })
    }
}
