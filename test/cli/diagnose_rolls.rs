//! `diagnose` during rolls, and for a whole seed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::binary::{Outcome, command, example, outcome};
use crate::objects::Server;

const NAMESPACE: &str = "shoot--garden--prod";
const BEFORE: &str = "1877.3.0";

/// The objects of the controller and machine-controller-manager during a roll of all pools to another image version.
pub(crate) fn rolling() -> Vec<Value> {
    let render = |text: &str, at: i64| {
        let mut command = command(&["render", "-", "-o", "json"]);
        command.env("SOURCE_DATE_EPOCH", at.to_string());
        outcome(command, text).succeeded().stdout
    };
    let first = render(&example(&[]), 1_000_000);
    let newer = example(&[(BEFORE, "1877.5.0"), ("77ac3aaaf0a1b2c3", "99ac3aaaf0a1b2c3")]);
    let second: Value = serde_json::from_str(&render(&format!("{newer}\n---\n{first}"), 1_000_600)).unwrap();
    let mut objects = second["items"].as_array().unwrap().clone();
    objects.retain(|object| object["kind"] != "Secret");
    let documents = gardener_extension_worker::reader::objects::objects(&newer).unwrap();
    objects.extend(documents.into_iter().filter(|object| object["kind"] == "Worker" || object["kind"] == "Cluster"));
    for object in &mut objects {
        object["metadata"]["resourceVersion"] = json!("1");
        match object["kind"].as_str().unwrap() {
            "Worker" => {
                object["status"]["lastOperation"] = json!({"type": "Reconcile", "state": "Processing", "progress": 50,
                    "description": "waiting for machines", "lastUpdateTime": "1970-01-12T13:56:40Z"});
                object["metadata"]["annotations"] = json!({});
            }
            "Cluster" => {
                object["spec"]["cloudProfile"]["spec"]["machineImages"] =
                    json!([{"name": "gardenlinux", "versions": [{"version": BEFORE}, {"version": "1877.5.0"}]}]);
            }
            "MachineDeployment" => {
                object["metadata"]["generation"] = json!(2);
                let desired = object["spec"]["replicas"].clone();
                object["status"] = json!({"observedGeneration": 2, "replicas": desired.as_i64().unwrap() + 1,
                    "updatedReplicas": 1, "availableReplicas": desired, "conditions": [{"type": "Available", "status": "True"}]});
            }
            _ => {}
        }
    }
    objects.push(json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClass",
        "metadata": {"name": "old", "namespace": NAMESPACE, "resourceVersion": "1"}}));
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}, "status": {},
        "metadata": {"name": "machine-controller-manager", "namespace": NAMESPACE, "resourceVersion": "1"},
    }));
    let deployments: Vec<Value> =
        objects.iter().filter(|object| object["kind"] == "MachineDeployment").cloned().collect();
    for deployment in deployments {
        let name = deployment["metadata"]["name"].as_str().unwrap();
        let class = &deployment["spec"]["template"]["spec"]["class"];
        objects.push(json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet",
            "metadata": {"name": format!("{name}-new"), "namespace": NAMESPACE, "resourceVersion": "1"},
            "spec": {"replicas": 1, "template": {"spec": {"class": class}}}}));
        for (suffix, class, phase) in [("new", class.clone(), "Pending"), ("old", json!({"name": "old"}), "Running")] {
            objects.push(json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
                "metadata": {"name": format!("{name}-{suffix}"), "namespace": NAMESPACE, "labels": {"name": name},
                    "resourceVersion": "1", "creationTimestamp": "1970-01-12T13:58:40Z"},
                "spec": {"class": class}, "status": {"currentStatus": {"phase": phase}}}));
        }
    }
    objects
}

/// Two minutes after the last machine was created.
pub(crate) const AT: &str = "1970-01-12T14:00:40Z";

pub(crate) fn diagnosed(objects: &[Value], options: &[&str]) -> Outcome {
    let list = json!({"kind": "List", "apiVersion": "v1", "items": objects});
    outcome(command(&[&["diagnose", "-", "--at", AT], options].concat()), &list.to_string())
}

fn is_numbered(line: &&str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

#[test]
fn a_healthy_roll_is_one_line_per_pool() {
    let output = diagnosed(&rolling(), &[]);
    assert_eq!(output.code, 1, "{output:?}");
    let text = output.stdout;
    assert!(text.starts_with("Worker shoot--garden--prod/prod (azure): rolling\n"), "{text}");
    assert_eq!(text.lines().find(is_numbered), None, "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "pool workers: rolling because of machineImage 1877.3.0 → 1877.5.0, 3 of 6 updated, last new machine 2 min ago, \
                began 4 min ago, about 4 min left";
    assert!(words.contains(line), "{text}");
    assert_eq!(text.matches("rolling because").count(), 2, "one line for each pool: {text}");
    assert!(!text.contains("No machine is created"), "machines change: {text}");
    assert!(words.contains("although a machine changed"), "{text}");
}

#[test]
fn an_unrecorded_roll_invents_nothing() {
    let mut objects = rolling();
    for object in &mut objects {
        if object["kind"] == "MachineDeployment" {
            object["metadata"]["annotations"] = json!({});
        }
    }
    let text = diagnosed(&objects, &[]).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["a change that is not recorded", "its beginning is not recorded", "the time left is not known yet"] {
        assert!(words.contains(part), "{part}: {text}");
    }
    assert!(!words.contains("about"), "{text}");
}

#[test]
fn a_machine_that_does_not_join_is_a_problem() {
    let mut objects = rolling();
    let machine = objects.iter_mut().find(|object| object["status"]["currentStatus"]["phase"] == "Pending").unwrap();
    machine["metadata"]["creationTimestamp"] = json!("1970-01-12T13:00:00Z");
    let text = diagnosed(&objects, &[]).stdout;
    let numbered: Vec<&str> = text.lines().filter(is_numbered).collect();
    assert_eq!(numbered.len(), 1, "{text}");
    assert!(numbered[0].contains("1 machine has not joined"), "{text}");
    assert!(text.starts_with("Worker shoot--garden--prod/prod (azure): not ready\n"), "{text}");
}

#[test]
fn every_finding_ends_with_a_command() {
    let bundle = std::fs::read_to_string("test/cli/diagnose.yaml").unwrap();
    let output = outcome(command(&["diagnose", "-", "-o", "json"]), &bundle).json();
    let findings = output["workers"][0]["findings"].as_array().unwrap().clone();
    assert!(findings.len() > 8, "{findings:?}");
    for finding in &findings {
        let text = finding["command"]["text"].as_str().unwrap();
        let is_complete = !["NAME", "NAMESPACE", "<", "POOL"].iter().any(|gap| text.contains(gap));
        assert!(
            is_complete && (text.starts_with("kubectl ") || text.starts_with("gardener-extension-worker ")),
            "{finding}"
        );
    }
    let image = findings.iter().find(|finding| finding["kind"] == "imageNotResolved").unwrap();
    let explain = "gardener-extension-worker explain shoot--garden--prod/prod --pool batch";
    assert_eq!(image["command"]["text"], explain);
    let mut narrow = command(&["diagnose", "-"]);
    narrow.env("COLUMNS", "60");
    let page = outcome(narrow, &bundle).stdout;
    for finding in findings.iter().filter(|finding| finding["severity"] == "error") {
        let text = finding["command"]["text"].as_str().unwrap();
        assert!(page.lines().any(|line| line.trim() == text), "{text} is wrapped or missing: {page}");
    }
}

#[test]
fn waiting_does_not_help_a_full_reservation() {
    let mut objects = rolling();
    let machine = objects.iter_mut().find(|object| object["status"]["currentStatus"]["phase"] == "Pending").unwrap();
    machine["status"]["lastOperation"] = json!({"type": "Create", "state": "Failed", "errorCode": "ResourceExhausted",
        "description": "ReservationCapacityExceeded: The requested reservation does not have sufficient capacity"});
    let text = diagnosed(&objects, &[]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Waiting doesn't help"), "{text}");
    assert!(text.contains("maxSurge to 0") && !text.contains("or wait"), "{text}");
}

/// The objects after the roll.
fn rolled() -> Vec<Value> {
    let mut objects = rolling();
    objects.retain(|object| !object["metadata"]["name"].as_str().unwrap().ends_with("-old"));
    for object in &mut objects {
        match object["kind"].as_str().unwrap() {
            "Worker" => object["status"]["lastOperation"]["state"] = json!("Succeeded"),
            "Deployment" => object["status"] = json!({"availableReplicas": 1}),
            "Machine" => object["status"]["currentStatus"]["phase"] = json!("Running"),
            "MachineDeployment" => {
                let desired = object["spec"]["replicas"].clone();
                object["status"]["replicas"] = desired.clone();
                object["status"]["updatedReplicas"] = desired;
            }
            _ => {}
        }
    }
    objects
}

/// A seed with this number of Workers. The first has a problem for the owner, the second one for the operator, and the
/// third a healthy roll.
fn seed(workers: usize) -> Vec<Value> {
    let healthy = rolled();
    let moved = |objects: &[Value], number: usize| -> Vec<Value> {
        let text = Value::Array(objects.to_vec())
            .to_string()
            .replace("shoot--garden--prod", &format!("shoot--p{number:04}--prod"));
        serde_json::from_str(&text).unwrap()
    };
    let mut quota = rolling();
    let machine = quota.iter_mut().find(|object| object["status"]["currentStatus"]["phase"] == "Pending").unwrap();
    machine["status"]["lastOperation"] = json!({"type": "Create", "state": "Failed", "errorCode": "ResourceExhausted",
        "description": "Code=\"QuotaExceeded\" Message=\"exceeding approved Total Regional Cores quota\""});
    let mut paused = rolling();
    let deployment = paused.iter_mut().find(|object| object["kind"] == "MachineDeployment").unwrap();
    deployment["spec"]["paused"] = json!(true);
    let mut all = [moved(&quota, 0), moved(&paused, 1), moved(&rolling(), 2)].concat();
    all.extend((3..workers).flat_map(|number| moved(&healthy, number)));
    all
}

fn overview(server: &Server, options: &[&str]) -> Outcome {
    let kubeconfig = server.serve();
    let path = kubeconfig.path().to_str().unwrap();
    outcome(command(&[&["diagnose", "-A", "--at", AT, "--kubeconfig", path], options].concat()), "")
}

#[test]
fn a_seed_is_a_table_with_the_worst_first() {
    let server = Server::seed(seed(6));
    let output = overview(&server, &[]);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines[0].starts_with("WORKER"), "{output:?}");
    let location = |text: &str| lines.iter().position(|line| line.contains(text));
    let (operator, owner) = (location("shoot--p0001--prod").unwrap(), location("shoot--p0000--prod").unwrap());
    assert!(operator < owner, "the operator's problem comes first: {output:?}");
    assert!(lines[operator].contains("operator") && lines[owner].contains("shoot owner"), "{output:?}");
    assert_eq!(location("shoot--p0002--prod"), None, "a healthy roll needs no attention: {output:?}");
    assert!(lines.contains(&"6 Workers: attention needed for 2, changing: 1, ready: 3."), "{output:?}");
    let wide = overview(&server, &["-o", "wide"]).stdout;
    assert!(wide.contains("shoot--p0002--prod/prod: rolling"), "{wide}");
}

#[test]
fn a_seed_is_read_with_one_list_per_kind() {
    let server = Server::seed(seed(30));
    let output = overview(&server, &["-o", "json"]);
    assert_eq!(output.json()["workers"].as_array().unwrap().len(), 30);
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        *requests.entry(request.split('?').next().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(requests.len(), 6, "{requests:?}");
    assert!(requests.values().all(|count| *count == 1), "{requests:?}");
    assert!(requests.keys().all(|path| !path.contains("/namespaces/")), "{requests:?}");
}
