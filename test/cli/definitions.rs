//! Outputs that are generated from the definitions of the commands: version, manual pages, schemas, and the name as a
//! plugin.

use serde_json::{Value, json};

use crate::binary::{command, outcome, run};

#[test]
fn the_version_and_worker_types_are_printed_as_json() {
    let displayed = run(&["version", "-o", "json"]).succeeded().json();
    assert_eq!(
        (&displayed["schema"], &displayed["version"]),
        (&json!("version/v1"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(displayed["workerTypes"], json!(["azure", "aws", "gcp", "alicloud", "openstack"]));
    assert!(run(&["version"]).succeeded().stdout.contains(env!("CARGO_PKG_VERSION")));
    // The features of the test build.
    assert_eq!(displayed["features"], json!(["live-images", "otlp"]));
}

#[test]
fn version_prints_the_measured_gardener_versions() {
    let displayed = run(&["version", "-o", "json"]).succeeded().json();
    let measured = displayed["measuredWith"].as_array().unwrap();
    let page = include_str!("../../docs/compatibility.md");
    let (_, table) = page.split_once("\n## Measured versions\n").unwrap();
    let rows =
        table.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    let rows: Vec<[String; 3]> = rows
        .map(|row| {
            let mut cells =
                row.split('|').skip(1).map(|cell| cell.split(',').next().unwrap_or_default().trim().to_owned());
            [cells.next().unwrap().to_lowercase(), cells.next().unwrap(), cells.next().unwrap()]
        })
        .collect();
    let of = |member: &Value| member.as_str().unwrap().to_owned();
    let printed: Vec<[String; 3]> = measured
        .iter()
        .map(|measured| [of(&measured["workerType"]), of(&measured["extension"]), of(&measured["gardener"])])
        .collect();
    assert_eq!(printed, rows);
}

#[test]
fn each_command_has_a_manual_page() {
    let page = run(&["man"]).succeeded().stdout;
    assert!(page.contains(".TH gardener-extension-worker 1") && page.contains("diagnose"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    run(&["man", "--folder", folder.path().to_str().unwrap()]).succeeded();
    let page = std::fs::read_to_string(folder.path().join("gardener-extension-worker-cloudprofile-lint.1")).unwrap();
    assert!(page.contains("severity") && page.contains("Exit codes"), "{page}");
    assert_eq!(run(&["man", "--folder", "no/such/folder"]).code, 3);
}

#[test]
fn kubectl_finds_the_program_as_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let program = test_support::program::command();
    for (file, name) in [("kubectl-worker", "worker"), ("kubectl-gardener_worker", "gardener-worker")] {
        let plugin = folder.path().join(file);
        std::os::unix::fs::symlink(program.get_program(), &plugin).unwrap();
        let displayed = std::process::Command::new(&plugin).args(["why", "--help"]).output().unwrap();
        let displayed = String::from_utf8(displayed.stdout).unwrap();
        assert!(displayed.contains(&format!("Usage: kubectl {name} why")), "{displayed}");
        assert!(displayed.contains(&format!("\n  kubectl {name} why ")), "examples: {displayed}");
        assert!(!displayed.contains("gardener-extension-worker"), "{displayed}");
    }
}

#[test]
fn what_is_printed_follows_its_schema() {
    let names = run(&["schema"]).succeeded().stdout;
    assert!(
        names.lines().any(|name| name == "diagnose") && names.lines().any(|name| name == "CloudProfile"),
        "{names}"
    );
    for (words, arguments) in [
        (&["explain"][..], &["explain", "test/cli/azure.yaml"][..]),
        (&["preview"], &["preview", "test/cli/azure.yaml", "test/cli/azure.yaml"]),
        (&["diagnose"], &["diagnose", "shoot--garden--prod", "test/cli/diagnose.yaml"]),
        (&["cloudprofile", "lint"], &["cloudprofile", "lint", "example/cloudprofiles/azure-legacy.yaml"]),
        (&["cloudprofile", "matrix"], &["cloudprofile", "matrix", "example/cloudprofiles/aws.yaml"]),
    ] {
        let schema = run(&[&["schema"], words].concat()).succeeded().json();
        let document = run(&[arguments, &["-o", "json"]].concat()).json();
        assert_eq!(violations(&document, &schema, ""), Vec::<String>::new(), "{words:?}");
        assert!(!violations(&json!({"schema": 1}), &schema, "").is_empty(), "{words:?}: the schema forbids nothing");
    }
    assert_eq!(run(&["schema", "nothing"]).code, 3);
}

#[test]
fn a_profile_follows_the_schema_of_profiles() {
    let schema = run(&["schema", "CloudProfile"]).succeeded().json();
    for cloud in ["alicloud", "aws", "azure", "azure-legacy", "gcp", "openstack"] {
        let text = std::fs::read_to_string(format!("example/cloudprofiles/{cloud}.yaml")).unwrap();
        let mut document = gardener_extension_worker::api::gotext::yaml::documents(&text).unwrap().remove(0);
        assert_eq!(violations(&document, &schema, ""), Vec::<String>::new(), "{cloud}");
        document["spec"]["machineTyps"] = json!([]);
        document["spec"]["regions"][0]["name"] = json!(1);
        assert_eq!(violations(&document, &schema, "").len(), 2, "{cloud}");
        let reported = outcome(command(&["cloudprofile", "lint", "-", "-o", "json"]), &document.to_string()).json();
        assert!(reported.to_string().contains("machineTyps"), "lint says so as well");
    }
}

/// Violations of a schema in a document. Supports only the parts of JSON Schema that our schemas use.
fn violations(document: &Value, schema: &Value, path: &str) -> Vec<String> {
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => return Vec::new(),
        one => vec![one.clone()],
    };
    let is_of = |kind: &Value| match kind.as_str().unwrap() {
        "object" => document.is_object(),
        "array" => document.is_array(),
        "string" => document.is_string(),
        "boolean" => document.is_boolean(),
        "integer" => document.is_i64(),
        "number" => document.is_number(),
        other => other == "null" && document.is_null(),
    };
    if !types.iter().any(is_of) {
        return vec![format!("{path} is not {types:?}")];
    }
    let mut found = Vec::new();
    for name in schema["required"].as_array().into_iter().flatten() {
        if document.get(name.as_str().unwrap()).is_none() && document.is_object() {
            found.push(format!("{path}.{name} is missing"));
        }
    }
    for (name, member) in document.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => found.extend(violations(member, schema, &path)),
            (None, Value::Bool(false)) => found.push(format!("{path} is unknown")),
            (None, Value::Null) => {}
            (None, schema) => found.extend(violations(member, schema, &path)),
        }
    }
    for (index, item) in document.as_array().into_iter().flatten().enumerate() {
        found.extend(violations(item, &schema["items"], &format!("{path}[{index}]")));
    }
    found
}
