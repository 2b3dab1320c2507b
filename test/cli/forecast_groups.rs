//! `forecast` groups many Shoots by change and sorts them by date.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome};

const PROFILE: &str = "example/versions/cloudprofile.yaml";

/// The forecast of this number of copies of the example's Shoots.
fn forecast(times: usize, options: &[&str]) -> Outcome {
    let text = std::fs::read_to_string("example/versions/shoots.yaml").unwrap();
    let shoots = gardener_extension_worker::reader::objects::objects(&text).unwrap();
    let copies = (0..times).flat_map(|copy| {
        shoots.iter().filter(|object| object["kind"] == "Shoot").map(move |shoot| {
            let mut shoot = shoot.clone();
            let name = format!("{}-{copy}", shoot["metadata"]["name"].as_str().unwrap());
            shoot["metadata"]["name"] = json!(name);
            shoot
        })
    });
    let list = json!({"kind": "List", "apiVersion": "v1", "items": copies.collect::<Vec<Value>>()});
    let arguments = [&["forecast", "-", "--profiles", PROFILE, "--at=2026-02-01"], options].concat();
    outcome(command(&arguments), &list.to_string())
}

#[test]
fn many_shoots_are_grouped_by_date() {
    let few = forecast(1, &[]).stdout.lines().count();
    let grouped = forecast(30, &[]).stdout;
    assert!(grouped.lines().count() < few * 3, "{grouped}");
    let days: Vec<&str> =
        grouped.lines().filter_map(|line| line.get(..10)).filter(|day| day.starts_with("202")).collect();
    assert!(days.len() > 1 && days.is_sorted(), "{grouped}");
    assert!(grouped.contains("and 28 more"), "{grouped}");
    assert!(grouped.contains("see --all"), "{grouped}");
    let all = forecast(30, &["--all"]).stdout;
    assert!(all.lines().count() > few * 20 && !all.contains("see --all"), "{} lines", all.lines().count());
}

/// The forecast of two Shoots in this format. One has Kubernetes 1.37, and the other one is updated to it in June.
pub(crate) fn newer_than_measured(until: &str, format: &str) -> Outcome {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        gardener_extension_worker::reader::objects::objects(&text).unwrap()
    };
    let mut profile = read(PROFILE).remove(0);
    profile["spec"]["kubernetes"]["versions"] =
        json!([{"version": "1.36.2", "expirationDate": "2026-06-01T00:00:00Z"}, {"version": "1.37.1"}]);
    let shoots = read("example/versions/shoots.yaml");
    let mut shoot = shoots.into_iter().find(|object| object["metadata"]["name"] == "web").unwrap();
    let mut documents = vec![profile];
    for (name, version) in [("is-newer", "1.37.1"), ("gets-newer", "1.36.2")] {
        shoot["metadata"]["name"] = name.into();
        shoot["spec"]["kubernetes"]["version"] = version.into();
        documents.push(shoot.clone());
    }
    let list = json!({"kind": "List", "apiVersion": "v1", "items": documents}).to_string();
    outcome(command(&["forecast", "-", "--at=2026-02-01", "--until", until, "-o", format]), &list)
}

#[test]
fn marks_kubernetes_newer_than_measured() {
    for format in ["table", "markdown", "html"] {
        let text = newer_than_measured("2027-02-01", format).stdout;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Kubernetes 1.37.1 in 2 shoots: Gardener 1.150, the newest one"), "{format}: {text}");
    }
    let counts = |until: &str| {
        let document = newer_than_measured(until, "json").json();
        let shoots = document["shoots"].as_array().unwrap();
        let marked = shoots.iter().filter(|shoot| shoot["newerThanMeasured"] == json!(["1.37.1"])).count();
        (document["summary"]["newerThanMeasured"].clone(), marked)
    };
    let of = |shoots: u8| json!([{"version": "1.37.1", "shoots": shoots}]);
    assert_eq!((counts("2026-03-01"), counts("2027-02-01")), ((of(1), 1), (of(2), 2)));
}

/// Gardener #14311 writes the current stages into the status, which may be older than the specification.
#[test]
fn forecast_and_lint_ignore_cloudprofile_status() {
    let text = std::fs::read_to_string(PROFILE).unwrap();
    let mut profile = gardener_extension_worker::reader::objects::objects(&text).unwrap().remove(0);
    let printed = |profile: &Value| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json").display().to_string();
        std::fs::write(&path, profile.to_string()).unwrap();
        let shoots = "example/versions/shoots.yaml";
        let forecast = ["forecast", shoots, "--profiles", &path, "--at=2026-02-01", "-o", "json"];
        let lint = ["cloudprofile", "lint", &path, "--at=2026-02-01", "-o", "json"];
        [outcome(command(&forecast), ""), outcome(command(&lint), "")].map(|outcome| {
            assert!(outcome.code != 2 && outcome.code != 3, "{outcome:?}");
            outcome.stdout.replace(&path, "profile.json")
        })
    };
    let before = printed(&profile);
    let versions = profile["spec"]["kubernetes"]["versions"].as_array().unwrap().iter();
    let expired = versions.map(|version| json!({"version": version["version"], "classification": "expired"}));
    profile["status"] = json!({"kubernetes": {"versions": expired.collect::<Vec<Value>>()}});
    assert_eq!(printed(&profile), before);
}
