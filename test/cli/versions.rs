//! The examples in docs/versions.md and docs/preview.md match the output of the commands.

use std::path::Path;

use crate::binary::{command, outcome};

#[test]
fn the_examples_of_the_documents_are_what_is_printed() {
    ["docs/versions.md", "docs/preview.md"].into_iter().for_each(examples);
}

#[track_caller]
fn examples(document: &str) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    let mut parts = text.split("```sh\ngardener-extension-worker ");
    let mut made = parts.next().unwrap().to_owned();
    for part in parts {
        let Some((line, rest)) = part.split_once("\n```\n```text\n").filter(|(line, _)| !line.contains('\n')) else {
            made.push_str(&format!("```sh\ngardener-extension-worker {part}"));
            continue;
        };
        let (_, rest) = rest.split_once("```\n").expect("output ends");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let printed = outcome(command(&arguments), "").stdout;
        made.push_str(&format!("```sh\ngardener-extension-worker {line}\n```\n```text\n{printed}```\n{rest}"));
    }
    crate::golden::assert_same(document, &made);
}

/// A forecast with every member that the examples in the document don't have.
pub(crate) fn sample(more: &[&str]) -> serde_json::Value {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let profile = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
    // A date within the window, a prerelease, a feature gate that no version has, automatic images, a missing profile,
    // and a missing window.
    let profile = profile.replace("2026-05-01T00:00:00Z", "2026-05-01T01:20:00Z").replace("1877.3.0", "1877.3.0-x");
    let profile = profile.replace("updateStrategy: minor", "updateStrategy: major");
    let shoots = shoots.replace("{version: 1.33.6}", "{version: 1.33.6, kubelet: {featureGates: {Nonsense: true}}}");
    let shoots = shoots.replacen("name: az}", "name: missing}", 1);
    let shoots = shoots.replacen("machineImageVersion: false", "machineImageVersion: true", 1);
    // Removes the second of two equal windows.
    let at = shoots.rfind("    timeWindow: {begin: 010000+0000, end: 020000+0000}\n").unwrap();
    let (before, behind) = shoots.split_at(at);
    let shoots = format!("{before}{}", behind.split_once('\n').unwrap().1);
    let arguments = [&["forecast", "-", "--at", "2026-02-01", "-o", "json"], more].concat();
    outcome(command(&arguments), &format!("{shoots}\n---\n{profile}")).json()
}

#[test]
fn exit_codes_follow_the_forecast() {
    let shoot = |change: (&str, &str), more: &[&str]| {
        let profile = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
        let shoot = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
        let shoot = shoot.split("---").nth(2).unwrap().replace(change.0, change.1);
        let arguments = [&["forecast", "-", "--at", "2026-02-01"], more].concat();
        outcome(command(&arguments), &format!("{shoot}\n---\n{profile}"))
    };
    let nothing = shoot(("1.31.9", "1.34.5"), &[]);
    assert_eq!(nothing.code, 0, "{}", nothing.stderr);
    assert!(nothing.stdout.contains("nothing changes"), "{}", nothing.stdout);
    assert_eq!(shoot(("1.34.5}", "1.34.5}\n  x: {}"), &["--until", "2026-02-02"]).code, 0);
    let stuck = shoot(("", ""), &[]);
    assert_eq!(stuck.code, 4, "{}", stuck.stdout);
    assert!(stuck.stdout.contains("needs a version 1.32.x"), "{}", stuck.stdout);
    assert_eq!(shoot(("1.31.9", "1.34.2"), &["--until", "2026-02-03"]).code, 0);
    let patch = shoot(("kubernetes: {version: 1.34.5}", "kubernetes: {version: 1.34.1}"), &[]);
    assert_eq!(patch.code, 4, "{}", patch.stdout);
    assert_eq!(shoot(("name: az}", "name: other}"), &[]).code, 3);
    assert_eq!(shoot(("", ""), &["--until", "2020-01-01"]).code, 2);
    assert_eq!(shoot(("", ""), &["--until", "9999-12-30"]).code, 2);
}

#[test]
fn stuck_versions_name_their_expiration() {
    let stuck = |at: &str| {
        let files = ["forecast", "example/versions/shoots.yaml", "--profiles", "example/versions/cloudprofile.yaml"];
        let output = outcome(command(&[&files[..], &["--at", at]].concat()), "").stdout;
        let lines = output.lines().filter(|line| line.trim_start().starts_with("stuck"));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let image = "pool old at suse-chost 15.6.20250601";
    let kubernetes = "pool legacy at Kubernetes 1.31.9";
    assert_eq!(
        stuck("2026-02-01"),
        [
            format!("stuck from 2026-06-15 on: {image}: it expires on 2026-06-15"),
            format!("stuck from 2026-03-01 on: {kubernetes}: it expires on 2026-03-01"),
        ]
    );
    for at in ["2026-06-15", "2026-07-01", "2027-01-01"] {
        assert_eq!(
            stuck(at),
            [
                format!("stuck since {at}: {image}: it expired on 2026-06-15"),
                format!("stuck since {at}: {kubernetes}: it expired on 2026-03-01"),
            ]
        );
    }
}

/// A changed Shoot whose control plane version expires on 2026-05-01 and whose image expires on 2026-06-01.
fn expiring(edits: &[(&str, &str)]) -> crate::binary::Outcome {
    let shoot = "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: p}, spec: {\
        cloudProfile: {kind: CloudProfile, name: c}, region: r, kubernetes: {version: 1.33.6}, maintenance: {\
        timeWindow: {begin: 010000+0000, end: 020000+0000}, autoUpdate: {kubernetesVersion: false, \
        machineImageVersion: false}}, provider: {type: azure, workers: [{name: blue, minimum: 2, maximum: 6, \
        machine: {type: t, architecture: amd64, image: {name: linux, version: 1592.9.0}}}]}}, status: {\
        lastOperation: {state: Succeeded, type: Reconcile, progress: 100}}}";
    let profile = "{apiVersion: core.gardener.cloud/v1beta1, kind: CloudProfile, metadata: {name: c}, spec: {type: azure, \
        regions: [{name: r}], machineCapabilities: [{name: architecture, values: [amd64, arm64]}], kubernetes: {versions: [\
        {version: 1.34.5}, {version: 1.33.6, expirationDate: 2026-05-01T00:00:00Z}]}, machineImages: [{name: linux, \
        updateStrategy: minor, versions: [{version: 1592.9.0, expirationDate: 2026-06-01T00:00:00Z, cri: [\
        {name: containerd}], inPlaceUpdates: {supported: true}, capabilityFlavors: [{architecture: [amd64]}]}, \
        {version: 1877.3.0, cri: [{name: containerd}], inPlaceUpdates: {supported: true, minVersionForUpdate: 1.0.0}, \
        capabilityFlavors: [{architecture: [amd64]}]}]}], machineTypes: [{name: t, cpu: 4, gpu: 0, memory: 16Gi, \
        capabilities: {architecture: [amd64]}}]}}";
    let mut text = format!("{shoot}\n---\n{profile}");
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    outcome(command(&["forecast", "-", "--at", "2026-02-01"]), &text)
}

/// The output without its line breaks.
fn in_one_line(output: &crate::binary::Outcome) -> String {
    output.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_the_api_server_refuses_of_maintenance_is_stuck() {
    let all_is_well = expiring(&[]);
    assert_eq!(all_is_well.code, 5, "{all_is_well:?}");
    assert!(!all_is_well.stdout.contains("refuses"), "{}", all_is_well.stdout);
    let in_place = ("name: blue,", "name: blue, updateStrategy: ManualInPlaceUpdate,");
    let pending =
        |pool: &str| format!("status: {{inPlaceUpdates: {{pendingWorkerUpdates: {{manualInPlaceUpdate: [{pool}]}}}}, ");
    let [of_pool, of_another] = ["blue", "other"].map(pending);
    let (of_pool, of_another) = (("status: {", of_pool.as_str()), ("status: {", of_another.as_str()));
    let constraint =
        ("1592.9.0, expirationDate: 2026-06-01T00:00:00Z,", "1592.9.0, kubeletVersionConstraint: \"< 1.34\",");
    let future = (
        "{version: 1877.3.0,",
        "{version: 1877.3.0, lifecycle: [{classification: supported, startTime: 2027-12-01T00:00:00Z}],",
    );
    let arm = ("[{architecture: [amd64]}]}, {version: 1877", "[{architecture: [arm64]}]}, {version: 1877");
    for (edits, refusal, since) in [
        (vec![constraint], Some("does not support kubelet version '1.34.5'"), "2026-05-01"),
        (vec![future], Some("image version 'linux:1877.3.0' is expired (its first stage has not begun)"), "2026-06-01"),
        (
            vec![in_place, of_pool],
            Some("the worker pool \"blue\" is currently undergoing an in-place update"),
            "2026-05-01",
        ),
        (vec![in_place, of_another], None, ""),
        (vec![of_pool], None, ""),
        (vec![arm], None, "2026-02-01"),
    ] {
        let output = in_one_line(&expiring(&edits));
        assert_eq!(output.contains("the API server refuses the update"), refusal.is_some(), "{edits:?}: {output}");
        assert!(refusal.is_none_or(|refusal| output.contains(refusal)), "{edits:?}: {output}");
        assert!(output.contains(since), "{edits:?}: {output}");
    }
    // Without a target version, the Shoot keeps its version, whose image does not fit its machines.
    let alone = ("{architecture: [amd64]}]}]}], machineTypes", "{architecture: [arm64]}]}]}], machineTypes");
    let output = expiring(&[arm, alone]);
    let refusal = "machine type \"t\" are not supported by machine image linux:1592.9.0";
    assert!(in_one_line(&output).contains(refusal), "{output:?}");
    assert_eq!(output.code, 4, "{output:?}");
}

#[test]
fn what_has_no_nodes_loses_none() {
    for (edit, code) in [
        ((", provider: {", ", hibernation: {enabled: true}, provider: {"), 1),
        (("minimum: 2, maximum: 6", "minimum: 0, maximum: 0"), 1),
        ((", provider: {", ", hibernation: {enabled: true, schedules: [{end: 00 08 * * *}]}, provider: {"), 5),
        ((", provider: {", ", hibernation: {enabled: false}, provider: {"), 5),
        (("minimum: 2, maximum: 6", "minimum: 0, maximum: 6"), 5),
    ] {
        let output = expiring(&[edit]);
        assert_eq!(output.code, code, "{edit:?}: {output:?}");
        assert_eq!(output.stdout.contains("replaced, surge"), code == 5, "{edit:?}: {}", output.stdout);
    }
}

#[test]
fn bad_input_of_one_shoot_stops_no_other() {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let profile = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
    let forecast = |shoots: &str, profile: &str| {
        outcome(command(&["forecast", "-", "--at", "2026-02-01"]), &format!("{shoots}\n---\n{profile}"))
    };
    // A replacement in the first Shoot, and the expected error.
    for (from, to, error) in [
        ("name: az}", "name: none}", "Shoot garden-farm/web: CloudProfile \"none\" is not given"),
        ("{version: 1.34.2}", "{version: \"7\"}", "Shoot garden-farm/web: couldn't find a suitable version for 7"),
        ("minimum: 2", "minimum: two", "-: Shoot \"web\": spec.provider.workers[0].minimum"),
        ("name: gardenlinux, version: 1592.9.0", "name: none, version: \"\"", "pool blue: image is not supported"),
    ] {
        assert!(shoots.contains(from), "{from}");
        let output = forecast(&shoots.replacen(from, to, 1), &profile);
        assert_eq!(output.code, 3, "{output:?}");
        assert!(output.stderr.contains(error), "{}", output.stderr);
        assert!(!output.stdout.contains("garden-farm/web"), "{}", output.stdout);
        assert!(
            output.stdout.contains("garden-farm/careful") && output.stdout.contains("garden-farm/behind"),
            "{output:?}"
        );
    }
    // Gardener replaces an invalid window with the whole day.
    let window = forecast(&shoots.replacen("begin: 230000+0100", "begin: noon", 1), &profile);
    assert_eq!((window.code, window.stderr.as_str()), (5, ""));
    assert!(window.stdout.contains("garden-farm/web  az, window 00:00 to 23:59"), "{}", window.stdout);
    // An unreadable expiration date is an error, not a missing date.
    let date = forecast(&shoots, &profile.replacen("2026-05-01T00:00:00Z", "May 1st", 1));
    assert_eq!(date.code, 3, "{date:?}");
    let location = "CloudProfile \"az\": spec.kubernetes.versions[3].expirationDate: a time such as 2027-03-31T23:59:59Z is expected";
    assert!(date.stderr.contains(location), "{}", date.stderr);
}

#[test]
fn thousands_of_versions_are_forecast() {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let profile = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
    let version = |index: usize| {
        let (minute, hour) = (index % 60, index / 60 % 24);
        format!(
            "\n    - {{version: 1592.{}.{}, architectures: [amd64, arm64], cri: [{{name: containerd}}], expirationDate: \"2026-0{}-0{}T{hour:02}:{minute:02}:00Z\"}}",
            10 + index / 50,
            index % 50,
            3 + index % 7,
            1 + index % 9,
        )
    };
    let many: String = (0..5_000).map(version).collect();
    let profile = profile.replacen(
        "updateStrategy: minor\n    versions:",
        &format!("updateStrategy: minor\n    versions:{many}"),
        1,
    );
    assert!(profile.len() > 500_000);
    let output = outcome(command(&["forecast", "-", "--at", "2026-02-01"]), &format!("{shoots}\n---\n{profile}"));
    assert_eq!((output.code, output.stderr.as_str()), (5, ""), "{}", output.stdout);
}

const PROFILE: &str = "example/versions/cloudprofile.yaml";

/// A Shoot whose window is from 22:00 to 23:00 UTC, with an image that expires within it on the first of May.
fn expiring_in_its_window() -> String {
    let profile = std::fs::read_to_string(PROFILE).unwrap();
    let shoot = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let shoot =
        shoot.split("---").nth(1).unwrap().replace("010000+0000", "220000+0000").replace("020000+0000", "230000+0000");
    let shoot = shoot.replace("{version: 1.33.6}", "{version: 1.34.2}");
    format!("{shoot}\n---\n{}", profile.replace("2026-06-15T00:00:00Z", "2026-05-01T22:20:00Z").replace(
        "version: 15.6.20250601\n",
        "version: 15.7.20260101\n      architectures: [amd64]\n      cri: [{name: containerd}]\n    - version: 15.6.20250601\n",
    ))
}

#[test]
fn dates_within_the_window_take_effect_either_day() {
    let input = expiring_in_its_window();
    for (span, moves) in [
        (["2026-05-01", "2026-06-01"], true),
        (["2026-05-01", "2026-05-02"], true),
        (["2026-05-01", "2026-05-02T22:00:00Z"], true),
        (["2026-05-01T22:10:00Z", "2026-06-01"], true),
        (["2026-04-30", "2026-05-01"], false),
        (["2026-05-01", "2026-05-01T22:20:00Z"], false),
    ] {
        let output = outcome(command(&["forecast", "-", "--at", span[0], "--until", span[1]]), &input);
        assert_eq!(output.code, if moves { 5 } else { 0 }, "{span:?}: {output:?}");
        assert_eq!(output.stdout.contains("2026-05-01 or 2026-05-02"), moves, "{span:?}: {}", output.stdout);
        assert!(!output.stdout.contains("Chance decides"), "{span:?}: {}", output.stdout);
    }
    let tomorrow = outcome(command(&["forecast", "-", "--at", "2026-05-01T22:50:00Z"]), &input);
    assert!(tomorrow.stdout.contains("2026-05-02") && !tomorrow.stdout.contains("2026-05-01"), "{}", tomorrow.stdout);
}

/// A Cluster of a Shoot, with a copy of a profile.
fn cluster(shoot: &str, profile: &str) -> serde_json::Value {
    let read = |text: &str| gardener_extension_worker::api::gotext::yaml::documents(text).unwrap().remove(0);
    let (shoot, profile) = (read(shoot), read(profile));
    let name = format!("shoot--{}", shoot["metadata"]["name"].as_str().unwrap());
    serde_json::json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"shoot": shoot, "cloudProfile": profile},
    })
}

#[test]
fn the_profile_in_a_cluster_is_that_of_its_shoot() {
    let profile = std::fs::read_to_string(PROFILE).unwrap();
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let careful = shoots.split("---").nth(1).unwrap();
    let mine =
        careful.replace("name: careful", "name: mine").replace("kind: CloudProfile", "kind: NamespacedCloudProfile");
    let sooner = profile.replace(
        "{version: 1592.9.0, architectures: [amd64, arm64], cri: [{name: containerd}]}",
        "{version: 1592.9.0, architectures: [amd64, arm64], cri: [{name: containerd}], expirationDate: \"2026-02-10T00:00:00Z\"}",
    );
    assert_ne!(sooner, profile);
    let forecast = |documents: &[&str]| {
        outcome(command(&["forecast", "-", "--at", "2026-02-01", "-o", "json"]), &documents.join("\n---\n"))
    };
    let steps = |output: &crate::binary::Outcome| -> Vec<(String, usize)> {
        let document = output.json();
        let shoots = document["shoots"].as_array().unwrap().iter();
        let of = |shoot: &serde_json::Value| {
            (shoot["shoot"].as_str().unwrap().to_owned(), shoot["steps"].as_array().unwrap().len())
        };
        shoots.map(of).collect()
    };
    let (first, second) = (cluster(careful, &profile).to_string(), cluster(&mine, &sooner).to_string());
    let alone = steps(&forecast(&[&first]));
    for documents in [[&first[..], &second], [&second[..], &first]] {
        let both = forecast(&documents);
        assert_eq!(both.stderr, "", "the copy of a NamespacedCloudProfile is called a CloudProfile");
        let both = steps(&both);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both.contains(&alone[0]), "{both:?} instead of {alone:?}");
        assert!(both.contains(&("garden-farm/mine".to_owned(), alone[0].1 + 1)), "{both:?}");
    }
    // A profile that is given directly takes precedence. A Shoot and its Cluster are one Shoot.
    let given = forecast(&[&second, &first, &sooner, careful]);
    let of_sooner = steps(&forecast(&[careful, &sooner]));
    assert!(steps(&given).contains(&of_sooner[0]) && steps(&given).len() == 2, "{:?}", steps(&given));

    let versions = outcome(
        command(&["cloudprofile", "versions", "-", "-o", "json", "--at", "2026-02-01"]),
        &[&*first, &second].join("\n---\n"),
    );
    let listed = versions.json();
    let listed: Vec<(&str, u64)> = listed["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| {
            let shoots =
                profile["versions"].as_array().unwrap().iter().map(|version| version["shoots"].as_u64().unwrap()).max();
            (profile["profile"].as_str().unwrap(), shoots.unwrap())
        })
        .collect();
    assert_eq!(listed, [("az", 1), ("garden-farm/az", 1)]);
}

#[test]
fn versions_that_a_manifest_leaves_open_are_used() {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let open = shoots.split("---").nth(1).unwrap().replace("{version: 1.33.6}", "{version: \"1.33\"}");
    let open = open.replace("{name: suse-chost, version: 15.6.20250601}", "{name: suse-chost}");
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), open).unwrap();
    let path = file.path().to_str().unwrap();
    let output = outcome(command(&["cloudprofile", "versions", PROFILE, "--shoots", path, "--at", "2026-02-01"]), "");
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    for version in ["1.33.6", "15.6.20250601"] {
        let line = output.stdout.lines().find(|line| line.contains(version)).unwrap();
        assert!(line.contains("no: 1 shoot uses it"), "{line}");
    }
}

#[test]
fn namespaced_profile_without_parent_uses_its_status() {
    let profile = std::fs::read_to_string(PROFILE).unwrap();
    let spec = &gardener_extension_worker::api::gotext::yaml::documents(&profile).unwrap()[0]["spec"];
    let own = serde_json::json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "NamespacedCloudProfile",
        "metadata": {"name": "az", "namespace": "garden-farm"},
        "spec": {"parent": {"kind": "CloudProfile", "name": "parent"}}, "status": {"cloudProfileSpec": spec},
    });
    let own = own.to_string();
    let versions = outcome(command(&["cloudprofile", "versions", "-"]), &own);
    assert_eq!((versions.code, versions.stderr.as_str()), (0, ""), "{versions:?}");
    assert!(versions.stdout.starts_with("garden-farm/az\n"), "{}", versions.stdout);
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let shoot = shoots.split("---").nth(1).unwrap().replace("kind: CloudProfile", "kind: NamespacedCloudProfile");
    let forecast = outcome(command(&["forecast", "-", "--at", "2026-02-01"]), &format!("{shoot}\n---\n{own}"));
    assert_eq!((forecast.code, forecast.stderr.as_str()), (5, ""), "{forecast:?}");
}

#[test]
fn an_error_with_a_hostile_name_is_one_line() {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let shoot = shoots.split("---").next().unwrap().replace("name: web", "name: \"w\\n::warning::x\\nall is well\"");
    let output = outcome(command(&["forecast", "-"]), &shoot);
    assert_eq!(output.code, 3);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    assert!(output.stderr.contains(r"garden-farm/w\n::warning::x\nall is well"), "{}", output.stderr);
}

/// An input for which a command could easily report too little or something wrong.
#[track_caller]
pub(crate) fn finding_input(name: &str) -> String {
    let path = format!("{}/test/cli/findings/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_window_has_one_run() {
    let (profile, shoot) = (finding_input("two-minors-expired.yaml"), finding_input("without-window.yaml"));
    let days = |shoot: &str, at: &str| -> Vec<String> {
        let arguments = ["forecast", "-", "--at", at, "-o", "json"];
        let output = outcome(command(&arguments), &format!("{shoot}\n---\n{profile}")).json();
        let steps = output["shoots"][0]["steps"].as_array().unwrap().clone();
        steps.iter().map(|step| step["time"].as_str().unwrap()[..10].to_owned()).collect()
    };
    let windowed = |begin: &str, end: &str| {
        let window = format!("  maintenance: {{timeWindow: {{begin: {begin}, end: {end}}}}}\n  provider:");
        shoot.replace("  provider:", &window)
    };
    let expected = ["2026-06-01", "2026-06-02"];
    for shoot in [
        shoot.clone(),
        windowed("000000+0000", "010000+0000"),
        windowed("010000+0100", "020000+0100"),
        windowed("220000+0000", "230000+0000"),
    ] {
        assert_eq!(days(&shoot, "2026-06-01"), expected, "{shoot}");
    }
    assert_eq!(days(&windowed("220000+0000", "230000+0000"), "2026-06-01T22:00:00Z"), expected);
    assert_eq!(days(&windowed("220000+0000", "230000+0000"), "2026-06-01T22:10:00Z"), expected);
}

#[test]
fn a_missing_window_is_presumed() {
    let (profile, shoot) = (finding_input("two-minors-expired.yaml"), finding_input("without-window.yaml"));
    let window = "  maintenance: {timeWindow: {begin: 220000+0000, end: 230000+0000}}\n  provider:";
    for (shoot, is_presumed) in [(shoot.clone(), true), (shoot.replace("  provider:", window), false)] {
        let input = format!("{shoot}\n---\n{profile}");
        let output = outcome(command(&["forecast", "-", "--at", "2026-06-01", "-o", "json"]), &input).json();
        assert_eq!(output["shoots"][0]["window"]["presumed"] == true, is_presumed);
        for format in ["table", "markdown", "html"] {
            let output = outcome(command(&["forecast", "-", "--at", "2026-06-01", "-o", format]), &input);
            assert_eq!(in_one_line(&output).contains("presumed: the Shoot names no window"), is_presumed, "{format}");
        }
    }
}
