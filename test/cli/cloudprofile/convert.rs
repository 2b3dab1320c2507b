//! `cloudprofile convert` and `cloudprofile minimize`.

use gardener_extension_worker::api::gotext::yaml;
use serde_json::Value;

use super::{AT, example, replaced};
use crate::binary::{Outcome, command, outcome, run};
use crate::golden::assert_same;

fn cloudprofile(what: &str, arguments: &[&str], text: &str) -> Outcome {
    outcome(command(&[&["cloudprofile", what, "-"], arguments].concat()), text)
}

fn document(text: &str) -> Value {
    yaml::documents(text).unwrap().remove(0)
}

#[test]
fn the_old_format_becomes_capabilities() {
    let shown = run(&["cloudprofile", "convert", "example/cloudprofiles/azure-legacy.yaml"]);
    assert_eq!(shown.code, 2, "something is undecided");
    assert_same("test/cli/golden/cloudprofile-convert.yaml", &shown.stdout);
    assert_same("test/cli/golden/cloudprofile-convert.txt", &shown.stderr);
}

#[test]
fn a_converted_profile_is_accepted() {
    let converted = cloudprofile("convert", &[], &example("azure-legacy")).stdout;
    let lint = outcome(command(&[&["cloudprofile", "lint", "-", "--severity", "error"][..], &AT].concat()), &converted);
    assert_eq!(lint.succeeded().stderr, "");
}

#[test]
fn there_and_back_is_the_same_profile() {
    let old = example("azure-legacy");
    let there = cloudprofile("convert", &[], &old);
    let back = cloudprofile("convert", &["--to", "old-format"], &there.stdout).succeeded();
    assert_eq!(document(&back.stdout), document(&old));
}

#[test]
fn a_person_says_what_machine_types_can_run() {
    let decided = ["--decide", "*=hypervisorType:gen2", "--decide", "Standard_A4_v2=hypervisorType:gen1"];
    let shown = cloudprofile("convert", &[&decided[..], &["-o", "json"]].concat(), &example("azure-legacy"));
    let result: Value = shown.succeeded().json();
    assert_eq!(result["undecided"], Value::Array(Vec::new()));
    let types = &result["profile"]["spec"]["machineTypes"];
    assert_eq!(types[3]["capabilities"]["hypervisorType"][0], "gen1");
    assert_eq!(types[0]["capabilities"]["hypervisorType"][0], "gen2");
    let intended = result["intended"].as_array().unwrap();
    let of_1877 = intended.iter().find(|difference| difference["version"] == "1877.3.0").unwrap();
    assert_eq!(of_1877["machineTypes"].as_array().unwrap().len(), 3, "the ones for gen2 get another image there");
    assert!(of_1877["after"]["image"]["value"].as_str().unwrap().contains("gardenlinux-gen2"));
    let given_up = result["givenUp"].as_array().unwrap();
    assert!(given_up.iter().any(|lost| lost["machineTypes"][0] == "Standard_A4_v2"), "{given_up:?}");

    let wrong = cloudprofile("convert", &["--decide", "*=disk:nvme"], &example("azure-legacy"));
    assert_eq!((wrong.code, wrong.stdout.as_str()), (1, ""));
    assert!(wrong.stderr.contains("would not define \"disk\""), "{wrong:?}");
    assert_eq!(cloudprofile("convert", &["--decide", "nonsense"], "").code, 1);
}

#[test]
fn a_suffix_that_nobody_knows_is_asked_for() {
    let old = replaced(&example("azure-legacy"), &[("-gen2", "-fips")]);
    let asked = cloudprofile("convert", &[], &old);
    assert_eq!(asked.code, 2);
    assert!(asked.stderr.contains("--suffix fips=CAPABILITY:VALUE/VALUE_WITHOUT"), "{}", asked.stderr);
    let told = cloudprofile("convert", &["--suffix", "fips=cryptography:fips/standard", "-o", "json"], &old).json();
    let definitions = &told["profile"]["spec"]["machineCapabilities"];
    assert_eq!(definitions[1]["name"], "cryptography");
    assert_eq!(definitions[1]["values"][0], "standard", "nothing changes for those of whom nothing is said");
}

#[test]
fn going_back_adds_versions_where_machine_types_need_several() {
    let shown = cloudprofile("convert", &["--to", "old-format", "-o", "json"], &example("azure"));
    assert_eq!(shown.code, 2, "hypervisorType has no word in the old format");
    let result = shown.json();
    let versions = result["profile"]["spec"]["machineImages"][0]["versions"].as_array().unwrap();
    let titles: Vec<_> = versions.iter().map(|version| version["version"].as_str().unwrap()).collect();
    let wanted = ["2001.1.0", "2001.1.0-gen1", "1877.3.0", "1877.3.0-gen1", "1592.9.0", "1592.9.0-gen1"];
    assert_eq!(titles, wanted);
    assert!(result["undecided"][0]["open"].as_str().unwrap().contains("no word for hypervisorType"));
    assert_eq!(result["proof"]["lost"], Value::Array(Vec::new()));
}

#[test]
fn a_shorter_profile_says_what_it_saves() {
    let long = replaced(
        &example("aws"),
        &[
            (
                "      - {architecture: [amd64], bootMode: [legacy-bios]}",
                "      - {architecture: [amd64], bootMode: [legacy-bios, uefi, uefi]}",
            ),
            (
                "capabilities: {architecture: [amd64], bootMode: [legacy-bios]}\n          regions",
                "capabilities: {architecture: [amd64], bootMode: [legacy-bios, uefi, uefi]}\n          regions",
            ),
        ],
    );
    let shown = cloudprofile("minimize", &[], &long).succeeded();
    assert_same("test/cli/golden/cloudprofile-minimize.yaml", &shown.stdout);
    assert_same("test/cli/golden/cloudprofile-minimize.txt", &shown.stderr);
    let result = cloudprofile("minimize", &["-o", "json"], &long).json();
    assert!(result["stored"]["after"].as_u64() < result["stored"]["before"].as_u64(), "{}", result["stored"]);
}

#[test]
fn flavors_of_one_image_become_one() {
    let two = replaced(
        &example("azure"),
        &[
            ("urn: example:gardenlinux:gen1:1592.9.0", "urn: example:gardenlinux:any:1592.9.0"),
            ("urn: example:gardenlinux:gen2:1592.9.0", "urn: example:gardenlinux:any:1592.9.0"),
        ],
    );
    let result = cloudprofile("minimize", &["-o", "json"], &two).json();
    let flavors = &result["profile"]["spec"]["providerConfig"]["machineImages"][0]["versions"][2]["capabilityFlavors"];
    assert_eq!(
        flavors,
        &serde_json::json!([{"capabilities": {"architecture": ["amd64"]}, "urn": "example:gardenlinux:any:1592.9.0"}])
    );
    assert_eq!(result["everyMachine"], true);
}
