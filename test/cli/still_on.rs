//! `forecast --still-on` lists the pools that still run a version, the reasons, and what would move them.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome};
use crate::json::assert_described;

/// An image whose version 1.0.0 has a successor for amd64, but only a preview for arm64.
fn profile() -> Value {
    let version = |version: &str, stage: &str, architecture: &str| json!({"version": version, "classification": stage, "architectures": [architecture], "cri": [{"name": "containerd"}]});
    let mut old = version("1.0.0", "deprecated", "amd64");
    old["architectures"] = json!(["amd64", "arm64"]);
    old["inPlaceUpdates"] = json!({"supported": true, "minVersionForUpdate": "0.1.0"});
    let mut new = version("2.0.0", "supported", "amd64");
    new["inPlaceUpdates"] = json!({"supported": true, "minVersionForUpdate": "0.1.0"});
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "c"},
        "spec": {
            "type": "aws", "regions": [{"name": "r"}], "kubernetes": {"versions": [{"version": "1.34.5"}]},
            "machineImages": [
                {"name": "os", "updateStrategy": "major", "versions": [old, new, version("2.1.0", "preview", "arm64")]},
                {"name": "narrow", "updateStrategy": "patch", "versions": [
                    version("1.0.0", "supported", "amd64"), version("1.1.0", "supported", "amd64"),
                ]},
            ],
            "machineTypes": [
                {"name": "m", "cpu": "4", "gpu": "0", "memory": "16Gi", "architecture": "amd64"},
                {"name": "arm", "cpu": "4", "gpu": "0", "memory": "16Gi", "architecture": "arm64"},
            ],
        },
    })
}

/// A Shoot with automatic updates and a window from 22:00 to 23:00.
fn shoot(name: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": name, "namespace": "p"},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "c"}, "region": "r", "kubernetes": {"version": "1.34.5"},
            "maintenance": {
                "timeWindow": {"begin": "220000+0000", "end": "230000+0000"},
                "autoUpdate": {"kubernetesVersion": true, "machineImageVersion": true},
            },
            "provider": {"type": "aws", "workers": [{
                "name": "a", "minimum": 2, "maximum": 6,
                "machine": {"type": "m", "architecture": "amd64", "image": {"name": "os", "version": "1.0.0"}},
            }]},
        },
        "status": {"lastOperation": {"state": "Succeeded", "type": "Reconcile", "progress": 100}},
    });
    edit(&mut shoot);
    shoot
}

fn opt_out(shoot: &mut Value) {
    shoot["spec"]["maintenance"]["autoUpdate"]["machineImageVersion"] = false.into();
}

fn pool(shoot: &mut Value) -> &mut Value {
    &mut shoot["spec"]["provider"]["workers"][0]
}

fn request(shoots: &[Value], profile: &Value, version: &str, at: &str, more: &[&str]) -> Outcome {
    let documents: Vec<String> = shoots.iter().chain([profile]).map(ToString::to_string).collect();
    let arguments = ["forecast", "-", "--still-on", version, "--from", "2026-11-22", "--at", at];
    outcome(command(&[&arguments, more].concat()), &documents.join("\n---\n"))
}

/// The reasons and the expiration of the first pool of a Shoot, or `None` if it is not listed.
fn result(shoot: &Value, profile: &Value, version: &str, at: &str) -> Option<(Vec<String>, Value)> {
    let output = request(std::slice::from_ref(shoot), profile, version, at, &["-o", "json"]);
    let document = output.json();
    assert_eq!(document["evidence"]["complete"], true, "{output:?}");
    let pools = document["pools"].as_array().unwrap();
    assert_eq!(output.code, if pools.is_empty() { 0 } else { 1 }, "{output:?}");
    let pool = pools.first()?;
    let reasons =
        pool["reasons"].as_array().unwrap().iter().map(|reason| reason["reason"].as_str().unwrap().to_owned());
    Some((reasons.collect(), pool["expiration"].clone()))
}

#[test]
fn each_reason_is_named() {
    let profile = profile();
    let in_two_days = "2026-11-24T00:00:00Z";
    let reasons =
        |shoot: Value, version: &str| result(&shoot, &profile, version, in_two_days).map(|(reasons, _)| reasons);
    let is = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert_eq!(reasons(shoot("moves", |_| ()), "os@1.0.0"), None);
    assert_eq!(reasons(shoot("opted-out", opt_out), "os@1.0.0"), is(&["optedOut"]));
    let arm = |shoot: &mut Value| {
        pool(shoot)["machine"]["type"] = "arm".into();
        pool(shoot)["machine"]["architecture"] = "arm64".into();
    };
    assert_eq!(reasons(shoot("arm", arm), "os@1.0.0"), is(&["previewOnly"]));
    let hibernated = |shoot: &mut Value| shoot["spec"]["hibernation"] = json!({"enabled": true});
    assert_eq!(reasons(shoot("hibernated", hibernated), "os@1.0.0"), None, "it wakes up with the new version");
    let both = |shoot: &mut Value| {
        opt_out(shoot);
        hibernated(shoot);
    };
    assert_eq!(reasons(shoot("both", both), "os@1.0.0"), is(&["optedOut", "hibernated"]));
    let frozen = |shoot: &mut Value| shoot["metadata"]["annotations"] = json!({"shoot.gardener.cloud/ignore": "true"});
    assert_eq!(reasons(shoot("frozen", frozen), "os@1.0.0"), is(&["frozen"]));
    let deleted = |shoot: &mut Value| shoot["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z".into();
    assert_eq!(reasons(shoot("deleted", deleted), "os@1.0.0"), is(&["deleted"]));
    let by_hand = |shoot: &mut Value| pool(shoot)["updateStrategy"] = "ManualInPlaceUpdate".into();
    assert_eq!(reasons(shoot("by-hand", by_hand), "os@1.0.0"), is(&["manualInPlace"]));
    let newest = |shoot: &mut Value| pool(shoot)["machine"]["image"]["version"] = "2.0.0".into();
    assert_eq!(reasons(shoot("newest", newest), "os@2.0.0"), is(&["nothingNewer"]));
    assert_eq!(reasons(shoot("arrives", |_| ()), "os@2.0.0"), is(&["nothingNewer"]), "it gets the version before");
    let narrow = |shoot: &mut Value| pool(shoot)["machine"]["image"]["name"] = "narrow".into();
    assert_eq!(reasons(shoot("narrow", narrow), "narrow@1.0.0"), is(&["beyondStrategy"]));
    let none = |shoot: &mut Value| {
        opt_out(shoot);
        pool(shoot)["minimum"] = 0.into();
        pool(shoot)["maximum"] = 0.into();
    };
    assert_eq!(reasons(shoot("no-nodes", none), "os@1.0.0"), None);
}

#[test]
fn expired_versions_without_target_are_stuck() {
    let mut profile = profile();
    profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = "2026-11-22T12:00:00Z".into();
    let arm = shoot("arm", |shoot| {
        pool(shoot)["machine"]["type"] = "arm".into();
        pool(shoot)["machine"]["architecture"] = "arm64".into();
    });
    let (reasons, expiration) = result(&arm, &profile, "os@1.0.0", "2026-11-24").unwrap();
    assert_eq!((reasons, expiration), (vec!["stuck".to_owned()], Value::Null));
    assert_eq!(result(&shoot("opted-out", opt_out), &profile, "os@1.0.0", "2026-11-24"), None, "it is forced");
}

#[test]
fn named_expiration_moves_the_pool_in_time() {
    let opted_out = shoot("opted-out", opt_out);
    for (at, expires, in_time) in [
        ("2026-11-24T00:00:00Z", "2026-11-23T22:00:00Z", true),
        // Gardener does not use the last 15 minutes of a window.
        ("2026-11-23T22:45:00Z", "2026-11-23T22:00:00Z", true),
        ("2026-11-23T22:44:00Z", "2026-11-22T22:00:00Z", true),
        ("2026-11-22T12:00:00Z", "2026-11-22T22:00:00Z", false),
    ] {
        let mut profile = profile();
        let (reasons, expiration) = result(&opted_out, &profile, "os@1.0.0", at).unwrap();
        assert_eq!(reasons, ["optedOut"], "{at}");
        let expected = json!({"time": expires, "window": expires, "to": "2.0.0", "inTime": in_time});
        assert_eq!(expiration, expected, "{at}");
        profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = expires.into();
        assert_eq!(result(&opted_out, &profile, "os@1.0.0", at).is_none(), in_time, "{at}");
        // A later expiration is too late.
        let later: jiff::Timestamp = expires.parse().unwrap();
        let later = later + jiff::SignedDuration::from_hours(1);
        profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = later.to_string().into();
        let (reasons, _) = result(&opted_out, &profile, "os@1.0.0", at).unwrap();
        assert!(reasons.contains(&"movesLater".to_owned()), "{at}: {reasons:?}");
    }
    let (reasons, expiration) = result(&shoot("auto", |_| ()), &profile(), "os@1.0.0", "2026-11-22T12:00:00Z").unwrap();
    assert_eq!((reasons, expiration), (vec!["movesLater".to_owned()], Value::Null), "no expiration is earlier");
}

#[test]
fn incomplete_input_has_no_result() {
    let alone = shoot("alone", |shoot| shoot["spec"]["cloudProfile"]["name"] = "other".into());
    let output = request(&[alone, shoot("auto", |_| ())], &profile(), "os@1.0.0", "2026-11-24", &[]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stdout.contains("INCOMPLETE: 1 of 2 shoots evaluated"), "{}", output.stdout);
    let unknown = request(&[shoot("auto", |_| ())], &profile(), "os@1.0.1", "2026-11-24", &[]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (3, ""), "{unknown:?}");
    assert!(unknown.stderr.contains("no image version \"os@1.0.1\""), "{}", unknown.stderr);
    assert_eq!(request(&[], &profile(), "os@1.0.0", "2026-11-24", &[]).code, 3);
    for wrong in [&["--still-on", "os"][..], &["--still-on", "os@1", "-o", "markdown"], &["--from", "2026-11-22"]] {
        assert_eq!(outcome(command(&[&["forecast", "-"], wrong].concat()), "").code, 2, "{wrong:?}");
    }
}

#[test]
fn still_on_prints_what_is_described() {
    let profile = profile();
    let stuck = {
        let mut profile = profile.clone();
        profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = "2026-11-22T12:00:00Z".into();
        profile
    };
    let arm = |shoot: &mut Value| {
        pool(shoot)["machine"]["type"] = "arm".into();
        pool(shoot)["machine"]["architecture"] = "arm64".into();
    };
    let missing = shoot("missing", |shoot| shoot["spec"]["cloudProfile"]["name"] = "other".into());
    let samples = [
        request(
            &[shoot("a", |_| ()), shoot("b", opt_out), missing],
            &profile,
            "os@1.0.0",
            "2026-11-22T12:00:00Z",
            &["-o", "json"],
        ),
        request(&[shoot("c", arm)], &stuck, "os@1.0.0", "2026-11-24", &["-o", "json"]),
    ];
    assert_described(&samples.map(|output| output.json()), "forecast --still-on -o json");
}
