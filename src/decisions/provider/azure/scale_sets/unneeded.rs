//! Finds the scale sets that can be deleted once all pools have their dependency.

use super::{Needs, ScaleSet, is_same_id};
use crate::provider::DependencyRecord;

/// Scale sets and records that can be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unneeded {
    /// Names of scale sets created by this extension without a record.
    pub orphans: Vec<String>,
    /// Records of deleted pools. All records, if the Worker is being deleted or the infrastructure became zonal.
    pub records: Vec<DependencyRecord>,
}

/// Finds unneeded scale sets in Azure's list. Scale sets in `used`, the ids in machine classes, are never deleted.
#[must_use]
pub fn unneeded(needs: &Needs, listed: &[ScaleSet], used: &[String]) -> Unneeded {
    let is_used = |id: &str| used.iter().any(|used| is_same_id(used, id));
    let is_recorded = |set: &ScaleSet| {
        needs.records.iter().any(|record| is_same_id(&record.id, &set.id) || is_same_id(&record.name, &set.name))
    };
    let orphans = listed.iter().filter(|set| set.is_managed() && !is_recorded(set) && !is_used(&set.id));
    let stays = |record: &DependencyRecord| needs.cached_pools.contains(&record.pool_name);
    Unneeded {
        orphans: orphans.map(|set| set.name.clone()).collect(),
        records: needs.records.iter().filter(|record| !stays(record) && !is_used(&record.id)).cloned().collect(),
    }
}
