//! One pool of AWS: from its fields to machine classes and wanted deployments (spec/aws-worker.md sections 1 and 4 to 6).

use super::AwsWorker;
use super::block_devices::block_devices;
use super::documents::{InstanceProfileConfig, WorkerConfig};
use super::hash_data::provider_items;
use super::image::{ImageSource, SelectedImage, image_in_profile, image_in_status, status_image};
use super::machine_class::{BlockDevice, ProviderSpec, cpu_options, metadata_options};
use super::network::{IpFamilies, network_interfaces, nodes_instance_profile, subnet_of_zone};
use super::tags::machine_tags;
use crate::api::gardener::{Capabilities, MachineType, WorkerPool};
use crate::api::machine::MachineClassNodeTemplate;
use crate::capabilities::{ARCHITECTURE, complete_machine_type, only_architecture};
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashedPool, pool_hash};
use crate::pool::names::{DeploymentName, deployment_name};
use crate::pool::zones::{ZonePosition, distribute, positions};
use crate::provider::documents::pool_config;
use crate::provider::image::{architecture, machine_type, unresolved};
use crate::provider::machine_class::{ClassContent, machine_class, node_template, operating_system_labels};
use crate::provider::{MachinePlan, PoolPlan, PoolProblem, UserData, WantedDeployment, user_data};

/// What every zone of a pool shares.
struct PoolInputs<'a> {
    pool: &'a WorkerPool,
    config: WorkerConfig,
    hashed: HashedPool,
    image: SelectedImage<'a>,
    block_devices: Vec<BlockDevice>,
    instance_profile: InstanceProfileConfig,
    user_data: UserData,
}

impl AwsWorker<'_> {
    pub(super) fn plan(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolProblem> {
        let inputs = self.pool_inputs(pool)?;
        let machines = positions(&pool.zones).map(|(position, zone)| self.machine_plan(&inputs, zone, position));
        let kept = status_image(&pool.machine_image, &inputs.image, architecture(pool));
        Ok(PoolPlan {
            pool: pool.name.clone(),
            machines: machines.collect::<Result<_, _>>()?,
            status_image: serde_json::to_value(kept).unwrap_or_default(),
            in_place_hash: inputs.hashed.in_place,
        })
    }

    fn pool_inputs<'a>(&'a self, pool: &'a WorkerPool) -> Result<PoolInputs<'a>, PoolProblem> {
        let config: WorkerConfig = pool_config(pool)?;
        Ok(PoolInputs {
            pool,
            hashed: pool_hash(pool, self.context.shoot, &provider_items(pool, &config)?)?,
            image: self.select_image(pool, &self.machine_capabilities(pool)?)?,
            block_devices: block_devices(pool, &config)?,
            instance_profile: self.instance_profile(&config)?,
            user_data: user_data(&self.context, pool)?,
            config,
        })
    }

    fn machine_capabilities(&self, pool: &WorkerPool) -> Result<Capabilities, PoolProblem> {
        Ok(self.capabilities_of(machine_type(&self.context, pool)?, pool))
    }

    /// What the machine type can do. Where it does not say its architecture, pools do; where it says anything else, the
    /// first of its pools does for all of them, because the Go extension writes it down there.
    pub(super) fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities {
        let of_type = machine_type.capabilities.as_ref();
        let asking = if of_type.is_some() { self.first_pool_like(pool, &machine_type.name) } else { pool };
        complete_machine_type(of_type, architecture(asking), &self.definitions)
    }

    /// The first pool of a machine type, else the pool that asks.
    pub(super) fn first_pool_like<'a>(&'a self, pool: &'a WorkerPool, machine_type: &str) -> &'a WorkerPool {
        self.context.worker.spec.pools.iter().find(|other| other.machine_type == machine_type).unwrap_or(pool)
    }

    pub(super) fn select_image<'a>(
        &'a self,
        pool: &WorkerPool,
        machine: &Capabilities,
    ) -> Result<SelectedImage<'a>, PoolProblem> {
        let image = &pool.machine_image;
        let in_profile = image_in_profile(self.config.as_deref(), image, self.region(), machine, &self.definitions);
        let selected = in_profile.or_else(|in_profile| {
            // In the old format kept images are compared with the pool, whatever its machine type says.
            let of_pool = self.old_format.then(|| only_architecture(architecture(pool)));
            let machine = of_pool.as_ref().unwrap_or(machine);
            image_in_status(self.status.as_ref(), image, machine, &self.definitions, self.old_format)
                .map_err(|in_status| unresolved(pool, &in_profile, &in_status))
        })?;
        check_image(pool, &selected)?;
        Ok(selected)
    }

    pub(super) fn instance_profile(&self, config: &WorkerConfig) -> Result<InstanceProfileConfig, PoolProblem> {
        let by_name = |name: &str| InstanceProfileConfig { name: Some(name.to_owned()), arn: None };
        match &config.iam_instance_profile {
            None => nodes_instance_profile(&self.infrastructure)
                .map(by_name)
                .ok_or(PoolProblem::NothingForNodes { path: "iam.instanceProfiles", what: "instance profile" }),
            Some(InstanceProfileConfig { name: Some(name), .. }) => Ok(by_name(name)),
            Some(profile @ InstanceProfileConfig { arn: Some(_), .. }) => Ok(profile.clone()),
            Some(_) => {
                Err(PoolProblem::Required { path: "providerConfig.iamInstanceProfile", what: "one of name, arn" })
            }
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
            provider_spec: serde_json::to_value(self.provider_spec(inputs, zone)?).unwrap_or_default(),
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

    fn provider_spec(&self, inputs: &PoolInputs<'_>, zone: &str) -> Result<ProviderSpec, PoolProblem> {
        let PoolInputs { pool, config, .. } = inputs;
        let shoot = self.context.shoot;
        let families = IpFamilies::of_shoot(shoot);
        let subnet = subnet_of_zone(&self.infrastructure, zone)?;
        Ok(ProviderSpec {
            ami: inputs.image.ami.to_owned(),
            region: self.region().to_owned(),
            machine_type: pool.machine_type.clone(),
            src_and_dst_checks_enabled: false,
            iam: inputs.instance_profile.clone(),
            key_name: self.infrastructure.ec2.key_name.clone(),
            network_interfaces: network_interfaces(&config.network_interfaces, subnet, &self.security_group, families)?,
            tags: machine_tags(&shoot.status.technical_id, &pool.labels),
            block_devices: inputs.block_devices.clone(),
            instance_metadata_options: metadata_options(config.instance_metadata_options.as_ref(), families.only_ipv6),
            cpu_options: config.cpu_options.as_ref().map(cpu_options),
            capacity_reservation: config.capacity_reservation.clone(),
            instance_market_options: config.instance_market_options.clone(),
            placement: config.placement.clone(),
        })
    }

    /// Without a node template of the pool, everything in the class's is empty.
    fn node_template(&self, inputs: &PoolInputs<'_>, zone: &str) -> Result<MachineClassNodeTemplate, PoolProblem> {
        let overrides = inputs.config.node_template.as_ref();
        if let Some(template) = node_template(&self.context, inputs.pool, zone.to_owned(), overrides) {
            return Ok(template);
        }
        if overrides.is_some_and(|overrides| !overrides.capacity().is_empty()) {
            return Err(PoolProblem::Required {
                path: "nodeTemplate",
                what: "a capacity that providerConfig.nodeTemplate.capacity can override",
            });
        }
        let virtual_capacity = overrides.and_then(|overrides| overrides.virtual_capacity().cloned());
        Ok(MachineClassNodeTemplate {
            virtual_capacity: virtual_capacity.unwrap_or_default(),
            ..MachineClassNodeTemplate::default()
        })
    }
}

/// An image of the CloudProfile needs an architecture, and every image a reference.
fn check_image(pool: &WorkerPool, selected: &SelectedImage<'_>) -> Result<(), PoolProblem> {
    let image = &pool.machine_image;
    if let ImageSource::CloudProfile(capabilities) = &selected.source
        && capabilities.values(ARCHITECTURE).is_none_or(<[String]>::is_empty)
    {
        return Err(PoolProblem::ImageWithoutArchitecture {
            image: image.name.clone(),
            version: image.version.clone(),
        });
    }
    if selected.ami.is_empty() {
        return Err(PoolProblem::ImageWithoutReference {
            image: image.name.clone(),
            version: image.version.clone(),
            place: selected.source.place(),
            expected: "ami",
        });
    }
    Ok(())
}
