//! Faults in a life: of the network, by other writers, and of the controllers themselves.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::{Controllers, Life};
use crate::machines::in_place;
use crate::network::Faults;
use crate::people;
use crate::random::Random;
use crate::seeds::Theme;

/// Maximum latency of a slow request and of its response, in milliseconds.
pub(super) const SLOW: u64 = 700;
/// Maximum delay of a slow watch, in milliseconds.
pub(super) const LATE: u64 = 5_000;
/// Maximum suspension of a process in seconds, longer than its lease.
const SUSPENDED: u64 = 60;

impl Life {
    /// Starts the actors that are active for a while.
    pub(super) fn disturb(&mut self) {
        self.is_rebalanced.store(true, Ordering::Relaxed);
        if self.random.happens(400) {
            self.disturbances.spawn(people::autoscale(
                self.actor("autoscaler"),
                self.random.clone(),
                Arc::clone(&self.is_scaled_late),
            ));
        }
        if self.random.happens(200) {
            self.is_edited = true;
            self.disturbances.spawn(people::edit(self.actor("person"), self.random.clone()));
        }
        if self.theme == Theme::UpdatedInPlace {
            self.disturbances.spawn(in_place::select(self.actor("person"), self.random.clone()));
        }
        let (network, cloud, random) = (self.network.clone(), self.cloud.clone(), self.random.clone());
        let overlooks = if random.happens(200) { 200 } else { 0 };
        let is_bad = random.happens(200);
        self.disturbances.spawn(async move {
            loop {
                cloud.set(is_bad && random.happens(300), is_bad && random.happens(300), overlooks);
                sleep(random.millis(1_000, 60_000)).await;
                match random.below(4) {
                    0 => network.cut_watches(),
                    1 => network.server.compact(),
                    2 => {
                        network.server.compact();
                        network.cut_watches();
                    }
                    _ => {}
                }
            }
        });
    }

    /// Interferes with a controller, perhaps after a while.
    pub(super) async fn misfortune(&mut self) {
        if self.disturbances.is_empty() || self.random.happens(300) {
            return;
        }
        sleep(self.random.millis(0, 4_000)).await;
        let index = usize::try_from(self.random.below(self.controllers.len() as u64)).unwrap_or_default();
        let Some(controller) = self.controllers.get_mut(index) else { return };
        if self.theme == Theme::Suspended && self.random.happens(700) {
            controller.suspend(self.random.millis(1_000, SUSPENDED * 1_000)).await;
            return;
        }
        let misfortune = match self.random.below(4) {
            // The sharder relies on the clocks of shards, so they must not differ much.
            2 if self.kind == Controllers::Shards => 0,
            misfortune => misfortune,
        };
        if self.kind == Controllers::Two && (self.is_clock_wrong || misfortune == 2) {
            self.gardenlet.ignore_publication();
        }
        match misfortune {
            0 | 1 => {
                // Between a few writes.
                for _ in 0..self.random.below(6) {
                    let mut writes = self.network.server.writes();
                    writes.mark_seen();
                    let _ = tokio::time::timeout(Duration::from_secs(3), writes.changed()).await;
                }
                controller.kill();
                sleep(self.random.millis(100, 8_000)).await;
                controller.start();
            }
            2 => {
                let ahead = i64::try_from(self.random.below(60)).unwrap_or_default() - 30;
                controller.set_ahead(ahead * 1000);
                self.is_clock_wrong = true;
                self.network.trace.note(controller.author, format!("its clock is {ahead} s ahead"));
            }
            _ => {
                self.network.trace.note(controller.author, "is cut off");
                self.network.set_cut_off(controller.author, true);
                sleep(self.random.millis(1_000, 50_000)).await;
                self.network.set_cut_off(controller.author, false);
                self.network.trace.note(controller.author, "is not cut off any more");
            }
        }
    }
}

/// Selects the faults of a life: a subset, so that each also occurs without the others.
pub(super) fn faults(random: &Random) -> Faults {
    let rate = |rates: &[u64]| if random.happens(350) { random.one_of(rates).copied().unwrap_or_default() } else { 0 };
    Faults {
        way: *random.one_of(&[2, 20, 100, SLOW]).unwrap_or(&20),
        lag: *random.one_of(&[2, 50, 500, LATE]).unwrap_or(&50),
        lost_requests: rate(&[10, 50, 200]),
        lost_responses: rate(&[10, 50, 200]),
        silences: rate(&[3, 10, 30]),
        refusals: rate(&[10, 100, 300]),
        foreign: rate(&[10, 50, 150]),
        doubled: rate(&[20, 100]),
        lies: rate(&[100, 300]),
        cuts: rate(&[10, 100, 300]),
    }
}
