//! `why` for a shoot prints one line for each roll, across all pools and zones.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome};
use crate::diagnose_rolls::rolling;

/// Some time after the roll of [`rolling`].
const AT: &str = "1970-01-12T15:00:00Z";

fn why(objects: &[Value], options: &[&str]) -> Outcome {
    let list = json!({"kind": "List", "apiVersion": "v1", "items": objects});
    outcome(command(&[&["why", "garden/prod", "-f", "-", "--at", AT], options].concat()), &list.to_string())
}

/// The finished roll, and a Shoot whose maintenance recorded this description.
pub(crate) fn maintained(description: &str) -> Vec<Value> {
    let mut objects = rolling();
    for object in &mut objects {
        if object["kind"] == "Cluster" {
            let shoot = &mut object["spec"]["shoot"];
            shoot["spec"]["maintenance"] = json!({"timeWindow": {"begin": "130000+0000", "end": "150000+0000"}});
            shoot["status"]["lastMaintenance"] =
                json!({"triggeredTime": "1970-01-12T13:50:00Z", "state": "Succeeded", "description": description});
        }
        if object["kind"] == "MachineDeployment" {
            let desired = object["spec"]["replicas"].clone();
            object["status"] = json!({"observedGeneration": 2, "replicas": desired, "updatedReplicas": desired,
                "availableReplicas": desired, "conditions": [{"type": "Progressing", "status": "True",
                "reason": "NewMachineSetAvailable", "lastUpdateTime": "1970-01-12T14:37:40Z"}]});
        }
    }
    objects
}

/// Documents of rolls: finished, in progress, and with a class that another controller created.
pub(crate) fn documents() -> Vec<Value> {
    let mut foreign = rolling();
    for object in foreign.iter_mut().filter(|object| object["kind"] == "MachineDeployment") {
        let class = object["spec"]["template"]["spec"]["class"]["name"].clone();
        let record = json!({"v": 1, "d": 0, "g": [
            {"c": class, "t": "1970-01-12T13:56:40Z", "i": {"machineType": "01234567"}},
            {"c": "other", "t": "1970-01-12T13:56:40Z", "f": true}]});
        object["metadata"]["annotations"] = json!({"gardener-extension-worker/class-inputs": record.to_string()});
    }
    [maintained(""), rolling(), foreign].map(|objects| why(&objects, &["-o", "json"]).json()).to_vec()
}

fn lines(output: &Outcome) -> Vec<String> {
    let text = output.stdout.replace("\n    ", " ");
    text.lines().filter(|line| line.contains(" UTC  ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_roll_is_one_line_over_pools_and_zones() {
    let output = why(&maintained("All maintenance operations successful."), &[]).succeeded();
    assert_eq!(
        lines(&output),
        [
            "1970-01-12 13:56 UTC  maintenance (automatic): machineImage.version 1877.3.0 → 1877.5.0, pool database, 3 nodes, \
             41 min",
            "1970-01-12 13:56 UTC  maintenance (automatic): gardenlinux 1877.3.0 → 1877.5.0, pool workers, 6 nodes, 41 min",
            "1970-01-12 13:46 UTC  in the maintenance window (who changed it is not recorded): the inputs of the earlier or \
             later class are not recorded, pool workers, number of nodes not recorded, duration not recorded",
        ]
    );
    assert!(output.stdout.starts_with("shoot--garden--prod\n"), "{output:?}");
}

#[test]
fn a_forced_update_is_named() {
    let description = "Machine image version expired - force update required (image update strategy: major)";
    let output = why(&maintained(description), &[]).succeeded();
    assert!(output.stdout.contains("maintenance (forced: the version expired)"), "{output:?}");
}

#[test]
fn reports_unrecorded_causes() {
    let mut objects = maintained("");
    for object in &mut objects {
        match object["kind"].as_str().unwrap() {
            "Cluster" => object["spec"]["shoot"]["status"]["lastMaintenance"] = Value::Null,
            "MachineDeployment" => object["status"]["conditions"] = json!([]),
            _ => {}
        }
    }
    let output = why(&objects, &[]).succeeded();
    let text = lines(&output).join("\n");
    assert!(text.contains("in the maintenance window (who changed it is not recorded)"), "{text}");
    assert!(text.contains("duration not recorded"), "{text}");
    let outside = objects.iter_mut().find(|object| object["kind"] == "Cluster").unwrap();
    outside["spec"]["shoot"]["spec"]["maintenance"]["timeWindow"] =
        json!({"begin": "020000+0000", "end": "030000+0000"});
    assert!(why(&objects, &[]).stdout.contains("owner or operator"), "{objects:?}");
    objects.retain(|object| object["kind"] != "Cluster");
    assert!(why(&objects, &[]).stdout.contains("trigger not recorded"));
    let deployment = objects.iter_mut().find(|object| object["kind"] == "MachineDeployment").unwrap();
    deployment["metadata"]["annotations"] = json!({});
    let output = why(&objects, &[]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stdout.contains("nothing is recorded for shoot--garden--prod-"), "{output:?}");
}

#[test]
fn since_leaves_out_older_rolls() {
    let objects = maintained("");
    assert_eq!(lines(&why(&objects, &["--since", "24h"])).len(), 3);
    let none = why(&objects, &["--since", "30m"]).succeeded();
    assert!(none.stdout.contains("No roll is recorded since 1970-01-12T14:30:00Z"), "{none:?}");
    assert_eq!(why(&objects, &["--since", "soon"]).code, 2);
}

#[test]
fn machine_deployments_alone_name_their_shoot() {
    let mut objects = maintained("");
    objects.retain(|object| object["kind"] == "MachineDeployment");
    assert_eq!(lines(&why(&objects, &[]).succeeded()).len(), 3);
    let list = json!({"kind": "List", "apiVersion": "v1", "items": objects});
    let other = outcome(command(&["why", "garden/test", "-f", "-"]), &list.to_string());
    assert_eq!(other.code, 3, "{other:?}");
    assert!(other.stderr.contains("there is \"shoot--garden--prod\""), "{other:?}");
}

#[test]
fn a_node_has_its_creation_and_its_class() {
    let mut objects = maintained("");
    let is_machine = |object: &&mut Value| object["kind"] == "Machine" && object["spec"]["class"]["name"] != "old";
    let machine = objects.iter_mut().find(is_machine).unwrap();
    machine["metadata"]["labels"]["node"] = json!("node-9");
    let list = json!({"kind": "List", "apiVersion": "v1", "items": objects});
    let output = outcome(command(&["why", "node-9", "-f", "-", "--at", AT]), &list.to_string()).succeeded();
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("(node node-9): created 1970-01-12T13:58:40Z, 1 h 1 min ago"), "{text}");
    assert!(text.contains("because of machineImage"), "{text}");
}
