//! A shoot that moves to another seed: settled, hibernated, or during an update.

use std::time::Duration;

use tokio::time::sleep;

use super::{Controllers, Life, OPERATION_TIMEOUT};
use crate::rules::ON_ITS_WAY;
use crate::seeds::Theme;

impl Life {
    /// Moves the shoot while it is hibernated. Afterwards pools may change, or the shoot may wake up.
    pub(super) async fn move_hibernated(&mut self) {
        self.gardenlet.wait(OPERATION_TIMEOUT).await;
        if !self.is_hibernated && !self.gardenlet.is_moving() {
            self.turn_hibernation();
            self.misfortune().await;
        }
        let is_settled_and_hibernated = self.gardenlet.wait(OPERATION_TIMEOUT).await.is_none() && self.is_hibernated;
        if !is_settled_and_hibernated || self.gardenlet.is_moving() {
            return;
        }
        self.move_over().await;
        if self.gardenlet.is_migrating() {
            return;
        }
        self.misfortune().await;
        if self.random.happens(400) && self.gardenlet.wait(OPERATION_TIMEOUT).await.is_none() {
            self.steps.push("pools");
            self.change_pools();
        }
        if self.random.happens(400) {
            self.gardenlet.wait(OPERATION_TIMEOUT).await;
            self.turn_hibernation();
        }
    }

    /// Moves the shoot there and back, each time as soon as it is settled.
    pub(super) async fn move_late(&mut self) {
        for _ in 0..2 {
            let is_settled = self.gardenlet.wait(OPERATION_TIMEOUT).await.is_none();
            if is_settled && !self.gardenlet.is_moving() {
                self.move_over().await;
            }
        }
    }

    /// Whether the shoot may move before the last request has succeeded. Machines of a pool that is being deleted are
    /// not restored, as with the Go extension.
    pub(super) fn moves_in_between(&self) -> bool {
        self.theme == Theme::UpdatedInPlace && self.gardenlet.has_bounds() && !self.steps.contains(&"pools")
    }

    pub(super) async fn move_over(&mut self) {
        self.steps.push("migrate");
        if !self.migrated().await {
            return;
        }
        let mut kept = None;
        if self.theme == Theme::MovedLate {
            kept = Some(self.gardenlet.remove_machine_finalizers());
            sleep(self.random.millis(0, 1_000)).await;
        }
        // gardenlet deletes the objects only when no controller works for the shoot any more.
        let mut moved = false;
        for _ in 0..20 {
            moved = self.gardenlet.move_over(kept.take());
            if moved {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        self.steps.push(if moved { "restore" } else { "stays" });
    }

    /// Completes a pending move in the calm.
    pub(super) async fn end_move(&mut self) {
        if self.gardenlet.is_migrating() && self.is_done().await {
            self.move_over().await;
            if self.gardenlet.is_migrating() {
                self.found.push("the shoot does not move although all is calm".to_owned());
            }
        }
    }

    /// Whether the Worker has been released for the migration, permanently.
    async fn migrated(&self) -> bool {
        for _ in 0..5 {
            self.gardenlet.migrate();
            if self.gardenlet.wait(OPERATION_TIMEOUT).await.is_some() {
                continue;
            }
            if self.kind != Controllers::Two {
                return true;
            }
            // A real target seed has another API server, which old writes of the other controller cannot reach. Here
            // they can make it take up the Worker again, which only the write fence prevents.
            sleep(ON_ITS_WAY.unsigned_abs()).await;
            if self.gardenlet.has_migrated() {
                return true;
            }
        }
        false
    }
}
