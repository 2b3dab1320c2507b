//! The scale sets that the pools of a Worker need.

use crate::provider::azure::cloud::AzureCloud;
use crate::provider::azure::credentials::{Credentials, credentials};
use crate::provider::azure::documents::{
    CloudConfiguration, CloudProfileConfig, ConfiguredCloud, InfrastructureStatus, WorkerStatus,
};
use crate::provider::azure::profile_config;
use crate::provider::documents::{INFRASTRUCTURE_STATUS, PROVIDER_STATUS, decode};
use crate::provider::{DependencyFailure, DependencyRecord, WorkerContext, WorkerError, dependencies};
use wire::api::gardener::{Cluster, UpdateStrategy, Worker, WorkerPool};
use wire::api::secret::Secrets;

/// The number of fault domains that each pool needs. In zonal infrastructures, pools need no scale set.
pub type Needs = crate::provider::Needs<ScaleSetScope, i32>;
/// The target number of fault domains of a pool's scale set.
pub type PoolNeed = crate::provider::PoolNeed<i32>;

/// Location of the scale sets, and the credentials for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSetScope {
    /// Azure cloud.
    pub cloud: AzureCloud,
    /// Credentials for Azure.
    pub credentials: Credentials,
    /// Resource group of the shoot.
    pub resource_group: String,
    /// Region of the Worker.
    pub region: String,
    /// Namespace of the Worker.
    pub namespace: String,
    /// Whether the infrastructure is zonal, so that only leftover scale sets are relevant.
    pub zonal: bool,
}

impl ScaleSetScope {
    fn of_worker(
        worker: &Worker,
        secrets: &Secrets,
        cloud: AzureCloud,
        infrastructure: &InfrastructureStatus,
    ) -> Result<Self, WorkerError> {
        let resource_group = infrastructure.resource_group.name.clone();
        Ok(Self {
            cloud,
            credentials: credentials(worker, secrets)?,
            resource_group: if is_name(&resource_group) {
                Ok(resource_group)
            } else {
                Err(WorkerError::ResourceGroup(resource_group))
            }?,
            region: worker.spec.region.clone(),
            namespace: worker.metadata.namespace.clone().unwrap_or_default(),
            zonal: infrastructure.zoned,
        })
    }
}

/// The scale sets that the pools of a Worker need; `None` if they need none and none are recorded.
///
/// # Errors
/// If a required document is missing or invalid.
pub fn needs(context: &WorkerContext<'_>) -> Result<Option<Needs>, WorkerError> {
    let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
    let status: Option<WorkerStatus> = context.provider_status()?;
    let records = records(context, status.as_ref())?;
    if infrastructure.zoned && records.is_empty() {
        return Ok(None);
    }
    let config = profile_config(context)?;
    let configured = config.as_deref().and_then(|config| config.cloud_configuration.as_ref());
    let cloud = cloud(configured, &context.shoot.spec.region);
    let location = ScaleSetScope::of_worker(context.worker, context.secrets, cloud, &infrastructure)?;
    let mut needs = Needs::of_records(location, records);
    if infrastructure.zoned {
        return Ok(Some(needs));
    }
    let region = &context.worker.spec.region;
    for pool in &context.worker.spec.pools {
        needs.cached_pools.insert(pool.name.clone());
        needs.add(&pool.name, pool_need(pool, config.as_deref(), region, &needs.records));
    }
    Ok(Some(needs))
}

/// The recorded scale sets.
///
/// # Errors
/// As [`dependencies::records`].
pub(in crate::provider::azure) fn records(
    context: &WorkerContext<'_>,
    status: Option<&WorkerStatus>,
) -> Result<Vec<DependencyRecord>, WorkerError> {
    dependencies::records(context, "scale sets", status.map_or(&[], |status| &status.vmo_dependencies))
}

/// The scale sets to delete with a Worker; `None` if it never had any. Ignores pools, images, machine types and boot
/// scripts, and reads only the cloud from the CloudProfile.
///
/// # Errors
/// If the credentials or the infrastructure status can't be decoded.
pub fn needs_of_deletion(
    worker: &Worker,
    cluster: Option<&Cluster>,
    secrets: &Secrets,
) -> Result<Option<Needs>, WorkerError> {
    let infrastructure: Option<InfrastructureStatus> =
        decode(INFRASTRUCTURE_STATUS, worker.spec.infrastructure_provider_status.as_deref())?;
    let status: Option<WorkerStatus> = decode(PROVIDER_STATUS, worker.status.provider_status.as_deref())?;
    let records = status.map(|status| status.vmo_dependencies).unwrap_or_default();
    // Without an infrastructure, no machine was ever created.
    let Some(infrastructure) = infrastructure else { return Ok(None) };
    if infrastructure.zoned && records.is_empty() {
        return Ok(None);
    }
    let profile = cluster.and_then(|cluster| cluster.spec.cloud_profile.as_ref());
    let raw = profile.and_then(|profile| profile.spec.provider_config.as_deref());
    let config: Option<ConfiguredCloud> = decode("CloudProfile spec.providerConfig", raw)?;
    let configured = config.as_ref().and_then(|config| config.cloud_configuration.as_ref());
    let region = cluster.and_then(|cluster| cluster.spec.shoot.as_ref()).map(|shoot| shoot.spec.region.as_str());
    let cloud = cloud(configured, region.unwrap_or(&worker.spec.region));
    let location = ScaleSetScope::of_worker(worker, secrets, cloud, &infrastructure)?;
    Ok(Some(Needs::of_records(location, records)))
}

/// The configured cloud, by default that of the region.
fn cloud(configured: Option<&CloudConfiguration>, region: &str) -> AzureCloud {
    configured.and_then(AzureCloud::configured).unwrap_or_else(|| AzureCloud::of_region(region))
}

/// Whether a text is safe as a path segment. Azure validates names otherwise.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '\\']) && !text.chars().any(char::is_control)
}

fn pool_need(
    pool: &WorkerPool,
    config: Option<&CloudProfileConfig>,
    region: &str,
    records: &[DependencyRecord],
) -> Result<PoolNeed, DependencyFailure> {
    check_pool(pool).map_err(DependencyFailure::of_configuration)?;
    let fault_domains = fault_domains(config, region).map_err(DependencyFailure::of_configuration)?;
    let mut of_pool = records.iter().filter(|record| record.pool_name == pool.name);
    let recorded = of_pool.next().cloned();
    if of_pool.next().is_some() {
        return Err(DependencyFailure::of_configuration(
            "the provider status records several scale sets for the pool; leave only the one its machines are in",
        ));
    }
    if let Some(name) = recorded.as_ref().map(|record| &record.name).filter(|name| !is_name(name)) {
        let text = format!("the provider status records {name:?}, which can't be the name of a scale set");
        return Err(DependencyFailure::of_configuration(text));
    }
    Ok(PoolNeed { pool: pool.name.clone(), recorded, target: fault_domains })
}

/// Checks that the pool can be placed in a scale set.
///
/// # Errors
/// If the pool is updated in place.
pub fn check_pool(pool: &WorkerPool) -> Result<(), String> {
    if pool.update_strategy.is_some_and(UpdateStrategy::is_in_place) {
        return Err("a pool that is updated in place needs zones: scale sets do not support it".to_owned());
    }
    Ok(())
}

/// The target number of fault domains in a region.
///
/// # Errors
/// If the CloudProfile does not configure it.
fn fault_domains(config: Option<&CloudProfileConfig>, region: &str) -> Result<i32, String> {
    let counts = config.map(|config| config.count_fault_domains.as_slice()).unwrap_or_default();
    counts.iter().find(|count| count.region == region).map(|count| count.count).ok_or_else(|| {
        format!("the infrastructure has no zones, and the CloudProfile's countFaultDomains has no entry for region {region:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Dependencies;
    use serde_json::{Value, json};
    use wire::api::gardener::{CloudProfile, Shoot};

    #[test]
    fn records_that_cant_be_read_are_an_error_and_not_none() {
        let worker: Worker = serde_json::from_str(r#"{"metadata": {}, "spec": {"type": "azure"}}"#).unwrap();
        let cloud_profile = CloudProfile::default();
        let shoot = Shoot::default();
        let secrets = Secrets::default();
        let read = |found: Value| {
            let dependencies = Dependencies { records: found, ..Dependencies::default() };
            let context = WorkerContext {
                worker: &worker,
                cloud_profile: &cloud_profile,
                shoot: &shoot,
                secrets: &secrets,
                dependencies: Some(&dependencies),
            };
            records(&context, None).map_err(|error| error.to_string())
        };
        let record = DependencyRecord { pool_name: "a".to_owned(), id: "/vmss/v".to_owned(), name: "v".to_owned() };
        assert_eq!(read(json!([record])), Ok(vec![record]));
        assert_eq!(read(Value::Null), Ok(Vec::new()));
        for malformed in [json!([{"pool": "a"}]), json!([{"name": 1}]), json!({"name": "v"}), json!("v")] {
            assert!(read(malformed.clone()).unwrap_err().starts_with("records of scale sets: "), "{malformed}");
        }
    }
}
