//! Zones of a pool roll one after the other: which switches need a reason, and that class and key of a machine
//! deployment change together.

use std::collections::BTreeMap;

use gardener_extension_worker::worker::plan::named_pools::NamedPools;
use gardener_extension_worker::worker::plan::zone_by_zone::ANNOTATION;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{ON_ITS_WAY, POOL, Requested, Rules, class_of, machines_of, of_deployment};
use crate::actor::{is_vanishing, name_of};
use crate::api_server::kinds::{MACHINE, MACHINE_DEPLOYMENT};
use crate::api_server::store::Change;
use crate::machines::{NODE_AGENT_LABEL, is_ready};

/// How long a zone waits, minus the error of a wrong clock.
const WAITED: SignedDuration = SignedDuration::from_mins(6 * 60 - 1);

/// What happened to the zones recently.
#[derive(Default)]
pub(super) struct Zones {
    /// When each machine deployment last lacked a running machine.
    lacked: BTreeMap<String, Timestamp>,
    /// When each machine deployment last got another class out of turn. The next zone in order may get its class in the
    /// same reconcile, and later.
    early: BTreeMap<String, Timestamp>,
    /// When another extension last wrote a class.
    foreign: Option<Timestamp>,
}

impl Requested {
    /// Whether the zones of the pool have to roll one after the other.
    fn has_order(&self, pool: &str) -> bool {
        let value = |object: &Value| object["metadata"]["annotations"][ANNOTATION].as_str().map(str::to_owned);
        let setting = value(&self.worker.value).or_else(|| value(&self.cluster.value["spec"]["shoot"]));
        let is_plain = !self.hibernates && !self.moves && !self.is_deleted && !self.shoot_is_deleted;
        is_plain && setting.is_some_and(|setting| NamedPools::of_value(&setting).has_pool(pool))
    }
}

impl Rules {
    /// Remembers a change of a machine or machine deployment by any writer.
    pub(super) fn follow_zone(&mut self, change: &Change) {
        let deployment = match change.kind {
            kind if kind == &MACHINE => of_deployment(&change.after.value).to_owned(),
            kind if kind == &MACHINE_DEPLOYMENT => change.name.clone(),
            _ => return,
        };
        if change.author == "other-extension" {
            self.zones.foreign = Some(change.at);
        }
        let Some(live) = self.get(&MACHINE_DEPLOYMENT, &deployment) else { return };
        let replicas = live["spec"]["replicas"].as_u64().unwrap_or_default();
        if running(self, &deployment) < replicas {
            self.zones.lacked.insert(deployment, change.at);
        }
    }

    /// Whether a change of class and key follows a request. While a node has the key of one class and the image of
    /// another, its kubelet gets a configuration that it was not drained for.
    pub(super) fn key(&mut self, name: &str, before: &Value, after: &Value) {
        let facts = |deployment: &Value| (class_of(deployment).to_owned(), key_of(deployment).map(str::to_owned));
        let (old, new) = (facts(before), facts(after));
        let is_target = |requested: &Requested| {
            requested.expected.get(name).is_some_and(|target| target.class == new.0 && target.key == new.1)
        };
        if old != new && !self.is_requested(is_target) && !self.is_edited(name) {
            self.found.push(format!("MachineDeployment {name} gets class and key {new:?} after {old:?}"));
        }
    }

    /// Whether a zone may switch to another class now.
    pub(super) fn order(&mut self, name: &str, before: &Value, after: &Value, at: Timestamp) {
        let pool = before["metadata"]["labels"][POOL].as_str().unwrap_or_default();
        let is_switch = class_of(before) != class_of(after);
        if !is_switch || !self.is_alone || !self.requested.iter().all(|requested| requested.has_order(pool)) {
            return;
        }
        let is_recent = |then: Option<&Timestamp>| then.is_some_and(|then| *then + ON_ITS_WAY >= at);
        if !self.edited.is_empty() || is_recent(self.zones.foreign.as_ref()) {
            return;
        }
        if self.may_be_early(name, before, after, at) {
            self.zones.early.insert(name.to_owned(), at);
            return;
        }
        if let Some(rolling) = self.rolls_beside(name, pool, at) {
            self.found.push(format!("MachineDeployment {name} rolls while {rolling} does, without a reason"));
        }
    }

    /// Another zone of the pool that rolls in its turn.
    fn rolls_beside(&self, name: &str, pool: &str, at: Timestamp) -> Option<String> {
        let is_early = |other: &str| self.zones.early.get(other).is_some_and(|early| *early + ON_ITS_WAY >= at);
        let others = self.of(&MACHINE_DEPLOYMENT).map(|other| (&other.value, name_of(&other.value)));
        let mut others = others.filter(|(other, _)| other["metadata"]["labels"][POOL] == pool);
        let rolling = others.find(|(other, other_name)| {
            *other_name != name && !is_early(other_name) && self.is_mixed(other_name, other)
        });
        rolling.map(|(_, rolling)| rolling.to_owned())
    }

    /// Whether a zone may get its class although it is not its turn.
    fn may_be_early(&self, name: &str, before: &Value, after: &Value, at: Timestamp) -> bool {
        let is_empty = before["spec"]["replicas"] == 0 || machines_of(self, name) == 0;
        let raised = |requested: &Requested| {
            let minimum = requested.expected.get(name).map_or(0, |target| target.minimum);
            u64::try_from(minimum).unwrap_or_default() > running(self, name)
        };
        let has_lacked = self.zones.lacked.get(name).is_some_and(|lacked| *lacked + ON_ITS_WAY >= at);
        // Under a stop, a zone can lack a machine for any length of time.
        let lacks_now = running(self, name) < before["spec"]["replicas"].as_u64().unwrap_or_default();
        let lacks_any = lacks_now || has_lacked || self.is_requested(raised);
        let lacks_machine = key_of(before) != key_of(after) && lacks_any;
        is_empty || lacks_machine || self.is_mixed(name, before) || waited(before, at)
    }

    /// Whether a machine has another class than its deployment.
    pub(super) fn is_mixed(&self, name: &str, deployment: &Value) -> bool {
        let mut machines = self.of(&MACHINE).filter(|machine| of_deployment(&machine.value) == name);
        machines.any(|machine| machine.value["spec"]["class"]["name"] != class_of(deployment))
    }
}

fn running(rules: &Rules, deployment: &str) -> u64 {
    let machines = rules.of(&MACHINE).map(|machine| &machine.value);
    let own = machines.filter(|machine| of_deployment(machine) == deployment);
    own.filter(|machine| is_ready(machine) && !is_vanishing(machine)).count() as u64
}

fn key_of(deployment: &Value) -> Option<&str> {
    deployment["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["labels"][NODE_AGENT_LABEL].as_str()
}

/// Whether the deployment has recorded a wait of six hours.
fn waited(deployment: &Value, at: Timestamp) -> bool {
    let record = deployment["metadata"]["annotations"]["gardener-extension-worker/class-inputs"].as_str();
    let record: Value = record.and_then(|record| serde_json::from_str(record).ok()).unwrap_or_default();
    let since = record["w"]["t"].as_str().and_then(|since| since.parse::<Timestamp>().ok());
    since.is_some_and(|since| since + WAITED <= at)
}
