//! Boot scripts whose content changes while their names stay, as with a rotated certificate authority. No machine is
//! replaced for this, and each later machine uses the new script.

use tokio::time::sleep;

use super::Life;
use crate::actor::name_of;
use crate::api_server::kinds::SECRET;
use crate::expected::boot_scripts;

/// How many of a thousand requests for other boot scripts occur while Secrets cannot be read.
const CLOSED: u64 = 300;

impl Life {
    /// gardenlet replaces some or all boot scripts and requests a reconcile.
    pub(super) async fn replace_boot_scripts(&mut self) {
        self.steps.push("boot scripts");
        let addition = format!(" {}", self.random.below(1_000_000));
        let all = self.random.happens(500);
        for name in self.gardenlet.boot_scripts() {
            if all || self.random.happens(500) {
                self.gardenlet.add_to_boot_script(&name, &addition);
            }
        }
        sleep(self.random.millis(0, 200)).await;
        let are_closed = self.random.happens(CLOSED);
        if are_closed {
            self.network.close_secrets(true);
        }
        self.gardenlet.request("other boot scripts", |_| {});
        sleep(self.random.millis(0, 5_000)).await;
        if are_closed {
            self.network.close_secrets(false);
        }
    }

    /// Checks that each class has the current boot script of its pool.
    pub(super) fn check_boot_scripts(&mut self) {
        let gardenlet = self.actor("gardenlet");
        let secrets = gardenlet.list(&SECRET);
        let Some([worker, cluster]) = self.gardenlet.worker_and_cluster() else { return };
        let expected = boot_scripts(&worker.value, &cluster.value, secrets.iter().map(|secret| &secret.value));
        for (name, script) in expected {
            let live = secrets.iter().find(|secret| name_of(&secret.value) == name);
            if live.is_some_and(|live| live.value["data"]["userData"] != script) {
                self.found.push(format!("Secret {name} has an old boot script although the operation has succeeded"));
            }
        }
    }
}
