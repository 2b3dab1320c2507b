//! Planning and explanation of AWS pools.

use serde_json::Value;

use super::Aws;
use super::block_devices::block_devices;
use super::config_members::config_members;
use super::documents::{InfrastructureStatus, InstanceProfileConfig, WorkerConfig, WorkerStatus};
use super::hash_data::provider_items;
use super::image::{MEMBER, kept_images, used_before};
use super::network::{IpFamilies, nodes_instance_profile, subnet_of_zone};
use crate::pool::hash::ProviderItems;
use crate::provider::documents::{for_nodes, pool_config};
use crate::provider::explanation::{EffectiveInput, Origin};
use crate::provider::image::{SelectedImage, UsedImage, WorkerImages, architecture, used_images_document};
use crate::provider::machine_class::{ClassContent, node_template_or_empty, operating_system_labels};
use crate::provider::zonal::{PoolInputs, ZonalPlanner, ZonalProvider};
use crate::provider::{PoolPlan, PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::WorkerPool;
use wire::capabilities::ARCHITECTURE;

/// Values that all pools of one Worker share.
pub(super) struct AwsWorker<'a> {
    pub(super) context: WorkerContext<'a>,
    pub(super) infrastructure: InfrastructureStatus,
    pub(super) security_group: String,
    used: Vec<UsedImage>,
}

/// Values that all zones of a pool share.
pub(super) struct AwsPool {
    pub(super) block_devices: Vec<Value>,
    pub(super) instance_profile: InstanceProfileConfig,
}

impl<'a> AwsWorker<'a> {
    /// Decodes the documents that all pools share.
    pub(super) fn open(context: WorkerContext<'a>) -> Result<ZonalPlanner<'a, Self>, WorkerError> {
        let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
        let used = used_before(&context)?;
        let images = WorkerImages::open_with(&Aws, context, kept_images(&context, &used))?;
        let groups = &infrastructure.vpc.security_groups;
        let security_group =
            for_nodes(groups, "vpc.securityGroups", "security group", |group| &group.purpose)?.id.clone();
        Ok(ZonalPlanner { context, images, worker: Self { context, infrastructure, security_group, used } })
    }

    pub(super) fn region(&self) -> &str {
        &self.context.worker.spec.region
    }

    fn instance_profile(&self, config: &WorkerConfig) -> Result<InstanceProfileConfig, PoolProblem> {
        let by_name = |name: &str| InstanceProfileConfig { name: Some(name.to_owned()), arn: None };
        match &config.iam_instance_profile {
            None => nodes_instance_profile(&self.infrastructure)
                .map(by_name)
                .ok_or(PoolProblem::NodesEntryMissing { path: "iam.instanceProfiles", what: "instance profile" }),
            Some(InstanceProfileConfig { name: Some(name), .. }) => Ok(by_name(name)),
            Some(profile @ InstanceProfileConfig { arn: Some(_), .. }) => Ok(profile.clone()),
            Some(_) => Err(PoolProblem::field("providerConfig.iamInstanceProfile", "required: one of name, arn")),
        }
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

impl ZonalProvider for AwsWorker<'_> {
    type Config = WorkerConfig;
    type Shared = AwsPool;
    const ZONE_LABELS: &'static [&'static str] = &["topology.ebs.csi.aws.com/zone", "topology.kubernetes.io/zone"];

    fn config(pool: &WorkerPool) -> Result<WorkerConfig, PoolProblem> {
        pool_config(pool)
    }

    fn hash_items(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<ProviderItems, PoolProblem> {
        Ok(provider_items(pool, config)?)
    }

    fn shared(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<AwsPool, PoolProblem> {
        let block_devices = block_devices(pool, config)?;
        Ok(AwsPool { block_devices, instance_profile: self.instance_profile(config)? })
    }

    fn class_content(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<ClassContent, PoolProblem> {
        let mut labels = operating_system_labels(inputs.pool);
        let overrides = inputs.config.node_template.as_ref();
        labels.insert("failure-domain.beta.kubernetes.io/zone".to_owned(), zone.to_owned());
        Ok(ClassContent {
            provider: "AWS",
            labels,
            node_template: Some(node_template_or_empty(&self.context, inputs.pool, zone, overrides)?),
            provider_spec: self.provider_spec(inputs, zone)?,
        })
    }

    fn status_image(&self, pool: &WorkerPool, image: &SelectedImage<'_>) -> Value {
        let of_pool = architecture(pool);
        let of_flavor = image.capabilities.values(ARCHITECTURE).and_then(<[String]>::first);
        let of_flavor = of_flavor.map_or(of_pool, String::as_str);
        UsedImage::of(&pool.machine_image, image, &self.used, of_flavor, Some(of_pool)).to_entry(MEMBER)
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        used_images_document::<WorkerStatus>(&self.used, declared, planned, failed, MEMBER)
    }

    fn explain_inputs(&self, pool: &WorkerPool, config: Option<&WorkerConfig>) -> Vec<EffectiveInput> {
        let subnets = pool.zones.iter().filter_map(|zone| {
            let subnet = subnet_of_zone(&self.infrastructure, zone).ok()?;
            Some(EffectiveInput::of_infrastructure("vpc.subnets", "subnet", format!("{subnet} for zone {zone}")))
        });
        let mut inputs: Vec<EffectiveInput> = subnets.collect();
        let group = self.security_group.as_str();
        inputs.push(EffectiveInput::of_infrastructure("vpc.securityGroups", "security group", group));
        let key = &self.infrastructure.ec2.key_name;
        if !key.is_empty() {
            inputs.push(EffectiveInput::of_infrastructure("ec2.keyName", "key pair", key.clone()));
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
}
