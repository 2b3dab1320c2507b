//! A roll budget: infrastructure and releases that change the names of classes and return, budgets that change, rolls
//! that fail in their slots, and another writer of classes.

use std::time::Duration;

use gardener_extension_worker::worker::plan::roll_budget::LET_ROLL_ANNOTATION;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Life;
use super::zones::annotate;
use crate::actor::name_of;
use crate::api_server::kinds::{MACHINE_CLASS, MACHINE_DEPLOYMENT, SECRET, WORKER};
use crate::api_server::store::Object;
use crate::controllers::Controller;
use crate::documents::{NAMESPACE, WORKER_NAME};
use crate::machines::{self, NODE_AGENT_LABEL};
use crate::people;
use crate::rules::{POOL, has_slot};

/// Values of the annotation.
const SETTINGS: [Option<&str>; 4] = [None, Some("services"), Some("*"), Some("")];
/// Pauses between two steps in seconds.
const PAUSES: [u64; 4] = [2, 20, 60, 300];
/// Time in which rolls begin, longer than a write may be on its way.
const BEGINS: Duration = Duration::from_secs(200);

/// Gives nodes the label with the name of their node agent Secret.
pub(super) fn label(pool: &mut Value) {
    let key = pool["nodeAgentSecretName"].clone();
    pool["labels"][NODE_AGENT_LABEL] = key;
    pool["updateStrategy"] = Value::Null;
}

/// A pool is known by its label.
fn pool_of(deployment: &Object) -> &str {
    deployment.value["metadata"]["labels"][POOL].as_str().unwrap_or_default()
}

impl Life {
    /// Restarts the controllers with this budget.
    fn set_budget(&mut self, limit: Option<usize>) {
        for controller in &mut self.controllers {
            controller.set_budget(limit);
            controller.start();
        }
    }

    /// Steps amid faults.
    pub(super) async fn change_budget(&mut self) {
        self.controllers.iter_mut().for_each(|controller| controller.set_budget(Some(self.slots)));
        self.controllers.iter_mut().for_each(Controller::start);
        for _ in 0..=self.random.below(6) {
            self.misfortune().await;
            self.budget_step();
            let seconds = *self.random.one_of(&PAUSES).unwrap_or(&2);
            sleep(self.random.millis(500, seconds * 1000)).await;
        }
        self.cloud.fill(None);
    }

    fn budget_step(&mut self) {
        match self.random.below(11) {
            0..=3 => self.change_identity(self.random.below(3)),
            4 => self.change_key_of_pool(),
            5 => self.edit_pool(),
            6 => {
                let setting = *self.random.one_of(&SETTINGS).unwrap_or(&None);
                self.let_roll(setting);
            }
            7 => people::scale(&self.actor("autoscaler"), &self.random, &self.is_scaled_late),
            8 => {
                let all = self.actor(machines::NAME).list(&MACHINE_DEPLOYMENT);
                let full = self.random.one_of(&all).map(|deployment| name_of(&deployment.value).to_owned());
                self.cloud.fill(full);
            }
            9 => {
                self.steps.push("another budget");
                let limit = *self.random.one_of(&[None, Some(0), Some(self.slots)]).unwrap_or(&None);
                self.set_budget(limit);
            }
            _ => {
                self.steps.push("confirm");
                self.gardenlet.request("nothing new", |_| {});
            }
        }
    }

    /// The infrastructure gets another identity, which changes the names of all classes and no key.
    fn change_identity(&mut self, number: u64) {
        self.steps.push("identity");
        self.gardenlet.request("another identity", |worker| {
            let id = format!("/subscriptions/s/userAssignedIdentities/puller-{number}");
            worker["spec"]["infrastructureProviderStatus"]["identity"]["id"] = json!(id);
        });
    }

    /// Another image or version.
    fn change_key_of_pool(&mut self) {
        self.steps.push("key");
        let (any, key) = (self.random.below(100), self.random.below(1_000));
        self.gardenlet.request("another key", |worker| {
            let Some(pool) = any_pool(worker, any) else { return };
            let key = json!(format!("gardener-node-agent-{}-{key}", pool["name"].as_str().unwrap_or_default()));
            pool["labels"][NODE_AGENT_LABEL] = key.clone();
            pool["nodeAgentSecretName"] = key;
        });
    }

    /// The owner edits a data volume.
    fn edit_pool(&mut self) {
        self.steps.push("edit");
        let (any, size) = (self.random.below(100), 20 + self.random.below(1_000));
        self.gardenlet.request("another data volume", |worker| {
            let Some(pool) = any_pool(worker, any) else { return };
            pool["dataVolumes"] = json!([{"name": "scratch", "size": format!("{size}Gi"), "type": "Premium_LRS"}]);
        });
    }

    fn let_roll(&self, setting: Option<&str>) {
        let gardenlet = self.actor("gardenlet");
        gardenlet.note(format!("let-roll: {setting:?}"));
        gardenlet.change(&WORKER, WORKER_NAME, |worker| {
            annotate(&mut worker["metadata"], LET_ROLL_ANNOTATION, setting);
        });
    }

    /// The pools whose machine deployments all have their target class, and the others.
    fn pools_at_target(&self) -> (Vec<String>, Vec<String>) {
        let Some(target) = self.target() else { return Default::default() };
        let live = self.actor(machines::NAME).list(&MACHINE_DEPLOYMENT);
        let mut pools: Vec<String> = live.iter().map(|deployment| pool_of(deployment).to_owned()).collect();
        pools.sort_unstable();
        pools.dedup();
        pools.into_iter().partition(|pool| {
            let mut own = live.iter().filter(|deployment| pool_of(deployment) == pool);
            own.all(|deployment| {
                let class = &deployment.value["spec"]["template"]["spec"]["class"]["name"];
                target.get(name_of(&deployment.value)).is_some_and(|target| *class == json!(target.class))
            })
        })
    }

    fn expect_pools(&mut self, what: &str, expected: usize) {
        let (at_target, others) = self.pools_at_target();
        if at_target.len() != expected {
            self.found.push(format!(
                "{what}: {} pools have their target class, not {expected}: {at_target:?}, {others:?}",
                at_target.len()
            ));
        }
    }

    /// Pools on hold in the calm, and one of the ways in which that ends.
    pub(super) async fn check_budget(&mut self) {
        self.cloud.fill(None);
        self.set_budget(Some(1));
        self.let_roll(Some("*"));
        self.change_identity(1_000);
        if !self.is_done().await {
            return;
        }
        self.let_roll(None);
        self.confirm().await;
        let (at_target, others) = self.pools_at_target();
        let pools = at_target.len() + others.len();
        self.expect_pools("let-roll", pools);
        match self.end_of_wait {
            0 | 1 => self.roll_pool_by_pool(pools).await,
            2 | 3 => self.fail_in_slot().await,
            4 => self.edit_while_on_hold(pools).await,
            _ => self.return_to_earlier_classes(pools).await,
        }
        self.cloud.fill(None);
        self.let_roll(Some("*"));
        self.gardenlet.request("let roll", |_| {});
        if self.is_done().await && self.random.happens(500) {
            self.set_budget(None);
        }
    }

    /// Each request of gardenlet starts a pool, if not an earlier one has done so in its last reconciles.
    async fn roll_pool_by_pool(&mut self, pools: usize) {
        self.steps.push("pool by pool");
        self.change_identity(2_000 + self.random.below(1_000));
        for rolled in 1..=pools {
            sleep(BEGINS).await;
            if !self.is_done().await {
                return;
            }
            let (at_target, others) = self.pools_at_target();
            if at_target.len() < rolled {
                self.found.push(format!("after {rolled} requests, only {at_target:?} have rolled, and not {others:?}"));
            }
            if rolled == 1 && !others.is_empty() {
                self.check_classes_on_hold();
                self.check_slots_are_free();
            }
            self.gardenlet.request("nothing new", |_| {});
        }
    }

    /// After the reconcile that finds the pool done, no mark is left.
    fn check_slots_are_free(&mut self) {
        let marked = self.actor(machines::NAME).list(&MACHINE_DEPLOYMENT);
        let marked: Vec<&str> = marked.iter().filter(|it| has_slot(&it.value)).map(|it| name_of(&it.value)).collect();
        if !marked.is_empty() {
            self.found.push(format!("the operation has succeeded, and {marked:?} still have a slot"));
        }
    }

    /// The class and its Secret exist, with the user data of the pool.
    fn check_classes_on_hold(&mut self) {
        let actor = self.actor(machines::NAME);
        for deployment in actor.list(&MACHINE_DEPLOYMENT) {
            let class = &deployment.value["spec"]["template"]["spec"]["class"]["name"];
            let class = class.as_str().unwrap_or_default();
            let is_there = actor.get(&MACHINE_CLASS, class).is_some() && actor.get(&SECRET, class).is_some();
            if !is_there {
                self.found.push(format!("class {class} or its Secret is not there"));
            }
        }
    }

    /// The first pool gets the slot, and the cloud has no machine for it.
    fn occupy_slot(&mut self, identity: u64) {
        self.cloud.fill(Some(format!("{NAMESPACE}-services-z1")));
        self.change_identity(identity);
    }

    /// The machines of the pool with the slot never come.
    async fn fail_in_slot(&mut self) {
        self.steps.push("failing slot");
        self.occupy_slot(3_000);
        for _ in 0..3 {
            sleep(Duration::from_mins(8)).await;
            self.gardenlet.request("nothing new", |_| {});
        }
        sleep(BEGINS).await;
        self.expect_pools("the pool with the slot fails", 1);
        self.check_classes_on_hold();
    }

    /// An edit of the owner and another key start at once.
    async fn edit_while_on_hold(&mut self, pools: usize) {
        self.steps.push("edit while on hold");
        self.occupy_slot(4_000);
        sleep(BEGINS).await;
        self.gardenlet.request("another key and another data volume", |worker| {
            for (index, pool) in worker["spec"]["pools"].as_array_mut().into_iter().flatten().enumerate() {
                if index % 2 == 0 {
                    let name = pool["name"].as_str().unwrap_or_default().to_owned();
                    let key = json!(format!("gardener-node-agent-{name}-of-calm"));
                    pool["labels"][NODE_AGENT_LABEL] = key.clone();
                    pool["nodeAgentSecretName"] = key;
                } else {
                    pool["dataVolumes"] = json!([{"name": "scratch", "size": "777Gi", "type": "Premium_LRS"}]);
                }
            }
        });
        sleep(BEGINS).await;
        self.expect_pools("requested rolls", pools);
    }

    /// The earlier identity returns, which needs no slot.
    async fn return_to_earlier_classes(&mut self, pools: usize) {
        self.steps.push("return");
        self.occupy_slot(5_000);
        sleep(BEGINS).await;
        self.expect_pools("the first pool has the slot", 1);
        self.set_budget(Some(0));
        self.change_identity(1_000);
        sleep(BEGINS).await;
        self.expect_pools("the earlier identity", pools);
    }

    async fn confirm(&mut self) {
        self.gardenlet.request("nothing new", |_| {});
        let _ = self.is_done().await;
    }

    /// Checks that no mark is left.
    pub(super) fn check_no_marks(&mut self) {
        for deployment in self.actor("gardenlet").list(&MACHINE_DEPLOYMENT) {
            let annotations = &deployment.value["metadata"]["annotations"];
            let record = annotations["gardener-extension-worker/class-inputs"].as_str().unwrap_or_default();
            if record.contains(r#""u":"#) {
                self.found.push(format!("{} still has a mark: {record}", name_of(&deployment.value)));
            }
        }
    }
}

fn any_pool(worker: &mut Value, number: u64) -> Option<&mut Value> {
    let pools = worker["spec"]["pools"].as_array_mut()?;
    let count = pools.len().max(1);
    pools.get_mut(usize::try_from(number).unwrap_or_default() % count)
}
