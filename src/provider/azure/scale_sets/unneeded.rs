//! Which scale sets can go, once all pools have what they need.

use super::{Needs, ScaleSet, is_same_id};
use crate::provider::DependencyRecord;

/// What can go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unneeded {
    /// Scale sets that this extension made and nobody records, by name.
    pub orphans: Vec<String>,
    /// Records whose pools are gone, or all where the Worker goes or its infrastructure has zones.
    pub records: Vec<DependencyRecord>,
}

/// Finds what can go among what Azure lists. Nothing goes that is in `used`: the ids that machine classes refer to.
#[must_use]
pub fn unneeded(needs: &Needs, listed: &[ScaleSet], used: &[String]) -> Unneeded {
    let is_used = |id: &str| used.iter().any(|used| is_same_id(used, id));
    let is_recorded = |set: &ScaleSet| {
        needs.records.iter().any(|record| is_same_id(&record.id, &set.id) || is_same_id(&record.name, &set.name))
    };
    let orphans = listed.iter().filter(|set| set.is_managed() && !is_recorded(set) && !is_used(&set.id));
    let stays = |record: &DependencyRecord| needs.known_pools.contains(&record.pool_name);
    Unneeded {
        orphans: orphans.map(|set| set.name.clone()).collect(),
        records: needs.records.iter().filter(|record| !stays(record) && !is_used(&record.id)).cloned().collect(),
    }
}
