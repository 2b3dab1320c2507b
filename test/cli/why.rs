//! `why` prints what `render` recorded, across several changes and changes of other controllers.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, example, outcome};
use crate::golden::assert_same;

const ANNOTATION: &str = "gardener-extension-worker/class-inputs";
const Z1: &str = "shoot--garden--prod-workers-z1";
/// gardenlet changes this name of the node agent Secret with a new image.
const OTHER_NODE_AGENT: (&str, &str) = ("77ac3aaaf0a1b2c3", "1111111111111111");

/// The objects after a reconcile at that time, as one JSON document.
#[track_caller]
pub(crate) fn rendered(text: &str, seconds: i64) -> String {
    let mut render = command(&["render", "-", "-o", "json"]);
    render.env("SOURCE_DATE_EPOCH", seconds.to_string());
    let output = outcome(render, text);
    assert!([0, 7].contains(&output.code), "{output:?}");
    output.stdout
}

/// The example with replacements and with the live objects, but without its own machine deployment.
#[track_caller]
fn input(replacements: &[(&str, &str)], live: &str) -> String {
    let text = example(replacements);
    let own = text.rfind("---\napiVersion: machine.sapcloud.io").unwrap();
    format!("{}\n---\n{live}", &text[..own])
}

/// The objects of a seed after these reconciles, one each day.
fn reconciled(steps: &[&[(&str, &str)]]) -> String {
    let mut live = String::new();
    for (day, replacements) in (1..).zip(steps) {
        live = rendered(&input(replacements, &live), 86_400 * day);
    }
    live
}

fn why(objects: &str) -> Outcome {
    outcome(command(&["why", "-"]), objects)
}

fn deployment(objects: &str, name: &str) -> Value {
    let list: Value = serde_json::from_str(objects).unwrap();
    let found = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|object| object["kind"] == "MachineDeployment" && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {objects}")).clone()
}

fn change(objects: &str, name: &str) -> Value {
    let text = deployment(objects, name).to_string();
    outcome(command(&["why", "-", "-o", "json"]), &text).succeeded().json()["machineDeployments"][0]["changes"][0]
        .clone()
}

#[test]
fn a_new_deployment_has_no_roll() {
    let output = why(&reconciled(&[&[]])).succeeded();
    assert!(output.stdout.contains("no roll is recorded"), "{}", output.stdout);
}

#[test]
fn what_stands_behind_the_node_agent_is_named() {
    let image: &[_] = &[("1877.3.0}", "1592.9.0}"), OTHER_NODE_AGENT];
    let disk: &[_] = &[("1877.3.0}", "1592.9.0}"), OTHER_NODE_AGENT, ("size: 20Gi", "size: 40Gi")];
    let output = why(&deployment(&reconciled(&[&[], image, disk]), Z1).to_string()).succeeded();
    assert_same("test/cli/golden/why.txt", &output.stdout);
}

#[test]
fn every_changed_input_is_named() {
    // (what changes, the named input, the cause of that input)
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (&[("size: 20Gi", "size: 21Gi")], "dataVolumes[logs].size", &[]),
        (
            &[("type: Premium_LRS}\n      nodeAgent", "type: UltraSSD_LRS}\n      nodeAgent")],
            "dataVolumes[logs].type",
            &[],
        ),
        (&[("identities/nodes", "identities/others")], "infrastructureProviderStatus.identity.id", &[]),
        (&[("enabled: true", "enabled: false")], "providerConfig.diagnosticsProfile.enabled", &[]),
        (&[("sig=example", "sig=other")], "providerConfig.diagnosticsProfile.storageURI", &[]),
        (&[OTHER_NODE_AGENT], "nodeAgentSecretName", &[]),
        (&[OTHER_NODE_AGENT, ("size: 50Gi", "size: 60Gi")], "nodeAgentSecretName", &["volume.size"]),
        (
            &[OTHER_NODE_AGENT, ("kubernetesVersion: 1.35.1", "kubernetesVersion: 1.36.0")],
            "nodeAgentSecretName",
            &["kubernetesVersion"],
        ),
    ];
    for (replacements, named, behind) in cases {
        let change = change(&reconciled(&[&[], replacements]), Z1);
        assert_eq!(change["inputs"].as_array().unwrap().len(), 1, "{replacements:?}: {change}");
        assert_eq!(change["inputs"][0]["input"], *named, "{change}");
        assert_eq!(change["inputs"][0]["because"], json!(behind), "{change}");
        assert_eq!(change["from"]["since"], "1970-01-02T00:00:00Z");
        assert_eq!(change["to"]["since"], "1970-01-03T00:00:00Z");
        assert_ne!(change["from"]["class"], change["to"]["class"]);
    }
}

#[test]
fn a_roll_is_explained_at_every_cloud() {
    for cloud in ["alicloud", "aws", "gcp", "openstack"] {
        let text = std::fs::read_to_string(format!("{}/example/{cloud}.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let before = rendered(&text, 86_400);
        let after =
            rendered(&format!("{}\n---\n{before}", text.replace(OTHER_NODE_AGENT.0, OTHER_NODE_AGENT.1)), 172_800);
        let objects: Value = serde_json::from_str(&after).unwrap();
        let names = objects["items"].as_array().unwrap().iter();
        let names = names.filter(|object| object["kind"] == "MachineDeployment");
        let names: Vec<&str> = names.filter_map(|object| object["metadata"]["name"].as_str()).collect();
        assert!(["-web-", "-search-"].iter().all(|pool| names.iter().any(|name| name.contains(pool))), "{names:?}");
        for name in names {
            let change = change(&after, name);
            let is_changed = name.contains("-web-");
            assert_eq!(change["inputs"][0]["input"] == "nodeAgentSecretName", is_changed, "{cloud} {name}: {change}");
            assert_eq!(change.is_null(), !is_changed, "{cloud} {name}: {change}");
        }
    }
}

#[test]
fn an_update_in_place_is_named_as_well() {
    let change = change(&reconciled(&[&[], &[("1.34.2", "1.35.2")]]), "shoot--garden--prod-database-z2");
    assert_eq!(change["inputs"], json!([{"input": "inPlaceHash", "how": "changed", "because": ["kubernetesVersion"]}]));
}

#[test]
fn another_order_of_the_same_inputs_is_named() {
    let config = |volumes: &str| {
        format!(
            "        dataVolumes: [{volumes}]\n        diagnosticsProfile: {{enabled: true, storageURI: \"https://example.blob"
        )
    };
    let diagnostics = "        diagnosticsProfile: {enabled: true, storageURI: \"https://example.blob";
    let (before, after) = (config("{name: logs}, {name: b}"), config("{name: b}, {name: logs}"));
    let change = change(&reconciled(&[&[(diagnostics, &before)], &[(diagnostics, &after)]]), Z1);
    assert_ne!(change["from"]["class"], change["to"]["class"]);
    assert_eq!(change["difference"], "order");
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    let first = reconciled(&[&[]]);
    assert_eq!(reconciled(&[&[], &[], &[]]), first, "also not the time");
    // Changes outside the class name are not recorded.
    let scaled = reconciled(&[&[], &[("maximum: 10", "maximum: 12")]]);
    let annotation = |objects: &str| deployment(objects, Z1)["metadata"]["annotations"][ANNOTATION].clone();
    assert_eq!(annotation(&scaled), annotation(&first));
}

/// The objects without the record, as the Go extension leaves them.
fn without_record(objects: &str) -> String {
    let mut list: Value = serde_json::from_str(objects).unwrap();
    for object in list["items"].as_array_mut().unwrap() {
        if let Some(annotations) = object["metadata"].get_mut("annotations") {
            annotations.as_object_mut().unwrap().remove(ANNOTATION);
        }
    }
    list.to_string()
}

#[test]
fn taking_over_records_the_present_and_leaves_the_template() {
    let before = without_record(&reconciled(&[&[]]));
    let after = rendered(&input(&[], &before), 500_000);
    assert_eq!(deployment(&after, Z1)["spec"], deployment(&before, Z1)["spec"]);
    let output = why(&after).succeeded();
    assert!(output.stdout.contains("was found at 1970-01-06T18:53:20Z"), "{}", output.stdout);
    // A later roll is explained.
    let rolled = rendered(&input(&[("size: 20Gi", "size: 21Gi")], &after), 600_000);
    assert_eq!(change(&rolled, Z1)["inputs"][0]["input"], "dataVolumes[logs].size");
    assert_eq!(change(&rolled, Z1)["from"]["found"], true);
}

#[test]
fn reports_changes_of_other_controllers_as_unknown() {
    let ours = reconciled(&[&[]]);
    // The Go extension rolled: it set another class and kept our annotation.
    let class = deployment(&ours, Z1)["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap().to_owned();
    let theirs = ours.replace(&format!("\"name\": \"{class}\""), "\"name\": \"shoot--garden--prod-workers-fffff-z1\"");
    assert_ne!(theirs, ours);
    let again = rendered(&input(&[], &theirs), 700_000);
    let change = change(&again, Z1);
    assert_eq!(change["difference"], "unknown");
    assert_eq!(change["from"]["class"], "shoot--garden--prod-workers-fffff-z1");
    assert_eq!(change["from"]["found"], true);
}

#[test]
fn the_record_stays_small_however_many_volumes_there_are() {
    let volumes = |size: usize| -> String {
        let volume = |number| {
            format!(
                "\n        - {{name: a-volume-with-a-name-{number:02}, size: {}Gi, type: Premium_LRS}}",
                size + number
            )
        };
        (0..64).map(volume).collect()
    };
    let logs = "\n        - {name: logs, size: 20Gi, type: Premium_LRS}";
    let (small, large, huge) = (volumes(10), volumes(20), volumes(30));
    let steps: [&[_]; 4] =
        [&[], &[(logs, &*small)], &[(logs, &*large)], &[(logs, &*huge), ("identities/nodes", "identities/others")]];
    for count in 1..=steps.len() {
        let objects = reconciled(&steps[..count]);
        for zone in ["z1", "z2", "z3"] {
            let name = format!("shoot--garden--prod-workers-{zone}");
            let record =
                deployment(&objects, &name)["metadata"]["annotations"][ANNOTATION].as_str().unwrap().to_owned();
            assert!(record.len() <= 1024, "{} bytes: {record}", record.len());
        }
    }
    let change = change(&reconciled(&steps), Z1);
    let named: Vec<_> =
        change["inputs"].as_array().unwrap().iter().map(|input| input["input"].as_str().unwrap()).collect();
    assert_eq!(named, ["dataVolumes", "infrastructureProviderStatus.identity.id"]);
}

#[test]
fn three_classes_are_remembered() {
    let sizes = ["21Gi", "22Gi", "23Gi", "24Gi", "25Gi"].map(|size| [("size: 20Gi", format!("size: {size}"))]);
    let steps: Vec<Vec<(&str, &str)>> =
        sizes.iter().map(|step| step.iter().map(|(from, to)| (*from, to.as_str())).collect()).collect();
    let steps: Vec<&[(&str, &str)]> = steps.iter().map(Vec::as_slice).collect();
    let text = deployment(&reconciled(&steps), Z1).to_string();
    let output = outcome(command(&["why", "-", "-o", "json"]), &text).json();
    let changes = output["machineDeployments"][0]["changes"].as_array().unwrap();
    let times: Vec<_> = changes.iter().map(|change| change["to"]["since"].as_str().unwrap()).collect();
    assert_eq!(times, ["1970-01-06T00:00:00Z", "1970-01-05T00:00:00Z"]);
}

#[test]
fn comparisons_with_other_programs_do_not_see_it() {
    let result = outcome(command(&["render", "test/cli/azure.yaml", "-o", "result"]), "").succeeded();
    assert!(!result.stdout.contains("gardener-extension-worker/"), "{}", result.stdout);
    let yaml = outcome(command(&["render", "test/cli/azure.yaml"]), "").succeeded();
    assert!(yaml.stdout.contains(ANNOTATION));
}

#[test]
fn a_deployment_without_a_record_is_a_finding() {
    let output = why(&deployment(&without_record(&reconciled(&[&[]])), Z1).to_string());
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.contains("nothing is recorded"), "{output:?}");
    let broken = example(&[(
        "labels: {worker.gardener",
        "annotations: {gardener-extension-worker/class-inputs: \"{\"}\n  labels: {worker.gardener",
    )]);
    assert_eq!(why(&broken).code, 1);
}

#[test]
fn unreadable_input_is_exit_code_3() {
    for (target, message) in [("no-such-file.yaml", "can't be read"), ("Cargo.toml", "Cargo.toml")] {
        let output = outcome(command(&["why", target]), "");
        assert_eq!(output.code, 3, "{output:?}");
        assert!(output.stderr.contains(message), "{output:?}");
    }
    let mut unreachable = command(&["why", "namespace/name", "--kubeconfig", "no-such-kubeconfig"]);
    unreachable.env("HOME", "/nonexistent");
    let output = outcome(unreachable, "");
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("kubeconfig no-such-kubeconfig can't be read"), "{output:?}");
}

/// Serves one object at one path over plain HTTP, like an API server.
fn api_server(path: &'static str, object: Value) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let found = String::from_utf8_lossy(&request[..length]).starts_with(&format!("GET {path} "));
            let missing =
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
            let (status, body) =
                if found { ("200 OK", object.to_string()) } else { ("404 Not Found", missing.to_string()) };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    format!("http://{address}")
}

#[test]
fn a_deployment_of_a_cluster_is_read_through_the_kubeconfig() {
    let rolled = reconciled(&[&[], &[("size: 20Gi", "size: 21Gi")]]);
    let path = "/apis/machine.sapcloud.io/v1alpha1/namespaces/shoot--garden--prod/machinedeployments/shoot--garden--prod-workers-z1";
    let server = api_server(path, deployment(&rolled, Z1));
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let content = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "seed",
        "clusters": [{"name": "seed", "cluster": {"server": server}}],
        "users": [{"name": "seed", "user": {}}],
        "contexts": [{"name": "seed", "context": {"cluster": "seed", "user": "seed"}}],
    });
    std::fs::write(&kubeconfig, content.to_string()).unwrap();
    let why_in_cluster = |name: &str| {
        let target = format!("shoot--garden--prod/{name}");
        outcome(command(&["why", &target, "--kubeconfig", kubeconfig.to_str().unwrap()]), "")
    };
    let output = why_in_cluster(Z1).succeeded();
    assert_eq!(output.stdout, why(&deployment(&rolled, Z1).to_string()).stdout);
    let missing = why_in_cluster("none");
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(missing.stderr.contains("MachineDeployment shoot--garden--prod/none does not exist"), "{missing:?}");
}
