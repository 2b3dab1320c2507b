//! Scale sets in flexible orchestration, in which the machines of non-zonal infrastructures are placed
//! (spec/azure-worker.md section 9). The name of a scale set counts in the pool hash, so a recorded one is never replaced
//! without need.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::documents::{CloudProfileConfig, InfrastructureStatus, ScaleSetDependency, WorkerStatus};
use crate::api::gardener::{UpdateStrategy, WorkerPool};
use crate::provider::{Dependencies, WorkerContext};

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
    /// Tags; those that this extension made have [`MANAGED_TAG`].
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// Tag of scale sets that this extension made.
pub const MANAGED_TAG: &str = "machineset.azure.extensions.gardener.cloud";

/// What is to be done about the scale set of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The scale set stays, under the id that Azure shows now.
    Keep(ScaleSetDependency),
    /// A new one is needed; its new name rolls the pool's nodes.
    Create,
}

/// Compares what Azure shows under the recorded name with what is wanted.
#[must_use]
pub fn step(pool: &str, shown: Option<&ScaleSet>, wanted_fault_domains: i32) -> Step {
    match shown {
        Some(shown) if shown.platform_fault_domain_count == Some(wanted_fault_domains) => {
            Step::Keep(ScaleSetDependency {
                pool_name: pool.to_owned(),
                id: shown.id.clone(),
                name: shown.name.clone(),
            })
        }
        Some(_) | None => Step::Create,
    }
}

/// Whether the pool can be placed in a scale set at all.
///
/// # Errors
/// A pool that is updated in place can't.
pub fn check_pool(pool: &WorkerPool) -> Result<(), String> {
    if pool.update_strategy.is_some_and(UpdateStrategy::is_in_place) {
        return Err("a pool that is updated in place needs zones: scale sets do not support it".to_owned());
    }
    Ok(())
}

/// The fault domains that scale sets of a region shall have.
///
/// # Errors
/// When the CloudProfile does not say.
pub fn fault_domains(config: Option<&CloudProfileConfig>, region: &str) -> Result<i32, String> {
    let counts = config.map(|config| config.count_fault_domains.as_slice()).unwrap_or_default();
    counts.iter().find(|count| count.region == region).map(|count| count.count).ok_or_else(|| {
        format!("the infrastructure has no zones, and the CloudProfile's countFaultDomains has no entry for region {region:?}")
    })
}

/// Azure as a file describes it: scale sets that exist, and calls that fail.
#[derive(Debug, Default, Deserialize)]
struct DescribedAzure {
    #[serde(default)]
    vmss: Vec<ScaleSet>,
    #[serde(default)]
    fail: BTreeMap<String, String>,
}

/// What the pools would depend on after a reconcile against the Azure that a file describes. New scale sets are numbered;
/// in reality their names end in random characters.
pub(super) fn described_dependencies(
    context: &WorkerContext<'_>,
    config: Option<&CloudProfileConfig>,
    infrastructure: &InfrastructureStatus,
    status: Option<&WorkerStatus>,
    described: &Value,
) -> Dependencies {
    let azure: DescribedAzure = serde_json::from_value(described.clone()).unwrap_or_default();
    let resource_group = &infrastructure.resource_group.name;
    let recorded = status.map(|status| status.vmo_dependencies.as_slice()).unwrap_or_default();
    let mut created = 0;
    let mut records = Vec::new();
    let mut dependencies = Dependencies::default();
    for pool in &context.worker.spec.pools {
        let mut of_pool = recorded.iter().filter(|record| record.pool_name == pool.name);
        let first = of_pool.next();
        // A second record of the pool stays for a person to decide about.
        records.extend(of_pool.cloned());
        let mut reconcile = || {
            check_pool(pool)?;
            let wanted = fault_domains(config, &context.worker.spec.region)?;
            if let Some(failure) = azure.fail.get("get").filter(|_| first.is_some()) {
                return Err(failure.clone());
            }
            let shown = first.and_then(|record| {
                azure.vmss.iter().find(|set| set.resource_group == *resource_group && set.name == record.name)
            });
            match step(&pool.name, shown, wanted) {
                Step::Keep(dependency) => Ok(dependency),
                Step::Create => {
                    if let Some(failure) = azure.fail.get("createOrUpdate") {
                        return Err(failure.clone());
                    }
                    created += 1;
                    let name = format!("vmo-{}-{created:08}", pool.name);
                    let id = format!(
                        "/subscriptions/sub/resourceGroups/{resource_group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
                    );
                    Ok(ScaleSetDependency { pool_name: pool.name.clone(), id, name })
                }
            }
        };
        match reconcile() {
            Ok(dependency) => records.push(dependency),
            Err(failure) => {
                records.extend(first.cloned());
                dependencies.failures.insert(pool.name.clone(), failure);
            }
        }
    }
    let is_kept = |set: &ScaleSet| records.iter().any(|record| record.name == set.name);
    let mut of_group = azure.vmss.iter().filter(|set| set.resource_group == *resource_group);
    if of_group.any(|set| set.tags.contains_key(MANAGED_TAG) && !is_kept(set)) {
        dependencies.cleanup_failure = azure.fail.get("delete").cloned();
    }
    dependencies.records = json!(records);
    dependencies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_fault_domains_or_a_vanished_scale_set_need_a_new_one() {
        let shown =
            ScaleSet { name: "vmo-a-1".to_owned(), platform_fault_domain_count: Some(3), ..ScaleSet::default() };
        assert!(matches!(step("a", Some(&shown), 3), Step::Keep(kept) if kept.name == "vmo-a-1"));
        assert_eq!(step("a", Some(&shown), 2), Step::Create);
        assert_eq!(step("a", None, 3), Step::Create);
    }
}
