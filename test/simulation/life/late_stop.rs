//! A hibernated shoot is woken up or deleted while the request that stops machine-controller-manager is in transit. The
//! Deployment does not change for that, so a conflict does not prevent the stop.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Life, OPERATION_TIMEOUT};

/// Time after which a controller that observed the stop has started it again.
const STARTED: Duration = Duration::from_secs(15);

impl Life {
    pub(super) async fn stop_late(&mut self) {
        self.gardenlet.wait(OPERATION_TIMEOUT).await;
        if self.gardenlet.is_moving() {
            return;
        }
        if self.is_hibernated {
            self.turn_hibernation();
            self.gardenlet.wait(OPERATION_TIMEOUT).await;
        }
        let mut stops = self.network.stops();
        self.turn_hibernation();
        if timeout(OPERATION_TIMEOUT, stops.changed()).await.is_err() {
            return;
        }
        if self.random.happens(300) {
            sleep(self.random.millis(0, 50)).await;
        }
        if self.is_deleted_in_trouble {
            self.gardenlet.announce_deletion(self.is_deletion_forced);
            return;
        }
        self.turn_hibernation();
        sleep(STARTED).await;
        // If responses were lost or the process has ended, gardenlet repeats its request and starts it first.
        self.is_edited |= self.gardenlet.is_machine_controller_stopped();
    }
}
