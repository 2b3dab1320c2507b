//! Pools whose rolls are stopped: stops that are set and removed at any time, for the Shoot and the Worker, together with
//! rolls zone by zone, hibernations, and pauses by a person.

use std::collections::BTreeSet;
use std::time::Duration;

use gardener_extension_worker::worker::plan::stops::STOP_ANNOTATION;
use serde_json::json;
use tokio::time::sleep;

use super::Life;
use super::zones::{BEGINS, REACTION, annotate, deployment};
use crate::actor::{Actor, is_vanishing, name_of};
use crate::api_server::kinds::{CLUSTER, MACHINE, MACHINE_DEPLOYMENT, WORKER};
use crate::documents::{NAMESPACE, WORKER_NAME};
use crate::machines;
use crate::people;
use crate::rules::{has_pause_mark, is_paused};

/// Values of the annotation.
const SETTINGS: [Option<&str>; 6] = [None, Some("*"), Some("web"), Some("other, web"), Some("other"), Some("")];
/// Pauses between two steps in seconds.
const PAUSES: [u64; 5] = [1, 5, 20, 60, 300];

impl Life {
    /// Steps amid faults.
    pub(super) async fn change_stops(&mut self) {
        if self.random.happens(500) {
            self.name_pools(false, Some("*"));
        }
        for _ in 0..=self.random.below(8) {
            self.misfortune().await;
            self.stop_step();
            let seconds = *self.random.one_of(&PAUSES).unwrap_or(&2);
            sleep(self.random.millis(500, seconds * 1000)).await;
        }
        self.cloud.fill(None);
        if self.is_hibernated {
            self.turn_hibernation();
        }
    }

    fn stop_step(&mut self) {
        match self.random.below(12) {
            0..=2 => self.roll_to_another_key(""),
            3 => self.roll_with_same_key(20 + self.random.below(5)),
            4..=6 => {
                let setting = *self.random.one_of(&SETTINGS).unwrap_or(&None);
                self.stop_rolls(self.random.happens(500), setting);
                if self.random.happens(500) {
                    self.gardenlet.request("another stop", |_| {});
                }
            }
            7 => {
                let zone = 1 + usize::try_from(self.random.below(3)).unwrap_or_default();
                let pauses = self.random.happens(400) && !self.is_hibernated;
                self.pause_by_hand(&deployment(zone), pauses);
            }
            8 => people::scale(&self.actor("autoscaler"), &self.random, &self.is_scaled_late),
            9 => self.lose_machine(),
            10 => {
                // A write of the earlier operation may still stop machine-controller-manager.
                self.is_edited = true;
                // At a wake-up, a paused deployment gets machines of its old class, which may have been deleted.
                self.end_pauses_by_hand();
                self.turn_hibernation();
            }
            _ => {
                self.steps.push("confirm");
                self.gardenlet.request("nothing new", |_| {});
            }
        }
    }

    /// Sets or removes the annotation of the Worker or the Shoot.
    fn stop_rolls(&self, of_worker: bool, setting: Option<&str>) {
        let gardenlet = self.actor("gardenlet");
        gardenlet.note(format!("stop-rolls: {setting:?}, of the Worker: {of_worker}"));
        match of_worker {
            true => gardenlet.change(&WORKER, WORKER_NAME, |worker| {
                annotate(&mut worker["metadata"], STOP_ANNOTATION, setting);
            }),
            false => gardenlet.change(&CLUSTER, NAMESPACE, |cluster| {
                annotate(&mut cluster["spec"]["shoot"]["metadata"], STOP_ANNOTATION, setting);
            }),
        }
    }

    /// A person pauses a machine deployment, or ends a pause of their own.
    fn pause_by_hand(&self, deployment: &str, pauses: bool) {
        let operator = Actor::new(&self.network, "operator", NAMESPACE);
        let live = operator.get(&MACHINE_DEPLOYMENT, deployment);
        if live.is_none_or(|live| has_pause_mark(&live.value)) {
            return;
        }
        operator.note(format!("pauses {deployment}: {pauses}"));
        operator.change(&MACHINE_DEPLOYMENT, deployment, |it| match (pauses, it["spec"].as_object_mut()) {
            (true, _) => it["spec"]["paused"] = json!(true),
            (false, Some(spec)) => drop(spec.remove("paused")),
            (false, None) => {}
        });
    }

    /// Ends all pauses of a person.
    fn end_pauses_by_hand(&self) {
        for zone in 1..=3 {
            self.pause_by_hand(&deployment(zone), false);
        }
    }

    /// Which zones are paused by the controller.
    fn paused_zones(&self) -> [bool; 3] {
        [1, 2, 3].map(|zone| {
            let live = self.actor(machines::NAME).get(&MACHINE_DEPLOYMENT, &deployment(zone));
            live.is_some_and(|live| is_paused(&live.value) && has_pause_mark(&live.value))
        })
    }

    fn expect_pauses(&mut self, what: &str, expected: [bool; 3]) {
        let found = self.paused_zones();
        if found != expected {
            self.found.push(format!("{what}: the zones paused by the controller are {found:?}, not {expected:?}"));
        }
    }

    fn machines_that_stay(&self) -> BTreeSet<String> {
        let machines = self.actor(machines::NAME).list(&MACHINE);
        let machines = machines.iter().filter(|machine| !is_vanishing(&machine.value));
        machines.map(|machine| name_of(&machine.value).to_owned()).collect()
    }

    /// One stop in the calm, and how it ends.
    pub(super) async fn check_stops(&mut self) {
        self.cloud.fill(None);
        self.end_pauses_by_hand();
        self.name_pools(true, Some("web"));
        self.stop_rolls(true, Some(""));
        self.roll_to_another_key("");
        if !self.is_done().await {
            return;
        }
        match self.end_of_wait {
            0 => self.stop_in_the_middle().await,
            1 => self.stop_before_the_roll().await,
            2 => self.stop_beside_a_person().await,
            3 => self.stop_for_seven_hours().await,
            4 => self.hibernate_while_stopped().await,
            _ => self.edit_while_stopped().await,
        }
        self.cloud.fill(None);
        self.end_pauses_by_hand();
        let setting = *self.random.one_of(&[None, Some(""), Some("other")]).unwrap_or(&None);
        self.stop_rolls(true, setting);
        self.stop_rolls(false, None);
        self.name_pools(true, self.random.happens(500).then_some("*"));
        self.gardenlet.request("no stop", |_| {});
    }

    /// Zone 1 rolls for as long as the cloud has no machine for it, and is then stopped.
    async fn begin_stop(&mut self) {
        self.cloud.fill(Some(deployment(1)));
        self.roll_in_calm();
        sleep(BEGINS).await;
        self.stop_rolls(true, Some("*"));
        sleep(REACTION).await;
        self.expect_pauses("zone 1 rolls", [true, false, false]);
        self.expect_zones("zone 1 rolls", [true, false, false]);
        self.expect_held("Stopped", "no node can join zones 2, 3 of pool \"web\"");
    }

    async fn stop_in_the_middle(&mut self) {
        self.steps.push("stop in the middle");
        self.begin_stop().await;
        let before = self.machines_that_stay();
        self.cloud.fill(None);
        sleep(Duration::from_mins(10)).await;
        let lost: Vec<String> = before.difference(&self.machines_that_stay()).cloned().collect();
        if !lost.is_empty() {
            self.found.push(format!("{lost:?} are deleted although the roll is stopped"));
        }
        self.expect_zones("the roll is stopped", [true, false, false]);
    }

    async fn stop_before_the_roll(&mut self) {
        self.steps.push("stop before the roll");
        self.stop_rolls(false, Some("web"));
        self.stop_rolls(true, None);
        self.roll_in_calm();
        sleep(BEGINS).await;
        self.expect_zones("the stop came first", [false; 3]);
        self.expect_pauses("no zone rolls", [false; 3]);
        self.expect_held("Stopped", "zones 1, 2, 3 keep their class");
    }

    async fn stop_beside_a_person(&mut self) {
        self.steps.push("pause of a person");
        self.name_pools(true, Some(""));
        self.pause_by_hand(&deployment(2), true);
        self.cloud.fill(Some(deployment(1)));
        self.roll_in_calm();
        sleep(BEGINS).await;
        self.stop_rolls(true, Some("web"));
        sleep(REACTION).await;
        let [first, second, _] = self.paused_zones();
        let live = self.actor(machines::NAME).get(&MACHINE_DEPLOYMENT, &deployment(2));
        let is_theirs = live.is_some_and(|live| is_paused(&live.value));
        if !first || second || !is_theirs {
            self.found.push(format!("paused by the controller: {first} {second}; by the person: {is_theirs}"));
        }
    }

    async fn stop_for_seven_hours(&mut self) {
        self.steps.push("long stop");
        self.begin_stop().await;
        sleep(Duration::from_mins(7 * 60)).await;
        self.expect_zones("the stop lasts", [true, false, false]);
        self.expect_held("Stopped", "so these zones roll at the same time when the stop ends");
        self.stop_rolls(true, Some(""));
        sleep(REACTION).await;
        self.expect_zones("six hours have passed", [true; 3]);
        self.expect_pauses("the stop is removed", [false; 3]);
    }

    async fn hibernate_while_stopped(&mut self) {
        self.steps.push("hibernated");
        self.begin_stop().await;
        self.cloud.fill(None);
        self.turn_hibernation();
        if !self.is_done().await {
            return;
        }
        self.expect_pauses("the shoot is hibernated", [false; 3]);
        self.turn_hibernation();
        let _ = self.is_done().await;
    }

    /// The target changes while zone 1 is paused, and then again to the class that zone 1 has.
    async fn edit_while_stopped(&mut self) {
        self.steps.push("edited");
        self.begin_stop().await;
        self.roll_in_calm();
        sleep(BEGINS).await;
        self.expect_zones("another edit", [false; 3]);
        self.expect_pauses("another edit", [true, false, false]);
    }

    /// Checks that no pause by the controller is left.
    pub(super) fn check_no_pauses(&mut self) {
        for deployment in self.actor("gardenlet").list(&MACHINE_DEPLOYMENT) {
            if has_pause_mark(&deployment.value) || is_paused(&deployment.value) {
                self.found.push(format!(
                    "{} is still paused: {}",
                    name_of(&deployment.value),
                    deployment.value["spec"]
                ));
            }
        }
    }
}
