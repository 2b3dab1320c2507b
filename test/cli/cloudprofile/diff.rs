//! The text output of `cloudprofile diff`.

use super::{AT, example, replaced};
use crate::binary::{Outcome, command, outcome};
use crate::golden::assert_same;

fn diff(new: &str, arguments: &[&str]) -> Outcome {
    let old = "example/cloudprofiles/azure.yaml";
    outcome(command(&[&["cloudprofile", "diff", old, "-"], &AT[..], arguments].concat()), new)
}

/// The example with changes of a flavor, a machine type and an image.
fn edited() -> String {
    replaced(
        &example("azure"),
        &[
            ("{name: Standard_D8s_v5, cpu", "{name: Standard_D16s_v5, cpu"),
            ("classification: preview", "classification: supported"),
            ("Images/gardenlinux-gen1/Versions/1877.3.0", "Images/gardenlinux-gen1/Versions/1877.3.1"),
            ("      - {architecture: [arm64], hypervisorType: [gen2]}\n    - version: 1592", "    - version: 1592"),
        ],
    )
}

#[test]
fn what_is_taken_away_comes_first() {
    let output = diff(&edited(), &[]);
    assert_eq!((output.code, output.stderr.as_str()), (4, ""), "{output:?}");
    assert_same("test/cli/golden/cloudprofile-diff.txt", &output.stdout);
    assert_same("test/cli/golden/cloudprofile-diff.md", &diff(&edited(), &["-o", "markdown"]).stdout);
}

#[test]
fn the_exit_code_is_4_when_something_is_removed() {
    let profile = example("azure");
    let same = diff(&profile, &[]);
    assert_eq!(same.code, 0, "{same:?}");
    let text = same.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("No difference in images, machine types, capabilities, Kubernetes versions, regions, zones and volume types; 18 combinations"), "{same:?}");
    let comment = replaced(&profile, &[("# A CloudProfile", "# Another CloudProfile")]);
    assert_eq!(diff(&comment, &[]).code, 0);
    let stage = replaced(&profile, &[("classification: preview", "classification: supported")]);
    assert_eq!(diff(&stage, &[]).code, 1, "something changes, and nothing is taken away");
    let refused = diff(&replaced(&profile, &[("cpu: \"16\"", "cpu: sixteen")]), &["-o", "json"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(refused.json()["refused"].as_array().unwrap().len(), 1, "{refused:?}");
}

#[test]
fn what_shoots_choose_besides_images_is_compared() {
    let profile = example("azure");
    for (code, from, to, expected) in [
        (4, "version: 1.33.6", "version: 1.33.7", "Kubernetes versions"),
        (4, "2027-06-30T23:59:59Z", "2020-06-30T23:59:59Z", "expired since 2020-06-30"),
        (1, "version: 1.33.6", "version: 1.33.6\n      classification: deprecated", "deprecated until 2027-06-30"),
        (4, "name: northeurope", "name: norwayeast", "Removed regions"),
        (4, ", {name: \"3\"}]", "]", "Removed zones"),
        (1, "values: [gen2, gen1]", "values: [gen2, gen1, gen3]", "values added"),
        (1, "- name: azure-networking", "- name: rdma\n    values: [none]\n  - name: azure-networking", "rdma"),
        (4, "values: [accelerated, basic]", "values: [basic]", "values removed"),
        (1, "values: [accelerated, basic]", "values: [basic, accelerated]", "basic, accelerated"),
        (1, ", {name: \"3\"}]", ", {name: \"3\"}, {name: \"4\"}]", "New zones"),
        (4, "class: premium}", "class: premium, usable: false}", "Removed volume types"),
    ] {
        let output = diff(&replaced(&profile, &[(from, to)]), &[]);
        assert_eq!(output.code, code, "{to}: {output:?}");
        assert!(output.stdout.contains(expected), "{to}: {}", output.stdout);
    }
}

#[test]
fn names_of_others_stay_text_in_markdown() {
    let hostile = replaced(&example("azure"), &[("{name: Standard_D8s_v5, cpu", "{name: \"<b>|@all\", cpu")]);
    let output = diff(&hostile, &["-o", "markdown"]).stdout;
    assert!(output.contains("&lt;b&gt;\\|&#64;all") && !output.contains("<b>"), "{output}");
}

#[test]
fn expired_versions_are_not_to_be_had() {
    let version =
        "    - version: 1592.9.0\n      classification: deprecated\n      expirationDate: \"2027-03-31T23:59:59Z\"\n";
    let added = "    - version: 1592.8.0\n      expirationDate: \"2026-01-31T23:59:59Z\"\n      cri: [{name: containerd}]\n      capabilityFlavors:\n      - {architecture: [amd64], hypervisorType: [gen2]}\n";
    let image = "      - version: 1592.9.0\n        capabilityFlavors:\n";
    let added_image = "      - version: 1592.8.0\n        capabilityFlavors:\n        - capabilities: {architecture: [amd64], hypervisorType: [gen2]}\n          urn: example:gardenlinux:gen2:1592.8.0\n";
    let new = replaced(
        &example("azure"),
        &[(version, &format!("{added}{version}")), (image, &format!("{added_image}{image}"))],
    );
    let output = diff(&new, &[]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(!output.stdout.contains("Newly available"), "{}", output.stdout);
    assert!(output.stdout.contains("New images of versions that no new pool can select"), "{}", output.stdout);
    assert!(output.stdout.contains("expired since 2026-01-31"), "{}", output.stdout);
}
