//! Pools whose zones roll one after the other: settings and classes that change at any time, zones without capacity,
//! images that don't boot, machines that disappear, and another writer of classes.

use std::sync::Arc;
use std::time::Duration;

use gardener_extension_worker::worker::plan::zone_by_zone::ANNOTATION;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::Life;
use crate::actor::{Actor, is_vanishing, name_of};
use crate::api_server::kinds::{CLUSTER, MACHINE, MACHINE_DEPLOYMENT, SECRET, WORKER};
use crate::documents::{NAMESPACE, WORKER_NAME};
use crate::expected::{Expected, expected};
use crate::machines::{self, NO_BOOT, NODE_AGENT_LABEL};
use crate::people;

/// Zones of the pool.
const ZONES: [&str; 3] = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];
/// Values of the annotation.
const SETTINGS: [Option<&str>; 6] = [None, Some("*"), Some("web"), Some(" web, other"), Some("other"), Some("")];
/// Pauses between two steps in seconds.
const PAUSES: [u64; 5] = [2, 20, 60, 300, 900];
/// How many of a thousand pauses are longer than a zone waits.
const LONG_PAUSES: u64 = 20;
/// Time for the controller to act in the calm.
pub(super) const REACTION: Duration = Duration::from_secs(45);
/// Time in which a zone begins to wait, longer than a write may be on its way.
pub(super) const BEGINS: Duration = Duration::from_secs(200);

/// Gives a pool three zones, a surge of one, and the label of its node agent Secret.
pub(super) fn spread(pool: &mut Value) {
    pool["zones"] = json!(ZONES);
    [pool["minimum"], pool["maximum"]] = [3, 9].map(|number| json!(number));
    (pool["maxSurge"], pool["maxUnavailable"]) = (json!(1), json!(0));
    let key = pool["nodeAgentSecretName"].clone();
    pool["labels"][NODE_AGENT_LABEL] = key;
}

impl Life {
    /// Steps amid faults.
    pub(super) async fn change_zones(&mut self) {
        self.name_pools(false, Some("*"));
        for _ in 0..=self.random.below(6) {
            self.misfortune().await;
            self.zone_step();
            let usual = *self.random.one_of(&PAUSES).unwrap_or(&2);
            let seconds = if self.random.happens(LONG_PAUSES) { 7 * 3600 } else { usual };
            sleep(self.random.millis(500, seconds * 1000)).await;
        }
        self.cloud.fill(None);
    }

    fn zone_step(&mut self) {
        match self.random.below(11) {
            0..=2 => self.roll_to_another_key(""),
            3 => self.roll_to_another_key(NO_BOOT),
            4 => self.roll_with_same_key(20 + self.random.below(5)),
            5 => {
                let setting = *self.random.one_of(&SETTINGS).unwrap_or(&None);
                self.name_pools(self.random.happens(500), setting);
                if self.random.happens(500) {
                    self.gardenlet.request("another setting", |_| {});
                }
            }
            6 => people::scale(&self.actor("autoscaler"), &self.random, &self.is_scaled_late),
            7 => self.lose_machine(),
            8 => {
                let zone = 1 + usize::try_from(self.random.below(3)).unwrap_or_default();
                let full = self.random.happens(700).then(|| deployment(zone));
                self.cloud.fill(full);
            }
            9 => {
                self.steps.push("confirm");
                self.gardenlet.request("nothing new", |_| {});
            }
            _ => self.write_class_as_other(deployment(3)),
        }
    }

    /// Sets or removes the annotation of the Worker or the Shoot.
    pub(super) fn name_pools(&self, of_worker: bool, setting: Option<&str>) {
        let gardenlet = self.actor("gardenlet");
        gardenlet.note(format!("zone by zone: {setting:?}, of the Worker: {of_worker}"));
        match of_worker {
            true => {
                gardenlet.change(&WORKER, WORKER_NAME, |worker| annotate(&mut worker["metadata"], ANNOTATION, setting))
            }
            false => gardenlet.change(&CLUSTER, NAMESPACE, |cluster| {
                annotate(&mut cluster["spec"]["shoot"]["metadata"], ANNOTATION, setting);
            }),
        }
    }

    /// Another image or version: gardenlet deletes the node agent Secret of the earlier key.
    pub(super) fn roll_to_another_key(&mut self, suffix: &str) {
        self.steps.push(if suffix.is_empty() { "roll" } else { "bad roll" });
        let key = format!("gardener-node-agent-web-{}{suffix}", self.random.below(5));
        self.gardenlet.request("another key", |worker| {
            let pool = &mut worker["spec"]["pools"][0];
            pool["nodeAgentSecretName"] = json!(key);
            pool["labels"][NODE_AGENT_LABEL] = json!(key);
        });
    }

    /// Another data volume.
    pub(super) fn roll_with_same_key(&mut self, size: u64) {
        self.steps.push("roll with the same key");
        let size = format!("{size}Gi");
        self.gardenlet.request("another data volume", |worker| {
            worker["spec"]["pools"][0]["dataVolumes"] = json!([{"name": "extra", "size": size, "type": "pd-extreme"}]);
        });
    }

    /// A VM disappears, and machine-controller-manager replaces it.
    pub(super) fn lose_machine(&self) {
        let machines = self.actor(machines::NAME);
        let all = machines.list(&MACHINE);
        if let Some(machine) = self.random.one_of(&all).filter(|machine| !is_vanishing(&machine.value)) {
            machines.note(format!("loses {}", name_of(&machine.value)));
            machines.delete(&MACHINE, name_of(&machine.value));
        }
    }

    /// Another extension writes the target class of a zone, as after a mistaken takeover.
    fn write_class_as_other(&self, deployment: String) {
        let other = Actor::new(&self.network, "other-extension", NAMESPACE);
        let Some(expected) = self.target() else { return };
        let Some(target) = expected.get(&deployment) else { return };
        other.note(format!("writes class {} of {deployment}", target.class));
        other.change(&MACHINE_DEPLOYMENT, &deployment, |it| {
            let template = &mut it["spec"]["template"]["spec"];
            template["class"]["name"] = json!(target.class);
            template["nodeTemplate"]["metadata"]["labels"][NODE_AGENT_LABEL] = json!(target.key);
        });
    }

    pub(super) fn target(&self) -> Option<Arc<Expected>> {
        let [worker, cluster] = self.gardenlet.worker_and_cluster()?;
        let secrets = self.actor("gardenlet").list(&SECRET);
        Some(expected(&worker.value, &cluster.value, secrets.iter().map(|secret| &secret.value)))
    }

    /// Whether the zones have their target class.
    fn have_target(&self) -> [bool; 3] {
        let (Some(target), machines) = (self.target(), self.actor(machines::NAME)) else { return [false; 3] };
        [1, 2, 3].map(|zone| {
            let live = machines.get(&MACHINE_DEPLOYMENT, &deployment(zone));
            let class = live.map(|live| live.value["spec"]["template"]["spec"]["class"]["name"].clone());
            target.get(&deployment(zone)).is_some_and(|target| class == Some(json!(target.class)))
        })
    }

    pub(super) fn expect_zones(&mut self, what: &str, expected: [bool; 3]) {
        let found = self.have_target();
        if found != expected {
            self.found.push(format!("{what}: the zones with their target class are {found:?}, not {expected:?}"));
        }
    }

    /// Checks the reason of the condition, and that the operation reports the wait.
    fn expect_reason(&mut self, reason: &str) {
        self.expect_held(reason, "zones 2, 3 wait");
    }

    /// Checks the reason of the condition, and that the operation has this text.
    pub(super) fn expect_held(&mut self, reason: &str, reported: &str) {
        let Some([worker, _]) = self.gardenlet.worker_and_cluster() else { return };
        let status = &worker.value["status"];
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let condition = conditions.iter().find(|condition| condition["type"] == "RollsHeld");
        let found = condition.map(|condition| condition["reason"].clone()).unwrap_or_default();
        let texts = [&status["lastOperation"]["description"], &status["lastError"]["description"]];
        let is_reported = texts.iter().any(|text| text.as_str().is_some_and(|text| text.contains(reported)));
        if found != reason || !is_reported {
            self.found.push(format!("RollsHeld has the reason {found}, not {reason}; the operation says {texts:?}"));
        }
    }

    /// One of the ways in which a wait ends, in the calm.
    pub(super) async fn check_zones(&mut self) {
        self.cloud.fill(None);
        self.name_pools(true, Some("web"));
        self.roll_to_another_key("");
        if !self.is_done().await {
            return;
        }
        match self.end_of_wait {
            0 => self.wait_for_full_zone().await,
            1 => self.wait_for_failing_zone().await,
            2 => self.need_machine_while_waiting().await,
            3 => self.remove_setting_while_waiting().await,
            4 => self.wait_for_drain().await,
            _ => self.write_class_while_waiting().await,
        }
        self.cloud.fill(None);
        let is_left = self.random.happens(500);
        self.name_pools(true, is_left.then_some("*"));
        self.name_pools(false, None);
        self.roll_to_another_key("");
    }

    /// Zone 1 rolls for as long as the cloud has no machine for it.
    async fn begin_waiting(&mut self) {
        self.cloud.fill(Some(deployment(1)));
        self.roll_in_calm();
        sleep(BEGINS).await;
        self.expect_zones("zone 1 rolls", [true, false, false]);
        self.expect_reason("ZonesWait");
    }

    /// gardenlet requests a roll to a key that no zone has.
    pub(super) fn roll_in_calm(&self) {
        let key = self.random.below(1_000_000);
        self.gardenlet.request("another key", |worker| {
            let pool = &mut worker["spec"]["pools"][0];
            let key = json!(format!("gardener-node-agent-web-of-calm-{key}"));
            pool["labels"][NODE_AGENT_LABEL] = key.clone();
            pool["nodeAgentSecretName"] = key;
        });
    }

    /// All machines of zone 1 run, and the drain of its old machine takes longer than an operation waits for old classes.
    async fn wait_for_drain(&mut self) {
        self.steps.push("long drain");
        self.cloud.drain_endlessly(true);
        self.roll_in_calm();
        sleep(Duration::from_mins(12)).await;
        self.expect_zones("zone 1 is drained", [true, false, false]);
        self.expect_reason("ZonesWait");
        self.cloud.drain_endlessly(false);
    }

    async fn wait_for_full_zone(&mut self) {
        self.steps.push("full zone");
        self.begin_waiting().await;
        sleep(Duration::from_mins(5 * 60 + 45)).await;
        self.expect_zones("before six hours", [true, false, false]);
        sleep(Duration::from_mins(30)).await;
        self.expect_zones("after six hours", [true; 3]);
    }

    async fn wait_for_failing_zone(&mut self) {
        self.steps.push("failing zone");
        self.roll_to_another_key(NO_BOOT);
        sleep(Duration::from_mins(7 * 60)).await;
        self.expect_zones("zone 1 fails", [true, false, false]);
        self.expect_reason("ZoneFails");
    }

    async fn need_machine_while_waiting(&mut self) {
        self.steps.push("machine needed");
        self.begin_waiting().await;
        let machines = self.actor(machines::NAME);
        let all = machines.list(&MACHINE);
        let lost = all.iter().find(|machine| machine.value["metadata"]["labels"]["name"] == deployment(3).as_str());
        if let Some(lost) = lost {
            machines.delete(&MACHINE, name_of(&lost.value));
        }
        sleep(REACTION).await;
        self.expect_zones("zone 3 lacks a machine", [true, false, true]);
    }

    async fn remove_setting_while_waiting(&mut self) {
        self.steps.push("setting removed");
        self.begin_waiting().await;
        self.name_pools(true, Some(""));
        sleep(REACTION).await;
        self.expect_zones("the setting is removed", [true; 3]);
    }

    /// Another extension writes a class between a read and a write of the controller.
    async fn write_class_while_waiting(&mut self) {
        self.steps.push("class written");
        self.cloud.fill(Some(deployment(1)));
        self.roll_with_same_key(100 + self.random.below(1_000));
        sleep(BEGINS).await;
        let mut writes = self.network.server.writes();
        let before = self.network.server.store().revision;
        self.gardenlet.request("other bounds", |worker| worker["spec"]["pools"][0]["minimum"] = json!(6));
        let is_written = || {
            let store = self.network.server.store();
            store
                .since(before)
                .iter()
                .any(|change| change.author.starts_with("controller") && change.kind == &MACHINE_DEPLOYMENT)
        };
        while !is_written() {
            writes.mark_seen();
            if timeout(Duration::from_secs(60), writes.changed()).await.is_err() {
                return;
            }
        }
        self.write_class_as_other(deployment(3));
        sleep(REACTION).await;
        let [_, _, third] = self.have_target();
        if !third {
            self.found.push("the class that another extension has written is replaced by the old one".to_owned());
        }
    }

    /// Checks that no record of a wait is left.
    pub(super) fn check_no_waits(&mut self) {
        for deployment in self.actor("gardenlet").list(&MACHINE_DEPLOYMENT) {
            let record = &deployment.value["metadata"]["annotations"]["gardener-extension-worker/class-inputs"];
            let record: Value = record.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            if !record["w"].is_null() {
                self.found.push(format!("{} still records a wait: {record}", name_of(&deployment.value)));
            }
        }
    }
}

pub(super) fn annotate(metadata: &mut Value, annotation: &str, setting: Option<&str>) {
    match (setting, metadata["annotations"].as_object_mut()) {
        (Some(setting), _) => metadata["annotations"][annotation] = json!(setting),
        (None, Some(annotations)) => drop(annotations.remove(annotation)),
        (None, None) => {}
    }
}

pub(super) fn deployment(zone: usize) -> String {
    format!("{NAMESPACE}-web-z{zone}")
}
