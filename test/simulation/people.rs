//! Other writers: the autoscaler, the garbage collector, and a user with kubectl.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::actor::{Actor, is_vanishing, name_of};
use crate::api_server::kinds::{CLUSTER, MACHINE_CLASS, MACHINE_DEPLOYMENT, SECRET, WORKER};
use crate::documents::{NAMESPACE, WORKER_NAME};
use crate::random::Random;
use crate::rules::FINALIZER;

/// Writes replicas within the bounds published in the Worker, until dropped. Sets `is_late` if newer bounds were
/// already requested: no controller can notice replicas written after its read, so the request must be repeated.
pub(crate) async fn autoscale(actor: Actor, random: Random, is_late: Arc<AtomicBool>) {
    loop {
        sleep(random.millis(500, 40_000)).await;
        scale(&actor, &random, &is_late);
    }
}

/// Writes replicas once.
pub(crate) fn scale(actor: &Actor, random: &Random, is_late: &AtomicBool) {
    let hibernates = actor
        .get(&CLUSTER, NAMESPACE)
        .is_some_and(|cluster| cluster.value["spec"]["shoot"]["spec"]["hibernation"]["enabled"] == true);
    if hibernates {
        return;
    }
    let Some(worker) = actor.get(&WORKER, WORKER_NAME) else { return };
    let deployments = worker.value["status"]["machineDeployments"].as_array().cloned().unwrap_or_default();
    let Some(bounds) = random.one_of(&deployments) else { return };
    let [minimum, maximum] = ["minimum", "maximum"].map(|member| bounds[member].as_u64().unwrap_or_default());
    let replicas = minimum + random.below(maximum.saturating_sub(minimum) + 1);
    let name = bounds["name"].as_str().unwrap_or_default();
    // It ignores deployments without replicas, as after a hibernation.
    let is_awake = actor.get(&MACHINE_DEPLOYMENT, name).is_some_and(|it| it.value["spec"]["replicas"] != 0);
    if is_awake {
        if worker.value["status"]["observedGeneration"] != worker.value["metadata"]["generation"] {
            is_late.store(true, Ordering::Relaxed);
        }
        actor.change(&MACHINE_DEPLOYMENT, name, |deployment| deployment["spec"]["replicas"] = json!(replicas));
    }
}

/// Edits and deletes the controller's objects a few times.
pub(crate) async fn edit(actor: Actor, random: Random) {
    for _ in 0..random.below(4) {
        sleep(random.millis(5_000, 120_000)).await;
        let [deployments, classes] = [&MACHINE_DEPLOYMENT, &MACHINE_CLASS].map(|kind| actor.list(kind));
        let any = |objects: &[Arc<crate::api_server::store::Object>]| {
            random.one_of(objects).map(|object| name_of(&object.value).to_owned())
        };
        let (Some(deployment), Some(class)) = (any(&deployments), any(&classes)) else { continue };
        match random.below(5) {
            0 => {
                actor.note(format!("labels the template of {deployment}"));
                actor.change(&MACHINE_DEPLOYMENT, &deployment, |it| {
                    it["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["labels"]["edited"] = json!("true");
                });
            }
            1 => {
                actor.note(format!("edits class {class}"));
                actor.change(&MACHINE_CLASS, &class, |it| it["providerSpec"]["edited"] = json!(true));
            }
            2 => {
                actor.note(format!("takes the label off Secret {class}"));
                actor.change(&SECRET, &class, |it| it["metadata"]["labels"] = Value::Null);
            }
            3 => {
                actor.note(format!("deletes MachineDeployment {deployment}"));
                actor.delete(&MACHINE_DEPLOYMENT, &deployment);
            }
            _ => {
                actor.note("touches the Worker");
                actor.change(&WORKER, WORKER_NAME, |it| it["metadata"]["labels"]["touched"] = json!("true"));
            }
        }
    }
}

/// Removes the Worker's finalizer during operations, like a user who considers it stuck, until dropped.
pub(crate) async fn release(actor: Actor, random: Random) {
    loop {
        sleep(random.millis(500, 60_000)).await;
        let Some(worker) = actor.get(&WORKER, WORKER_NAME) else { continue };
        let last = &worker.value["status"]["lastOperation"];
        let is_under_way = last["state"] == "Processing" || last["state"] == "Error";
        if is_under_way && last["type"] != "Migrate" && !is_vanishing(&worker.value) {
            actor.set_finalizer(&WORKER, &worker.value, FINALIZER, false);
        }
    }
}

/// The garbage collector: deletes objects whose owners do not exist, until dropped.
pub(crate) async fn collect_garbage(actor: Actor, random: Random) {
    use crate::api_server::kinds::{MACHINE, MACHINE_SET};
    loop {
        sleep(random.millis(2_000, 10_000)).await;
        let uids: Vec<Value> = [&MACHINE_DEPLOYMENT, &MACHINE_SET]
            .into_iter()
            .flat_map(|kind| actor.list(kind))
            .map(|object| object.value["metadata"]["uid"].clone())
            .collect();
        for kind in [&MACHINE_SET, &MACHINE] {
            for object in actor.list(kind) {
                let owners = object.value["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
                let has_lost_them = !owners.is_empty() && owners.iter().all(|owner| !uids.contains(&owner["uid"]));
                if has_lost_them && object.value["metadata"]["deletionTimestamp"].is_null() {
                    actor.delete(kind, name_of(&object.value));
                }
            }
        }
    }
}
