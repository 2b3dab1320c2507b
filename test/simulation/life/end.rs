//! The calm after the faults, in which everything must succeed: pending requests complete, a no-op request writes
//! nothing, a failed machine is reported, and the Worker is deleted.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{CALM, Controllers, Life};
use crate::actor::{is_vanishing, name_of};
use crate::api_server::kinds::{LEASE, MACHINE, WORKER};
use crate::api_server::store::Change;
use crate::dependency::recorded;
use crate::documents::WORKER_NAME;
use crate::machines;
use crate::machines::MachineControllerManager;
use crate::network::Faults;
use crate::rules::leftovers;
use crate::seeds::Theme;

/// Time limit for reporting a failed machine and then its replacement, which takes up to 40 s.
const REPORTED: Duration = Duration::from_secs(100);

impl Life {
    /// Ends all faults.
    pub(super) fn calm(&mut self) {
        self.network.trace.note("world", "calm");
        self.disturbances.abort_all();
        self.is_rebalanced.store(false, Ordering::Relaxed);
        self.network.set_faults(Faults { way: 20, lag: 20, ..Faults::default() });
        self.cloud.set(false, false, 0);
        self.controllers.iter().for_each(|controller| self.network.set_cut_off(controller.author, false));
        if self.kind == Controllers::Two {
            self.controllers.truncate(1);
        }
    }

    /// Waits for the last request to succeed, then usually deletes the shoot.
    pub(super) async fn end(&mut self) {
        if self.theme == Theme::ImagesChanged {
            self.bring_images_back();
        }
        self.is_edited |= self.theme == Theme::ImagesChanged;
        self.end_move().await;
        if self.gardenlet.is_migrating() {
            return;
        }
        if self.must_request() || self.random.happens(500) {
            sleep(self.random.millis(0, 20_000)).await;
            self.gardenlet.request("as it shall be", |_| {});
        }
        if !self.is_done().await {
            return;
        }
        // A process may have ended before it noticed an earlier event. A class that was kept for a machine is deleted
        // by the first operation after the machine's deletion.
        if self.network.take_forgotten() || self.theme == Theme::UpdatedInPlace {
            self.gardenlet.request("as it shall be", |_| {});
            if !self.is_done().await {
                return;
            }
        }
        self.check_leftovers();
        if self.theme == Theme::BootScriptsReplaced {
            self.check_boot_scripts();
        }
        if self.theme == Theme::ZoneByZone {
            self.check_no_waits();
        }
        if self.theme == Theme::Budget {
            self.check_no_marks();
        }
        if self.theme == Theme::Stopped {
            self.check_no_waits();
            self.check_no_pauses();
        }
        self.no_op().await;
        if self.theme == Theme::ImagesChanged {
            self.lose_images().await;
        }
        if self.random.happens(300) {
            self.failing_machine().await;
        }
        if self.random.happens(700) {
            self.steps.push("delete");
            self.gardenlet.announce_deletion(false);
            self.gardenlet.delete();
            if self.gardenlet.wait_until_deleted(CALM).await {
                sleep(Duration::from_secs(20)).await;
                self.check_leftovers();
            } else {
                self.found.push(format!("the Worker is not gone {} s after its deletion", CALM.as_secs()));
            }
        }
    }

    /// Whether the last request has succeeded. Also waits for the deletion of the last machine, which gardenlet does
    /// not wait for.
    pub(super) async fn is_done(&mut self) -> bool {
        let began = Instant::now();
        let missing = self.gardenlet.wait(CALM).await;
        self.calmed_after = self.calmed_after.max(began.elapsed().as_secs());
        if let Some(missing) = missing {
            self.found
                .push(format!("what was asked for is not done {} s after all is calm: {missing}", CALM.as_secs()));
            return false;
        }
        sleep(Duration::from_secs(30)).await;
        true
    }

    pub(super) fn check_leftovers(&mut self) {
        self.found.extend(leftovers(&self.network.server.store().log));
        self.check_dependencies();
    }

    /// Checks that each resource at the cloud is recorded once and each record exists, so that no unneeded resource
    /// remains.
    fn check_dependencies(&mut self) {
        let Some(dependency) = &self.dependencies else { return };
        let worker = self.actor("gardenlet").get(&WORKER, WORKER_NAME);
        let mut recorded = worker.as_ref().map(|worker| recorded(&worker.value)).unwrap_or_default();
        // A resource that was created but became unneeded before it was recorded is deleted with the Worker.
        if worker.as_ref().is_some_and(|worker| recorded.is_empty() && !dependency.is_needed(&worker.value)) {
            return;
        }
        let mut there = dependency.names();
        recorded.sort_unstable();
        there.sort_unstable();
        if there != recorded {
            self.found.push(format!("{there:?} are there at the cloud, and {recorded:?} are recorded"));
        }
    }

    /// A no-op request only writes the Worker: status and annotation, and once more if an own write crosses the
    /// request. The status is not set to Processing, unless the shoot is hibernated or restored, because those
    /// operations always are.
    pub(super) async fn no_op(&mut self) {
        let before = self.network.server.store().revision;
        let is_followed = self.gardenlet.is_hibernated() || self.gardenlet.is_restoring();
        self.gardenlet.request("nothing new", |_| {});
        if let Some(missing) = self.gardenlet.wait(CALM).await {
            self.found.push(format!("a request with nothing to do is not answered: {missing}"));
        }
        let store = self.network.server.store();
        let by_controllers = store.since(before).iter().filter(|change| change.author.starts_with("controller"));
        let (worker, others): (Vec<_>, Vec<_>) =
            by_controllers.filter(|change| change.kind != &LEASE).partition(|change| change.kind == &WORKER);
        if worker.len() > 3 + usize::from(is_followed) {
            self.found.push(format!("a request with nothing to do writes the Worker {} times", worker.len()));
        }
        let reports_start = |change: &&Change| change.after.value["status"]["lastOperation"]["state"] == "Processing";
        if !is_followed && worker.iter().any(reports_start) {
            self.found.push("a request with nothing to do is said to begin".to_owned());
        }
        let written: Vec<String> =
            others.iter().map(|change| format!("{} {}", change.kind.kind, change.name)).collect();
        if !written.is_empty() {
            self.found.push(format!("a request with nothing to do writes {}", written.join(", ")));
        }
    }

    /// Checks that the Worker reports a failed and then recovered machine without any request, although watches were
    /// just closed.
    async fn failing_machine(&mut self) {
        let machines = self.actor(machines::NAME);
        let Some(machine) = machines.list(&MACHINE).into_iter().find(|machine| !is_vanishing(&machine.value)) else {
            return;
        };
        self.steps.push("failing machine");
        self.network.cut_watches();
        sleep(Duration::from_secs(10)).await;
        self.cloud.set(true, false, 0);
        MachineControllerManager::fail(&machines, name_of(&machine.value), (self.now)());
        for (status, what) in [("False", "has failed"), ("True", "is back")] {
            if !self.gardenlet.wait_for_nodes(status, REPORTED).await {
                let found = format!("EveryNodeReady is not {status} {} s after a machine {what}", REPORTED.as_secs());
                self.found.push(found);
            }
            self.cloud.set(false, false, 0);
        }
    }
}
