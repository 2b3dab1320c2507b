//! A shoot that is deleted and recreated with the same name amid faults. Nothing of the first shoot may affect the
//! second.

use tokio::time::sleep;

use super::{CALM, Life, OPERATION_TIMEOUT};

/// Number of attempts of gardenlet to delete amid faults.
const TRIES: u32 = 3;

impl Life {
    /// Whether the shoot was recreated. If its deletion has not finished amid faults, it must finish in the calm.
    pub(super) async fn recreated(&mut self) -> bool {
        self.gardenlet.wait(OPERATION_TIMEOUT).await;
        if self.gardenlet.is_moving() {
            return true;
        }
        self.steps.push("delete");
        self.gardenlet.announce_deletion(false);
        sleep(self.random.millis(0, 5_000)).await;
        if !self.deleted().await {
            self.calm();
            self.gardenlet.delete();
            if !self.gardenlet.wait_until_deleted(CALM).await {
                self.found.push(format!("the Worker is not gone {} s after its deletion", CALM.as_secs()));
            }
            return false;
        }
        self.gardenlet.delete_shoot_objects();
        sleep(self.random.millis(2_000, 10_000)).await;
        (self.is_hibernated, self.image) = (false, 0);
        self.create();
        self.some_steps().await;
        true
    }

    async fn deleted(&mut self) -> bool {
        for _ in 0..TRIES {
            self.gardenlet.delete();
            self.misfortune().await;
            if self.gardenlet.wait_until_deleted(OPERATION_TIMEOUT).await {
                return true;
            }
        }
        false
    }
}
