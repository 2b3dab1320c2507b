//! Stopped rolls: who pauses machine deployments and when, and that no zone gets another class under a stop.

use std::collections::BTreeMap;

use gardener_extension_worker::worker::plan::named_pools::NamedPools;
use gardener_extension_worker::worker::plan::stops::{PAUSED_ANNOTATION, STOP_ANNOTATION};
use jiff::Timestamp;
use serde_json::Value;

use super::{ON_ITS_WAY, POOL, Requested, Rules, class_of, machines_of};
use crate::actor::name_of;
use crate::api_server::kinds::{MACHINE, MACHINE_DEPLOYMENT};
use crate::api_server::store::Change;

/// When each machine deployment last had machines of another class, and when it last had none.
#[derive(Default)]
pub(super) struct Mixed {
    mixed: BTreeMap<String, Timestamp>,
    plain: BTreeMap<String, Timestamp>,
}

/// Whether a machine deployment is paused.
pub(crate) fn is_paused(deployment: &Value) -> bool {
    deployment["spec"]["paused"] == true
}

/// Whether a machine deployment has the mark of a pause by the controller.
pub(crate) fn has_pause_mark(deployment: &Value) -> bool {
    !deployment["metadata"]["annotations"][PAUSED_ANNOTATION].is_null()
}

impl Requested {
    /// Whether rolls of the pool are stopped.
    fn is_stopped(&self, pool: &str) -> bool {
        let value = |object: &Value| object["metadata"]["annotations"][STOP_ANNOTATION].as_str().map(str::to_owned);
        let setting = value(&self.worker.value).or_else(|| value(&self.cluster.value["spec"]["shoot"]));
        let is_plain = !self.hibernates && !self.moves && !self.is_deleted && !self.shoot_is_deleted;
        is_plain && setting.is_some_and(|setting| NamedPools::of_value(&setting).has_pool(pool))
    }
}

impl Rules {
    /// Remembers which machine deployments have machines of another class.
    pub(super) fn follow_mixed(&mut self, change: &Change) {
        if ![&MACHINE, &MACHINE_DEPLOYMENT].contains(&change.kind) {
            return;
        }
        let deployments = self.of(&MACHINE_DEPLOYMENT).map(|live| (name_of(&live.value), &live.value));
        let facts = deployments.map(|(name, live)| (name.to_owned(), self.is_mixed(name, live)));
        let facts: Vec<(String, bool)> = facts.collect();
        for (name, is_mixed) in facts {
            let times = if is_mixed { &mut self.mixed.mixed } else { &mut self.mixed.plain };
            times.insert(name, change.at);
        }
    }

    /// Property 10: the controller sets and removes `paused` and its mark together, only for zones that roll under a stop.
    pub(super) fn pause(&mut self, name: &str, before: Option<&Value>, after: &Value, at: Timestamp) {
        let facts = |deployment: &Value| (is_paused(deployment), has_pause_mark(deployment));
        let (old, new) = (before.map_or((false, false), facts), facts(after));
        if old == new || self.is_edited(name) {
            return;
        }
        let pool = after["metadata"]["labels"][POOL].as_str().unwrap_or_default();
        let is_of_person = old == (true, false);
        if is_of_person || new.0 != new.1 {
            self.found.push(format!("MachineDeployment {name} is paused, with a mark: {new:?} after {old:?}"));
        }
        let is_recent = |then: Option<&Timestamp>| then.is_some_and(|then| *then + ON_ITS_WAY >= at);
        let is_mixed = before.is_some_and(|before| self.is_mixed(name, before));
        let was_mixed = is_mixed || is_recent(self.mixed.mixed.get(name));
        if new == (true, true) && !(was_mixed && self.is_requested(|requested| requested.is_stopped(pool))) {
            self.found.push(format!("MachineDeployment {name} is paused without a stop of its roll"));
        }
        // A machine set may replace an old machine that has disappeared.
        let is_mixed = is_mixed && !is_recent(self.mixed.plain.get(name));
        let is_stopped = self.requested.iter().all(|requested| requested.is_stopped(pool));
        if new == (false, false) && is_mixed && is_stopped && self.is_alone {
            self.found.push(format!("MachineDeployment {name} is resumed although its roll is stopped"));
        }
    }

    /// Whether a zone gets another class although rolls of its pool are stopped.
    pub(super) fn stop(&mut self, name: &str, before: &Value, after: &Value) {
        let pool = before["metadata"]["labels"][POOL].as_str().unwrap_or_default();
        let is_empty = before["spec"]["replicas"] == 0 || machines_of(self, name) == 0;
        let is_switch = class_of(before) != class_of(after) && !is_empty;
        if !is_switch || !self.is_alone || !self.edited.is_empty() {
            return;
        }
        if self.requested.iter().all(|requested| requested.is_stopped(pool)) {
            self.found.push(format!("MachineDeployment {name} gets another class although rolls are stopped"));
        }
    }

    /// Whether a success is written while the controller keeps a zone paused.
    pub(super) fn success_while_paused(&mut self) {
        let paused = self.of(&MACHINE_DEPLOYMENT).find(|live| has_pause_mark(&live.value));
        if let Some(live) = paused
            && self.is_alone
        {
            let name = name_of(&live.value).to_owned();
            self.found.push(format!("the Worker is told to have succeeded, and MachineDeployment {name} is paused"));
        }
    }
}
