//! Hash inputs that AWS adds to a pool.

use super::config_members::config_members;
use super::documents::WorkerConfig;
use crate::pool::config_items::{self, ByValuesSince};
use crate::pool::hash::{HashError, HashItems, ProviderItems};
use wire::api::gardener::{DataVolume, Volume, WorkerPool};

/// Kubernetes version from which values of the provider config are hashed.
const BY_VALUES_SINCE: ByValuesSince = ByValuesSince { major: 1, minor: 34 };

/// Returns the AWS hash inputs. Data volumes are in the order of the Worker, which differs from the order of the
/// devices.
///
/// # Errors
/// If the pool has no node agent Secret name, or its Kubernetes version can't be parsed.
pub fn provider_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<ProviderItems, HashError> {
    if pool.node_agent_secret_name.is_none() {
        return Err(HashError::NodeAgentSecretMissing);
    }
    let mut in_place = HashItems::default();
    // Size and type of the root volume are common inputs of all providers.
    if let Some(Volume { volume_type: _, size: _, encrypted }) = &pool.volume {
        in_place.push_some("volume.encrypted", encrypted.map(|encrypted| encrypted.to_string()));
    }
    let mut rolling = in_place.clone();
    for DataVolume { name, volume_type, size, encrypted } in &pool.data_volumes {
        let path = format!("dataVolumes[{name}]");
        rolling.push(format!("{path}.size"), size.as_str());
        rolling.push_some(format!("{path}.type"), volume_type.as_deref());
        rolling.push_some(format!("{path}.encrypted"), encrypted.map(|encrypted| encrypted.to_string()));
    }
    rolling.extend(&config_items(pool, config)?);
    Ok(ProviderItems { without_node_agent_secret: HashItems::default(), with_node_agent_secret: rolling, in_place })
}

/// Hash inputs from the provider config: its values from Kubernetes 1.34, its text for older versions.
///
/// # Errors
/// If the pool's Kubernetes version can't be parsed.
pub fn config_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<HashItems, HashError> {
    let has_virtual_capacity =
        config.node_template.as_ref().is_some_and(|template| template.virtual_capacity.is_some());
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || config_members(config).hashed)
}
