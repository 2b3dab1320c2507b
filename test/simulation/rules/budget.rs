//! The roll budget: never more pools with a slot than it has, and no success while a key differs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{POOL, Rules};
use crate::actor::name_of;
use crate::api_server::kinds::MACHINE_DEPLOYMENT;
use crate::machines::NODE_AGENT_LABEL;

/// Whether the record of a machine deployment has the mark of a slot.
pub(crate) fn has_slot(deployment: &Value) -> bool {
    let record = deployment["metadata"]["annotations"]["gardener-extension-worker/class-inputs"].as_str();
    let record: Value = record.and_then(|record| serde_json::from_str(record).ok()).unwrap_or_default();
    record["u"] == "budget"
}

/// The name of the node agent Secret of a machine deployment's nodes.
fn key_of(deployment: &Value) -> Option<&str> {
    deployment["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["labels"][NODE_AGENT_LABEL].as_str()
}

impl Rules {
    /// Whether a pool that gets a slot leaves the budget within its limit.
    pub(super) fn slot(&mut self, name: &str, before: &Value, after: &Value) {
        let Some(limit) = self.slots else { return };
        if has_slot(before) || !has_slot(after) {
            return;
        }
        let others = self.of(&MACHINE_DEPLOYMENT).filter(|other| name_of(&other.value) != name);
        let marked = others.map(|other| &other.value).chain([after]).filter(|deployment| has_slot(deployment));
        let pools: BTreeSet<&str> =
            marked.map(|deployment| deployment["metadata"]["labels"][POOL].as_str().unwrap_or_default()).collect();
        if pools.len() > limit {
            let found = format!("MachineDeployment {name} gets a slot: {pools:?} have one, the limit is {limit}");
            self.found.push(found);
        }
    }

    /// Whether a machine deployment may keep another class than the target: its key is that of the target.
    pub(super) fn may_be_held(&self, live: &Value, key: Option<&str>) -> bool {
        self.slots.is_some() && key.is_some() && key_of(live) == key
    }
}
