//! A shoot that moves to another seed: settled, hibernated, or in the middle of an update.

use std::time::Duration;

use tokio::time::sleep;

use super::{Controllers, Life, OPERATION_TIMEOUT};
use crate::rules::ON_ITS_WAY;
use crate::seeds::Theme;

impl Life {
    /// The shoot moves hibernated, and may lose or get pools or be woken up after that.
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

    /// The shoot moves there and back, each time as soon as it is settled.
    pub(super) async fn move_late(&mut self) {
        for _ in 0..2 {
            let is_settled = self.gardenlet.wait(OPERATION_TIMEOUT).await.is_none();
            if is_settled && !self.gardenlet.is_moving() {
                self.move_over().await;
            }
        }
    }

    /// Whether the shoot may move although what was asked for is not done. Machines of a pool that goes just then don't come back, as with
    /// the Go extension.
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
            kept = Some(self.gardenlet.let_machines_go());
            sleep(self.random.millis(0, 1_000)).await;
        }
        // Where gardenlet takes them away, nobody else may still work for the shoot.
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

    /// A shoot that is not away when all is calm goes now.
    pub(super) async fn end_move(&mut self) {
        if self.gardenlet.is_migrating() && self.is_done().await {
            self.move_over().await;
            if self.gardenlet.is_migrating() {
                self.found.push("the shoot does not move although all is calm".to_owned());
            }
        }
    }

    /// Whether the Worker is let go for a migration, for good.
    async fn migrated(&self) -> bool {
        for _ in 0..5 {
            self.gardenlet.migrate();
            if self.gardenlet.wait(OPERATION_TIMEOUT).await.is_some() {
                continue;
            }
            if self.kind != Controllers::Two {
                return true;
            }
            // Another seed has another API server, where nothing comes that the other controller has begun for an older request. Here
            // it may take the Worker up again, which only the write fence prevents.
            sleep(ON_ITS_WAY.unsigned_abs()).await;
            if self.gardenlet.has_migrated() {
                return true;
            }
        }
        false
    }
}
