//! `preview --capacity`: whether the temporary machines fit into the remaining capacity of a cloud.

use crate::binary::{Outcome, run};

const SHOOTS: &str = include_str!("shoots.yaml");

/// A roll of `web`, 6 nodes of 4 vCPUs with a surge of 3, zones 1 and 2, and of `batch` with a surge of 1, against
/// limits.
fn preview(limits: &str, options: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (profile, shoot) = SHOOTS.split_once("---\n").unwrap();
    let rolls = shoot.replace("version: 1592.4.0", "version: 1592.9.0");
    for (name, text) in [("profile.yaml", profile), ("old.yaml", shoot), ("new.yaml", &rolls), ("limits", limits)] {
        std::fs::write(path(name), text).unwrap();
    }
    let [profile, old, new, limits] = ["profile.yaml", "old.yaml", "new.yaml", "limits"].map(path);
    run(&[&["preview", "--profiles", &profile, "--capacity", &limits, &old, &new], options].concat())
}

fn findings(limits: &str) -> Vec<String> {
    let document = preview(limits, &["-o", "json"]).json();
    let findings = document["workers"][0]["findings"].as_array().unwrap().clone();
    let of_capacity = findings.iter().filter(|finding| finding["kind"].as_str().unwrap().starts_with("capacity"));
    let reported = of_capacity.map(|finding| {
        let text = |member: &str| finding[member].as_str().unwrap().to_owned();
        format!("{} {}: {}", text("kind"), text("pool"), text("message"))
    });
    reported.collect()
}

#[test]
fn pools_that_do_not_fit_are_named_for_limits_of_each_program() {
    let none: [&str; 0] = [];
    let azure = |cores: &str, family: &str| {
        format!(
            r#"[{{"currentValue": 32, "limit": "{cores}", "name": {{"localizedValue": "Total Regional vCPUs", "value": "cores"}}}},
                {{"currentValue": "32", "limit": {family}, "name": {{"localizedValue": "", "value": "standardDSv5Family"}}}},
                {{"currentValue": 0, "limit": 0, "name": {{"value": "PremiumDiskCount"}}}}]"#
        )
    };
    // 3 and 1 temporary machines of 4 vCPUs.
    assert_eq!(findings(&azure("100", "48")), none);
    assert_eq!(
        findings(&azure("100", "47")),
        [
            "capacity-exceeded batch: 4 more vCPUs are needed for a time, and 3 of 47 are left for it in \"standardDSv5Family\": not all machines come"
        ]
    );
    assert_eq!(findings(&azure("40", "100")).len(), 2);
    let family = "limits: [{name: E, machineTypes: [\"Standard_E*\"], unit: vCPUs, limit: 9}]";
    assert_eq!(
        findings(family)[0],
        "capacity-unknown web: the file has no limit for machines of type \"Standard_D4s_v5\""
    );
    let own = |limits: &str| format!("limits:\n- {{name: all, machineTypes: [\"Standard_D*s_v5\"], {limits}}}\n");
    assert_eq!(findings(&own("unit: machines, limit: 12, used: 8")), none);
    assert_eq!(findings(&own("unit: machines, limit: 11, used: 8")).len(), 1);
    // Without `used`, the eight machines of these pools are counted.
    assert_eq!(findings(&own("unit: machines, limit: 11")).len(), 1);
    assert_eq!(findings(&own("unit: machines, limit: 0, used: 0, region: elsewhere")), none);
    let output = preview(&own("unit: machines, limit: 8, used: 8"), &["--fail-on", "hazard"]);
    assert_eq!(output.code, 4, "{output:?}");
}

#[test]
fn quotas_of_aws_are_by_class() {
    let quotas = r#"{"Quotas": [
        {"QuotaName": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "Value": 4.0, "QuotaCode": "L-1"},
        {"QuotaName": "Running On-Demand G and VT instances", "Value": 0.0},
        {"QuotaName": "All Standard Spot Instance Requests", "Value": 0.0}]}"#;
    assert_eq!(
        findings(quotas)[0],
        "capacity-unknown web: the file has no limit for machines of type \"Standard_D4s_v5\""
    );
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let worker = std::fs::read_to_string("example/aws.yaml").unwrap();
    std::fs::write(path("quotas.json"), quotas).unwrap();
    std::fs::write(path("new.yaml"), worker.replace("nodeAgentSecretName: ", "nodeAgentSecretName: next-")).unwrap();
    let output = run(&["preview", "--capacity", &path("quotas.json"), "example/aws.yaml", &path("new.yaml")]);
    assert!(output.stdout.contains("are left for it in \"Running On-Demand"), "{output:?}");
}

#[test]
fn a_file_of_limits_that_is_none_is_refused() {
    for (limits, why) in [
        ("limits: 1", "limits are no list"),
        ("limits: []", "no limit for machines in it"),
        ("limits: [{name: a, unit: apples, limit: 1}]", "limit 0"),
        ("limits: [{name: a, unit: machines, limit: 1, usd: 1}]", "unknown field"),
        ("[{\"currentValue\": {}, \"limit\": 1, \"name\": {\"value\": \"cores\"}}]", "currentValue is no number"),
        ("text", "neither limits"),
        ("{}\n---\n{}", "one document"),
    ] {
        let output = preview(limits, &[]);
        assert_eq!(output.code, 3, "{limits}: {output:?}");
        assert!(output.stderr.contains(why), "{limits}: {output:?}");
    }
    let evil = preview("limits: [{name: \"\\e[2J\\u202e\", unit: machines, limit: 0, used: 0}]", &[]);
    assert!(!evil.stdout.contains(['\u{1b}', '\u{202e}']), "{evil:?}");
}
