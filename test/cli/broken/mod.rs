//! Broken Workers and CloudProfiles, one on each line, and the complete output for each of them.

use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::{Value, json};
use test_support::broken::{Case, cases, put};

use crate::binary::{Outcome, command, outcome};
use crate::golden::assert_same;

/// The whole output of every case, each under its line.
fn outputs(cases: &[Case], run: impl Fn(&Case) -> Outcome + Sync) -> String {
    let half = cases.len().div_ceil(2);
    let text = |cases: &[Case]| {
        cases
            .iter()
            .map(|case| {
                let Outcome { code, stdout, stderr } = run(case);
                format!("## {}\nexit {code}\n{stderr}{stdout}\n", case.line)
            })
            .collect::<String>()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| text(&cases[..half]));
        let second = text(&cases[half..]);
        first.join().unwrap() + &second
    })
}

#[test]
fn workers() {
    let mut bundle = documents(&std::fs::read_to_string("test/cli/azure.yaml").unwrap()).unwrap();
    bundle.truncate(5);
    let pools = bundle[0]["spec"]["pools"].as_array_mut().unwrap();
    pools.truncate(1);
    pools[0]["zones"] = json!(["1"]);
    let render =
        |bundle: &[Value]| outcome(command(&["render", "-"]), &json!({"kind": "List", "items": bundle}).to_string());
    assert_eq!(render(&bundle).code, 0, "{:?}", render(&bundle));
    let cases = cases(include_str!("workers.txt"));
    assert!(cases.len() >= 60, "{}", cases.len());
    let text = outputs(&cases, |case| {
        let mut bundle = bundle.clone();
        let (root, rest) = case.location.split_once('/').unwrap();
        let (document, before) = match root {
            "pool" => (0, "/spec/pools/0"),
            "infrastructure" => (0, "/spec/infrastructureProviderStatus"),
            "worker" => (0, ""),
            "profile" => (1, "/spec/cloudProfile/spec"),
            "shoot" => (1, "/spec/shoot"),
            other => panic!("{other}"),
        };
        put(&mut bundle[document], &format!("{before}/{rest}"), case.value.clone());
        let output = render(&bundle);
        // The tests of `render` cover the objects. Here only acceptance and warnings matter.
        let stdout = if output.code == 0 { "(the objects are printed)\n".to_owned() } else { output.stdout };
        Outcome { stdout, ..output }
    });
    assert_same("test/cli/golden/broken-workers.txt", &text);
}

#[test]
fn profiles() {
    let profile = documents(&std::fs::read_to_string("example/cloudprofiles/azure.yaml").unwrap()).unwrap().remove(0);
    let cases = cases(include_str!("profiles.txt"));
    assert!(cases.len() >= 60, "{}", cases.len());
    let text = outputs(&cases, |case| {
        let mut profile = profile.clone();
        put(&mut profile, &format!("/{}", case.location), case.value.clone());
        let output = outcome(
            command(&["cloudprofile", "lint", "-", "--at", "2026-11-21T00:00:00Z"]),
            &serde_json::to_string_pretty(&profile).unwrap(),
        );
        assert_ne!(output.code, 0, "{}: a profile that a garden refuses is never green", case.line);
        output
    });
    assert_same("test/cli/golden/broken-profiles.txt", &text);
}

#[test]
fn namespaced_profiles() {
    let text = std::fs::read_to_string("test/cli/broken/namespaced.yaml").unwrap();
    let namespaced = documents(&text).unwrap().remove(0);
    let parent = "example/cloudprofiles/azure.yaml";
    let lint = |document: &Value| {
        let arguments = ["cloudprofile", "lint", "--parent", parent, "-", "--at", "2026-11-21T00:00:00Z"];
        outcome(command(&arguments), &serde_json::to_string_pretty(document).unwrap())
    };
    let is_refused = |output: &Outcome| output.stdout.contains("\nerror ");
    assert!(!is_refused(&lint(&namespaced)), "{:?}", lint(&namespaced));
    let text = outputs(&cases(include_str!("namespaced.txt")), |case| {
        let mut document = namespaced.clone();
        put(&mut document, &format!("/{}", case.location), case.value.clone());
        let output = lint(&document);
        assert!(is_refused(&output), "{}: what a garden refuses is never green: {output:?}", case.line);
        output
    });
    assert_same("test/cli/golden/broken-namespaced.txt", &text);
}
