//! Scale sets with flexible orchestration for the machines of non-zonal infrastructures. The name of a scale set is an
//! input of the pool hash, so a recorded one is replaced only if necessary.
//!
//! ```text
//!  WorkerContext ── needs ──► Needs ── step, once per pool ──► keep · create under this name · wait
//!                               │
//!                               └───── unneeded ──► deletable, once everything else is done
//! ```
//!
//! This folder is pure. Requests to Azure are sent by `cloud::azure`, or answered from a file by
//! `described`.

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

/// Tag of scale sets created by this extension; its value is ignored.
pub const MANAGED_TAG: &str = "machineset.azure.extensions.gardener.cloud";
/// Tag with the name of the pool.
pub const POOL_TAG: &str = "machineset.azure.extensions.gardener.cloud.worker-name";

/// A scale set as returned by Azure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleSet {
    /// Resource group.
    #[serde(default)]
    pub resource_group: String,
    /// Name of the scale set.
    pub name: String,
    /// Resource id.
    pub id: String,
    /// Number of fault domains.
    pub platform_fault_domain_count: Option<i32>,
    /// State such as `Succeeded`, `Creating` or `Deleting`.
    pub provisioning_state: Option<String>,
    /// Tags; scale sets created by this extension have [`MANAGED_TAG`].
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl ScaleSet {
    /// Whether this extension created the scale set.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.tags.contains_key(MANAGED_TAG)
    }

    /// Whether this extension created the scale set for exactly this pool. Pool `a` does not own scale sets of pool
    /// `ab`.
    #[must_use]
    pub fn belongs_to(&self, pool: &str) -> bool {
        self.is_managed()
            && self.tags.get(POOL_TAG).is_some_and(|name| name == pool)
            && is_name_of_pool(&self.name, pool)
    }

    /// Whether the scale set is being deleted.
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

/// Whether two resource ids are equal; Azure sometimes changes their case.
#[must_use]
pub fn is_same_id(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}
