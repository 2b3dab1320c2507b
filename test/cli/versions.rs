//! What docs/versions.md shows is what the commands print.

use std::path::Path;

use crate::binary::{command, outcome};

#[test]
fn the_examples_of_the_document_are_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/versions.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut parts = text.split("```sh\ngardener-extension-worker ");
    let mut made = parts.next().unwrap().to_owned();
    for part in parts {
        let (line, rest) = part.split_once("\n```\n```text\n").expect("output follows a command");
        let (_, rest) = rest.split_once("```\n").expect("output ends");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let printed = outcome(command(&arguments), "").stdout;
        made.push_str(&format!("```sh\ngardener-extension-worker {line}\n```\n```text\n{printed}```\n{rest}"));
    }
    crate::golden::assert_same("docs/versions.md", &made);
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
