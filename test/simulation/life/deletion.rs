//! A deletion amid faults: when it begins, which faults follow, and how soon the Worker must be deleted.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::{CALM, Life, OPERATION_TIMEOUT};
use crate::api_server::kinds::MACHINE;
use crate::machines;

/// Time limit for the Worker's deletion after its last prerequisite is deleted. A lost response takes 30 s, and so does
/// a lease. A deletion is requeued after five minutes; anything that only this repairs is a defect.
const RELEASED: SignedDuration = SignedDuration::from_secs(120);
/// The usual time limit for deleting the last machine amid faults.
const LAST_MACHINE: Duration = Duration::from_secs(150);

impl Life {
    /// Deletes the shoot regardless of its last operation, and adds further faults.
    pub(super) async fn delete_in_trouble(&mut self) {
        let wait = if self.random.happens(500) { OPERATION_TIMEOUT } else { self.random.millis(0, 20_000) };
        self.gardenlet.wait(wait).await;
        self.misfortune().await;
        self.steps.push(if self.is_deletion_forced { "delete by force in trouble" } else { "delete in trouble" });
        self.gardenlet.announce_deletion(self.is_deletion_forced);
        sleep(self.random.millis(1_000, 20_000)).await;
        self.gardenlet.delete();
        self.misfortune().await;
        if self.random.happens(600) {
            // Classes and their Secrets are deleted last, before the Worker.
            let end = Instant::now() + LAST_MACHINE;
            while !self.actor("gardenlet").list(&MACHINE).is_empty() && Instant::now() < end {
                sleep(Duration::from_millis(500)).await;
            }
            if let Some(writes) = self.relisted_after {
                self.relist_after(writes).await;
            } else {
                self.misfortune().await;
            }
        }
        self.calm();
        let calm = (self.now)();
        if self.must_request() || self.random.happens(300) {
            sleep(self.random.millis(0, 20_000)).await;
            self.gardenlet.delete();
        }
        // A write sent before the deletion may have stopped machine-controller-manager. gardenlet starts it with its
        // next attempt.
        let is_deleted = self.gardenlet.wait_until_deleted(CALM).await;
        if !is_deleted && (self.network.take_forgotten() || self.gardenlet.is_machine_controller_stopped()) {
            self.gardenlet.delete();
        }
        self.check_deletion(calm).await;
    }

    /// Forces a relist of everything, or some kinds, between a few writes. No event reports what was deleted before it.
    async fn relist_after(&self, writes: u64) {
        for _ in 0..writes {
            let mut written = self.network.server.writes();
            written.mark_seen();
            let _ = tokio::time::timeout(Duration::from_secs(3), written.changed()).await;
        }
        let Some(kinds) = self.relisted else {
            self.network.trace.note("world", "all watches are cut, and no version is known any more");
            self.network.server.compact();
            self.network.cut_watches();
            return;
        };
        let named = kinds.iter().map(|kind| kind.plural).collect::<Vec<_>>().join(", ");
        self.network.trace.note("world", format!("{named} can't be watched"));
        self.network.server.store().begin_watch_caches(kinds);
        sleep(self.random.millis(1_000, 20_000)).await;
        self.network.server.store().end_watch_caches();
        self.network.trace.note("world", format!("{named} can be watched again, from now on only"));
    }

    /// Checks that the Worker and all its objects are deleted in time.
    async fn check_deletion(&mut self, calm: Timestamp) {
        if !self.gardenlet.wait_until_deleted(CALM).await {
            self.found.push(format!("the Worker is not gone {} s after its deletion", CALM.as_secs()));
            return;
        }
        let held_until = {
            let store = self.network.server.store();
            let holds = |author| author == "gardenlet" || author == machines::NAME && !self.is_deletion_forced;
            let by_others = store.log.iter().filter(|change| holds(change.author));
            by_others.map(|change| change.at).max().unwrap_or(calm).max(calm)
        };
        let after = (self.now)().duration_since(held_until);
        self.calmed_after = self.calmed_after.max(after.as_secs().unsigned_abs());
        if after > RELEASED {
            self.found.push(format!("the Worker is gone {} s after nothing holds it any more", after.as_secs()));
        }
        sleep(Duration::from_secs(20)).await;
        // gardenlet deletes what a forced deletion leaves behind.
        if !self.is_deletion_forced {
            self.check_leftovers();
        }
    }
}
