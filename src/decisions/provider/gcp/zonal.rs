//! Planning and explanation of GCP pools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Gcp;
use super::config_members::config_members;
use super::disks::disks;
use super::documents::{InfrastructureStatus, WorkerConfig, WorkerStatus};
use super::image::{MEMBER, kept_images, used_before};
use super::network::{STACK_PATH, stack};
use crate::pool::hash::ProviderItems;
use crate::provider::documents::{for_nodes, pool_config};
use crate::provider::explanation::EffectiveInput;
use crate::provider::image::{SelectedImage, UsedImage, WorkerImages, architecture, used_images_document};
use crate::provider::machine_class::{ClassContent, node_template, operating_system_labels};
use crate::provider::zonal::{PoolInputs, ZonalPlanner, ZonalProvider};
use crate::provider::{PoolPlan, PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::WorkerPool;
use wire::api::gotext::quantity::Quantity;
use wire::api::machine::MachineClassNodeTemplate;

/// The GPU resource in a node template.
pub(super) const GPU: &str = "gpu";

/// Values that all pools of one Worker share.
pub(super) struct GcpWorker<'a> {
    pub(super) context: WorkerContext<'a>,
    pub(super) infrastructure: InfrastructureStatus,
    pub(super) subnet: String,
    used: Vec<UsedImage>,
}

/// Values that all zones of a pool share.
pub(super) struct GcpPool {
    /// Labels of machines and of all disks.
    pub(super) labels: BTreeMap<String, String>,
    /// Disks without the image of the boot disk.
    pub(super) disks: Vec<Value>,
}

impl<'a> GcpWorker<'a> {
    /// Decodes the documents that all pools share.
    pub(super) fn open(context: WorkerContext<'a>) -> Result<ZonalPlanner<'a, Self>, WorkerError> {
        let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
        let used = used_before(&context)?;
        let images = WorkerImages::open_with(&Gcp, context, kept_images(&used))?;
        let subnets = &infrastructure.networks.subnets;
        let subnet = for_nodes(subnets, "networks.subnets", "subnet", |subnet| &subnet.purpose)?.name.clone();
        Ok(ZonalPlanner { context, images, worker: Self { context, infrastructure, subnet, used } })
    }

    pub(super) fn region(&self) -> &str {
        &self.context.worker.spec.region
    }

    pub(super) fn technical_id(&self) -> &str {
        &self.context.shoot.status.technical_id
    }

    /// The node template of the pool, overridden by its provider config; `None` if the pool has no template.
    fn node_template(
        &self,
        pool: &WorkerPool,
        config: &WorkerConfig,
        zone: &str,
    ) -> Result<Option<MachineClassNodeTemplate>, PoolProblem> {
        let overrides = config.node_template.as_ref();
        let gpus = config.gpu.as_ref().map(|gpu| gpu.count).filter(|count| *count != 0);
        let Some(given) = &pool.node_template else {
            return match overrides {
                // The Go extension panics here.
                Some(_) => Err(missing_template("a node template that providerConfig.nodeTemplate can override")),
                None => Ok(None),
            };
        };
        let adds_capacity = gpus.is_some() || overrides.is_some_and(|overrides| !overrides.capacity.is_empty());
        if given.capacity.is_empty() && adds_capacity {
            return Err(missing_template("a capacity that providerConfig can add to"));
        }
        let mut template = node_template(&self.context, pool, zone.to_owned(), overrides);
        if let (Some(template), Some(count)) = (&mut template, gpus) {
            template.capacity.insert(GPU.to_owned(), Quantity::from(i64::from(count)));
        }
        Ok(template)
    }
}

fn missing_template(what: &str) -> PoolProblem {
    PoolProblem::field("nodeTemplate", format!("required: {what}"))
}

impl ZonalProvider for GcpWorker<'_> {
    type Config = WorkerConfig;
    type Shared = GcpPool;
    const ZONE_LABELS: &'static [&'static str] = &["topology.gke.io/zone"];

    fn config(pool: &WorkerPool) -> Result<WorkerConfig, PoolProblem> {
        pool_config(pool)
    }

    fn hash_items(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<ProviderItems, PoolProblem> {
        Ok(super::hash_data::provider_items(pool, config)?)
    }

    fn shared(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<GcpPool, PoolProblem> {
        let labels = super::labels::machine_labels(&self.context, pool);
        Ok(GcpPool { disks: disks(pool, config, &labels)?, labels })
    }

    fn class_content(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<ClassContent, PoolProblem> {
        let node_template = self.node_template(inputs.pool, &inputs.config, zone)?;
        Ok(ClassContent {
            provider: "GCP",
            labels: operating_system_labels(inputs.pool),
            provider_spec: self.provider_spec(inputs, zone, node_template.as_ref()),
            node_template,
        })
    }

    fn status_image(&self, pool: &WorkerPool, image: &SelectedImage<'_>) -> Value {
        UsedImage::of(&pool.machine_image, image, &self.used, architecture(pool), None).to_entry(MEMBER)
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        used_images_document::<WorkerStatus>(&self.used, declared, planned, failed, MEMBER)
    }

    fn explain_inputs(&self, _pool: &WorkerPool, config: Option<&WorkerConfig>) -> Vec<EffectiveInput> {
        let mut inputs = vec![EffectiveInput::of_infrastructure("networks.subnets", "subnet", &self.subnet)];
        if let Some(stack) = stack(&self.infrastructure, self.context.shoot) {
            inputs.push(EffectiveInput::of_infrastructure(STACK_PATH, "network stack", stack.stack_type));
        }
        let own = config.and_then(|config| config.service_account.as_ref());
        let account = &self.infrastructure.service_account_email;
        if own.is_none() && !account.is_empty() {
            inputs.push(EffectiveInput::of_infrastructure("serviceAccountEmail", "service account", account));
        }
        inputs.extend(config.map(|config| config_members(config).inputs).unwrap_or_default());
        inputs
    }
}
