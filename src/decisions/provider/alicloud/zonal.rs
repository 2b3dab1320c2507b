//! Planning and explanation of AliCloud pools.

use serde_json::{Value, json};

use super::AliCloud;
use super::disks::{Disks, disks};
use super::documents::{AccountImage, InfrastructureStatus, VSwitch, WorkerStatus};
use super::image::{is_same, kept_images, status_image};
use crate::pool::hash::{HashItems, ProviderItems};
use crate::pool::zones::ZonePosition;
use crate::provider::documents::for_nodes;
use crate::provider::explanation::EffectiveInput;
use crate::provider::image::{SelectedImage, WorkerImages, images_document, recorded_images};
use crate::provider::machine_class::{ClassContent, PURPOSE, node_template, operating_system_labels};
use crate::provider::zonal::{PoolInputs, ZonalPlanner, ZonalProvider};
use crate::provider::{PoolPlan, PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::{DataVolume, Volume, WorkerPool};
use wire::api::machine::MachineClassNodeTemplate;

/// Values that all pools of one Worker share.
pub(super) struct AliCloudWorker<'a> {
    pub(super) context: WorkerContext<'a>,
    pub(super) security_group: String,
    infrastructure: InfrastructureStatus,
    used: Vec<AccountImage>,
}

impl<'a> AliCloudWorker<'a> {
    /// Decodes the documents that all pools share.
    pub(super) fn open(context: WorkerContext<'a>) -> Result<ZonalPlanner<'a, Self>, WorkerError> {
        let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
        let status: Option<WorkerStatus> = context.provider_status()?;
        let used = status.map(|status| status.machine_images).unwrap_or_default();
        let images = WorkerImages::open_with(&AliCloud, context, kept_images(&infrastructure))?;
        let groups = &infrastructure.vpc.security_groups;
        let security_group =
            for_nodes(groups, "vpc.securityGroups", "security group", |group| &group.purpose)?.id.clone();
        Ok(ZonalPlanner { context, images, worker: Self { context, security_group, infrastructure, used } })
    }

    /// The first vSwitch for nodes in a zone.
    pub(super) fn vswitch(&self, zone: &str) -> Option<&VSwitch> {
        self.infrastructure.vpc.vswitches.iter().find(|known| known.purpose == "nodes" && known.zone == zone)
    }

    fn node_template(&self, pool: &WorkerPool, zone: &str) -> Option<MachineClassNodeTemplate> {
        let template = node_template(&self.context, pool, zone.to_owned(), None)?;
        Some(MachineClassNodeTemplate { virtual_capacity: [].into(), ..template })
    }
}

/// Hash inputs of AliCloud.
pub(super) fn provider_items(pool: &WorkerPool) -> ProviderItems {
    let mut items = HashItems::default();
    if let Some(Volume { volume_type: _, size: _, encrypted }) = &pool.volume {
        items.push_some("volume.encrypted", encrypted.map(|encrypted| encrypted.to_string()));
    }
    for DataVolume { name, volume_type, size, encrypted } in &pool.data_volumes {
        let path = format!("dataVolumes[{name}]");
        items.push(format!("{path}.size"), size.as_str());
        items.push_some(format!("{path}.type"), volume_type.as_deref());
        items.push_some(format!("{path}.encrypted"), encrypted.map(|encrypted| encrypted.to_string()));
    }
    ProviderItems {
        without_node_agent_secret: items.clone(),
        with_node_agent_secret: items,
        in_place: HashItems::default(),
    }
}

impl ZonalProvider for AliCloudWorker<'_> {
    type Config = ();
    type Shared = Disks;
    const ZONE_LABELS: &'static [&'static str] = &["topology.diskplugin.csi.alibabacloud.com/zone"];
    const PRESERVES_MACHINES: bool = false;

    /// The provider config is ignored.
    fn config(_pool: &WorkerPool) -> Result<(), PoolProblem> {
        Ok(())
    }

    /// Deployment names contain the name of the zone instead of its position in the pool.
    fn deployment_suffix(zone: &str, _position: ZonePosition) -> String {
        format!("-{zone}")
    }

    fn hash_items(&self, pool: &WorkerPool, _config: &()) -> Result<ProviderItems, PoolProblem> {
        Ok(provider_items(pool))
    }

    fn shared(&self, pool: &WorkerPool, _config: &()) -> Result<Disks, PoolProblem> {
        disks(pool, &self.context.shoot.status.technical_id)
    }

    fn class_content(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<ClassContent, PoolProblem> {
        let mut labels = operating_system_labels(inputs.pool);
        labels.insert(PURPOSE.0.to_owned(), PURPOSE.1.to_owned());
        Ok(ClassContent {
            provider: "Alicloud",
            labels,
            node_template: self.node_template(inputs.pool, zone),
            provider_spec: self.provider_spec(inputs, zone)?,
        })
    }

    fn status_image(&self, pool: &WorkerPool, image: &SelectedImage<'_>) -> Value {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        json!(status_image(pool, image, &self.infrastructure, declared))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        let is_same = |one: &AccountImage, other: &AccountImage| is_same(one, other, declared);
        Ok(images_document::<WorkerStatus>(recorded_images(&self.used, planned, failed, is_same)?))
    }

    fn explain_inputs(&self, pool: &WorkerPool, _config: Option<&()>) -> Vec<EffectiveInput> {
        let vswitches = pool.zones.iter().filter_map(|zone| {
            let VSwitch { id, .. } = self.vswitch(zone)?;
            Some(EffectiveInput::of_infrastructure("vpc.vswitches", "vSwitch", format!("{id} for zone {zone}")))
        });
        let mut inputs: Vec<EffectiveInput> = vswitches.collect();
        inputs.push(EffectiveInput::of_infrastructure("vpc.securityGroups", "security group", &self.security_group));
        inputs
    }
}
