//! `forecast` of many Shoots: grouped by change, sorted by date.

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome};

const PROFILE: &str = "example/versions/cloudprofile.yaml";

/// The example's Shoots, this many times.
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
