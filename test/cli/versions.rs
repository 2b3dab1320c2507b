//! What docs/versions.md and docs/preview.md show is what the commands print.

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

/// A forecast with everything that the examples of the document have not.
pub(crate) fn sample(more: &[&str]) -> serde_json::Value {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let profile = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
    // A date within the window, a prerelease, a feature gate that no version has, automatic images, a profile that is missing.
    let profile = profile.replace("2026-05-01T00:00:00Z", "2026-05-01T01:20:00Z").replace("1877.3.0", "1877.3.0-x");
    let profile = profile.replace("updateStrategy: minor", "updateStrategy: major");
    let shoots = shoots.replace("{version: 1.33.6}", "{version: 1.33.6, kubelet: {featureGates: {Nonsense: true}}}");
    let shoots = shoots.replacen("name: az}", "name: missing}", 1);
    let shoots = shoots.replacen("machineImageVersion: false", "machineImageVersion: true", 1);
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
fn bad_input_of_one_shoot_stops_no_other() {
    let shoots = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let profile = std::fs::read_to_string("example/versions/cloudprofile.yaml").unwrap();
    let forecast = |shoots: &str, profile: &str| {
        outcome(command(&["forecast", "-", "--at", "2026-02-01"]), &format!("{shoots}\n---\n{profile}"))
    };
    // What the first shoot says otherwise, and what is said about it.
    for (from, to, error) in [
        ("name: az}", "name: none}", "Shoot garden-farm/web: CloudProfile \"none\" is not given"),
        ("{version: 1.34.2}", "{version: \"7\"}", "Shoot garden-farm/web: couldn't find a suitable version for 7"),
        ("minimum: 2", "minimum: two", "-: Shoot \"web\": spec.provider.workers[0].minimum"),
        ("name: gardenlinux, version: 1592.9.0", "name: none, version: \"\"", "pool blue: image is not supported"),
    ] {
        assert!(shoots.contains(from), "{from}");
        let shown = forecast(&shoots.replacen(from, to, 1), &profile);
        assert_eq!(shown.code, 3, "{shown:?}");
        assert!(shown.stderr.contains(error), "{}", shown.stderr);
        assert!(!shown.stdout.contains("garden-farm/web"), "{}", shown.stdout);
        assert!(
            shown.stdout.contains("garden-farm/careful") && shown.stdout.contains("garden-farm/behind"),
            "{shown:?}"
        );
    }
    // Gardener takes such a window for the whole day.
    let window = forecast(&shoots.replacen("begin: 230000+0100", "begin: noon", 1), &profile);
    assert_eq!((window.code, window.stderr.as_str()), (5, ""));
    assert!(window.stdout.contains("garden-farm/web  az, window 00:00 to 23:59"), "{}", window.stdout);
    // A version whose end can't be read has not none.
    let date = forecast(&shoots, &profile.replacen("2026-05-01T00:00:00Z", "May 1st", 1));
    assert_eq!(date.code, 3, "{date:?}");
    let place = "CloudProfile \"az\": spec.kubernetes.versions[3].expirationDate: a time such as 2027-03-31T23:59:59Z is expected";
    assert!(date.stderr.contains(place), "{}", date.stderr);
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
    let shown = outcome(command(&["forecast", "-", "--at", "2026-02-01"]), &format!("{shoots}\n---\n{profile}"));
    assert_eq!((shown.code, shown.stderr.as_str()), (5, ""), "{}", shown.stdout);
}
