//! Scale sets in flexible orchestration, in which the machines of non-zonal infrastructures are placed. The name of a
//! scale set counts in the pool hash, so a recorded one is never replaced without need.
//!
//! ```text
//!  WorkerContext ── needs ──► Needs ── step, once per pool ──► keep · create under this name · wait
//!                               │
//!                               └───── unneeded ──► what can go, once everything else is done
//! ```
//!
//! Everything here is pure. Who asks Azure is [`cloud::azure`](crate::cloud::azure); `described` answers from a file
//! instead.

use std::collections::BTreeMap;

use serde::Deserialize;

pub(super) mod described;
mod name;
mod needs;
mod step;
mod unneeded;

pub use name::{NameSeed, is_name_of_pool};
pub(super) use needs::records;
pub use needs::{Needs, PoolNeed, ScaleSetScope, check_pool, needs, needs_of_deletion};
pub use step::{Adoption, Step, adoption, record, step};
pub use unneeded::{Unneeded, unneeded};

/// Tag of scale sets that this extension made; any value counts.
pub const MANAGED_TAG: &str = "machineset.azure.extensions.gardener.cloud";
/// Tag with the name of the pool.
pub const POOL_TAG: &str = "machineset.azure.extensions.gardener.cloud.worker-name";

/// A scale set as Azure shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleSet {
    /// Resource group.
    #[serde(default)]
    pub resource_group: String,
    /// Name.
    pub name: String,
    /// Resource id.
    pub id: String,
    /// Fault domains.
    pub platform_fault_domain_count: Option<i32>,
    /// `Succeeded`, `Creating`, `Deleting` …
    pub provisioning_state: Option<String>,
    /// Tags; those that this extension made have [`MANAGED_TAG`].
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl ScaleSet {
    /// Whether this extension made it.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.tags.contains_key(MANAGED_TAG)
    }

    /// Whether this extension made it for exactly that pool. A pool `a` does not own what is called like pool `ab`.
    #[must_use]
    pub fn belongs_to(&self, pool: &str) -> bool {
        self.is_managed()
            && self.tags.get(POOL_TAG).is_some_and(|name| name == pool)
            && is_name_of_pool(&self.name, pool)
    }

    /// Whether it is about to vanish.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.provisioning_state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("Deleting"))
    }
}

/// The tags of a scale set for a pool.
#[must_use]
pub fn tags(pool: &str) -> BTreeMap<String, String> {
    [(MANAGED_TAG.to_owned(), "1".to_owned()), (POOL_TAG.to_owned(), pool.to_owned())].into()
}

/// Whether two ids of resources are the same; Azure changes their case at times.
#[must_use]
pub fn is_same_id(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}
