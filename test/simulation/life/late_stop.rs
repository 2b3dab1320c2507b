//! A shoot that is hibernated is to run again, or to go, just when the stop of machine-controller-manager is on its way: its Deployment does
//! not change for that.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Life, OPERATION_TIMEOUT};

/// After that time it has been started again, or nobody knows that it has to be.
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
        // Where answers were lost or the process has ended, gardenlet asks again, and starts it before.
        self.is_edited |= self.gardenlet.is_machine_controller_stopped();
    }
}
