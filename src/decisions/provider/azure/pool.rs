//! Plans an Azure pool: machine classes and target deployments.

use std::borrow::Cow;

use serde_json::json;

use super::AzureWorker;
use super::documents::{Subnet, WorkerConfig};
use super::hash_data::{PlacementInputs, config_items, provider_items};
use super::image::AzureImage;
use super::network::{is_network_accelerated, restrict_by_profile, subnet_of_zone};
use super::scale_sets::check_pool;
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashItems, HashedPool, ProviderItems, pool_hash};
use crate::pool::names::{ClassName, class_name, deployment_name};
use crate::pool::volumes::sorted_data_volumes;
use crate::pool::zones::{ZonePosition, positions};
use crate::provider::documents::pool_config;
use crate::provider::image::{SelectedImage, architecture};
use crate::provider::machine_class::{ClassContent, PURPOSE, machine_class, node_template, operating_system_labels};
use crate::provider::{DependencyRecord, MachinePlan, PoolPlan, PoolProblem, TargetDeployment, UserData, user_data};
use wire::api::gardener::WorkerPool;
use wire::api::machine::MachineClass;

/// The placement of a machine deployment.
pub(super) enum Placement<'a> {
    /// A zone, with its share of the machine counts of the pool.
    Zone { zone: &'a str, position: ZonePosition, subnet: &'a Subnet, subnet_counts: bool },
    /// A scale set, with all machines of the pool.
    ScaleSet { scale_set: &'a DependencyRecord, subnet: &'a Subnet },
}

/// Values that all placements of a pool share.
pub(super) struct PoolInputs<'a> {
    pub(super) pool: &'a WorkerPool,
    pub(super) config: WorkerConfig,
    config_items: HashItems,
    pub(super) image: AzureImage<'a>,
    pub(super) accelerated: bool,
    user_data: UserData,
}

impl AzureWorker<'_> {
    pub(super) fn plan(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolProblem> {
        let inputs = self.pool_inputs(pool)?;
        let placements = self.placements(pool)?;
        let mut in_place_hash = None;
        let mut machines = Vec::with_capacity(placements.len());
        for placement in &placements {
            let hashed = self.hash(pool, &inputs.config_items, placement)?;
            machines.push(self.machine_plan(&inputs, placement, &hashed)?);
            in_place_hash = hashed.in_place;
        }
        if placements.is_empty() {
            // Without placements, the pool is hashed anyway to report errors.
            in_place_hash = pool_hash(
                pool,
                self.context.shoot,
                &self.items(pool, &inputs.config_items, PlacementInputs::default()),
            )?
            .in_place;
        }
        let kept = inputs.image.to_status(&pool.machine_image, architecture(pool));
        Ok(PoolPlan { pool: pool.name.clone(), machines, status_image: json!(kept), in_place_hash })
    }

    fn pool_inputs<'a>(&'a self, pool: &'a WorkerPool) -> Result<PoolInputs<'a>, PoolProblem> {
        let image = self.image(self.images.select(pool).selected?);
        let config: WorkerConfig = pool_config(pool)?;
        check_storage_uri(&config)?;
        Ok(PoolInputs {
            pool,
            config_items: config_items(pool, &config)?,
            config,
            accelerated: self.is_accelerated(pool, &image)?,
            image,
            user_data: user_data(&self.context, pool)?,
        })
    }

    pub(super) fn image<'a>(&'a self, selected: SelectedImage<'a>) -> AzureImage<'a> {
        AzureImage::new(selected, self.config.as_deref(), self.status.as_ref())
    }

    pub(super) fn is_accelerated(&self, pool: &WorkerPool, image: &AzureImage<'_>) -> Result<bool, PoolProblem> {
        let mut machine = Cow::Borrowed(&image.selected.machine);
        if self.old_format {
            let missing = || PoolProblem::ProfileConfigMissing(self.profile_name());
            let config = self.config.as_deref().ok_or_else(missing)?;
            restrict_by_profile(machine.to_mut(), &pool.machine_type, config);
        }
        Ok(is_network_accelerated(&machine, image.capabilities(), self.images.definitions()))
    }

    /// One placement per zone, or the scale set of a non-zonal infrastructure.
    pub(super) fn placements<'a>(&'a self, pool: &'a WorkerPool) -> Result<Vec<Placement<'a>>, PoolProblem> {
        if !self.infrastructure.zoned {
            let scale_set = self.scale_set(pool)?;
            return Ok(vec![Placement::ScaleSet { scale_set, subnet: &self.nodes_subnet }]);
        }
        positions(&pool.zones)
            .map(|(position, zone)| {
                let (subnet, subnet_counts) = subnet_of_zone(&self.infrastructure, &self.nodes_subnet, zone)?;
                Ok(Placement::Zone { zone, position, subnet, subnet_counts })
            })
            .collect()
    }

    /// The only scale set recorded for the pool.
    fn scale_set(&self, pool: &WorkerPool) -> Result<&DependencyRecord, PoolProblem> {
        check_pool(pool).map_err(PoolProblem::ScaleSet)?;
        if let Some(dependencies) = self.context.dependencies {
            dependencies.check(&pool.name, "zones")?;
        }
        let of_pool: Vec<_> = self.scale_sets.iter().filter(|record| record.pool_name == pool.name).collect();
        match of_pool.as_slice() {
            [scale_set] => Ok(scale_set),
            [] => Err(PoolProblem::ScaleSet(
                "the infrastructure has no zones (spec.infrastructureProviderStatus.zoned is not true), and the provider \
                 status records no scale set for the pool"
                    .to_owned(),
            )),
            several => Err(PoolProblem::ScaleSet(format!(
                "the provider status records {} scale sets for the pool; leave only the one its machines are in",
                several.len()
            ))),
        }
    }

    fn items(&self, pool: &WorkerPool, config_items: &HashItems, facts: PlacementInputs<'_>) -> ProviderItems {
        let facts = PlacementInputs { identity: self.infrastructure.identity.as_ref(), ..facts };
        provider_items(&sorted_data_volumes(pool), facts, config_items)
    }

    pub(super) fn hash(
        &self,
        pool: &WorkerPool,
        config_items: &HashItems,
        placement: &Placement<'_>,
    ) -> Result<HashedPool, PoolProblem> {
        let facts = match placement {
            Placement::Zone { subnet, subnet_counts, .. } => PlacementInputs {
                zone_subnet: subnet_counts.then_some(subnet.name.as_str()),
                ..PlacementInputs::default()
            },
            Placement::ScaleSet { scale_set, .. } => {
                PlacementInputs { scale_set: Some(&scale_set.name), ..PlacementInputs::default() }
            }
        };
        Ok(pool_hash(pool, self.context.shoot, &self.items(pool, config_items, facts))?)
    }

    fn machine_plan(
        &self,
        inputs: &PoolInputs<'_>,
        placement: &Placement<'_>,
        hashed: &HashedPool,
    ) -> Result<MachinePlan, PoolProblem> {
        let pool = inputs.pool;
        let technical_id = &self.context.shoot.status.technical_id;
        let suffix = placement.name_suffix();
        let class_name = class_name(technical_id, &pool.name, &hashed.hash, &suffix);
        let mut labels = pool.labels.clone();
        if let Placement::Zone { zone, .. } = placement {
            labels.insert("topology.disk.csi.azure.com/zone".to_owned(), self.node_zone(zone));
        }
        let name = deployment_name(technical_id, &pool.name, &suffix);
        let mut deployment = TargetDeployment::of_pool(pool, name, &class_name, placement.bounds(pool)?, labels);
        deployment.preserve_failed_machines(pool, placement.position());
        Ok(MachinePlan {
            zone: placement.zone().map(str::to_owned),
            class: self.machine_class(inputs, placement, &class_name)?,
            user_data: inputs.user_data.clone(),
            deployment,
            hash_items: hashed.items.clone(),
        })
    }

    fn machine_class(
        &self,
        inputs: &PoolInputs<'_>,
        placement: &Placement<'_>,
        name: &ClassName,
    ) -> Result<MachineClass, PoolProblem> {
        let mut labels = operating_system_labels(inputs.pool);
        labels.insert(PURPOSE.0.to_owned(), PURPOSE.1.to_owned());
        let content = ClassContent {
            provider: "Azure",
            labels,
            node_template: node_template(
                &self.context,
                inputs.pool,
                placement.zone().map_or_else(|| "no-zone".to_owned(), |zone| self.node_zone(zone)),
                inputs.config.node_template.as_ref(),
            ),
            provider_spec: self.provider_spec(inputs, placement)?,
        };
        Ok(machine_class(&self.context, name, content))
    }

    /// The zone in Azure's node labels: `<region>-<zone>`.
    fn node_zone(&self, zone: &str) -> String {
        format!("{}-{zone}", self.context.worker.spec.region)
    }

    pub(super) fn profile_name(&self) -> String {
        self.context.cloud_profile.metadata.name.clone().unwrap_or_default()
    }
}

impl Placement<'_> {
    pub(super) fn zone(&self) -> Option<&str> {
        match self {
            Self::Zone { zone, .. } => Some(zone),
            Self::ScaleSet { .. } => None,
        }
    }

    fn position(&self) -> Option<ZonePosition> {
        match self {
            Self::Zone { position, .. } => Some(*position),
            Self::ScaleSet { .. } => None,
        }
    }

    pub(super) fn subnet(&self) -> &Subnet {
        match self {
            Self::Zone { subnet, .. } | Self::ScaleSet { subnet, .. } => subnet,
        }
    }

    pub(super) fn name_suffix(&self) -> String {
        self.zone().map(|zone| format!("-z{zone}")).unwrap_or_default()
    }

    pub(super) fn bounds(&self, pool: &WorkerPool) -> Result<Bounds, PoolProblem> {
        match self {
            Self::Zone { position, .. } => Ok(Bounds::in_zone(pool, *position)?),
            Self::ScaleSet { .. } => Ok(Bounds::whole(pool)),
        }
    }
}

/// The storage URI is the only free text of a pool that is passed to the cloud unchanged.
fn check_storage_uri(config: &WorkerConfig) -> Result<(), PoolProblem> {
    let uri =
        config.diagnostics_profile.as_ref().and_then(|profile| profile.storage_uri.as_deref()).unwrap_or_default();
    if uri.contains(|character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')) {
        let path = "providerConfig.diagnosticsProfile.storageURI";
        return Err(PoolProblem::field(path, "holds a line break or control character"));
    }
    Ok(())
}
