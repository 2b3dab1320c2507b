//! Azure as described by a file, for commands without access to the cloud.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::step::{Step, step};
use super::{Needs, PoolNeed, ScaleSet};
use crate::provider::dependencies::described_cloud;
use crate::provider::{Dependencies, DependencyFailure, DependencyRecord, WorkerError};

/// Existing scale sets, and requests that fail.
#[derive(Debug, Default, Deserialize)]
struct DescribedAzure {
    #[serde(default)]
    vmss: Vec<ScaleSet>,
    #[serde(default)]
    fail: BTreeMap<String, String>,
    /// Whether the state is only assumed. If so, recorded scale sets exist and match their pools unless described
    /// otherwise, and new scale sets get their real names instead of numbers.
    #[serde(default)]
    assumed: bool,
}

impl DescribedAzure {
    /// The scale set that Azure returns for a record.
    fn observed(&self, record: &DependencyRecord, need: &PoolNeed, resource_group: &str) -> Option<ScaleSet> {
        let described =
            self.vmss.iter().find(|set| set.resource_group == resource_group && set.name == record.name).cloned();
        if !self.assumed {
            return described;
        }
        let count = described.and_then(|set| set.platform_fault_domain_count).unwrap_or(need.target);
        let name = record.name.clone();
        let id = record.id.clone();
        Some(ScaleSet { name, id, platform_fault_domain_count: Some(count), ..ScaleSet::default() })
    }
}

/// The dependencies of the pools after a reconcile against the described Azure.
///
/// # Errors
/// If the description can't be decoded.
pub(in crate::provider::azure) fn described_dependencies(
    needs: &Needs,
    described: &Value,
) -> Result<Dependencies, WorkerError> {
    let azure: DescribedAzure = described_cloud(described, "azure", "Azure")?;
    let resource_group = &needs.scope.resource_group;
    let mut created = 0;
    let (mut dependencies, records) = needs.provided(|need| {
        let recorded = need.recorded.as_ref();
        let failed = |call: &str| azure.fail.get(call).map(DependencyFailure::without_code);
        if let Some(failure) = failed("get") && recorded.is_some() {
            return Err(failure);
        }
        let observed = recorded.and_then(|record| azure.observed(record, need, resource_group));
        match step(&needs.scope, need, recorded.map(|record| record.name.as_str()), observed.as_ref())? {
            Step::Keep(dependency) => Ok(dependency),
            Step::Wait(text) => Err(DependencyFailure::without_code(text)),
            Step::Create(name) => {
                if let Some(failure) = failed("createOrUpdate") {
                    return Err(failure);
                }
                created += 1;
                let name = if azure.assumed { name } else { format!("vmo-{}-{created:08}", need.pool) };
                let id = format!(
                    "/subscriptions/sub/resourceGroups/{resource_group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
                );
                Ok(DependencyRecord { pool_name: need.pool.clone(), id, name })
            }
        }
    });
    let is_kept = |set: &ScaleSet| records.iter().any(|record| record.name == set.name);
    let mut of_group = azure.vmss.iter().filter(|set| set.resource_group == *resource_group);
    if of_group.any(|set| set.is_managed() && !is_kept(set)) {
        dependencies.cleanup_failure = azure.fail.get("delete").cloned();
    }
    dependencies.records = json!(records);
    Ok(dependencies)
}

/// An Azure state in which every recorded scale set matches the current needs of its pool.
pub(in crate::provider::azure) fn settled(needs: &Needs) -> Value {
    let count = |pool: &str| needs.pools.iter().find(|need| need.pool == pool).map(|need| need.target);
    let observed = needs.records.iter().map(|record| {
        json!({
            "resourceGroup": needs.scope.resource_group,
            "name": record.name,
            "id": record.id,
            "platformFaultDomainCount": count(&record.pool_name),
        })
    });
    json!({"assumed": true, "vmss": observed.collect::<Vec<_>>()})
}
