//! Planning and explanation of OpenStack pools.

use std::sync::Arc;

use serde_json::{Value, json};

use super::OpenStack;
use super::credentials::credentials;
use super::documents::{CloudProfileConfig, InfrastructureStatus, MachineLabel, WorkerConfig, WorkerStatus};
use super::image::{images_after, kept_images, status_image};
use super::root_disk::{RootDisk, root_disk};
use super::server_groups::{identity_url, policy, profile_config, records};
use crate::pool::hash::{HashError, HashItems, ProviderItems};
use crate::provider::documents::{for_nodes, pool_config};
use crate::provider::explanation::{EffectiveInput, Origin};
use crate::provider::image::{SelectedImage, WorkerImages, images_document};
use crate::provider::machine_class::{ClassContent, PURPOSE, node_template_or_empty, operating_system_labels};
use crate::provider::profile::ProfileConfig;
use crate::provider::zonal::{PoolInputs, ZonalPlanner, ZonalProvider};
use crate::provider::{DependencyRecord, PoolPlan, PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::{UpdateStrategy, WorkerPool};

/// Values that all pools of one Worker share.
pub(super) struct OpenStackWorker<'a> {
    pub(super) context: WorkerContext<'a>,
    pub(super) infrastructure: InfrastructureStatus,
    pub(super) security_group: String,
    status: WorkerStatus,
    /// Recorded server groups after their reconciliation.
    server_groups: Vec<DependencyRecord>,
}

/// Values that all zones of a pool share.
pub(super) struct OpenStackPool {
    pub(super) root_disk: RootDisk,
    /// Id of the pool's server group.
    pub(super) server_group: Option<String>,
}

impl<'a> OpenStackWorker<'a> {
    /// Decodes the documents that all pools share.
    pub(super) fn open(context: WorkerContext<'a>) -> Result<ZonalPlanner<'a, Self>, WorkerError> {
        let config: Arc<CloudProfileConfig> = profile_config(&context)?;
        identity_url(&config, &context.worker.spec.region, &context.profile_config_path())?;
        credentials(context.worker, context.secrets)?;
        let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
        let status: WorkerStatus = context.provider_status()?.unwrap_or_default();
        let groups = &infrastructure.security_groups;
        let security_group =
            for_nodes(groups, "securityGroups", "security group", |group| &group.purpose)?.name.clone();
        for_nodes(&infrastructure.networks.subnets, "networks.subnets", "subnet", |subnet| &subnet.purpose)?;
        let kept = kept_images(&status, &context.cloud_profile.spec.machine_capabilities);
        let images = WorkerImages::new(&OpenStack, context, Some(config as Arc<dyn ProfileConfig>), kept);
        let server_groups = records(&context, &status)?;
        let worker = Self { context, infrastructure, security_group, status, server_groups };
        Ok(ZonalPlanner { context, images, worker })
    }

    /// The server group of the pool, if its provider config requests one.
    fn server_group(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<Option<String>, PoolProblem> {
        if policy(config).is_none() {
            return Ok(None);
        }
        if let Some(dependencies) = self.context.dependencies {
            dependencies.check(&pool.name, SERVER_GROUP)?;
        }
        let recorded = self.server_groups.iter().rev().find(|record| record.pool_name == pool.name);
        let missing = || PoolProblem::field(SERVER_GROUP, "the provider status records no server group of the pool");
        recorded.map(|record| Some(record.id.clone())).ok_or_else(missing)
    }
}

/// Path of the server group within a pool.
const SERVER_GROUP: &str = "providerConfig.serverGroup";

/// Name in the hash of the server group, which the provider status records.
const SERVER_GROUP_INPUT: &str = "server group";
/// Names in the hash of what the infrastructure and the provider status give.
pub(super) const INFRASTRUCTURE_INPUTS: &[&str] = &[SERVER_GROUP_INPUT];

/// Returns the OpenStack hash inputs of a pool.
///
/// # Errors
/// If the pool has no node agent Secret name, or its server group is missing.
pub(super) fn provider_items(
    pool: &WorkerPool,
    config: &WorkerConfig,
    server_group: impl FnOnce() -> Result<Option<String>, PoolProblem>,
) -> Result<ProviderItems, PoolProblem> {
    if pool.node_agent_secret_name.is_none() {
        return Err(HashError::NodeAgentSecretMissing.into());
    }
    let mut items = HashItems::default();
    if !pool.update_strategy.is_some_and(UpdateStrategy::is_in_place) {
        items.push_some(SERVER_GROUP_INPUT, server_group()?);
    }
    let rolls = config.machine_labels.iter().filter(|label| label.trigger_rolling_on_update);
    let mut labels: Vec<_> = rolls.map(|MachineLabel { name, value, .. }| (name, format!("{name}={value}"))).collect();
    labels.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (name, text) in labels {
        items.push(format!("providerConfig.machineLabels[{name}]"), text);
    }
    let mut groups: Vec<_> = config.additional_security_groups.iter().collect();
    groups.sort();
    for group in groups {
        items.push(format!("providerConfig.additionalSecurityGroups[{group}]"), group.as_str());
    }
    Ok(ProviderItems { with_node_agent_secret: items, ..ProviderItems::default() })
}

impl ZonalProvider for OpenStackWorker<'_> {
    type Config = WorkerConfig;
    type Shared = OpenStackPool;
    const ZONE_LABELS: &'static [&'static str] =
        &["topology.cinder.csi.openstack.org/zone", "topology.manila.csi.openstack.org/zone"];

    fn config(pool: &WorkerPool) -> Result<WorkerConfig, PoolProblem> {
        pool_config(pool)
    }

    /// Hashes the id of the server group, the machine labels with `triggerRollingOnUpdate`, and the security groups.
    /// In-place pools have no such inputs.
    fn hash_items(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<ProviderItems, PoolProblem> {
        provider_items(pool, config, || self.server_group(pool, config))
    }

    fn shared(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<OpenStackPool, PoolProblem> {
        Ok(OpenStackPool { root_disk: root_disk(&self.context, pool)?, server_group: self.server_group(pool, config)? })
    }

    fn class_content(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<ClassContent, PoolProblem> {
        let mut labels = operating_system_labels(inputs.pool);
        labels.insert(PURPOSE.0.to_owned(), PURPOSE.1.to_owned());
        let overrides = inputs.config.node_template.as_ref();
        Ok(ClassContent {
            provider: "OpenStack",
            labels,
            node_template: Some(node_template_or_empty(&self.context, inputs.pool, zone, overrides)?),
            provider_spec: self.provider_spec(inputs, zone),
        })
    }

    fn status_image(&self, pool: &WorkerPool, image: &SelectedImage<'_>) -> Value {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        json!(status_image(pool, image, &self.status.machine_images, declared))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        let images = images_after(&self.status.machine_images, declared, planned, failed)?;
        let mut document = images_document::<WorkerStatus>(images);
        if !self.server_groups.is_empty() {
            document["serverGroupDependencies"] = json!(self.server_groups);
        }
        Ok(document)
    }

    fn explain_inputs(&self, pool: &WorkerPool, config: Option<&WorkerConfig>) -> Vec<EffectiveInput> {
        let mut inputs = vec![
            EffectiveInput::of_infrastructure("networks.id", "network", &self.infrastructure.networks.id),
            EffectiveInput::of_infrastructure("securityGroups", "security group", &self.security_group),
        ];
        if let Some(id) = config.and_then(|config| self.server_group(pool, config).ok().flatten()) {
            let path = "serverGroupDependencies";
            inputs.push(EffectiveInput::of(Origin::ProviderStatus, path, "server group", &id));
        }
        let Some(config) = config else { return inputs };
        let mut given = |path: &str, name, value: String| {
            if !value.is_empty() {
                inputs.push(EffectiveInput::of(Origin::Worker, format!("providerConfig.{path}"), name, value));
            }
        };
        given("serverGroup.policy", "server group policy", policy(config).unwrap_or_default().to_owned());
        let labels = config.machine_labels.iter().map(|label| format!("{}={}", label.name, label.value));
        given("machineLabels", "machine labels", labels.collect::<Vec<_>>().join(", "));
        given("additionalSecurityGroups", "additional security groups", config.additional_security_groups.join(", "));
        let template = config.node_template.as_ref().map(|template| template.capacity_text());
        given("nodeTemplate.capacity", "capacity override", template.unwrap_or_default());
        inputs
    }
}
