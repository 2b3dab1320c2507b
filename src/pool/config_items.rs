//! The part of a pool's provider config that counts in its hash.

use std::collections::BTreeMap;

use super::hash::{HashError, HashItems, parse_version};
use super::virtual_capacity::without_virtual_capacity;
use crate::api::gardener::WorkerPool;
use crate::api::gotext::quantity::Quantity;

/// From which Kubernetes version on the values of a provider config count, and no longer its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByValuesSince {
    /// Major version.
    pub major: u64,
    /// Minor version; its pre-releases count, too.
    pub minor: u64,
}

/// The texts that count: the `values` of newer pools; for older ones the config as it was sent, without the virtual
/// capacity that it may have.
///
/// # Errors
/// When the pool's Kubernetes version can't be read, whatever the update strategy is.
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

/// Adds the capacity that a provider config gives its nodes: sorted by resource, in whole numbers.
pub fn push_capacity(items: &mut HashItems, capacity: &BTreeMap<String, Quantity>) {
    for (resource, quantity) in capacity {
        items.push(
            format!("providerConfig.nodeTemplate.capacity[{resource}]"),
            format!("{resource}={}", quantity.value_rounded_up()),
        );
    }
}
