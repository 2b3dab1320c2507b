//! One pool of AWS: from its fields to machine classes and wanted deployments.

use serde_json::{Value, json};

use super::AwsWorker;
use super::block_devices::block_devices;
use super::documents::{InstanceProfileConfig, WorkerConfig};
use super::hash_data::provider_items;
use super::image::status_image;
use super::network::nodes_instance_profile;
use crate::api::gardener::WorkerPool;
use crate::api::machine::MachineClassNodeTemplate;
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashedPool, pool_hash};
use crate::pool::names::{DeploymentName, deployment_name};
use crate::pool::zones::{ZonePosition, distribute, positions};
use crate::provider::documents::pool_config;
use crate::provider::image::{SelectedImage, architecture};
use crate::provider::machine_class::{ClassContent, machine_class, node_template, operating_system_labels};
use crate::provider::{MachinePlan, PoolPlan, PoolProblem, UserData, WantedDeployment, user_data};

/// What every zone of a pool shares.
pub(super) struct PoolInputs<'a> {
    pub(super) pool: &'a WorkerPool,
    pub(super) config: WorkerConfig,
    hashed: HashedPool,
    pub(super) image: SelectedImage<'a>,
    pub(super) block_devices: Vec<Value>,
    pub(super) instance_profile: InstanceProfileConfig,
    user_data: UserData,
}

impl AwsWorker<'_> {
    pub(super) fn plan(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolProblem> {
        let inputs = self.pool_inputs(pool)?;
        let machines = positions(&pool.zones).map(|(position, zone)| self.machine_plan(&inputs, zone, position));
        let kept = status_image(&pool.machine_image, &inputs.image, self.status.as_ref(), architecture(pool));
        Ok(PoolPlan {
            pool: pool.name.clone(),
            machines: machines.collect::<Result<_, _>>()?,
            status_image: json!(kept),
            in_place_hash: inputs.hashed.in_place,
        })
    }

    fn pool_inputs<'a>(&'a self, pool: &'a WorkerPool) -> Result<PoolInputs<'a>, PoolProblem> {
        let config: WorkerConfig = pool_config(pool)?;
        Ok(PoolInputs {
            pool,
            hashed: pool_hash(pool, self.context.shoot, &provider_items(pool, &config)?)?,
            image: self.images.select(pool).selected?,
            block_devices: block_devices(pool, &config)?,
            instance_profile: self.instance_profile(&config)?,
            user_data: user_data(&self.context, pool)?,
            config,
        })
    }

    pub(super) fn instance_profile(&self, config: &WorkerConfig) -> Result<InstanceProfileConfig, PoolProblem> {
        let by_name = |name: &str| InstanceProfileConfig { name: Some(name.to_owned()), arn: None };
        match &config.iam_instance_profile {
            None => nodes_instance_profile(&self.infrastructure)
                .map(by_name)
                .ok_or(PoolProblem::NothingForNodes { path: "iam.instanceProfiles", what: "instance profile" }),
            Some(InstanceProfileConfig { name: Some(name), .. }) => Ok(by_name(name)),
            Some(profile @ InstanceProfileConfig { arn: Some(_), .. }) => Ok(profile.clone()),
            Some(_) => Err(PoolProblem::field("providerConfig.iamInstanceProfile", "required: one of name, arn")),
        }
    }

    fn machine_plan(
        &self,
        inputs: &PoolInputs<'_>,
        zone: &str,
        position: ZonePosition,
    ) -> Result<MachinePlan, PoolProblem> {
        let pool = inputs.pool;
        let name = self.deployment_name(pool, position);
        let class_name = name.class_name(&inputs.hashed.hash);
        let mut labels = pool.labels.clone();
        for label in ["topology.ebs.csi.aws.com/zone", "topology.kubernetes.io/zone"] {
            labels.insert(label.to_owned(), zone.to_owned());
        }
        let mut deployment =
            WantedDeployment::of_pool(pool, name, &class_name, Bounds::in_zone(pool, position)?, labels);
        let settings = pool.machine_controller_manager.as_ref();
        let preserved = settings.and_then(|settings| settings.auto_preserve_failed_machine_max).unwrap_or_default();
        deployment.auto_preserve_failed_machine_max = Some(distribute(preserved, position));

        let mut class_labels = operating_system_labels(pool);
        class_labels.insert("failure-domain.beta.kubernetes.io/zone".to_owned(), zone.to_owned());
        let content = ClassContent {
            provider: "AWS",
            labels: class_labels,
            node_template: Some(self.node_template(inputs, zone)?),
            provider_spec: self.provider_spec(inputs, zone)?,
        };
        Ok(MachinePlan {
            zone: Some(zone.to_owned()),
            class: machine_class(&self.context, &class_name, content),
            user_data: inputs.user_data.clone(),
            deployment,
            hash_items: inputs.hashed.items.clone(),
        })
    }

    /// Zones are numbered from 1 in the order of the pool.
    pub(super) fn deployment_name(&self, pool: &WorkerPool, position: ZonePosition) -> DeploymentName {
        let suffix = format!("-z{}", u64::from(position.index) + 1);
        deployment_name(&self.context.shoot.status.technical_id, &pool.name, &suffix)
    }

    pub(super) fn region(&self) -> &str {
        &self.context.worker.spec.region
    }

    /// Without a node template of the pool, everything in the class's is empty.
    fn node_template(&self, inputs: &PoolInputs<'_>, zone: &str) -> Result<MachineClassNodeTemplate, PoolProblem> {
        let overrides = inputs.config.node_template.as_ref();
        if let Some(template) = node_template(&self.context, inputs.pool, zone.to_owned(), overrides) {
            return Ok(template);
        }
        if overrides.is_some_and(|overrides| !overrides.capacity.is_empty()) {
            let detail = "required: a capacity that providerConfig.nodeTemplate.capacity can override";
            return Err(PoolProblem::field("nodeTemplate", detail));
        }
        let virtual_capacity = overrides.and_then(|overrides| overrides.virtual_capacity.clone());
        Ok(MachineClassNodeTemplate {
            virtual_capacity: virtual_capacity.unwrap_or_default(),
            ..MachineClassNodeTemplate::default()
        })
    }
}
