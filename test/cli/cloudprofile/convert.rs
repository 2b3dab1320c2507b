//! `cloudprofile convert` and `cloudprofile minimize`.

use gardener_extension_worker::api::gotext::yaml;
use serde_json::{Value, json};

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
    let output = run(&["cloudprofile", "convert", "example/cloudprofiles/azure-legacy.yaml"]);
    assert_eq!(output.code, 1, "something is undecided");
    assert_same("test/cli/golden/cloudprofile-convert.yaml", &output.stdout);
    assert_same("test/cli/golden/cloudprofile-convert.txt", &output.stderr);
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

/// Clouds whose Workers this program does not serve, each with a profile in its old format.
const OLD: [(&str, &str); 3] = [
    ("gcp", include_str!("old/gcp.yaml")),
    ("openstack", include_str!("old/openstack.yaml")),
    ("alicloud", include_str!("old/alicloud.yaml")),
];

#[test]
fn every_cloud_is_converted_there_and_back() {
    for (cloud, old) in OLD {
        let there = cloudprofile("convert", &["-o", "json"], old).succeeded().json();
        assert_eq!(there["proof"]["lost"], json!([]), "{cloud}: {there:#}");
        // Every machine type keeps its images. A suffix that names the architecture adds images for other machine
        // types.
        let gained = |difference: &Value| difference["before"]["admitted"] == false;
        assert!(there["intended"].as_array().unwrap().iter().all(gained), "{cloud}: {there:#}");
        assert!(there["proof"]["questions"].as_u64() > Some(3), "{cloud}: {}", there["proof"]);
        let converted = there["profile"].to_string();
        let lint = [&["cloudprofile", "lint", "-", "--severity", "error"][..], &AT].concat();
        assert_eq!(outcome(command(&lint), &converted).succeeded().stderr, "", "{cloud}");
        let back = cloudprofile("convert", &["--to", "old-format"], &converted).succeeded();
        assert_eq!(document(&back.stdout), document(old), "{cloud}");
    }
}

/// The JSON output of `convert` with these options.
fn converted(profile: &Value, options: &[&str]) -> Value {
    let output = cloudprofile("convert", &[options, &["-o", "json"]].concat(), &profile.to_string());
    assert!([0, 1].contains(&output.code), "{}", output.stderr);
    output.json()
}

#[test]
fn to_convert_twice_is_to_convert_once() {
    let decided = ["--decide", "Standard_D4s_v5=hypervisorType:gen2"];
    let legacy = example("azure-legacy");
    for (old, options) in
        [(legacy.as_str(), &[][..]), (&legacy, &decided)].into_iter().chain(OLD.map(|(_, old)| (old, &[][..])))
    {
        let once = converted(&document(old), &[])["profile"].take();
        assert_eq!(converted(&once, &[])["profile"], once);
        // A later decision has the same result as an immediate one.
        assert_eq!(converted(&once, options)["profile"], converted(&document(old), options)["profile"]);
    }
}

/// The versions of an image in a list of images. In the provider's half, a version may have several entries.
fn entries<'a>(images: &'a Value, version: &str) -> Vec<&'a Value> {
    let versions = images[0]["versions"].as_array().unwrap().iter();
    versions.filter(|entry| entry["version"].as_str().unwrap().starts_with(version)).collect()
}

/// Copies the first version in the provider's half to a version 1.0.0 of the same image and of another image, which
/// core's half does not list.
fn with_unlisted(mut profile: Value) -> Value {
    let first = profile["spec"]["machineImages"][0]["versions"][0]["version"].clone();
    let images = &mut profile["spec"]["providerConfig"]["machineImages"];
    let versions = images[0]["versions"].as_array_mut().unwrap();
    let mut unlisted: Vec<Value> = versions.iter().filter(|entry| entry["version"] == first).cloned().collect();
    unlisted.iter_mut().for_each(|entry| entry["version"] = "1.0.0".into());
    versions.extend(unlisted.clone());
    images.as_array_mut().unwrap().push(json!({"name": "other", "versions": unlisted}));
    profile
}

#[test]
fn versions_that_only_the_provider_lists_are_converted_there_and_back() {
    let legacy = example("azure-legacy");
    for old in OLD.map(|(_, old)| old).into_iter().chain([legacy.as_str()]) {
        let old = with_unlisted(document(old));
        let there = converted(&old, &[])["profile"].take();
        assert!(there["spec"]["providerConfig"]["machineImages"][1]["versions"][0]["capabilityFlavors"].is_array());
        let back = converted(&there, &["--to", "old-format"]);
        assert_eq!((&back["profile"], &back["undecided"]), (&old, &json!([])));
    }
}

#[test]
fn a_version_that_only_the_provider_lists_becomes_what_a_listed_one_becomes() {
    for cloud in ["alicloud", "aws", "azure", "gcp", "openstack"] {
        let profile = with_unlisted(document(&example(cloud)));
        let first = profile["spec"]["machineImages"][0]["versions"][0]["version"].as_str().unwrap().to_owned();
        let old = converted(&profile, &["--to", "old-format"])["profile"].take();
        let (core, provider) = (&old["spec"]["machineImages"], &old["spec"]["providerConfig"]["machineImages"]);
        let (listed, unlisted) = (entries(provider, &first), entries(provider, "1.0.0"));
        let as_listed = json!(unlisted).to_string().replace("\"1.0.0", &format!("\"{first}"));
        assert_eq!(as_listed, json!(listed).to_string(), "{cloud}");
        assert!(!unlisted.is_empty() && entries(core, "1.0.0").is_empty(), "{cloud}");
        assert_eq!(json!(unlisted), provider[1]["versions"], "{cloud}: another image");
    }
}

#[test]
fn what_the_old_format_cannot_express_of_an_unlisted_version_is_reported() {
    let undecided = |cloud: &str, flavors: Value| {
        let mut profile = with_unlisted(document(&example(cloud)));
        let images = &mut profile["spec"]["providerConfig"]["machineImages"];
        images[0]["versions"].as_array_mut().unwrap().last_mut().unwrap()["capabilityFlavors"] = flavors;
        let old = converted(&profile, &["--to", "old-format"]);
        let texts: Vec<String> = old["undecided"].as_array().unwrap().iter().map(Value::to_string).collect();
        texts.into_iter().filter(|text| text.contains("1.0.0")).collect::<Vec<_>>()
    };
    let amd64 = |image: &str| json!({"capabilities": {"architecture": ["amd64"]}, "image": image});
    let tied = undecided("gcp", json!([amd64("projects/p/one"), amd64("projects/p/two")]));
    assert!(tied.len() == 1 && tied[0].contains("1.0.0 flavor 1"), "{tied:?}");
    // In the old format of OpenStack, a name without regions is for amd64.
    let arm64 = json!({"capabilities": {"architecture": ["arm64"]}, "image": "one"});
    let unwritable = undecided("openstack", json!([amd64("two"), arm64]));
    assert!(unwritable.len() == 1 && unwritable[0].contains("no word for its image for arm64"), "{unwritable:?}");
}

#[test]
fn flavors_of_a_version_have_the_images_of_their_cloud() {
    let flavors = |cloud: &str, version: usize| {
        let (_, old) = OLD.into_iter().find(|(known, _)| *known == cloud).unwrap();
        let profile = cloudprofile("convert", &["-o", "json"], old).json()["profile"].take();
        let of = |half: &str| {
            profile.pointer(&format!("{half}/machineImages/0/versions/{version}/capabilityFlavors")).cloned()
        };
        (of("/spec").unwrap(), of("/spec/providerConfig").unwrap())
    };
    let core = json!([{"architecture": ["amd64"]}, {"architecture": ["arm64"]}]);
    let capabilities = |architecture: &str| json!({"architecture": [architecture]});
    let gcp = json!([
        {"capabilities": capabilities("amd64"), "image": "projects/p/amd"},
        {"capabilities": capabilities("arm64"), "image": "projects/p/arm"},
    ]);
    assert_eq!(flavors("gcp", 0), (core.clone(), gcp));
    // Both architectures fall back to the name if there is no ID.
    let openstack = json!([
        {"capabilities": capabilities("amd64"), "image": "gardenlinux-1877.3.0", "regions": [{"name": "north", "id": "n-amd"}]},
        {"capabilities": capabilities("arm64"), "image": "gardenlinux-1877.3.0", "regions": [{"name": "north", "id": "n-arm"}]},
    ]);
    assert_eq!(flavors("openstack", 0), (core.clone(), openstack));
    // Only core's half contains the architecture of an image. The suffix of the version connects both halves.
    let alicloud = json!([
        {"capabilities": capabilities("amd64"),
            "regions": [{"name": "eu-central-1", "id": "m-gw8example1"}, {"name": "cn-beijing", "id": "m-2zeexample1"}]},
        {"capabilities": capabilities("arm64"), "regions": [{"name": "eu-central-1", "id": "m-gw8arm"}, {"name": "cn-beijing", "id": "m-2zearm"}]},
    ]);
    assert_eq!(flavors("alicloud", 0), (core, alicloud));
}

#[test]
fn entries_of_which_only_the_first_counts_become_one_that_gives_the_same() {
    let (_, old) = OLD[2];
    let again = "      - version: 1877.3.0\n        regions:\n        - {name: eu-central-1, id: m-never}\n        - {name: us-east-1, id: m-us}\n";
    let more = format!(
        "{}{again}",
        replaced(old, &[("  - name: cn-beijing\n    zones", "  - name: us-east-1\n  - name: cn-beijing\n    zones")])
    );
    let there = cloudprofile("convert", &["-o", "json"], &more).succeeded().json();
    let flavor = &there["profile"]["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"][0];
    let ids: Vec<&str> =
        flavor["regions"].as_array().unwrap().iter().map(|region| region["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m-gw8example1", "m-2zeexample1", "m-us"], "{there:#}");
    assert_eq!(there["proof"]["lost"], json!([]));
}

#[test]
fn an_image_that_the_old_format_cannot_express_is_reported() {
    // In the old format, a name without regions is for amd64, whatever its architecture was.
    let arm = replaced(
        &example("openstack"),
        &[
            ("values: [amd64]", "values: [amd64, arm64]"),
            (
                "g4, cpu: \"4\", gpu: \"0\", memory: 16Gi, capabilities: {architecture: [amd64]",
                "g4, cpu: \"4\", gpu: \"0\", memory: 16Gi, capabilities: {architecture: [arm64]",
            ),
            ("- {architecture: [amd64], firmware: [uefi]}", "- {architecture: [arm64], firmware: [uefi]}"),
            (
                "capabilities: {architecture: [amd64], firmware: [uefi]}\n          image: gardenlinux-1877.3.0-uefi\n          regions: [{name: south, id: 6f0c4e0e-9b1a-4c44-8a3c-000000000001}]",
                "capabilities: {architecture: [arm64], firmware: [uefi]}\n          image: gardenlinux-1877.3.0-uefi",
            ),
        ],
    );
    let refused = cloudprofile("convert", &["--to", "old-format"], &arm);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("g4 can't have gardenlinux-1877.3.0-uefi any more"), "{}", refused.stderr);
}

#[test]
fn architectures_that_share_a_version_get_one_each_where_a_version_has_one_image() {
    let (_, old) = OLD[2];
    let there = cloudprofile("convert", &["-o", "json"], old).json();
    let mut profile = there["profile"].clone();
    // Removes the version that is only for arm64.
    for half in ["/spec", "/spec/providerConfig"] {
        profile.pointer_mut(&format!("{half}/machineImages/0/versions")).unwrap().as_array_mut().unwrap().truncate(1);
    }
    let back = cloudprofile("convert", &["--to", "old-format", "-o", "json"], &profile.to_string()).json();
    assert_eq!(back["proof"]["lost"], json!([]), "{back:#}");
    let core = back["profile"]["spec"]["machineImages"][0]["versions"].as_array().unwrap();
    let selectable: Vec<_> = core.iter().map(|version| (&version["version"], &version["architectures"])).collect();
    assert_eq!(
        selectable,
        [(&json!("1877.3.0"), &json!(["amd64"])), (&json!("1877.3.0-arm64"), &json!(["arm64"]))],
        "{back:#}"
    );
}

#[test]
fn capabilities_of_machine_types_can_be_given() {
    let decided = ["--decide", "*=hypervisorType:gen2", "--decide", "Standard_A4_v2=hypervisorType:gen1"];
    let output = cloudprofile("convert", &[&decided[..], &["-o", "json"]].concat(), &example("azure-legacy"));
    let result: Value = output.succeeded().json();
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
    assert_eq!((wrong.code, wrong.stdout.as_str()), (3, ""));
    assert!(wrong.stderr.contains("would not define \"disk\""), "{wrong:?}");
    assert_eq!(cloudprofile("convert", &["--decide", "nonsense"], "").code, 2);
}

#[test]
fn an_unknown_suffix_must_be_given() {
    let old = replaced(&example("azure-legacy"), &[("-gen2", "-fips")]);
    let requested = cloudprofile("convert", &[], &old);
    assert_eq!(requested.code, 1);
    assert!(requested.stderr.contains("--suffix fips=CAPABILITY:VALUE/VALUE_WITHOUT"), "{}", requested.stderr);
    let reported = cloudprofile("convert", &["--suffix", "fips=cryptography:fips/standard", "-o", "json"], &old).json();
    let definitions = &reported["profile"]["spec"]["machineCapabilities"];
    assert_eq!(definitions[1]["name"], "cryptography");
    assert_eq!(definitions[1]["values"][0], "standard", "nothing changes for those of whom nothing is said");
}

#[test]
fn going_back_adds_versions_where_machine_types_need_several() {
    let output = cloudprofile("convert", &["--to", "old-format", "-o", "json"], &example("azure"));
    assert_eq!(output.code, 1, "hypervisorType has no word in the old format");
    let result = output.json();
    let versions = result["profile"]["spec"]["machineImages"][0]["versions"].as_array().unwrap();
    let titles: Vec<_> = versions.iter().map(|version| version["version"].as_str().unwrap()).collect();
    let expected = ["2001.1.0", "2001.1.0-gen1", "1877.3.0", "1877.3.0-gen1", "1592.9.0", "1592.9.0-gen1"];
    assert_eq!(titles, expected);
    assert!(result["undecided"][0]["open"].as_str().unwrap().contains("no word for hypervisorType"));
    assert_eq!(result["proof"]["lost"], Value::Array(Vec::new()));
}

#[test]
fn minimize_reports_what_it_saves() {
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
    let output = cloudprofile("minimize", &[], &long).succeeded();
    assert_same("test/cli/golden/cloudprofile-minimize.yaml", &output.stdout);
    assert_same("test/cli/golden/cloudprofile-minimize.txt", &output.stderr);
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

#[test]
fn the_names_of_drafts_become_those_of_today() {
    let profile = example("azure");
    let [first, second, third] = [
        "  - name: architecture\n    values: [amd64, arm64]\n",
        "  - name: hypervisorType\n    values: [gen2, gen1]\n",
        "  - name: azure-networking\n    values: [accelerated, basic]\n",
    ];
    let definitions = format!("  machineCapabilities:\n{first}{second}{third}");
    // A map has no order, so names are sorted alphabetically.
    let sorted = replaced(&profile, &[(&format!("{second}{third}"), &format!("{third}{second}"))]);
    // JSON input is formatted like a draft. A YAML file would keep its order and comments.
    let as_json = document(&sorted).to_string();
    let today = outcome(command(&["cloudprofile", "convert", "-"]), &as_json).succeeded().stdout;
    let as_map = "  capabilities:\n    architecture: [amd64, arm64]\n    hypervisorType: \"gen2,gen1\"\n    \
                  azure-networking: {values: [accelerated, basic]}\n";
    let sets = replaced(&profile, &[(&definitions, as_map), ("capabilityFlavors:", "capabilitySets:")]);
    let convert = |text: &str| outcome(command(&["cloudprofile", "convert", "--from", "draft", "-"]), text);
    let converted = convert(&sets);
    assert_eq!(
        (converted.code, &converted.stdout),
        (1, &today),
        "the order is for a person to decide: {}",
        converted.stderr
    );
    assert!(converted.stderr.contains("Put them into the order of preference."), "{}", converted.stderr);
    // Each set of capabilities next to its version.
    let flat = replaced(
        &sets,
        &[
            (
                "      capabilitySets:\n      - {architecture: [amd64], hypervisorType: [gen2]}\n      - {architecture: [amd64], \
                 hypervisorType: [gen1]}\n  providerConfig",
                "      capabilities: {architecture: amd64, hypervisorType: gen2}\n    - version: 1592.9.0\n      capabilities: \
                 {architecture: amd64, hypervisorType: gen1}\n  providerConfig",
            ),
            (
                "        capabilitySets:\n        - capabilities: {architecture: [amd64], hypervisorType: [gen2]}\n          urn: \
                 example:gardenlinux:gen2:1592.9.0\n        - capabilities: {architecture: [amd64], hypervisorType: [gen1]}\n          \
                 urn: example:gardenlinux:gen1:1592.9.0\n",
                "        capabilities: {architecture: amd64, hypervisorType: gen2}\n        urn: \
                 example:gardenlinux:gen2:1592.9.0\n      - version: 1592.9.0\n        capabilities: {architecture: amd64, \
                 hypervisorType: gen1}\n        urn: example:gardenlinux:gen1:1592.9.0\n",
            ),
        ],
    );
    assert_eq!(convert(&flat).stdout, today);
    let broken = convert(&replaced(&sets, &[("cpu: \"16\"", "cpu: sixteen")]));
    assert_eq!((broken.code, broken.stdout.as_str()), (3, ""), "what lint calls an error is not written: {broken:?}");
}

fn from_draft(text: &str) -> crate::binary::Outcome {
    outcome(command(&["cloudprofile", "convert", "--from", "draft", "-"]), text)
}

#[test]
fn drafts_of_the_proposal_become_clean() {
    for name in ["draft-azure.yaml", "draft-aws.yaml"] {
        let converted = from_draft(&crate::versions::finding_input(name));
        assert_eq!(converted.code, 1, "the order is for a person to decide: {}", converted.stderr);
        let arguments = ["cloudprofile", "lint", "-", "--at", "2026-02-01", "-o", "json"];
        let linted = outcome(command(&arguments), &converted.stdout).json();
        let findings = linted["profiles"][0]["findings"].as_array().unwrap();
        assert!(!findings.iter().any(|finding| finding["severity"] == "error"), "{findings:#?}");
    }
    let aws = from_draft(&crate::versions::finding_input("draft-aws.yaml")).stdout;
    assert_eq!(aws.matches("- ami: ami-").count(), 2, "{aws}");
    let second = aws.split("- capabilities:").nth(3).unwrap();
    assert!(second.contains("legacy-bios") && second.contains("ami-0123456789abcdef1"), "{second}");
}

#[test]
fn errors_of_drafts_name_the_given_path() {
    let aws = crate::versions::finding_input("draft-aws.yaml");
    let azure = crate::versions::finding_input("draft-azure.yaml");
    let second = "ami-0123456789abcdef1, ";
    for (text, path) in [
        (replaced(&aws, &[(second, &format!("{second}os: linux, "))]), "machineImages[0].versions[0].regions[1].os"),
        (
            replaced(&aws, &[(second, &format!("{second}architecture: arm64, "))]),
            "versions[0].regions[1].architecture: arm64",
        ),
        (replaced(&azure, &[("architecture: arm64\n", "architecture: amd64\n")]), "versions[0].architecture: amd64"),
        (
            replaced(
                &azure,
                &[(
                    "Images/gardenlinux-nvme/Versions/1592.2.0\n",
                    "Images/gardenlinux-nvme/Versions/1592.2.0\n        os: x\n",
                )],
            ),
            "machineImages[0].versions[2].os",
        ),
        (replaced(&aws, &[("[\"amd64\", \"arm64\"]", "[\"amd64\", \"aarch64\"]")]), "spec.capabilities.architecture"),
    ] {
        let refused = from_draft(&text);
        assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{refused:?}");
        assert!(refused.stderr.contains(path), "{path}: {}", refused.stderr);
    }
}

#[test]
fn names_of_drafts_lead_to_the_option() {
    for name in ["draft-azure.yaml", "draft-aws.yaml"] {
        let text = crate::versions::finding_input(name);
        let refused = outcome(command(&["cloudprofile", "convert", "-"]), &text);
        assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{refused:?}");
        let hint = "spec.capabilities: only drafts of GEP-33 have this member; convert the profile with --from draft";
        assert!(refused.stderr.contains(hint), "{}", refused.stderr);
        let linted = outcome(command(&["cloudprofile", "lint", "-", "-o", "json"]), &text).json();
        let findings = linted["profiles"][0]["findings"].as_array().unwrap().iter();
        let reported: Vec<_> =
            findings.filter(|found| found["advice"].as_str().unwrap().contains("--from draft")).collect();
        assert!(reported.len() >= 3, "{reported:#?}");
    }
}
