//! Decides the next step for the scale set of a pool.

use super::{NameSeed, PoolNeed, ScaleSet, ScaleSetScope, is_same_id};
use crate::provider::{DependencyFailure, DependencyRecord};

/// The next step for the scale set of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keep the scale set, with the id that Azure returned.
    Keep(DependencyRecord),
    /// Create a scale set with this name; a new name rolls the pool's nodes.
    Create(String),
    /// Wait until an operation has completed.
    Wait(String),
}

/// Compares the recorded or adopted scale set in Azure with the needs of the pool.
///
/// # Errors
/// If Azure's response is incomplete, because nodes must not be rolled based on a guess.
pub fn step(
    location: &ScaleSetScope,
    need: &PoolNeed,
    recorded: Option<&str>,
    observed: Option<&ScaleSet>,
) -> Result<Step, DependencyFailure> {
    let create = || {
        let seed = NameSeed {
            namespace: &location.namespace,
            resource_group: &location.resource_group,
            pool: &need.pool,
            fault_domains: need.target,
            predecessor: recorded,
        };
        Step::Create(seed.name())
    };
    let Some(observed) = observed else { return Ok(create()) };
    if observed.is_being_deleted() {
        return Ok(Step::Wait(format!("until Azure has deleted scale set {}", observed.name)));
    }
    match observed.platform_fault_domain_count {
        Some(count) if count == need.target => Ok(Step::Keep(record(&need.pool, observed)?)),
        Some(_) => Ok(create()),
        None => {
            let text = format!("scale set {} has no fault domain count at Azure", observed.name);
            Err(DependencyFailure::without_code(text))
        }
    }
}

/// The record of a scale set.
///
/// # Errors
/// If Azure returned no name or id.
pub fn record(pool: &str, observed: &ScaleSet) -> Result<DependencyRecord, DependencyFailure> {
    if observed.name.is_empty() || observed.id.is_empty() {
        return Err(DependencyFailure::without_code("Azure shows a scale set without name or id"));
    }
    Ok(DependencyRecord { pool_name: pool.to_owned(), id: observed.id.clone(), name: observed.name.clone() })
}

/// The scale set to adopt for a pool without a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption<'a> {
    /// This scale set.
    Of(&'a ScaleSet),
    /// The pool has no scale set.
    None,
    /// Several scale sets match.
    Unclear(Vec<&'a str>),
}

/// Finds the scale set of a pool without a record: the one with its machines, or else the only one.
#[must_use]
pub fn adoption<'a>(pool: &str, observed: &'a [ScaleSet], ids_of_machines: &[String]) -> Adoption<'a> {
    let own: Vec<&ScaleSet> = observed.iter().filter(|set| set.belongs_to(pool) && !set.is_being_deleted()).collect();
    let has_machines = |set: &&ScaleSet| ids_of_machines.iter().any(|id| is_same_id(id, &set.id));
    let with_machines: Vec<&ScaleSet> = own.iter().copied().filter(has_machines).collect();
    match (with_machines.as_slice(), own.as_slice()) {
        ([only], _) | ([], [only]) => Adoption::Of(only),
        (_, []) => Adoption::None,
        _ => Adoption::Unclear(own.iter().map(|set| set.name.as_str()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::azure::scale_sets::tags;
    use crate::provider::azure::test_support::location;

    fn need() -> PoolNeed {
        PoolNeed { pool: "a".to_owned(), recorded: None, target: 3 }
    }

    fn observed(name: &str, pool: &str) -> ScaleSet {
        ScaleSet {
            name: name.to_owned(),
            id: format!("/vmss/{name}"),
            platform_fault_domain_count: Some(3),
            tags: tags(pool),
            ..ScaleSet::default()
        }
    }

    #[test]
    fn incomplete_azure_responses_roll_no_node() {
        let step = |observed: ScaleSet| step(&location(), &need(), Some("vmo-a-AbCd1234"), Some(&observed));
        let old = observed("vmo-a-AbCd1234", "a");
        let going = ScaleSet { provisioning_state: Some("deleting".to_owned()), ..old.clone() };
        assert!(matches!(step(going), Ok(Step::Wait(_))));
        assert!(step(ScaleSet { platform_fault_domain_count: None, ..old }).is_err());
    }

    #[test]
    fn only_what_belongs_to_the_pool_is_adopted() {
        let own = observed("vmo-a-AbCd1234", "a");
        let longer = observed("vmo-a2-ZZZZZZZZ", "a2");
        let misnamed = observed("vmo-a2-YYYYYYYY", "a");
        let foreign = ScaleSet { tags: [(super::super::POOL_TAG.to_owned(), "a".to_owned())].into(), ..own.clone() };
        let all = [longer.clone(), misnamed, foreign, own.clone()];
        assert_eq!(adoption("a", &all, &[]), Adoption::Of(&own));
        assert_eq!(adoption("a", &[longer], &[]), Adoption::None);
    }
}
