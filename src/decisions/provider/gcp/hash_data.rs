//! Hash inputs that GCP adds to a pool.

use super::config_members::config_members;
use super::documents::WorkerConfig;
use crate::pool::config_items::{ByValuesSince, config_items};
use crate::pool::hash::{HashError, HashItems, ProviderItems};
use crate::pool::volumes::sorted_data_volumes;
use wire::api::gardener::{DataVolume, WorkerPool};

/// Kubernetes version from which values of the provider config are hashed.
const BY_VALUES_SINCE: ByValuesSince = ByValuesSince { major: 1, minor: 35 };

/// Returns the GCP hash inputs: data volumes sorted by name, and the provider config. In-place pools have none.
///
/// # Errors
/// If the pool's Kubernetes version can't be parsed, or it has no node agent Secret name.
pub(super) fn provider_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<ProviderItems, HashError> {
    let mut rolling = HashItems::default();
    for volume in sorted_data_volumes(pool) {
        let DataVolume { name, volume_type, size, encrypted: _ } = volume;
        let path = format!("dataVolumes[{name}]");
        rolling.push(format!("{path}.name"), name.as_str());
        rolling.push(format!("{path}.size"), size.as_str());
        rolling.push_some(format!("{path}.type"), volume_type.as_deref());
    }
    let has_virtual_capacity =
        config.node_template.as_ref().is_some_and(|template| template.virtual_capacity.is_some());
    let values = || config_members(config).hashed;
    rolling.extend(&config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, values)?);
    if pool.node_agent_secret_name.is_none() {
        return Err(HashError::NodeAgentSecretMissing);
    }
    let none = HashItems::default();
    Ok(ProviderItems { without_node_agent_secret: none.clone(), with_node_agent_secret: rolling, in_place: none })
}
