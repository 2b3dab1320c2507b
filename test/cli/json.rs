//! The JSON output of the commands has exactly the described members.

use std::collections::BTreeSet;

use gardener_extension_worker::cli::json_fields::documents;
use serde_json::{Value, json};

use crate::binary::{command, example, outcome, run};
use crate::preview::{ROLL, Replacements, UNPLANNABLE};

/// Members whose keys are data.
const MAPS: [&str; 8] = [
    "total.placements",
    "total.nodes",
    "total.findings",
    ".machine",
    ".capabilities",
    ".autoscalerAnnotations",
    ".flavors[].regions",
    "[].flavor",
];

fn paths(value: &Value, path: &str, seen: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{path}[]"), seen)),
        Value::Object(members) => {
            for (key, member) in members {
                let key = if MAPS.iter().any(|map| path.ends_with(map)) { "*" } else { key };
                let separator = if path.is_empty() { "" } else { "." };
                paths(member, &format!("{path}{separator}{key}"), seen);
            }
        }
        Value::Null if !path.ends_with('*') => {}
        _ => {
            seen.insert(path.to_owned());
        }
    }
}

#[track_caller]
pub(crate) fn assert_described(samples: &[Value], command: &str) {
    let documents = documents();
    let (_, fields) = documents.iter().find(|(known, _)| *known == command).expect(command);
    let mut seen = BTreeSet::new();
    samples.iter().for_each(|sample| paths(sample, "", &mut seen));
    if samples.iter().all(|sample| sample["evidence"].is_object()) {
        // All commands share one type for the evidence, but each command writes only some of its members.
        evidence_samples().iter().for_each(|sample| paths(&json!({"evidence": sample}), "", &mut seen));
    }
    let described: BTreeSet<String> = fields.iter().map(|field| field.path.clone()).collect();
    let undescribed: Vec<_> = seen.difference(&described).collect();
    assert!(undescribed.is_empty(), "printed, but not described: {undescribed:?}");
    let unprinted: Vec<_> = described.difference(&seen).collect();
    assert!(unprinted.is_empty(), "described, but in no sample: {unprinted:?}");
}

/// Evidence samples that together have every member.
fn evidence_samples() -> [Value; 2] {
    let profile = "example/versions/cloudprofile.yaml";
    let without_shoots = run(&["cloudprofile", "versions", profile, "-o", "json"]).json();
    let partial = "kind: Shoot\nmetadata: {name: a, namespace: b}\nspec: {cloudProfileName: none}\n";
    let arguments = ["forecast", "-", "no/such/file", "--profiles", profile, "-o", "json"];
    let partial = outcome(command(&arguments), partial).json();
    [without_shoots, partial].map(|document| document["evidence"].clone())
}

fn explained(text: &str) -> Value {
    outcome(command(&["explain", "-", "-o", "json"]), text).json()
}

#[test]
fn explain_prints_what_is_described() {
    let unresolved = [
        ("machineType: Standard_D4s_v5", "machineType: Standard_D4ps_v5"),
        ("1877.3.0}\n      architecture: amd64", "1592.9.0}"),
        (
            "      providerConfig:\n        apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1\n        kind: CloudProfileConfig",
            "      machineImages: [{name: gardenlinux, versions: [{version: 1877.3.0}]}]\n      providerConfig:\n        apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1\n        kind: CloudProfileConfig",
        ),
    ];
    let samples = [
        explained(&example(&[])),
        explained(&example(&unresolved)),
        explained(&example(&[("zones: [\"2\"]", "zones: [\"2\", \"2\"]")])),
        explained(&example(&[("type: azure", "type: unknown")])),
    ];
    assert_described(&samples, "explain -o json");
    let document = &samples[0];
    assert_eq!(document["schema"], "explain/v1");
    let hazards = |zone: usize| &document["workers"][0]["pools"][0]["placements"][zone]["hazards"];
    assert_eq!(hazards(0)[0]["kind"], "maximumBelowLive");
    assert_eq!(hazards(2)[0]["kind"], "noRoomToRoll");
}

/// Outputs of `preview` that together have every member.
fn previewed() -> Vec<Value> {
    let changes: [Replacements<'_>; 4] = [
        ROLL,
        UNPLANNABLE,
        &[("#!/bin/bash example", "#!/bin/bash another")],
        &[("kubernetesVersion: 1.34.2", "kubernetesVersion: 1.35.1")],
    ];
    let output = |arguments: &[&str], new: &str| outcome(command(arguments), new).json();
    let arguments = ["preview", "test/cli/azure.yaml", "-", "-o", "json"];
    let changed = changes.iter().map(|changes| output(&arguments, &example(changes)));
    changed.chain([output(&arguments, "a: [")]).collect()
}

#[test]
fn preview_prints_what_is_described() {
    let samples = previewed();
    assert_eq!(samples[0]["schema"], "gardener-extension-worker/preview/v1");
    assert_described(&samples, "preview -o json");
}

#[test]
fn takeover_check_prints_what_is_described() {
    // Another test compares this file with the output.
    let kept = std::fs::read_to_string("test/cli/golden/takeover.json").unwrap();
    let mut output: Value = serde_json::from_str(&kept).unwrap();
    let previewed: Vec<Value> = previewed().iter().flat_map(|it| it["workers"].as_array().unwrap().clone()).collect();
    output["workers"].as_array_mut().unwrap().extend(previewed);
    // Only failed operations, seeds, and unreadable files have these members.
    output["workers"][0]["failed"] = json!("Reconcile is Error");
    output["permissions"] = json!({"asked": 1, "missing": [{"group": "", "resource": "secrets", "verb": "get"}]});
    output["writers"]["unknown"] = json!(["Leases"]);
    output["errors"] = json!(["a.yaml: no YAML"]);
    assert_described(&[output], "takeover check -o json");
}

#[test]
fn why_prints_what_is_described() {
    let before = crate::why::rendered(&example(&[]), 0);
    let after = crate::why::rendered(
        &format!("{}\n---\n{before}", example(&[("1877.3.0}", "1592.9.0}"), ("77ac3aaaf0a1b2c3", "1111111111111111")])),
        100,
    );
    let output = outcome(command(&["why", "-", "-o", "json"]), &after).json();
    assert_eq!(output["schema"], "why/v1");
    let rolls = crate::why_rolls::documents();
    assert_described(&[&[output][..], &rolls].concat(), "why -o json");
}

#[test]
fn the_matrix_prints_what_is_described() {
    let azure = std::fs::read_to_string("example/cloudprofiles/azure.yaml").unwrap();
    let aws = std::fs::read_to_string("example/cloudprofiles/aws.yaml").unwrap();
    let several_fit = azure.replace("[amd64], hypervisorType: [gen1], azure-networking: [basic]", "[amd64]");
    let a_region_less = aws.replace("          - {name: eu-west-1, ami: ami-0a11aaaa00000004}\n", "");
    assert!(several_fit != azure && a_region_less != aws);
    let output = |text: &str| outcome(command(&["cloudprofile", "matrix", "-", "-o", "json"]), text).json();
    let no_image = azure.replace("          urn: example:gardenlinux:gen1:1592.9.0\n", "");
    assert_ne!(no_image, azure);
    // A profile for which GEP-33 would choose another flavor, because it first compares the first values of all
    // capabilities.
    let another_order = azure
        .replace("values: [gen2, gen1]", "values: [gen3, gen2, gen1]")
        .replace("hypervisorType: [gen2]}", "hypervisorType: [gen2], azure-networking: [basic]}")
        .replace("[amd64], hypervisorType: [gen1], azure-networking: [basic]", "[amd64]")
        .replace("hypervisorType: [gen1]}", "hypervisorType: [gen1], azure-networking: [accelerated]}");
    let samples = [output(&several_fit), output(&a_region_less), output(&no_image), output(&another_order)];
    assert_eq!(samples[0]["schema"], "cloudprofile-matrix/v1");
    assert_described(&samples, "cloudprofile matrix -o json");
}

#[test]
fn lint_prints_what_is_described() {
    let text = std::fs::read_to_string("example/cloudprofiles/azure.yaml").unwrap();
    let expired = text.replace("2027-03-31", "2026-03-31");
    assert_ne!(expired, text);
    let output =
        outcome(command(&["cloudprofile", "lint", "-", "-o", "json", "--at", "2026-11-21T00:00:00Z"]), &expired);
    let document = output.json();
    assert_eq!(document["schema"], "cloudprofile-lint/v1");
    assert_described(&[document], "cloudprofile lint -o json");
}

#[test]
fn forecast_prints_what_is_described() {
    let with = |more: &[&str]| {
        let shoots = ["forecast", "example/versions/shoots.yaml", "--profiles", "example/versions/cloudprofile.yaml"];
        let at = ["--at", "2026-02-01", "-o", "json"];
        outcome(command(&[&shoots[..], &at, more].concat()), "").json()
    };
    let expiring = "example/versions/cloudprofile-expiring.yaml";
    let changed = ["--cloudprofile-new", expiring];
    let newer = crate::forecast_groups::newer_than_measured("2027-02-01", "json").json();
    let samples = [with(&[]), with(&changed), crate::versions::sample(&[]), crate::versions::sample(&changed), newer];
    assert_eq!(samples[0]["schema"], "forecast/v1");
    assert_described(&samples, "forecast -o json");
}

#[test]
fn cloudprofile_versions_prints_what_is_described() {
    let files = ["example/versions/cloudprofile-expiring.yaml", "--shoots", "example/versions/shoots.yaml"];
    let output = outcome(
        command(&[&["cloudprofile", "versions"], &files[..], &["-o", "json", "--at", "2026-02-01"]].concat()),
        "",
    );
    let document = output.json();
    assert_eq!(document["schema"], "cloudprofile-versions/v1");
    assert_described(&[document], "cloudprofile versions -o json");
}

#[test]
fn diagnose_prints_what_is_described() {
    let text = std::fs::read_to_string("test/cli/diagnose.yaml").unwrap();
    let output =
        outcome(command(&["diagnose", "shoot--garden--prod", "-", "no/such/file", "-o", "json"]), &text).json();
    assert_eq!(output["schema"], "diagnose/v1");
    let rolling = crate::diagnose_rolls::diagnosed(&crate::diagnose_rolls::rolling(), &["-o", "json"]).json();
    assert_described(&[output, rolling], "diagnose -o json");
}

#[test]
fn diff_prints_what_is_described() {
    let aws = std::fs::read_to_string("example/cloudprofiles/aws.yaml").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.yaml");
    let new = aws
        .replace("ami-0a11aaaa00000004", "ami-0a11aaaa00000099")
        .replace("2027-03-31", "2027-05-31")
        .replace("2027-06-30", "2027-08-31")
        .replace("- name: eu-central-1\n    zones", "- name: eu-central-9\n    zones")
        .replace("{name: eu-west-1c}", "{name: eu-west-1d}")
        .replace("{name: gp3", "{name: gp4")
        .replace("values: [uefi, legacy-bios]", "values: [legacy-bios, uefi]")
        .replace("{name: m7i.xlarge, cpu: \"4\"", "{name: m7i.larger, cpu: four");
    std::fs::write(&file, new).unwrap();
    let arguments = ["cloudprofile", "diff", "-", file.to_str().unwrap(), "-o", "json"];
    let document = outcome(command(&arguments), &aws).json();
    assert_eq!(document["schema"], "cloudprofile-diff/v1");
    assert_described(&[document], "cloudprofile diff -o json");
}
