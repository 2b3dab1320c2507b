//! One pool of Azure: from its fields to machine classes and wanted deployments (spec/azure-worker.md section 7.1).

use std::borrow::Cow;

use super::AzureWorker;
use super::cloud::AzureCloud;
use super::disks::{data_disks, os_disk, sorted_data_volumes};
use super::documents::{ImageReference, ScaleSetDependency, Subnet, WorkerConfig};
use super::hash_data::{UnitFacts, config_items, provider_items};
use super::image::{SelectedImage, image_in_profile, image_in_status, status_image};
use super::machine_class as class;
use super::network::{is_network_accelerated, restrict_by_profile, subnet_of_zone};
use super::scale_sets::check_pool;
use super::tags::machine_tags;
use crate::api::gardener::{Capabilities, MachineType, WorkerPool};
use crate::api::machine::MachineClass;
use crate::capabilities::{ARCHITECTURE, complete_machine_type};
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashItems, HashedPool, ProviderItems, pool_hash};
use crate::pool::names::{ClassName, class_name, deployment_name};
use crate::pool::zones::{ZonePosition, positions};
use crate::provider::documents::pool_config;
use crate::provider::image::{architecture, machine_type, unresolved};
use crate::provider::machine_class::{ClassContent, machine_class, node_template, operating_system_labels};
use crate::provider::{MachinePlan, PoolPlan, PoolProblem, UserData, WantedDeployment, user_data};

/// Where the machines of one entry of a plan are placed.
pub(super) enum Placement<'a> {
    /// In a zone, with a share of the pool's numbers.
    Zone { zone: &'a str, position: ZonePosition, subnet: &'a Subnet, subnet_counts: bool },
    /// In a scale set, with all numbers of the pool.
    ScaleSet { scale_set: &'a ScaleSetDependency, subnet: &'a Subnet },
}

/// What every placement of a pool shares.
struct PoolInputs<'a> {
    pool: &'a WorkerPool,
    config: WorkerConfig,
    config_items: HashItems,
    image: SelectedImage<'a>,
    reference: ImageReference<'a>,
    architecture: &'a str,
    accelerated: bool,
    user_data: UserData,
}

impl AzureWorker<'_> {
    pub(super) fn plan(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolProblem> {
        let machine = self.machine_capabilities(pool)?;
        let inputs = self.pool_inputs(pool, &machine)?;
        let placements = self.placements(pool)?;
        let mut in_place_hash = None;
        let mut machines = Vec::with_capacity(placements.len());
        for placement in &placements {
            let hashed = self.hash(pool, &inputs.config_items, placement)?;
            machines.push(self.machine_plan(&inputs, placement, &hashed)?);
            in_place_hash = hashed.in_place;
        }
        if placements.is_empty() {
            // Nothing to name, but what can't be hashed is wrong all the same.
            in_place_hash =
                pool_hash(pool, self.context.shoot, &self.items(pool, &inputs.config_items, UnitFacts::default()))?
                    .in_place;
        }
        let machine_architecture = machine.0.get(ARCHITECTURE).and_then(|values| values.first());
        let kept = status_image(
            &pool.machine_image,
            &inputs.image,
            machine_architecture.map_or(inputs.architecture, String::as_str),
        );
        Ok(PoolPlan {
            pool: pool.name.clone(),
            machines,
            status_image: serde_json::to_value(kept).unwrap_or_default(),
            in_place_hash,
        })
    }

    /// What the machine type can do; the pool's architecture fills a gap.
    pub(super) fn machine_capabilities(&self, pool: &WorkerPool) -> Result<Capabilities, PoolProblem> {
        Ok(self.capabilities_of(machine_type(&self.context, pool)?, pool))
    }

    pub(super) fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities {
        complete_machine_type(machine_type.capabilities.as_ref(), architecture(pool), &self.definitions)
    }

    fn pool_inputs<'a>(&'a self, pool: &'a WorkerPool, machine: &Capabilities) -> Result<PoolInputs<'a>, PoolProblem> {
        let image = self.select_image(pool, machine)?;
        let reference = image.references.preferred().ok_or_else(|| PoolProblem::ImageWithoutReference {
            image: pool.machine_image.name.clone(),
            version: pool.machine_image.version.clone(),
            place: image.source.place(),
            expected: ImageReference::MEMBERS,
        })?;
        let config: WorkerConfig = pool_config(pool)?;
        check_storage_uri(&config)?;
        Ok(PoolInputs {
            pool,
            config_items: config_items(pool, &config)?,
            config,
            accelerated: self.is_accelerated(pool, machine, &image)?,
            image,
            reference,
            architecture: architecture(pool),
            user_data: user_data(&self.context, pool)?,
        })
    }

    pub(super) fn select_image<'a>(
        &'a self,
        pool: &WorkerPool,
        machine: &Capabilities,
    ) -> Result<SelectedImage<'a>, PoolProblem> {
        let image = &pool.machine_image;
        image_in_profile(self.config.as_deref(), image, machine, &self.definitions).or_else(|in_profile| {
            image_in_status(self.status.as_ref(), image, machine, &self.definitions)
                .map_err(|in_status| unresolved(pool, &in_profile, &in_status))
        })
    }

    pub(super) fn is_accelerated(
        &self,
        pool: &WorkerPool,
        machine: &Capabilities,
        image: &SelectedImage<'_>,
    ) -> Result<bool, PoolProblem> {
        let mut machine = Cow::Borrowed(machine);
        if self.old_format {
            let config = self
                .config
                .as_deref()
                .ok_or_else(|| PoolProblem::ProfileConfigMissing { cloud_profile: self.profile_name() })?;
            restrict_by_profile(machine.to_mut(), &pool.machine_type, config);
        }
        Ok(is_network_accelerated(&machine, image, &self.definitions))
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

    /// The one scale set that is recorded for the pool.
    fn scale_set(&self, pool: &WorkerPool) -> Result<&ScaleSetDependency, PoolProblem> {
        check_pool(pool).map_err(PoolProblem::ScaleSet)?;
        if let Some(dependencies) = self.context.dependencies {
            if let Some(failure) = dependencies.failures.get(&pool.name) {
                return Err(PoolProblem::Dependency(failure.clone()));
            }
            if let Some(awaited) = dependencies.waiting.get(&pool.name) {
                return Err(PoolProblem::DependencyAwaited(awaited.clone()));
            }
        }
        let of_pool: Vec<_> = self.scale_sets.iter().filter(|record| record.pool_name == pool.name).collect();
        match of_pool.as_slice() {
            [scale_set] => Ok(scale_set),
            [] => Err(PoolProblem::ScaleSet(
                "the infrastructure has no zones, and the provider status records no scale set for the pool".to_owned(),
            )),
            several => Err(PoolProblem::ScaleSet(format!(
                "the provider status records {} scale sets for the pool; leave only the one its machines are in",
                several.len()
            ))),
        }
    }

    fn items(&self, pool: &WorkerPool, config_items: &HashItems, facts: UnitFacts<'_>) -> ProviderItems {
        let facts = UnitFacts { identity: self.infrastructure.identity.as_ref(), ..facts };
        provider_items(&sorted_data_volumes(pool), facts, config_items)
    }

    pub(super) fn hash(
        &self,
        pool: &WorkerPool,
        config_items: &HashItems,
        placement: &Placement<'_>,
    ) -> Result<HashedPool, PoolProblem> {
        let facts = match placement {
            Placement::Zone { subnet, subnet_counts, .. } => {
                UnitFacts { zone_subnet: subnet_counts.then_some(subnet.name.as_str()), ..UnitFacts::default() }
            }
            Placement::ScaleSet { scale_set, .. } => {
                UnitFacts { scale_set: Some(&scale_set.name), ..UnitFacts::default() }
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
        let deployment = WantedDeployment::of_pool(pool, name, &class_name, placement.bounds(pool)?, labels);
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
        labels.insert("gardener.cloud/purpose".to_owned(), "machineclass".to_owned());
        let content = ClassContent {
            provider: "Azure",
            labels,
            node_template: node_template(
                &self.context,
                inputs.pool,
                placement.zone().map_or_else(|| "no-zone".to_owned(), |zone| self.node_zone(zone)),
                inputs.config.node_template.as_ref(),
            ),
            provider_spec: serde_json::to_value(self.provider_spec(inputs, placement)?).unwrap_or_default(),
        };
        Ok(machine_class(&self.context, name, content))
    }

    fn provider_spec(
        &self,
        inputs: &PoolInputs<'_>,
        placement: &Placement<'_>,
    ) -> Result<class::ProviderSpec, PoolProblem> {
        let (pool, worker) = (inputs.pool, self.context.worker);
        let infrastructure = &self.infrastructure;
        let confidential = class::is_confidential(&pool.machine_type);
        Ok(class::ProviderSpec {
            cloud_configuration: class::Name { name: AzureCloud::of_region(&worker.spec.region).name().to_owned() },
            location: worker.spec.region.clone(),
            resource_group: infrastructure.resource_group.name.clone(),
            subnet_info: class::SubnetInfo {
                vnet_name: infrastructure.networks.vnet.name.clone(),
                vnet_resource_group: infrastructure.networks.vnet.resource_group.clone(),
                subnet_name: placement.subnet().name.clone(),
            },
            tags: machine_tags(&self.context.shoot.status.technical_id, &pool.labels),
            properties: class::Properties {
                security_profile: confidential.then(|| class::SecurityProfile {
                    security_type: "ConfidentialVM".to_owned(),
                    uefi_settings: class::UefiSettings { vtpm_enabled: true },
                }),
                zone: placement.zone().map(class::zone_value),
                machine_set: match placement {
                    Placement::Zone { .. } => None,
                    Placement::ScaleSet { scale_set, .. } => {
                        Some(class::MachineSetReference { id: scale_set.id.clone(), kind: "vmo" })
                    }
                },
                identity_id: infrastructure.identity.as_ref().map(|identity| identity.id.clone()),
                network_profile: inputs.accelerated.then_some(class::NetworkProfile { accelerated_networking: true }),
                diagnostics_profile: inputs.config.diagnostics_profile.as_ref().map(|profile| {
                    class::DiagnosticsProfile { enabled: profile.enabled, storage_uri: profile.storage_uri.clone() }
                }),
                hardware_profile: class::HardwareProfile { vm_size: pool.machine_type.clone() },
                os_profile: class::OsProfile {
                    admin_username: "core",
                    linux_configuration: class::LinuxConfiguration {
                        disable_password_authentication: true,
                        ssh: class::Ssh {
                            public_keys: class::PublicKey {
                                path: "/home/core/.ssh/authorized_keys",
                                key_data: self.ssh_key(),
                            },
                        },
                    },
                },
                storage_profile: class::StorageProfile {
                    image_reference: class::image_reference(
                        inputs.reference,
                        inputs.image.skip_marketplace_agreement == Some(true),
                    ),
                    os_disk: os_disk(pool, &inputs.config, confidential)?,
                    data_disks: data_disks(&sorted_data_volumes(pool), &inputs.config)?,
                },
                capacity_reservation: inputs
                    .config
                    .capacity_reservation
                    .as_ref()
                    .and_then(|reservation| reservation.capacity_reservation_group_id.clone())
                    .map(|id| class::CapacityReservation { capacity_reservation_group_id: id }),
            },
        })
    }

    /// The public key without the line break that key files end with.
    fn ssh_key(&self) -> Option<String> {
        let key = self.context.worker.spec.ssh_public_key.as_ref()?;
        let text = String::from_utf8_lossy(&key.0).trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// A zone as Azure labels nodes with it: `<region>-<zone>`.
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

/// A storage address is the one free text of a pool that reaches the cloud as it is.
fn check_storage_uri(config: &WorkerConfig) -> Result<(), PoolProblem> {
    let uri =
        config.diagnostics_profile.as_ref().and_then(|profile| profile.storage_uri.as_deref()).unwrap_or_default();
    if uri.contains(|character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')) {
        return Err(PoolProblem::ControlCharacter { path: "providerConfig.diagnosticsProfile.storageURI" });
    }
    Ok(())
}
