//! The part of a pool's provider config that is an input of its class hash.

use std::collections::BTreeMap;

use super::hash::{HashError, HashItems, parse_version};
use super::virtual_capacity::without_virtual_capacity;
use wire::api::gardener::WorkerPool;
use wire::api::gotext::quantity::Quantity;

/// The Kubernetes version from which single values of a provider config are hashed instead of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByValuesSince {
    /// Major version.
    pub major: u64,
    /// Minor version, including its pre-releases.
    pub minor: u64,
}

/// Hash inputs from the provider config: `values` for newer pools, the text of the config without its virtual capacity
/// for older ones.
///
/// # Errors
/// If the pool's Kubernetes version can't be parsed, regardless of the update strategy.
pub fn config_items(
    pool: &WorkerPool,
    since: ByValuesSince,
    has_virtual_capacity: bool,
    values: impl FnOnce() -> HashItems,
) -> Result<HashItems, HashError> {
    let by_values = match pool.kubernetes_version.as_deref() {
        None => false,
        Some(text) => {
            parse_version("kubernetesVersion", text)?.at_least_including_prereleases(since.major, since.minor)
        }
    };
    let Some(raw) = pool.provider_config.as_deref() else { return Ok(HashItems::default()) };
    if by_values {
        return Ok(values());
    }
    let mut items = HashItems::default();
    if has_virtual_capacity {
        items.push("providerConfig", without_virtual_capacity(raw.get()));
    } else {
        items.push("providerConfig", raw.get());
    }
    Ok(items)
}

/// Adds the node capacity from a provider config: sorted by resource, rounded up to whole numbers.
pub fn push_capacity(items: &mut HashItems, capacity: &BTreeMap<String, Quantity>) {
    for (resource, quantity) in capacity {
        items.push(
            format!("providerConfig.nodeTemplate.capacity[{resource}]"),
            format!("{resource}={}", quantity.value_rounded_up()),
        );
    }
}
