//! `cloudprofile lint` of versions: copied images, variants in names, updates in place, and expired versions.

use serde_json::{Value, json};

use super::{AT, example, replaced};
use crate::binary::{command, outcome};
use crate::versions::finding_input;

/// The findings of a profile, each as `rule subject: reason advice`.
#[track_caller]
fn found(text: &str, at: &str) -> Vec<String> {
    let output = outcome(command(&["cloudprofile", "lint", "-", "--at", at, "-o", "json"]), text).json();
    let text_of = |finding: &Value, member: &str| finding[member].as_str().unwrap_or_default().to_owned();
    let findings = output["profiles"][0]["findings"].as_array().unwrap();
    let line = |finding| {
        let [rule, subject, reason, advice] =
            ["rule", "subject", "reason", "advice"].map(|member| text_of(finding, member));
        format!("{rule} {subject}: {reason} {advice}")
    };
    findings.iter().map(line).collect()
}

#[track_caller]
fn the_only(findings: &[String], rule: &str) -> String {
    let of_rule: Vec<&String> = findings.iter().filter(|finding| finding.starts_with(&format!("{rule} "))).collect();
    assert_eq!(of_rule.len(), 1, "{rule}: {findings:#?}");
    of_rule[0].clone()
}

/// Lints an example in which both versions use the image of the older one.
fn copied(cloud: &str, of_newer: &str, of_older: &str) -> Vec<String> {
    found(&replaced(&example(cloud), &[(of_newer, of_older)]), AT[1])
}

#[test]
fn finds_copied_images_of_every_cloud() {
    for (cloud, of_newer, of_older) in [
        ("azure", "gardenlinux-gen2/Versions/2001.1.0", "gardenlinux-gen2/Versions/1877.3.0"),
        ("aws", "ami-0a11aaaa00000002", "ami-0a11aaaa00000008"),
    ] {
        let finding = the_only(&copied(cloud, of_newer, of_older), "same-image");
        assert!(finding.contains("has the same image"), "{finding}");
    }
    for cloud in ["alicloud", "gcp", "openstack"] {
        let document: Value = document_of(&example(cloud));
        let finding = the_only(&found(&with_copied_version(document).to_string(), AT[1]), "same-image");
        assert!(finding.contains("1878.0.0"), "{finding}");
    }
}

fn document_of(text: &str) -> Value {
    gardener_extension_worker::api::gotext::yaml::documents(text).unwrap().remove(0)
}

/// The profile with a newer version that is a copy of its first one.
fn with_copied_version(mut document: Value) -> Value {
    for half in ["/spec/machineImages/0/versions", "/spec/providerConfig/machineImages/0/versions"] {
        let versions = document.pointer_mut(half).unwrap().as_array_mut().unwrap();
        let mut copy = versions[0].clone();
        copy["version"] = json!("1878.0.0");
        versions.insert(0, copy);
    }
    document
}

#[test]
fn blames_the_version_that_was_copied() {
    let findings = copied("azure", "gardenlinux-gen1/Versions/2001.1.0", "gardenlinux-gen1/Versions/1877.3.0");
    let finding = the_only(&findings, "same-image");
    assert!(finding.starts_with("same-image gardenlinux 2001.1.0: 1877.3.0 has the same image ("), "{finding}");
}

#[test]
fn variants_of_a_version_may_share_images() {
    let profile = finding_input("in-place-variants.yaml");
    let shared = replaced(&profile, &[("images/gl-1877-12-inplace", "images/gl-1877-12")]);
    assert!(!found(&shared, AT[1]).iter().any(|finding| finding.starts_with("same-image")));
}

#[test]
fn finds_another_version_in_a_name() {
    let findings = copied("azure", "gardenlinux-gen1/Versions/2001.1.0", "gardenlinux-gen1/Versions/1999.1.0");
    let finding = the_only(&findings, "other-version");
    assert!(
        finding.starts_with("other-version gardenlinux 2001.1.0: The name of the image says 1999.1.0 ("),
        "{finding}"
    );
    // Image names of GCP contain versions with hyphens. They matter only if another version of the profile has that
    // number.
    let profile = finding_input("in-place-variants.yaml");
    let text = replaced(
        &profile,
        &[("image: projects/example/global/images/gl-1877-12}", "image: projects/example/global/images/new-1877-9}")],
    );
    let finding = the_only(&found(&text, AT[1]), "other-version");
    assert!(finding.contains("gardenlinux 1877.12.0: The name of the image says 1877.9.0"), "{finding}");
}

#[test]
fn suffixes_need_neither_plain_version_nor_provider() {
    let profile = finding_input("only-suffixes.yaml");
    for text in [profile.clone(), replaced(&profile, &[("type: gcp", "type: meadow")])] {
        let findings = found(&text, "2026-05-01");
        let suffixes: Vec<&String> = findings.iter().filter(|finding| finding.starts_with("version-suffix")).collect();
        assert_eq!(suffixes.len(), 2, "{findings:#?}");
        let moves = "from 2250.0.0-baremetal-sci-pxe to 2250.0.0-baremetal-sci-usi";
        assert!(suffixes.iter().all(|finding| finding.contains(moves)), "{suffixes:#?}");
        assert!(
            suffixes.iter().all(|finding| !finding.contains("convert")),
            "there is no plain version: {suffixes:#?}"
        );
    }
    let shoot = finding_input("only-suffixes-shoot.yaml");
    let output = outcome(command(&["forecast", "-", "--at", "2026-05-01"]), &format!("{profile}\n---\n{shoot}"));
    assert!(output.stdout.contains("2249.0.0-baremetal-sci-usi"), "{}", output.stdout);
}

#[test]
fn variants_for_updates_in_place_stay_versions() {
    let findings = found(&finding_input("in-place-variants.yaml"), "2026-02-12");
    let finding = the_only(&findings, "version-suffix");
    assert!(finding.contains("Keep the versions"), "{finding}");
    assert!(!finding.contains("Make flavors"), "{finding}");
    // The result of the former advice, which merged the variants.
    let input = format!("{}\n---\n{}", finding_input("in-place-merged.yaml"), finding_input("in-place-shoot.yaml"));
    let output = outcome(command(&["forecast", "-", "--at", "2026-02-12"]), &input).stdout.replace("\n    ", " ");
    let why = "the CloudProfile has it, but not for this pool: it does not support inPlaceUpdates";
    assert!(output.contains(why), "{output}");
}

#[test]
fn lint_names_stuck_pools_in_place() {
    let profile = finding_input("in-place-expiring.yaml");
    for (at, rule, tense) in [("2026-02-12", "expires-soon", "Then"), ("2026-03-12", "expired", "Now")] {
        let findings = found(&profile, at);
        let finding = the_only(&findings, rule);
        let expected = "pools with it are moved to 1877.9.0, but those that are updated in place are stuck.";
        assert!(finding.contains(expected), "{finding}");
        let stuck = the_only(&findings, "stuck");
        assert!(stuck.contains(&format!("{tense} pools with it that are updated in place are stuck")), "{stuck}");
    }
}

#[test]
fn lint_finds_gaps_between_versions_in_place() {
    let profile = finding_input("in-place-variants.yaml");
    assert!(!found(&profile, AT[1]).iter().any(|finding| finding.starts_with("in-place-gap")));
    let first = "- {version: 1877.12.0-inplace, architectures: [amd64], cri: [{name: containerd}], inPlaceUpdates: {supported: true, minVersionForUpdate: 1877.1.0-inplace}}";
    let gap = replaced(&profile, &[(first, &first.replace("1877.1.0-", "1877.10.0-"))]);
    let finding = the_only(&found(&gap, AT[1]), "in-place-gap");
    assert!(finding.starts_with("in-place-gap gardenlinux 1877.9.0-inplace: "), "{finding}");
    assert!(
        finding.contains("1877.12.0-inplace: it can be reached in place only from 1877.10.0-inplace on"),
        "{finding}"
    );
}

#[test]
fn expired_kubernetes_versions_are_found() {
    let text = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
    let findings = found(&text, "2026-05-02");
    let expired: Vec<&String> = findings.iter().filter(|finding| finding.starts_with("expired Kubernetes")).collect();
    assert_eq!(expired.len(), 2, "{findings:#?}");
    let of_minor = expired.iter().find(|finding| finding.contains("1.33.6")).unwrap();
    assert!(of_minor.contains("It has expired on 2026-05-01: control planes and pools with it are moved to 1.34.5."));
}

/// 2.0.0 is supported before 1.0.0 ends.
#[test]
fn later_stages_of_successors_count() {
    let lifecycle = |stages: &[(&str, &str)]| -> Value {
        let stage = |(stage, start): &(&str, &str)| json!({"classification": stage, "startTime": start});
        stages.iter().map(stage).collect()
    };
    let version = |version: &str, lifecycle: Value| json!({"version": version, "lifecycle": lifecycle, "architectures": ["amd64"], "cri": [{"name": "containerd"}]});
    let old =
        version("1.0.0", lifecycle(&[("supported", "2025-01-01T00:00:00Z"), ("expired", "2026-12-05T00:00:00Z")]));
    let new = |start: &str| version("2.0.0", lifecycle(&[("preview", "2025-01-01T00:00:00Z"), ("supported", start)]));
    let profile = |start: &str| {
        let mut document = document_of(&finding_input("only-suffixes.yaml"));
        let images = ["1.0.0", "2.0.0"]
            .map(|version| json!({"version": version, "image": format!("projects/p/global/images/{version}")}));
        document["spec"]["machineImages"][0]["versions"] = json!([new(start), old]);
        document["spec"]["providerConfig"]["machineImages"][0]["versions"] = json!(images);
        document.to_string()
    };
    let in_time = the_only(&found(&profile("2026-12-01T00:00:00Z"), AT[1]), "expires-soon");
    assert!(!in_time.contains("no supported version"), "{in_time}");
    let too_late = the_only(&found(&profile("2027-01-01T00:00:00Z"), AT[1]), "expires-soon");
    assert!(too_late.contains("no supported version of the image lasts longer"), "{too_late}");
}

#[test]
fn capabilities_are_compared_by_meaning() {
    let with = |capability: &str| {
        let text = replaced(&example("azure"), &[("azure-networking", "other")]);
        let text =
            replaced(&text, &[("  - name: other\n    values: [accelerated, basic]\n", ""), (", other: [basic]", "")]);
        let text = replaced(&text, &[("  regions:\n", &format!("  - {capability}\n  regions:\n"))]);
        found(&text, AT[1]).iter().any(|finding| finding.starts_with("without-effect"))
    };
    for capability in ["{name: anything, values: [basic, accelerated]}", "{name: network, values: [fast, slow]}"] {
        assert!(with(capability), "{capability}");
    }
    for capability in [
        "{name: storage, values: [basic, premium]}",
        "{name: azure, values: [public, china]}",
        "{name: networkingPlugin, values: [calico, cilium]}",
        "{name: work, values: [a, b]}",
    ] {
        assert!(!with(capability), "{capability}");
    }
}
