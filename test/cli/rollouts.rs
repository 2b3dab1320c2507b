//! `rollouts` lists pools that roll, wait or are on hold, with the command that changes their state.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome};
use crate::diagnose_rolls::{AT, rolling};
use crate::json::assert_described;
use crate::objects::Server;

const WAIT: &str = r#"pool "workers": zones 2, 3 wait for zone 1, until 1970-01-12T19:46:40Z at the latest"#;
const HOLD: &str = "pool \"database\": zone 1 is on hold (a instead of b); cause: identity.id changed; the roll starts with a \
                    reconcile once the pool that rolls is done";

/// Pool `workers` rolls zone by zone, and pool `database` is on hold.
fn held() -> Vec<Value> {
    let mut objects = rolling();
    for object in &mut objects {
        match object["kind"].as_str().unwrap() {
            "Worker" => {
                object["status"]["conditions"] = json!([{
                    "type": "RollsHeld", "status": "True", "reason": "BudgetUsedUp",
                    "lastTransitionTime": "1970-01-12T12:00:40Z", "message": format!("{HOLD}; {WAIT}"),
                }]);
                object["metadata"]["annotations"] = json!({"gardener-extension-worker/zone-by-zone": "*"});
            }
            "MachineDeployment" => {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let annotation = "gardener-extension-worker/class-inputs";
                let record = &mut object["metadata"]["annotations"][annotation];
                let mut document: Value = serde_json::from_str(record.as_str().unwrap()).unwrap();
                if name.contains("workers") && !name.ends_with("z1") {
                    document["w"] = json!({"t": "1970-01-12T13:46:40Z", "c": "12345678"});
                    *record = document.to_string().into();
                }
                if name.contains("database") {
                    let desired = object["spec"]["replicas"].clone();
                    object["status"]["replicas"] = desired.clone();
                    object["status"]["updatedReplicas"] = desired;
                }
            }
            _ => {}
        }
    }
    objects.retain(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        !(object["kind"] == "Machine" && name.contains("database") && name.ends_with("old"))
    });
    objects
}

fn rollouts(objects: &[Value], options: &[&str]) -> Outcome {
    let list = json!({"kind": "List", "apiVersion": "v1", "items": objects});
    outcome(command(&[&["rollouts", "-", "--at", AT], options].concat()), &list.to_string())
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_state_has_its_reason_and_command() {
    let output = rollouts(&held(), &[]).succeeded();
    let page = words(&output.stdout);
    for part in [
        "Worker shoot--garden--prod/prod",
        "pool workers: rolling because of machineImage 1877.3.0 → 1877.5.0, 1 of 6 updated",
        "annotate worker prod --overwrite gardener-extension-worker/stop-rolls=workers",
        "zones 2, 3 wait for zone 1, until 1970-01-12T19:46:40Z at the latest (for 14 min)",
        "kubectl -n shoot--garden--prod annotate worker prod --overwrite gardener-extension-worker/zone-by-zone=database",
        "zone 1 is on hold (a instead of b); cause: identity.id changed",
        "kubectl -n shoot--garden--prod annotate worker prod --overwrite gardener-extension-worker/let-roll=database",
        "1 Worker. Pools rolling: 1, waiting: 1, on hold: 1.",
    ] {
        assert!(page.contains(part), "{part}: {}", output.stdout);
    }
    let document = rollouts(&held(), &["-o", "json"]).json();
    let pools = document["workers"][0]["pools"].as_array().unwrap();
    let waiting = pools.iter().find(|pool| pool["state"] == "zonesWait").unwrap();
    assert_eq!(
        (&waiting["since"], &waiting["until"]),
        (&json!("1970-01-12T13:46:40Z"), &json!("1970-01-12T19:46:40Z"))
    );
    assert_described(&[document], "rollouts -o json");
    assert_eq!(rollouts(&held(), &["-o", "name"]).stdout, "shoot--garden--prod/prod\n");
}

#[test]
fn stopped_pool_has_a_command_to_continue() {
    let mut objects = held();
    let stop = "pool \"workers\": rolls are stopped by the annotation stop-rolls; zone 1 is paused; zones 2, 3 keep their class; \
                no node can join zones 2, 3 of pool \"workers\" until the roll continues";
    for object in objects.iter_mut().filter(|object| object["kind"] == "Worker") {
        object["status"]["conditions"][0]["message"] = json!(format!("{stop}; {HOLD}"));
        object["metadata"]["annotations"] = json!({"gardener-extension-worker/stop-rolls": "*"});
    }
    let page = words(&rollouts(&objects, &[]).succeeded().stdout);
    assert!(page.contains("no node can join zones 2, 3 of pool \"workers\" until the roll continues"), "{page}");
    assert!(page.contains("--overwrite gardener-extension-worker/stop-rolls=database"), "{page}");
    assert!(!page.contains("stop-rolls=workers") && page.contains("stopped: 1"), "{page}");
}

#[test]
fn steady_pools_are_not_listed() {
    let mut objects = held();
    objects.retain(|object| object["kind"] != "Machine" && object["kind"] != "MachineSet");
    for object in &mut objects {
        object["status"]["conditions"] = json!([{"type": "Available", "status": "True"}]);
        if object["kind"] == "MachineDeployment" {
            let desired = object["spec"]["replicas"].clone();
            object["status"]["replicas"] = desired.clone();
            object["status"]["updatedReplicas"] = desired;
        }
    }
    let output = rollouts(&objects, &[]).succeeded();
    assert_eq!(output.stdout, "1 Worker: no pool rolls, waits, is stopped or on hold.\n");
    assert_eq!(rollouts(&objects, &["-o", "json"]).json()["workers"], json!([]));
}

#[test]
fn missing_objects_make_it_incomplete() {
    let worker: Vec<Value> = held().into_iter().filter(|object| object["kind"] == "Worker").collect();
    let output = rollouts(&worker, &[]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stdout.contains("INCOMPLETE: 0 of 1 Worker evaluated"), "{}", output.stdout);
    assert!(words(&output.stderr).contains("its MachineDeployments are unknown"), "{}", output.stderr);

    let mut objects = held();
    for object in objects.iter_mut().filter(|object| object["kind"] == "Worker") {
        object["status"]["conditions"][0]["message"] = json!(format!("{HOLD}; and 4 more"));
    }
    let output = rollouts(&objects, &[]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(words(&output.stderr).contains("no room for 4 more pools"), "{}", output.stderr);
}

#[test]
fn seed_is_read_with_three_lists() {
    let text = Value::Array(held()).to_string().replace("shoot--garden--prod", "shoot--garden--other");
    let second: Vec<Value> = serde_json::from_str(&text).unwrap();
    let server = Server::seed([held(), second].concat());
    let kubeconfig = server.serve();
    let path = kubeconfig.path().to_str().unwrap();
    let output = outcome(command(&["rollouts", "-A", "--at", AT, "--kubeconfig", path]), "").succeeded();
    let page = words(&output.stdout);
    assert!(page.contains("2 Workers. Pools rolling: 2, waiting: 2, on hold: 2."), "{page}");
    // The Shoot may stop other pools, and the suggested value on the Worker would override that.
    assert!(page.contains("rollouts shoot--garden--prod/prod") && !page.contains("stop-rolls="), "{page}");
    assert!(page.contains("gardener-extension-worker/zone-by-zone=database"), "the Worker has the setting: {page}");
    let requests = server.requests();
    let lists = requests.iter().filter(|path| path.contains("/workers") || path.contains("/machine"));
    assert_eq!(lists.count(), 3, "{requests:?}");
}
