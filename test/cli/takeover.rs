//! `takeover check` of objects that the Go extensions created: the measured cases of ../parity, as files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Outcome, run};
use crate::golden::assert_same;
use test_support::left_by_go::left_by_go;
use test_support::measured::cases::{collect, find, own};

/// One case of each family in which the Go extension created machine deployments.
fn one_of_each_family() -> BTreeMap<String, Value> {
    let mut chosen = BTreeMap::new();
    let mut families = BTreeSet::new();
    for case in collect(&own()).unwrap() {
        if !families.contains(&case.family)
            && let Some(bundle) = left_by_go(case.documents.unwrap())
        {
            chosen.insert(format!("{}/{}", case.family, case.name), bundle);
            families.insert(case.family);
        }
    }
    chosen
}

struct Files(TempDir);

impl Files {
    fn new(documents: &[(&str, &Value)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, document) in documents {
            std::fs::write(folder.path().join(name), document.to_string()).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn check(&self, options: &[&str]) -> Outcome {
        run(&[&["takeover", "check", self.path().to_str().unwrap()], options].concat())
    }
}

/// A Worker with two pools in several zones.
const CASE: &str = "azure/pools-zones/priorities";

fn go_extension(arguments: &[&str]) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "extension-provider-azure", "name": "gardener-extension-provider-azure"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "x", "args": arguments}]}}},
    })
}

fn lease(name: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "extension-worker", "name": name},
        "spec": {"holderIdentity": "a-pod", "renewTime": "2026-11-21T12:00:00.000000Z"},
    })
}

#[test]
fn nothing_that_the_go_extensions_have_made_would_roll() {
    let cases = one_of_each_family();
    assert!(cases.len() > 20, "only {} cases", cases.len());
    for (case, bundle) in &cases {
        let output = Files::new(&[("bundle.json", bundle)]).check(&["-o", "json"]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{case}: {output:?}");
        let output = output.json();
        for placement in output["workers"][0]["placements"].as_array().unwrap() {
            assert_eq!(placement["verdict"], "NONE", "{case}: {placement:#}");
        }
    }
}

#[test]
fn a_table_names_what_rolls_and_who_writes() {
    let mut bundle = left_by_go(find(CASE).unwrap()).unwrap();
    bundle["worker"]["spec"]["pools"][0]["volume"]["size"] = json!("99Gi");
    bundle["worker"]["status"]["lastOperation"] = json!({"type": "Reconcile", "state": "Processing"});
    bundle["cluster"]["spec"]["shoot"]["status"]["gardener"] = json!({"version": "1.139.2"});
    for object in bundle["existing"].as_array_mut().unwrap() {
        object["metadata"]["managedFields"] = json!([
            {"manager": "gardener-extension-provider-azure", "operation": "Update", "time": "2026-11-20T12:00:00Z"},
            {"manager": "machine-controller-manager", "operation": "Update", "subresource": "status"},
        ]);
    }
    let (theirs, lease) = (go_extension(&[]), lease("provider-azure-leader-election"));
    let files = Files::new(&[("bundle.json", &bundle), ("deployment.json", &theirs), ("lease.json", &lease)]);
    let output = files.check(&[]);
    assert_eq!((output.code, output.stderr.as_str()), (5, ""), "{output:?}");
    assert_same("test/cli/golden/takeover.txt", &output.stdout);
    let output = files.check(&["-o", "json"]);
    assert_eq!(output.code, 5);
    assert_same("test/cli/golden/takeover.json", &output.stdout);
}

#[test]
fn the_verdict_comes_first_and_obstacles_last() {
    let mut bundle = left_by_go(find(CASE).unwrap()).unwrap();
    bundle["worker"]["spec"]["pools"][0]["machineImage"] = json!({"name": "unheard-of", "version": "1.0.0"});
    bundle["worker"]["status"]["providerStatus"] = Value::Null;
    bundle["worker"]["status"]["lastOperation"] = json!({"type": "Reconcile", "state": "Error"});
    bundle["worker"]["status"]["lastError"] = json!({"description": "no quota"});
    let files = Files::new(&[("bundle.json", &bundle)]);
    let output = files.check(&[]);
    assert_eq!(output.code, 7, "{output:?}");
    assert_same("test/cli/golden/takeover-invalid.txt", &output.stdout);
    let location = |words: &str| output.stdout.find(words).unwrap_or_else(|| panic!("no {words}: {}", output.stdout));
    assert!(output.stdout.starts_with("Answer\n  No node rolls"), "{}", output.stdout);
    assert!(location("Total:") < location("Rollback:") && location("Rollback:") < location("What prevents a yes"));
    let last = output.stdout.lines().next_back().unwrap();
    assert!(last.contains("shoot--core--prod"), "{last}");
    assert!(!output.stdout.contains("wait until"), "an error never ends: {output:?}");
    assert_eq!(files.check(&["-o", "json"]).json()["workers"][0]["failed"], "Reconcile is Error: no quota");
}

#[test]
fn causes_never_name_equal_versions() {
    let mut bundle = left_by_go(find(CASE).unwrap()).unwrap();
    for object in bundle["existing"].as_array_mut().unwrap() {
        if object["kind"] == "MachineDeployment" {
            object["spec"]["minReadySeconds"] = json!(1);
        }
    }
    let output = Files::new(&[("bundle.json", &bundle)]).check(&[]).stdout;
    assert!(output.contains("METADATA"), "{output}");
    assert!(output.contains("differs from what the Worker leads to"), "{output}");
    for (before, after) in output.lines().filter_map(|line| line.split_once(" -> ")) {
        assert_ne!(before.split(' ').next_back(), after.split(' ').next(), "{output}");
    }
}

#[test]
fn both_extensions_at_once_are_no_yes() {
    let bundle = left_by_go(find(CASE).unwrap()).unwrap();
    let ours = lease("gardener-extension-worker-leader-election");
    for (arguments, code) in [(&[][..], 1), (&["--disable-controllers=bastion,worker"], 0)] {
        let theirs = go_extension(arguments);
        let output = Files::new(&[("a.json", &bundle), ("b.json", &theirs), ("c.json", &ours)]).check(&[]);
        assert_eq!(output.code, code, "{output:?}");
        assert_eq!(output.stdout.contains("both write"), code == 1, "{output:?}");
    }
}

#[test]
fn a_pool_that_can_not_be_planned_and_what_can_not_be_read_are_no_yes() {
    let mut bundle = left_by_go(find(CASE).unwrap()).unwrap();
    bundle["worker"]["spec"]["pools"][0]["machineImage"] = json!({"name": "unheard-of", "version": "1.0.0"});
    bundle["worker"]["status"]["providerStatus"] = Value::Null;
    let output = Files::new(&[("a.json", &bundle)]).check(&[]);
    assert_eq!(output.code, 7, "{output:?}");
    assert!(output.stdout.contains("unheard-of"), "{output:?}");
    for (arguments, message, code) in [
        (&["takeover", "check", "no/such/file"][..], "no/such/file", 3),
        (&["takeover", "check", "docs"], "no Worker in the files", 3),
        (
            &["takeover", "check", "--kubeconfig", "no-such-kubeconfig"],
            "kubeconfig no-such-kubeconfig can't be read",
            3,
        ),
        (&["takeover", "check", "x.yaml", "--kubeconfig", "y"], "name no file with it", 2),
        (&["takeover", "check", "--worker-type", "unheard-of"], "no such provider", 3),
        (&["takeover", "chekc"], "chekc", 2),
    ] {
        let output = run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(message), "{arguments:?}: {output:?}");
    }
}

#[test]
fn workers_of_others_are_left_alone() {
    let mut bundle = left_by_go(find(CASE).unwrap()).unwrap();
    bundle["worker"]["spec"]["class"] = json!("garden");
    let files = Files::new(&[("a.json", &bundle)]);
    let output = files.check(&[]);
    assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{output:?}");
    assert!(output.stderr.contains("there is \"azure garden\""), "{output:?}");
    let output = files.check(&["--extension-classes", "garden", "-o", "json"]).succeeded().json();
    assert_eq!(output["workers"].as_array().unwrap().len(), 1);
    assert_eq!(output["leftAlone"], 0);
}

#[test]
fn undecodable_input_is_reported_with_its_field_and_stops_no_other() {
    let whole = left_by_go(find(CASE).unwrap()).unwrap();
    let renamed = |namespace: &str| -> Value {
        serde_json::from_str(&whole.to_string().replace("shoot--core--prod", namespace)).unwrap()
    };
    let mut worker = renamed("shoot--core--worker");
    worker["worker"]["spec"]["pools"][1]["clusterAutoscaler"] = json!({"maxNodeProvisionTime": "hunter2"});
    let mut object_bundle = renamed("shoot--core--object");
    let deployment =
        object_bundle["existing"].as_array_mut().unwrap().iter_mut().find(|it| it["kind"] == "MachineDeployment");
    deployment.unwrap()["spec"]["template"]["spec"]["drainTimeout"] = json!("hunter2");
    let files = Files::new(&[("a.json", &whole), ("b.json", &worker), ("c.json", &object_bundle)]);
    let output = files.check(&["-o", "json"]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(!output.stdout.contains("hunter2") && !output.stderr.contains("hunter2"), "{output:?}");
    let document = output.json();
    assert_eq!(document["errors"], json!([]), "{document:#}");
    let finding = |namespace: &str| {
        let mut workers = document["workers"].as_array().unwrap().iter();
        workers.find(|worker| worker["namespace"] == namespace).unwrap()["findings"][0].clone()
    };
    assert!(finding("shoot--core--prod").is_null(), "{document:#}");
    let worker = finding("shoot--core--worker")["message"].as_str().unwrap().to_owned();
    assert!(worker.contains("spec.pools[1].clusterAutoscaler.maxNodeProvisionTime"), "{worker}");
    let object = finding("shoot--core--object");
    assert_eq!(object["kind"], "cannot-be-judged");
    for word in ["MachineDeployment \"shoot--core--object-a-z1\"", "spec.template.spec"] {
        assert!(object["message"].as_str().unwrap().contains(word), "{word:?} is missing: {object}");
    }

    // The check also has a result if this is the only Worker.
    let only = Files::new(&[("c.json", &object_bundle)]).check(&["-o", "json"]);
    assert_eq!((only.code, only.json()["workers"].as_array().unwrap().len()), (3, 1), "{only:?}");
    // A command that needs both sides reports the file instead.
    let file = files.path().join("c.json");
    let output = run(&["preview", file.to_str().unwrap(), file.to_str().unwrap()]);
    assert!(output.code == 3 && output.stderr.contains("c.json: MachineDeployment"), "{output:?}");
}

/// The Go extension as gardener-operator registers it, with a value that a plan must not print.
fn extension_of_azure() -> Value {
    json!({
        "apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": {"name": "provider-azure"},
        "spec": {
            "resources": [{"kind": "ControlPlane", "type": "azure"}, {"kind": "Worker", "type": "azure"}],
            "deployment": {"extension": {"values": {"disableControllers": ["bastion"], "token": "hidden-value"}}},
        },
    })
}

const CHART: &str = "registry.example.org/charts/gardener-extension-worker:0.1.0";

/// Creates plans from a measured case and registrations. Returns the outcome and the written files.
fn plan(bundle: &Value, registrations: &Value, options: &[&str]) -> (Outcome, BTreeMap<String, Value>) {
    plan_of(&Files::new(&[("bundle.json", bundle)]), registrations, options)
}

fn plan_of(files: &Files, registrations: &Value, options: &[&str]) -> (Outcome, BTreeMap<String, Value>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("registrations.json"), registrations.to_string()).unwrap();
    let (registered, to) = (path("registrations.json"), path("plan"));
    let bundle = files.path();
    let arguments = ["takeover", "plan", bundle.to_str().unwrap(), "--registrations", &registered, "--to", &to];
    let mut outcome = run(&[&arguments[..], options].concat());
    outcome.stdout = outcome.stdout.replace(&to, "plan");
    let mut written = BTreeMap::new();
    for entry in std::fs::read_dir(&to).into_iter().flatten() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let document = gardener_extension_worker::api::gotext::yaml::documents(&text).unwrap().pop().unwrap();
        written.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), document);
    }
    (outcome, written)
}

#[test]
fn plan_has_patches_for_the_landscape() {
    let bundle = left_by_go(find(CASE).unwrap()).unwrap();
    let (output, written) = plan(&bundle, &extension_of_azure(), &["--chart", CHART]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_same("test/cli/golden/takeover-plan.txt", &output.stdout);
    let off = &written["3-go-off.yaml"]["spec"];
    assert_eq!(off["resources"], json!([{"kind": "ControlPlane", "type": "azure"}]));
    assert_eq!(off["deployment"]["extension"]["values"], json!({"disableControllers": ["bastion", "worker"]}));
    let undo = &written["3-go-off-undo.yaml"]["spec"];
    assert_eq!(undo["resources"], extension_of_azure()["spec"]["resources"]);
    assert_eq!(undo["deployment"]["extension"]["values"], json!({"disableControllers": ["bastion"]}));
    let on = &written["4-on.yaml"]["spec"];
    assert_eq!(on["resources"], json!([{"kind": "Worker", "type": "azure"}]));
    let texts = written.values().map(Value::to_string).collect::<String>();
    assert!(!texts.contains("hidden-value") && !output.stdout.contains("hidden-value"), "{texts}");
    for name in written.keys() {
        assert!(output.stdout.contains(&format!("plan/{name}\n")), "no command for {name}:\n{}", output.stdout);
    }
}

#[test]
fn plan_without_gardener_operator_patches_both_objects() {
    let bundle = left_by_go(find(CASE).unwrap()).unwrap();
    let worker = json!({"kind": "Worker", "type": "azure"});
    let registration = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": {"name": "provider-azure"},
        "spec": {"resources": [worker], "deployment": {"deploymentRefs": [{"name": "azure-chart"}]}},
    });
    let deployment = json!({
        "apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": "azure-chart"},
        "helm": {"values": {"replicaCount": 1}},
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [registration, deployment]});
    let (output, written) = plan(&bundle, &list, &["--chart", CHART]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert!(
        output.stdout.contains("kubectl patch controllerdeployments.v1.core.gardener.cloud azure-chart --type merge")
    );
    assert_eq!(written["3-go-off-1.yaml"], json!({"helm": {"values": {"disableControllers": ["worker"]}}}));
    assert_eq!(written["3-go-off-2.yaml"], json!({"spec": {"resources": []}}));
    assert_eq!(written["3-go-off-undo-1.yaml"], json!({"helm": {"values": {"disableControllers": null}}}));
    assert_eq!(written["2-dry-run-1.yaml"]["kind"], "ControllerDeployment");
    assert_eq!(written["2-dry-run-2.yaml"]["spec"]["deployment"]["policy"], "Always");
}

#[test]
fn plan_names_what_to_resolve_first() {
    let mut bundle = left_by_go(find(CASE).unwrap()).unwrap();
    bundle["worker"]["status"]["lastOperation"] = json!({"type": "Reconcile", "state": "Processing"});
    bundle["cluster"]["spec"]["shoot"]["status"]["gardener"] = json!({"version": "1.139.2"});
    let (theirs, ours) = (go_extension(&[]), lease("gardener-extension-worker-leader-election"));
    let files = Files::new(&[("a.json", &bundle), ("b.json", &theirs), ("c.json", &ours)]);
    let (output, _) = plan_of(&files, &extension_of_azure(), &["--chart", CHART]);
    assert_eq!(output.code, 1, "{output:?}");
    let (before_steps, _) = output.stdout.split_once("\n1. ").unwrap();
    for obstacle in [
        "Before the takeover\n",
        "Gardener 1.139.2 is not supported",
        "Reconcile is Processing",
        "stop one of the two extensions from reconciling Workers",
    ] {
        assert!(before_steps.contains(obstacle), "{obstacle}: {output:?}");
    }
}

#[test]
fn plan_is_refused_with_the_reason() {
    let bundle = left_by_go(find(CASE).unwrap()).unwrap();
    let mut rolls = bundle.clone();
    rolls["worker"]["spec"]["pools"][0]["volume"]["size"] = json!("99Gi");
    let mut nothing = bundle.clone();
    nothing["worker"] = Value::Null;
    let mut free = extension_of_azure();
    free["spec"]["resources"] = json!([]);
    let mut ours = extension_of_azure();
    ours["metadata"]["name"] = json!("gardener-extension-worker");
    let mut hostile = extension_of_azure();
    hostile["metadata"]["name"] = json!("a; rm -rf x");
    let twice = json!({"apiVersion": "v1", "kind": "List", "items": [extension_of_azure(), ours.clone()]});
    let with_chart: &[&str] = &["--chart", CHART];
    let cases = [
        (&rolls, extension_of_azure(), with_chart, 5, "no plan is written"),
        (&nothing, extension_of_azure(), with_chart, 3, "no Worker"),
        (&bundle, free, with_chart, 3, "0 registrations have Workers of azure"),
        (&bundle, twice, with_chart, 3, "2 registrations have Workers of azure"),
        (&bundle, ours, with_chart, 3, "already taken over"),
        (&bundle, hostile, with_chart, 3, "has an invalid name"),
        (&bundle, extension_of_azure(), &[], 3, "--chart"),
    ];
    for (bundle, registrations, options, code, reason) in cases {
        let (output, written) = plan(bundle, &registrations, options);
        assert_eq!(output.code, code, "{reason}: {output:?}");
        assert!(output.stderr.contains(reason) && written.is_empty(), "{reason}: {output:?} {:?}", written.keys());
    }
}
