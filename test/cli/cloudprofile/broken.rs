//! `cloudprofile lint` of profiles that a garden's API server rejects. It reports every problem, and none stops the
//! other checks.

use super::{AT, example, replaced};
use crate::binary::{Outcome, command, outcome, run};
use crate::golden::assert_same;

fn lint(text: &str, arguments: &[&str]) -> Outcome {
    outcome(command(&[&["cloudprofile", "lint", "-"], arguments, &AT].concat()), text)
}

#[test]
fn everything_that_is_refused_is_found_at_once() {
    let output = lint(include_str!("broken.yaml"), &["--all"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert_same("test/cli/golden/cloudprofile-lint-broken.txt", &output.stdout);
}

/// Lints the example of Azure with one change.
fn changed(from: &str, to: &str) -> Outcome {
    lint(&replaced(&example("azure"), &[(from, to)]), &[])
}

#[test]
fn names_rules_of_creation_or_change_only() {
    let output = changed(
        "    - version: 1.33.6\n      expirationDate: \"2027-06-30T23:59:59Z\"\n",
        "    - version: 1.33.6\n      expirationDate: \"2026-06-30T23:59:59Z\"\n      classification: new\n",
    );
    assert!(output.stdout.contains("warning profile-refused"), "{}", output.stdout);
    let created =
        changed("    - version: 1.34.2\n", "    - version: 1.34.2\n      expirationDate: \"2026-01-01T00:00:00Z\"\n");
    assert!(created.stdout.contains("error profile-refused"), "{}", created.stdout);
    assert!(created.stdout.contains("That is so when it is created"), "{}", created.stdout);
}

#[test]
fn reports_what_the_webhook_fills_in() {
    let flavors = "      capabilityFlavors:\n      - {architecture: [amd64], hypervisorType: [gen2]}\n      - {architecture: [amd64], hypervisorType: [gen1]}\n  providerConfig";
    let output = changed(flavors, "  providerConfig");
    assert!(
        output.stdout.starts_with("-: CloudProfile azure\n\nnote filled-in: gardenlinux 1592.9.0\n"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("where it is not\n    installed, the profile is refused"), "{}", output.stdout);
}

#[test]
fn unknown_provider_field_stops_nothing_else() {
    let output = changed("    kind: CloudProfileConfig\n", "    kind: CloudProfileConfig\n    useOctavia: true\n");
    let wrong = "error unknown-member\n  spec.providerConfig.useOctavia (line 69)\n";
    assert!(output.stdout.contains(wrong) && output.stdout.contains("1 error."), "{}", output.stdout);
}

#[test]
fn core_s_half_of_any_provider_is_checked() {
    let output = changed("  type: azure\n", "  type: metal\n  purpose: none\n");
    assert_eq!(output.code, 1);
    let gate =
        lint(&replaced(&example("azure"), &[("  type: azure\n", "  type: metal\n")]), &["--severity", "warning"]);
    assert_eq!((gate.code, gate.stdout.contains("Nothing found.")), (0, true), "{}", gate.stdout);
    assert!(output.stdout.contains("error unknown-member\n  spec.purpose (line 8)"), "{}", output.stdout);
    assert!(output.stdout.contains("note unknown-provider"), "{}", output.stdout);
    assert!(output.stdout.contains("1 error, 1 note."), "{}", output.stdout);
}

#[test]
fn lists_are_read_and_lead_to_their_lines() {
    let profile = replaced(&example("azure"), &[("memory: 8Gi", "memory: 8GB")]);
    let document: serde_json::Value =
        gardener_extension_worker::api::gotext::yaml::documents(&profile).unwrap().remove(0);
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {{kind: Secret}}\n- {document}\n");
    let found = lint(&list, &["-o", "json"]).json();
    let finding = &found["profiles"][0]["findings"][0];
    assert_eq!((&finding["path"], &finding["line"]), (&"spec.machineTypes[3].memory".into(), &5.into()), "{finding}");
}

#[test]
fn a_file_that_can_t_be_read_does_not_hide_the_others() {
    let folder = std::env::temp_dir().join(format!("cloudprofiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.yaml"), "a: [").unwrap();
    std::fs::write(folder.join("b.yaml"), example("azure")).unwrap();
    let output = run(&["cloudprofile", "lint", folder.to_str().unwrap()]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(output.code, 3);
    assert!(output.stderr.contains("a.yaml") && output.stdout.contains("CloudProfile azure"), "{output:?}");
}

#[test]
fn a_profile_in_the_old_format_is_one_that_gardener_takes() {
    let old = outcome(command(&["cloudprofile", "convert", "--to", "old-format", "-"]), &example("azure"));
    assert_eq!(lint(&old.stdout, &["--severity", "error"]).code, 0, "{}", lint(&old.stdout, &[]).stdout);
}

#[test]
fn names_of_a_draft_have_their_name_of_today() {
    let output = changed("  machineCapabilities:\n", "  capabilities:\n");
    assert!(output.stdout.contains("write machineCapabilities, a list"), "{}", output.stdout);
}
