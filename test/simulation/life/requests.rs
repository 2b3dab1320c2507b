//! gardenlet's requests in a life, step by step.

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Controllers, Life, OPERATION_TIMEOUT};
use crate::documents::Documents;
use crate::people;
use crate::seeds::Theme;

impl Life {
    /// gardenlet requests something, after waiting for the last operation or not.
    pub(super) async fn step(&mut self) {
        let wait = if self.random.happens(850) { OPERATION_TIMEOUT } else { self.random.millis(0, 5_000) };
        let missing = self.gardenlet.wait(wait).await;
        let is_settled = missing.is_none();
        if self.theme == Theme::BootScriptsReplaced && !self.gardenlet.is_moving() {
            // Of two controllers that both act as leaders, one may continue the other's operation with older data.
            if is_settled && self.kind != Controllers::Two {
                self.check_boot_scripts();
            }
            self.replace_boot_scripts().await;
        }
        if self.theme == Theme::ImagesChanged {
            self.change_images(is_settled).await;
        }
        if let Some(dependency) = &self.dependencies
            && !self.gardenlet.is_moving()
            && self.random.happens(400)
        {
            self.steps.push("dependencies");
            dependency.change(&self.gardenlet, &self.random);
            return;
        }
        let is_spec_unchanged = self.is_hibernated && self.theme != Theme::MovedHibernated;
        let step = self.random.below(if is_spec_unchanged { 6 } else { 9 });
        match step {
            _ if self.gardenlet.is_migrating() => self.move_over().await,
            _ if self.gardenlet.is_restoring() => {
                self.steps.push("restore again");
                self.gardenlet.request("the restoration", |_| {});
            }
            0 => {
                self.steps.push("confirm");
                self.gardenlet.request("nothing new", |_| {});
            }
            1 | 2 => self.roll(),
            3 => self.set_bounds(self.random.below(3)),
            4 | 5 => {
                // A write of the earlier operation may still stop machine-controller-manager; gardenlet then repeats
                // its request.
                self.is_edited |= !is_settled;
                self.turn_hibernation();
            }
            6 => {
                self.steps.push("pools");
                self.change_pools();
            }
            7 => {
                self.steps.push("labels");
                let label = self.random.below(10).to_string();
                self.gardenlet
                    .request("another label", |worker| worker["spec"]["pools"][0]["labels"]["sim"] = json!(label));
            }
            // Only one seed at a time may have the shoot.
            _ if is_settled || self.moves_in_between() => {
                self.move_over().await;
            }
            _ => {}
        }
    }

    /// gardenlet requests other bounds right after the autoscaler used the earlier ones.
    pub(super) async fn outrun(&mut self) {
        self.gardenlet.wait(OPERATION_TIMEOUT).await;
        people::scale(&self.actor("autoscaler"), &self.random, &self.is_scaled_late);
        self.network.is_to_be_noticed();
        sleep(self.random.millis(0, 1_000)).await;
        self.set_bounds(1 + self.random.below(2));
    }

    pub(super) fn turn_hibernation(&mut self) {
        self.is_hibernated = !self.is_hibernated;
        self.steps.push(if self.is_hibernated { "hibernate" } else { "wake up" });
        self.gardenlet.hibernate(self.is_hibernated);
    }

    pub(super) fn set_bounds(&mut self, more: u64) {
        self.steps.push("bounds");
        self.gardenlet.request("other bounds", |worker| set_bounds(worker, more));
    }

    pub(super) fn roll(&mut self) {
        self.steps.push("roll");
        self.image = 1 - self.image;
        let version = Documents::images(self.provider)[self.image];
        self.gardenlet.request("another image", |worker| {
            let pool = &mut worker["spec"]["pools"][0];
            let name = pool["name"].as_str().unwrap_or_default().to_owned();
            pool["machineImage"]["version"] = json!(version);
            pool["nodeAgentSecretName"] = json!(format!("gardener-node-agent-{name}-for-{version}"));
        });
    }

    /// Removes or adds a pool.
    pub(super) fn change_pools(&self) {
        let all = self.pools();
        let more = usize::try_from(1 + self.random.below(all.len() as u64 - 1)).unwrap_or(1);
        self.gardenlet.request("pools come or go", |worker| {
            let Some(pools) = worker["spec"]["pools"].as_array_mut() else { return };
            if pools.len() > 1 {
                pools.truncate(1);
            } else {
                pools.extend(all.into_iter().skip(1).take(more));
            }
        });
    }
}

fn set_bounds(worker: &mut Value, more: u64) {
    for pool in worker["spec"]["pools"].as_array_mut().into_iter().flatten() {
        let zones = pool["zones"].as_array().map_or(1, Vec::len) as u64;
        [pool["minimum"], pool["maximum"]] = [zones * (1 + more.min(1)), zones * (2 + more)].map(Value::from);
    }
}
