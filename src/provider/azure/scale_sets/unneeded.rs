//! Which scale sets can go, once all pools have what they need.

use super::{Needs, ScaleSet, is_same_id};
use crate::provider::azure::documents::ScaleSetDependency;

/// What can go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unneeded {
    /// Scale sets that this extension made and nobody records, by name.
    pub orphans: Vec<String>,
    /// Records whose pools are gone, or all where the Worker goes or its infrastructure has zones.
    pub records: Vec<ScaleSetDependency>,
}

/// Finds what can go among what Azure lists. Nothing goes that is in `used`: the ids that machine classes refer to.
#[must_use]
pub fn unneeded(needs: &Needs, listed: &[ScaleSet], used: &[String]) -> Unneeded {
    let is_used = |id: &str| used.iter().any(|used| is_same_id(used, id));
    let is_recorded = |set: &ScaleSet| {
        needs.records.iter().any(|record| is_same_id(&record.id, &set.id) || is_same_id(&record.name, &set.name))
    };
    let orphans = listed.iter().filter(|set| set.is_managed() && !is_recorded(set) && !is_used(&set.id));
    let stays = |record: &ScaleSetDependency| needs.pools_of_worker.contains(&record.pool_name);
    Unneeded {
        orphans: orphans.map(|set| set.name.clone()).collect(),
        records: needs.records.iter().filter(|record| !stays(record) && !is_used(&record.id)).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::azure::scale_sets::tags;
    use crate::provider::azure::test_support::place;

    fn record(pool: &str, name: &str) -> ScaleSetDependency {
        ScaleSetDependency { pool_name: pool.to_owned(), id: format!("/vmss/{name}"), name: name.to_owned() }
    }

    fn listed(name: &str) -> ScaleSet {
        ScaleSet { name: name.to_owned(), id: format!("/VMSS/{name}"), tags: tags("a"), ..ScaleSet::default() }
    }

    #[test]
    fn orphans_and_removed_pools_go_and_nothing_else() {
        let mut needs = Needs::of_records(place(), vec![record("a", "vmo-a-1"), record("gone", "vmo-gone-1")], false);
        needs.pools_of_worker.insert("a".to_owned());
        let customer = ScaleSet { tags: [("owner".to_owned(), "me".to_owned())].into(), ..listed("customer") };
        let all = [listed("vmo-a-1"), listed("vmo-a-0"), listed("vmo-gone-1"), listed("rolling"), customer];
        let found = unneeded(&needs, &all, &["/vmss/rolling".to_owned()]);
        assert_eq!(found.orphans, ["vmo-a-0"], "in spite of the case of ids, and not what machines are made in");
        assert_eq!(found.records, [record("gone", "vmo-gone-1")]);
        let found = unneeded(&needs, &all, &["/vmss/vmo-gone-1".to_owned()]);
        assert_eq!(found.records, [], "a class still refers to it");
    }
}
