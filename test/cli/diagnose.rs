//! The text output of `diagnose`.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome, run};
use crate::golden::assert_same;

const AT: &str = "2026-11-21T10:00:00Z";
const NAMESPACE: &str = "shoot--garden--prod";
const DATABASE: &str = "shoot--garden--prod-database-z2";

fn bundle() -> Value {
    let text = std::fs::read_to_string("test/cli/diagnose.yaml").unwrap();
    gardener_extension_worker::api::gotext::yaml::documents(&text).unwrap().remove(0)
}

fn diagnose(bundle: &Value, output: &str) -> Outcome {
    outcome(command(&["diagnose", NAMESPACE, "-", "--at", AT, "-o", output]), &bundle.to_string())
}

/// The bundle with only the objects of these kinds, changed.
fn with(kinds: &[&str], change: impl FnOnce(&mut Vec<Value>)) -> Value {
    let mut bundle = bundle();
    let items = bundle["items"].as_array_mut().unwrap();
    items.retain(|item| kinds.contains(&item["kind"].as_str().unwrap()));
    change(items);
    bundle
}

fn kinds(printed: &Outcome) -> Vec<String> {
    let findings = printed.json()["workers"][0]["findings"].clone();
    findings.as_array().unwrap().iter().map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn everything_that_is_wrong_is_on_one_page_the_worst_first() {
    let printed = run(&["diagnose", NAMESPACE, "test/cli/diagnose.yaml", "--at", AT]);
    assert_eq!((printed.code, printed.stderr.as_str()), (7, ""), "{printed:?}");
    assert!(!printed.stdout.contains('\u{1b}'), "what came from a node is escaped: {}", printed.stdout);
    assert_same("test/cli/golden/diagnose.txt", &printed.stdout);
}

#[test]
fn a_healthy_worker_is_ready() {
    let healthy = with(&["Worker", "MachineSet", "MachineDeployment"], |items| {
        items.retain(|item| {
            let name = item["metadata"]["name"].as_str().unwrap();
            item["kind"] == "Worker" || name.contains("careful")
        });
        let worker = &mut items[0];
        worker["spec"]["pools"] = json!([worker["spec"]["pools"][4]]);
        worker["status"] = json!({
            "observedGeneration": 4,
            "lastOperation": {
                "type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "Successfully reconciled Worker",
                "lastUpdateTime": "2026-11-21T09:00:00Z",
            },
        });
    });
    let printed = diagnose(&healthy, "table");
    assert_eq!(printed.code, 0, "{printed:?}");
    assert_same("test/cli/golden/diagnose-ready.txt", &printed.stdout);
}

#[test]
fn waiting_zones_have_a_next_step() {
    let reasons = [
        ("ZonesWait", "zonesWait", "waiting"),
        ("ZoneFails", "zoneFails", "error"),
        ("Stopped", "rollsStopped", "error"),
    ];
    for (reason, kind, severity) in reasons {
        let held = with(&["Worker"], |items| {
            let since = "2026-11-21T09:00:00Z";
            items[0]["status"]["conditions"] = json!([{"type": "RollsHeld", "status": "True", "reason": reason,
                "message": "pool \"web\": zone 2 waits for zone 1", "lastTransitionTime": since}]);
        });
        let findings = diagnose(&held, "json").json()["workers"][0]["findings"].clone();
        let found = findings.as_array().unwrap().iter().find(|finding| finding["kind"] == kind);
        let found = found.unwrap_or_else(|| panic!("{findings}"));
        assert_eq!(
            (found["severity"].as_str(), found["since"].as_str()),
            (Some(severity), Some("2026-11-21T09:00:00Z"))
        );
        assert!(found["nextStep"].as_str().is_some_and(|step| step.len() > 20), "{found}");
    }
}

#[test]
fn pause_of_a_stop_names_the_annotation() {
    let paused = with(&["Worker", "MachineDeployment"], |items| {
        for item in items.iter_mut().filter(|item| item["spec"]["paused"] == true) {
            item["metadata"]["annotations"] = json!({"gardener-extension-worker/paused": "true"});
        }
    });
    let findings = diagnose(&paused, "json").json()["workers"][0]["findings"].clone();
    let found = findings.as_array().unwrap().iter().find(|finding| finding["kind"] == "paused").unwrap();
    assert!(
        found["message"].as_str().unwrap().ends_with("because of the annotation gardener-extension-worker/stop-rolls")
    );
    let command = found["command"].to_string();
    assert!(command.contains("gardener-extension-worker/paused") && command.contains("paused"), "{command}");
}

#[test]
fn a_request_without_a_controller_is_reported() {
    let unseen = |age: &str| {
        with(&["Worker"], |items| {
            items[0]["metadata"]["annotations"] =
                json!({"gardener.cloud/operation": "reconcile", "gardener.cloud/timestamp": age});
            items[0]["status"]["conditions"] = json!([]);
        })
    };
    let late = diagnose(&unseen("2026-11-21T09:50:00Z"), "json");
    assert_eq!((late.code, kinds(&late)[0].as_str()), (1, "notTakenUp"), "{late:?}");
    assert_eq!(late.json()["workers"][0]["findings"][0]["severity"], "error");
    let soon = diagnose(&unseen("2026-11-21T09:59:30Z"), "json");
    let findings = soon.json()["workers"][0]["findings"].clone();
    let found = findings.as_array().unwrap().iter().find(|finding| finding["kind"] == "notTakenUp").unwrap();
    assert_eq!(found["severity"], "waiting");
}

/// Messages of each cloud's driver, one for each error code.
#[test]
fn the_words_of_each_cloud_s_driver_have_their_code_and_a_next_step() {
    for cloud in ["alicloud", "aws", "azure", "gcp", "openstack"] {
        let texts = std::fs::read_to_string(format!("test/error-codes/{cloud}.yaml")).unwrap();
        let mut texts = gardener_extension_worker::api::gotext::yaml::documents(&texts).unwrap().remove(0);
        let mut texts: Vec<Value> = std::mem::take(texts.as_array_mut().unwrap());
        texts.retain(|text| text["code"].is_string());
        texts.sort_by_key(|text| text["code"].to_string());
        texts.dedup_by_key(|text| text["code"].clone());
        assert!(texts.len() > 4, "{cloud}: {texts:?}");
        for text in &texts {
            let failed = with(&["Worker", "MachineDeployment"], |items| {
                items.truncate(2);
                items[0]["spec"]["type"] = json!(cloud);
                items[0]["spec"]["pools"].as_array_mut().unwrap().truncate(1);
                items[1]["status"]["failedMachines"] = json!([{"name": "workers-z1-new-a", "lastOperation": {
                    "type": "Create", "state": "Failed", "errorCode": text["driver"], "description": text["text"]}}]);
            });
            let printed = diagnose(&failed, "json").json();
            let findings = printed["workers"][0]["findings"].as_array().unwrap();
            let found = findings.iter().find(|finding| finding["kind"] == "creationFailed").unwrap();
            assert_eq!(found["codes"], json!([text["code"]]), "{cloud}: {text}");
            assert!(found["nextStep"].as_str().is_some_and(|step| step.len() > 20), "{cloud}: {found}");
        }
    }
}

#[test]
fn missing_prerequisites_are_reported() {
    let scaled = with(&["Worker", "MachineDeployment", "Deployment"], |items| {
        items.iter_mut().find(|item| item["kind"] == "Deployment").unwrap()["spec"]["replicas"] = json!(0);
    });
    let printed = diagnose(&scaled, "table").stdout;
    assert!(printed.contains("scaled to zero") && printed.contains("dependency-watchdog"), "{printed}");
    let hibernated = |kinds: &[&str]| {
        with(kinds, |items| {
            items.iter_mut().find(|item| item["kind"] == "Deployment").unwrap()["spec"]["replicas"] = json!(0);
            items.push(json!({
                "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": NAMESPACE},
                "spec": {"shoot": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "prod"},
                    "spec": {"hibernation": {"enabled": true}}}},
            }));
        })
    };
    let left = diagnose(&hibernated(&["Worker", "Machine", "Deployment"]), "table").stdout;
    assert!(left.contains("scaled to zero") && left.contains("--replicas=1"), "{left}");
    let empty = diagnose(&hibernated(&["Worker", "MachineDeployment", "Deployment"]), "table").stdout;
    assert!(!empty.contains("scaled to zero"), "{empty}");
    let without_credentials = with(&["Worker"], |items| {
        items.push(json!({"kind": "Secret", "metadata": {"name": "another", "namespace": NAMESPACE}}));
    });
    let printed = diagnose(&without_credentials, "table").stdout;
    assert!(
        printed.contains("Secret cloudprovider: the Secret with the cloud credentials does not exist"),
        "{printed}"
    );
    assert!(
        !diagnose(&with(&["Worker"], |_| {}), "table").stdout.contains("does not exist"),
        "what no file has is unknown"
    );
}

/// The output for a Worker whose removed pool is held by a finalizer, with this number of replicas of
/// machine-controller-manager.
fn removed_pool(hibernated: bool, replicas: u8, held: &[&str]) -> Outcome {
    let bundle = with(&["Worker", "Deployment"], |items| {
        let metadata = |name: &str| json!({"name": name, "namespace": NAMESPACE});
        for item in items.iter_mut() {
            if item["kind"] == "Worker" {
                item["spec"]["pools"] = json!([]);
                let description = "Waiting until unwanted machine deployments are deleted";
                item["status"] = json!({"lastOperation": {
                    "type": "Reconcile", "state": "Processing", "description": description, "lastUpdateTime": "2026-11-20T10:00:00Z",
                }});
            } else {
                item["spec"] = json!({ "replicas": replicas });
                item["status"] = json!({ "replicas": replicas, "availableReplicas": replicas });
            }
        }
        items.push(json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": NAMESPACE},
            "spec": {"shoot": {"metadata": {"name": "s"}, "spec": {"hibernation": {"enabled": hibernated}}}},
        }));
        for kind in held {
            let mut held =
                json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": kind, "metadata": metadata("old")});
            held["metadata"]["deletionTimestamp"] = json!("2026-11-20T09:30:00Z");
            held["metadata"]["finalizers"] = json!(["machine.sapcloud.io/machine-controller-manager"]);
            held["spec"] = json!({"replicas": 0, "template": {"spec": {"class": {"name": "c"}}}});
            items.push(held);
        }
    });
    diagnose(&bundle, "table")
}

#[test]
fn finalizers_wait_for_a_scaled_down_controller() {
    for hibernated in [true, false] {
        for kind in ["MachineDeployment", "MachineSet", "MachineClass"] {
            let printed = removed_pool(hibernated, 0, &[kind]).stdout;
            assert!(printed.contains(&format!("the finalizer of {kind} old waits for it")), "{printed}");
            assert_eq!(printed.contains("--replicas=1"), hibernated, "{printed}");
            assert!(!printed.contains("It goes on by itself"), "{printed}");
        }
    }
    let several = removed_pool(true, 0, &["MachineDeployment", "MachineSet", "MachineClass"]).stdout;
    let several = several.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(several.contains("of MachineDeployment old and 2 more objects wait for it"), "{several}");
}

#[test]
fn an_old_operation_does_not_go_on_by_itself() {
    let printed = removed_pool(true, 1, &["MachineDeployment"]).stdout;
    assert!(printed.contains("No controller has reported an error"), "{printed}");
    assert!(!printed.contains("It goes on by itself"), "{printed}");
}

#[test]
fn nothing_is_announced_that_does_not_follow() {
    fn empty_messages(value: &mut Value) {
        match value {
            Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
                Value::String(text) if name == "message" || name == "description" => text.clear(),
                _ => empty_messages(member),
            }),
            Value::Array(values) => values.iter_mut().for_each(empty_messages),
            _ => {}
        }
    }
    let mut bundle = bundle();
    empty_messages(&mut bundle);
    let findings = diagnose(&bundle, "json").json()["workers"][0]["findings"].clone();
    let texts: Vec<_> =
        findings.as_array().unwrap().iter().map(|finding| finding["message"].as_str().unwrap()).collect();
    assert!(texts.contains(&"has no available pod"), "{texts:#?}");
    assert!(!texts.iter().any(|text| text.trim_end().ends_with([':', ','])), "{texts:#?}");
}

#[test]
fn a_worker_that_is_being_deleted_lists_what_is_left() {
    let deleted = with(&["Worker", "Machine", "MachineSet"], |items| {
        items[0]["metadata"]["deletionTimestamp"] = json!("2026-11-21T07:00:00Z");
    });
    let printed = diagnose(&deleted, "table").stdout;
    assert!(printed.contains("is being deleted; left: 5 machines, 2 machine sets"), "{printed}");
}

#[test]
fn what_cannot_be_decoded_is_a_finding() {
    let broken = with(&["Worker", "Machine"], |items| {
        items[1]["status"]["currentStatus"] = json!("Running");
    });
    let printed = diagnose(&broken, "json");
    assert!(kinds(&printed).contains(&"malformed".to_owned()), "{printed:?}");
    let broken = with(&["Worker"], |items| items[0]["spec"]["pools"] = json!({}));
    let printed = diagnose(&broken, "json");
    assert_eq!((printed.code, kinds(&printed)), (7, vec!["undecodable".to_owned()]), "{printed:?}");
}

#[test]
fn wrong_arguments_have_their_exit_codes() {
    for (arguments, message, code) in [
        (&["diagnose", "none", "test/cli/diagnose.yaml"][..], "no Worker in namespace \"none\"", 3),
        (&["diagnose", NAMESPACE, "x.yaml", "--context", "a"], "name no file", 2),
        (&["diagnose", NAMESPACE, "x.yaml", "--live"], "cannot be used with", 2),
        (&["diagnose", "-A", "-n", NAMESPACE], "cannot be used with", 2),
        (&["diagnose", "x.yaml", "--watch"], "--watch is for a cluster", 2),
    ] {
        let printed = run(arguments);
        assert_eq!((printed.code, printed.stdout.as_str()), (code, ""), "{arguments:?}: {printed:?}");
        assert!(printed.stderr.contains(message), "{arguments:?}: {printed:?}");
    }
}

#[test]
fn reports_preserved_machines_without_reading_machines() {
    let counted = |kinds: &[&str]| {
        with(kinds, |objects| {
            let deployment = objects.iter_mut().find(|object| object["metadata"]["name"] == DATABASE).unwrap();
            deployment["status"]["preservedFailedReplicas"] = json!(2);
        })
    };
    let preserved = |bundle: &Value| {
        let findings = diagnose(bundle, "json").json()["workers"][0]["findings"].as_array().unwrap().clone();
        findings.into_iter().filter(|finding| finding["kind"] == "preserved").collect::<Vec<_>>()
    };
    assert_eq!(preserved(&counted(&["Worker", "MachineDeployment", "Machine"])), Vec::<Value>::new());
    let found = preserved(&counted(&["Worker", "MachineDeployment"]));
    assert_eq!(
        found[0]["message"],
        format!("machine deployment {DATABASE} counts 2 preserved failed machines, which nothing replaces")
    );
    assert!(found[0]["nextStep"].as_str().unwrap().contains("node.machine.sapcloud.io/preserve=false"));
    let command = format!("kubectl -n shoot--garden--prod get machines -l name={DATABASE}");
    assert_eq!(found[0]["command"]["text"], command);

    let constraint = json!([{"type": "PreservedFailedMachinesAbsent", "status": "False", "message": "Cluster has 2."}]);
    let cluster = json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "shoot--garden--prod"}, "spec": {"shoot": {"status": {"constraints": constraint}}}});
    let mut reported = with(&["Worker"], |_| ());
    reported["items"].as_array_mut().unwrap().push(cluster);
    let found = preserved(&reported);
    assert_eq!(found[0]["message"], "its constraint PreservedFailedMachinesAbsent is False: Cluster has 2.");
}

#[test]
fn names_an_unknown_operation() {
    let bundle = with(&["Worker"], |objects| {
        objects[0]["metadata"]["annotations"] = json!({"gardener.cloud/operation": "live-migrate"});
    });
    let printed = diagnose(&bundle, "table");
    assert!(printed.stdout.contains("requests \"live-migrate\""), "{}", printed.stdout);
}
