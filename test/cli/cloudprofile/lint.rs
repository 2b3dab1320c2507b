//! `cloudprofile lint`.

use serde_json::{Value, json};

use super::{AT, example, replaced};
use crate::binary::{Outcome, command, outcome, run};
use crate::golden::assert_same;

fn lint(text: &str, arguments: &[&str]) -> Outcome {
    outcome(command(&[&["cloudprofile", "lint", "-"], arguments, &AT].concat()), text)
}

/// A profile with one defect of most kinds.
fn defective() -> String {
    replaced(
        &example("azure"),
        &[
            // A tie, because no other flavor fits better.
            (
                "          urn: example:gardenlinux:gen2:1592.9.0\n",
                "          urn: example:gardenlinux:gen2:1592.9.0\n        - capabilities: {architecture: [amd64], hypervisorType: [gen2]}\n          urn: example:gardenlinux:gen2-hardened:1592.9.0\n",
            ),
            // Two machine types without a matching flavor.
            (
                "Standard_D8ps_v5, cpu: \"8\", gpu: \"0\", memory: 32Gi, capabilities: {architecture: [arm64], hypervisorType: [gen2]",
                "Standard_D8ps_v5, cpu: \"8\", gpu: \"0\", memory: 32Gi, capabilities: {architecture: [arm64], hypervisorType: [gen1]",
            ),
            (
                "Standard_D4ps_v5, cpu: \"4\", gpu: \"0\", memory: 16Gi, capabilities: {architecture: [arm64], hypervisorType: [gen2]",
                "Standard_D4ps_v5, cpu: \"4\", gpu: \"0\", memory: 16Gi, capabilities: {architecture: [arm64], hypervisorType: [gen1]",
            ),
            // For this machine type, the order of flavors decides.
            (
                "- {name: Standard_D4s_v5, cpu: \"4\", gpu: \"0\", memory: 16Gi, capabilities: {architecture: [amd64], hypervisorType: [gen2]}}",
                "- {name: Standard_D4s_v5, cpu: \"4\", gpu: \"0\", memory: 16Gi, capabilities: {architecture: [amd64]}}",
            ),
            ("expirationDate: \"2027-03-31T23:59:59Z\"", "expirationDate: \"2026-12-05T23:59:59Z\""),
        ],
    )
}

#[test]
fn a_clean_profile() {
    let output = run(&[
        &["cloudprofile", "lint", "example/cloudprofiles/aws.yaml", "example/cloudprofiles/azure.yaml"][..],
        &AT,
    ]
    .concat());
    assert_same("test/cli/golden/cloudprofile-lint-clean.txt", &output.succeeded().stdout);
}

/// GEP-33 uses this name in its example, but it enables nothing on machines of Azure.
#[test]
fn lint_names_the_capability_that_was_meant() {
    let text = replaced(&example("azure"), &[]).replace("azure-networking", "network");
    let output = lint(&text, &["--severity", "warning"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.stdout.contains("warning without-effect: network\n  spec.machineCapabilities[2]"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("Call it azure-networking, with the values accelerated and basic."),
        "{}",
        output.stdout
    );
    // Next to the correct name, or with different values, any other name is valid.
    let beside =
        replaced(&example("azure"), &[("  regions:\n", "  - {name: network, values: [fast, slow]}\n  regions:\n")]);
    assert!(!lint(&beside, &[]).stdout.contains("without-effect"), "{}", lint(&beside, &[]).stdout);
}

#[test]
fn lint_finds_a_capability_of_true_and_false() {
    let capability = "  - {name: secureBoot, values: [\"true\", \"false\"]}\n  regions:\n";
    let output = lint(&replaced(&example("azure"), &[("  regions:\n", capability)]), &[]);
    assert!(output.stdout.contains("note true-or-false: secureBoot\n"), "{}", output.stdout);
    assert!(output.stdout.contains("Name what there is, such as secureBoot: [signed, unsigned]."), "{}", output.stdout);
}

#[test]
fn clean_profiles_of_clouds_with_images_only() {
    for cloud in ["alicloud", "gcp", "openstack"] {
        let path = format!("example/cloudprofiles/{cloud}.yaml");
        let output = run(&[&["cloudprofile", "lint", &path][..], &AT].concat()).succeeded();
        assert!(output.stdout.contains("Nothing found."), "{}", output.stdout);
    }
    // The two halves list different versions.
    for (cloud, image) in [("alicloud", "regions:"), ("gcp", "capabilityFlavors:"), ("openstack", "capabilityFlavors:")]
    {
        let listed = format!("      - version: 1877.3.0\n        {image}");
        let other = listed.replace("1877", "1878");
        let text = replaced(&example(cloud), &[(listed.as_str(), other.as_str())]);
        let output = lint(&text, &[]);
        assert_eq!(output.code, 1, "{cloud}");
        assert!(output.stdout.contains("spec.machineImages[0].versions[0]"), "{cloud}: {}", output.stdout);
    }
}

#[test]
fn the_first_finding_is_the_one_that_helps() {
    let output = lint(&defective(), &[]);
    assert_eq!(output.code, 1);
    assert_same("test/cli/golden/cloudprofile-lint.txt", &output.stdout);
}

#[test]
fn notes_do_not_fail_a_gate() {
    let text = replaced(
        &example("azure"),
        &[(
            "memory: 16Gi, capabilities: {architecture: [amd64], hypervisorType: [gen2]}}",
            "memory: 16Gi, capabilities: {architecture: [amd64]}}",
        )],
    );
    let all = lint(&text, &[]);
    assert_eq!(all.code, 1);
    assert!(all.stdout.contains("note order-sensitive: hypervisorType"), "{}", all.stdout);
    let gate = lint(&text, &["--severity", "warning"]);
    assert_eq!((gate.code, gate.stdout.contains("Nothing found.")), (0, true), "{}", gate.stdout);
}

#[test]
fn findings_lead_to_the_line() {
    let text = defective();
    let document: Value = lint(&text, &["-o", "json"]).json();
    assert_eq!(document["schema"], "cloudprofile-lint/v1");
    let findings = document["profiles"][0]["findings"].as_array().unwrap();
    let line = |rule: &str| {
        let finding = findings.iter().find(|finding| finding["rule"] == rule).unwrap();
        text.lines().nth(finding["line"].as_u64().unwrap() as usize - 1).unwrap().trim()
    };
    assert_eq!(line("tie"), "- capabilities: {architecture: [amd64], hypervisorType: [gen2]}");
    assert!(line("machine-type-without-image").contains("Standard_D4ps_v5"));
    assert_eq!(line("order-sensitive"), "values: [gen2, gen1]");
    assert_eq!(line("expires-soon"), "- version: 1592.9.0");
}

/// A version has not yet expired at the exact time of its expiration date, but is still reported then.
#[test]
fn a_version_is_found_each_day_around_its_end() {
    let text = std::fs::read_to_string("example/versions/cloudprofile-expiring.yaml").unwrap();
    for (at, expected) in [
        ("2026-03-31", "expires-soon"),
        ("2026-04-01", "expires-soon"),
        ("2026-04-01T00:00:01Z", "expired"),
        ("2026-04-30", "kubernetes-expires-soon"),
        ("2026-05-01", "kubernetes-expires-soon"),
    ] {
        let output = outcome(command(&["cloudprofile", "lint", "-", "--at", at, "-o", "json"]), &text).json();
        let findings = output["profiles"][0]["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding["rule"] == expected), "{at}: {findings:?}");
    }
}

#[test]
fn code_scanning_gets_sarif() {
    let document = lint(&defective(), &["-o", "sarif"]).json();
    assert_eq!(document["version"], "2.1.0");
    let run = &document["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()), "{result}");
        assert!(result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64() > Some(1), "{result}");
    }
    assert_eq!(run["results"][0]["ruleId"], "tie", "the worst first");
}

#[test]
fn findings_with_the_same_text_are_one() {
    let text = defective();
    let output = lint(&text, &[]).stdout;
    assert!(output.contains("machine-type-without-image: Standard_D4ps_v5, Standard_D8ps_v5"), "{output}");
    assert_eq!(lint(&text, &["--all"]).stdout.matches("error machine-type-without-image").count(), 2);
}

#[test]
fn large_profile_lists_removable_entries() {
    let mut document: Value = lint_input(&example("aws"));
    let regions: Vec<Value> = (0..36).map(|region| json!({"name": format!("ap-southeast-{region}")})).collect();
    let mappings: Vec<Value> = (0..36)
        .map(|region| json!({"name": format!("ap-southeast-{region}"), "ami": format!("ami-0123456789{region:07}")}))
        .collect();
    let version = |number: usize| format!("{number}.0.0");
    let expiry = |number: usize| if number < 20 { "2026-01-01T00:00:00Z" } else { "2036-01-01T00:00:00Z" };
    let flavor = |position: usize| {
        let (architecture, boot) = (["amd64", "arm64"][position / 2], ["uefi", "legacy-bios"][position % 2]);
        json!({"architecture": [architecture], "bootMode": [boot]})
    };
    let core: Vec<Value> = (0..200)
        .map(|number| json!({"version": version(number), "expirationDate": expiry(number), "capabilityFlavors": (0..4).map(flavor).collect::<Vec<_>>()}))
        .collect();
    let provider: Vec<Value> = (0..200)
        .map(|number| {
            let flavors = (0..4).map(|position| json!({"capabilities": flavor(position), "regions": mappings}));
            json!({"version": version(number), "capabilityFlavors": flavors.collect::<Vec<_>>()})
        })
        .collect();
    document["spec"]["regions"] = regions.into();
    document["spec"]["machineImages"][0]["versions"] = core.into();
    document["spec"]["providerConfig"]["machineImages"][0]["versions"] = provider.into();
    let output = lint(&document.to_string(), &["-o", "json"]).json();
    let profile = &output["profiles"][0];
    let size = &profile["size"];
    assert!(size["bytes"].as_u64() > size["limit"].as_u64(), "{size}");
    assert_eq!(size["roomForVersions"], 0);
    assert_eq!(size["prunable"][0]["what"], "20 expired versions");
    let finding = profile["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "size").unwrap();
    assert_eq!(finding["severity"], "error");
    assert!(finding["advice"].as_str().unwrap().starts_with("Remove 20 expired versions ("), "{finding}");
}

fn lint_input(text: &str) -> Value {
    gardener_extension_worker::api::gotext::yaml::documents(text).unwrap().remove(0)
}

#[test]
fn unreadable_input_and_findings_have_different_exit_codes() {
    assert_eq!(run(&["cloudprofile", "lint"]).code, 2);
    assert_eq!(run(&["cloudprofile", "lint", "missing.yaml"]).code, 3);
    assert_eq!(lint("{kind: Shoot}", &[]).stderr, "no CloudProfile found\n");
    let unknown = lint("{kind: CloudProfile, spec: {type: moon}}", &[]);
    assert_eq!((unknown.code, unknown.stdout.contains("No provider of type \"moon\" is known here")), (1, true));
    let unreadable = lint("{kind: CloudProfile, spec: {type: azure, machineTypes: none}}", &[]);
    assert_eq!((unreadable.code, unreadable.stdout.contains("error unreadable")), (1, true), "{unreadable:?}");
}

#[test]
fn a_provider_without_architectures_has_its_own_rules() {
    let rules = |text: &str| -> Vec<String> {
        let found = lint(text, &["-o", "json"]).json();
        let findings = found["profiles"][0]["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
    };
    let old = include_str!("old/alicloud.yaml");
    assert_eq!(rules(old), ["version-suffix"], "an image for arm64 is not taken for one for amd64");
    let again = "      - version: 1877.3.0\n        regions:\n        - {name: eu-central-1, id: m-never}\n";
    let twice = format!("{old}{again}");
    assert_eq!(rules(&twice), ["listed-twice", "version-suffix"]);
    let message = lint(&twice, &[]).stdout;
    assert!(message.contains("Workers use the first that"), "{message}");
}

#[test]
fn a_mistake_in_a_document_is_one_finding() {
    let wrong = replaced(
        &example("gcp"),
        &[("          image: projects/garden/global/images/gardenlinux-1877-3-0-arm64", "          imag: x")],
    );
    for what in ["matrix", "convert", "minimize"] {
        let refused = outcome(command(&["cloudprofile", what, "-"]), &wrong);
        assert_eq!((refused.code, refused.stderr.matches("unknown field").count()), (3, 1), "{}", refused.stderr);
    }
}

/// A project's profile that extends the example of Azure by a version, complete in both halves.
const PROJECT: &str = r#"apiVersion: core.gardener.cloud/v1beta1
kind: NamespacedCloudProfile
metadata: {name: own, namespace: garden-dev}
spec:
  parent: {kind: CloudProfile, name: azure}
  machineImages:
  - name: gardenlinux
    versions:
    - version: 1592.9.0
      expirationDate: "2027-06-30T23:59:59Z"
    - version: 1877.4.0
      cri: [{name: containerd}]
      capabilityFlavors:
      - {architecture: [amd64], hypervisorType: [gen2]}
      - {architecture: [amd64], hypervisorType: [gen1]}
      - {architecture: [arm64], hypervisorType: [gen2]}
  providerConfig:
    apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1
    kind: CloudProfileConfig
    machineImages:
    - name: gardenlinux
      versions:
      - version: 1877.4.0
        capabilityFlavors:
        - {capabilities: {architecture: [amd64], hypervisorType: [gen2]}, urn: "own:linux:gen2:1877.4.0"}
        - {capabilities: {architecture: [amd64], hypervisorType: [gen1]}, urn: "own:linux:gen1:1877.4.0"}
        - {capabilities: {architecture: [arm64], hypervisorType: [gen2]}, urn: "own:linux:arm64:1877.4.0"}
"#;

fn lint_project(replacements: &[(&str, &str)]) -> Outcome {
    lint(&replaced(PROJECT, replacements), &["--parent", "example/cloudprofiles/azure.yaml"])
}

#[test]
fn a_namespaced_profile_is_checked_with_its_parent() {
    let output = lint_project(&[]);
    assert_eq!((output.code, output.stdout.contains("Nothing found.")), (0, true), "{}", output.stdout);
    // Without its parent, the profile can't be checked.
    let alone = lint(PROJECT, &[]);
    assert_eq!(
        (alone.code, alone.stderr.contains("name its parent with `lint --parent`")),
        (3, true),
        "{}",
        alone.stderr
    );
    let other = lint_project(&[("name: azure}", "name: aws}")]);
    assert_eq!(other.code, 3);
    assert!(other.stderr.contains(r#"extends CloudProfile "aws", and --parent is "azure""#), "{}", other.stderr);
}

#[test]
fn what_gardener_refuses_in_a_project_s_profile_is_found() {
    let of_parent = "    - version: 1592.9.0\n";
    let mapping = "urn: \"own:linux:arm64:1877.4.0\"";
    for (replacement, reference) in [
        (
            (of_parent, "    - version: 1592.9.0\n      classification: supported\n"),
            "must not provide a classification to an extended machine image",
        ),
        (
            ("    - version: 1877.4.0\n      cri", "    - version: 1877.5.0\n      cri"),
            "spec.providerConfig.machineImages",
        ),
        ((mapping, "id: \"\""), "id cannot be empty when defined"),
        (("kind: CloudProfile, name", "kind: Profile, name"), "spec.parent.kind"),
    ] {
        let output = lint_project(&[replacement]);
        assert_eq!(output.code, 1, "{replacement:?}: {}", output.stdout);
        assert!(
            output.stdout.contains("error ") && output.stdout.contains(reference),
            "{replacement:?}: {}",
            output.stdout
        );
    }
}

#[test]
fn what_comes_of_a_project_s_profile_and_its_parent_is_found() {
    let expired = lint_project(&[(
        "    - version: 1877.4.0\n      cri",
        "    - version: 1877.4.0\n      expirationDate: \"2026-01-01T00:00:00Z\"\n      cri",
    )]);
    assert_eq!(expired.code, 1);
    assert!(expired.stdout.contains("leaves it out without a word"), "{}", expired.stdout);
    // The flavor has an image, but two mappings match it equally well.
    let flavor = "      - {architecture: [arm64], hypervisorType: [gen2]}\n";
    let mapping = "        - {capabilities: {architecture: [arm64], hypervisorType: [gen2]}, urn: \"own:linux:arm64:1877.4.0\"}\n";
    let tie = lint_project(&[
        (flavor, &flavor.repeat(2)),
        (mapping, &[mapping, &mapping.replace(":arm64:", ":arm64-2:")].concat()),
    ]);
    assert_eq!(tie.code, 1);
    assert!(tie.stdout.contains("error tie") && tie.stdout.contains("status.cloudProfileSpec."), "{}", tie.stdout);
}

/// Lints the example of Azure with one mistake.
fn mistake(replacements: &[(&str, &str)]) -> String {
    let output = lint(&replaced(&example("azure"), replacements), &[]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    output.stdout
}

#[test]
fn a_mistyped_value_is_one_finding() {
    let output = mistake(&[(
        "      - {architecture: [amd64], hypervisorType: [gen2]}\n      - {architecture: [amd64], hypervisorType: [gen1]}\n      - {architecture: [arm64]",
        "      - {architecture: [amd64], hypervisorType: [Gen2]}\n      - {architecture: [amd64], hypervisorType: [gen1]}\n      - {architecture: [arm64]",
    )]);
    // The webhook replaces the value with that of the provider's half. A garden without webhooks rejects it.
    assert!(output.contains("warning filled-in: gardenlinux") && !output.contains("\nerror "), "{output}");
    assert!(output.contains(r#"Unsupported value: "Gen2": supported values: "gen2", "gen1""#), "{output}");
    assert!(!output.contains("mapping-missing"), "{output}");
}

#[test]
fn a_version_without_mapping_names_what_it_lacks() {
    let output = mistake(&[(
        "      - version: 1877.3.0\n        capabilityFlavors",
        "      - version: 1877.4.0\n        capabilityFlavors",
    )]);
    assert!(output.contains("gardenlinux@1877.3.0 is not defined in"), "{output}");
    assert!(!output.contains("missing-region"), "{output}");
}

#[test]
fn a_version_with_images_only_in_regions_that_nobody_has_is_an_error() {
    let aws = example("aws");
    let elsewhere = aws.replace("          - {name: eu-central-1,", "          - {name: ap-east-1,");
    let elsewhere = elsewhere.replace("          - {name: eu-west-1,", "          - {name: us-east-1,");
    let output = lint(&elsewhere, &[]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stdout.contains("error missing-region: gardenlinux"), "{}", output.stdout);
    assert!(
        output.stdout.contains("It has images only in regions that spec.regions does not have"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_profile_without_a_version_to_select_is_no_fault_of_its_machine_types() {
    let expired = |version: &str| {
        (
            format!("version: {version}\n      classification"),
            format!("version: {version}\n      expirationDate: \"2026-03-31T00:00:00Z\"\n      classification"),
        )
    };
    let [one, two] = ["2001.1.0", "1877.3.0"].map(expired);
    let output = mistake(&[
        (&one.0, &one.1),
        (&two.0, &two.1),
        ("expirationDate: \"2027-03-31T23:59:59Z\"", "expirationDate: \"2026-03-31T23:59:59Z\""),
    ]);
    // One finding for Gardener's validation of new profiles, and one because no version can be selected.
    assert_eq!(output.matches("error ").count(), 2, "{output}");
    assert!(output.contains("must provide at least one version for the machine image 'gardenlinux'"), "{output}");
    assert!(!output.contains("Standard_"), "{output}");
    assert!(output.contains("No version of any image can be selected"), "{output}");
    assert!(output.contains("set a later expirationDate"), "{output}");
}

#[test]
fn a_region_that_a_setting_does_not_cover_is_found() {
    let zones = "  - name: northeurope\n    zones: [{name: \"1\"}, {name: \"2\"}, {name: \"3\"}]\n";
    let count = "    - {region: northeurope, count: 3}\n";
    let output = mistake(&[(zones, "  - name: northeurope\n"), (count, "")]);
    assert!(output.contains("error missing-region: northeurope"), "{output}");
    assert!(output.contains("countFaultDomains does not list region northeurope"), "{output}");
    // Regions with zones don't need the number.
    let zoned = lint(&replaced(&example("azure"), &[(count, "")]), &[]);
    assert_eq!((zoned.code, zoned.stdout.contains("Nothing found.")), (0, true), "{}", zoned.stdout);
}

#[test]
fn findings_stand_at_their_lines_in_github() {
    let text = defective();
    let output = lint(&text, &["-o", "github"]);
    assert_eq!(output.code, 1, "{output:?}");
    let findings = lint(&text, &["-o", "json"]).json()["profiles"][0]["findings"].as_array().unwrap().len();
    assert_eq!(output.stdout.lines().count(), findings, "one line for each finding");
    let first = output.stdout.lines().next().unwrap();
    assert!(first.starts_with("::error file=-,line=") && first.contains(",title=Several flavors"), "{first}");
}

#[test]
fn a_pipeline_gets_junit() {
    let output = lint(&defective(), &["-o", "junit"]).stdout;
    let findings = lint(&defective(), &["-o", "json"]).json()["profiles"][0]["findings"].as_array().unwrap().len();
    assert!(output.contains(&format!("tests=\"{findings}\" failures=\"{findings}\"")), "{output}");
    assert_eq!(output.matches("<failure ").count(), findings, "{output}");
    let hostile =
        lint(&replaced(&example("azure"), &[("name: azure\n", "name: \"a<b>\\\"&\\u0007\"\n")]), &["-o", "junit"]);
    assert!(hostile.stdout.contains("classname=\"a&lt;b&gt;&quot;&amp;\\u{7}\""), "{}", hostile.stdout);
    let clean = lint(&example("azure"), &["-o", "junit"]).stdout;
    assert!(clean.contains("tests=\"1\" failures=\"0\"") && clean.contains("nothing found"), "{clean}");
}

#[test]
fn links_in_sarif_are_absolute_or_absent() {
    let rules = |arguments: &[&str]| {
        lint(&defective(), &[&["-o", "sarif"], arguments].concat()).json()["runs"][0]["tool"]["driver"]["rules"].clone()
    };
    let with = rules(&["--docs-url", "https://docs.example.org/cloudprofiles"]);
    assert_eq!(with[0]["helpUri"], "https://docs.example.org/cloudprofiles#unreadable");
    let without = rules(&[]);
    assert!(without[0]["helpUri"].is_null() && without[0]["help"]["text"].is_string(), "{without}");
    assert_eq!(lint(&defective(), &["-o", "sarif", "--docs-url", "docs/x"]).code, 2);
}

/// The effect of an expired version on pools depends on the update strategy, the following versions, and the machine
/// types that these fit.
#[test]
fn reports_expiring_versions_where_they_cause_problems() {
    const NEWEST: &str = "- version: 1877.3.0\n      classification: supported";
    const NEXT_MINOR: &str = "- version: 1.34.2";
    let lasting = |text: &str| format!("{text}\n      expirationDate: \"2027-12-31T00:00:00Z\"");
    let only_gen2 = "      classification: supported\n      cri: [{name: containerd}]\n      capabilityFlavors:\n      - {architecture: [amd64], hypervisorType: [gen2]}\n";
    let without_gen1 = format!("{only_gen2}      - {{architecture: [amd64], hypervisorType: [gen1]}}\n");
    // Replaced text, new text, rules of the findings in order, and a text in one of them.
    let rows: [(&str, &str, &[&str], &str); 9] = [
        ("updateStrategy: minor", "updateStrategy: major", &[], ""),
        (
            "updateStrategy: minor",
            "updateStrategy: patch",
            &["stuck"],
            "It expires on 2027-03-31. Then pools with it are stuck: with updateStrategy patch they need a newer version of the same major",
        ),
        (
            NEWEST,
            &lasting(NEWEST),
            &["latest-expires"],
            "It expires on 2027-12-31. Then pools with it are stuck: with updateStrategy minor",
        ),
        (&without_gen1, only_gen2, &["stuck", "unlisted-flavor"], "Then pools with 1 machine type (Standard_A4_v2)"),
        (
            NEXT_MINOR,
            "- version: 1.34.2\n      classification: preview",
            &["stuck"],
            "Then control planes and pools with it are stuck",
        ),
        (
            NEXT_MINOR,
            "- version: 1.34.2\n    - version: 1.34.1\n      expirationDate: \"2027-12-31T00:00:00Z\"",
            &[],
            "",
        ),
        (NEXT_MINOR, "- version: 1.34.2\n    - version: 1.34.1", &["two-supported"], "1.34.2 and 1.34.1"),
        (
            NEXT_MINOR,
            "- version: 1.34.2\n      classification: supported\n    - version: 1.34.1\n      classification: supported",
            &["profile-refused", "profile-refused"],
            "",
        ),
        (NEXT_MINOR, "- version: 1.35.2", &["minor-gap"], "of 1.34 there is no version that is no preview"),
    ];
    for (from, to, rules, text) in rows {
        let output = lint(&replaced(&example("azure"), &[(from, to)]), &["-o", "json"]).json();
        let findings = output["profiles"][0]["findings"].as_array().unwrap();
        let found: Vec<&str> = findings.iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
        assert_eq!(found, rules, "{to}: {output}");
        let has_text = |finding: &Value| finding["reason"].as_str().unwrap().contains(text);
        assert!(rules.is_empty() || findings.iter().any(has_text), "{to}: {output}");
    }
}
