//! Documents that are large or slow to parse: each is read completely, or rejected with a reason. `cargo bench --bench
//! worker_files` measures the duration.

use std::fmt::Write as _;
use std::fs;

use crate::binary::{Outcome, command, outcome, run};

const PROFILE: &str =
    "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: a}\nspec:\n  type: aws\n";

fn lint(profile: &str) -> Outcome {
    outcome(command(&["cloudprofile", "lint", "-", "-o", "json"]), profile)
}

#[test]
fn a_file_of_many_workers_equals_their_folder() {
    let worker = fs::read_to_string(test_support::repository().join("test/cli/azure.yaml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut all = String::new();
    for number in 0..200 {
        let worker = worker.replace("shoot--garden--prod", &format!("shoot--garden--prod{number:03}"));
        fs::write(folder.path().join(format!("{number:03}.yaml")), &worker).unwrap();
        write!(all, "{worker}\n---\n").unwrap();
    }
    // Each line is a Worker and begins with the name of its file.
    let without_file = |line: &str| line.split_once("\"machineClassSecrets\"").unwrap().1.to_owned();
    let results = |output: Outcome| output.succeeded().stdout.lines().map(without_file).collect::<Vec<_>>();
    let of_file = results(outcome(command(&["render", "-o", "result", "-"]), &all));
    let of_folder = results(run(&["render", "-o", "result", folder.path().to_str().unwrap()]));
    assert_eq!(of_file.len(), 200);
    assert!(of_file == of_folder, "the file and the folder differ");
}

#[test]
fn workers_of_one_namespace_have_their_own_secrets() {
    let worker = fs::read_to_string(test_support::repository().join("test/cli/azure.yaml")).unwrap();
    // Each Worker has its own boot script in the Secret of its class.
    let of = |name: &str| {
        let worker = worker.replace("name: prod\n", &format!("name: {name}\n"));
        worker.replace("gardener-node-agent-workers", &format!("gardener-node-agent-{name}"))
    };
    let output = outcome(command(&["render", "-o", "result", "-"]), &format!("{}\n---\n{}", of("one"), of("two")));
    let lines = output.succeeded().stdout;
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let missing = of("one").replace("{name: gardener-node-agent-one, namespace", "{name: another, namespace");
    let output = outcome(command(&["render", "-o", "result", "-"]), &missing);
    assert!(output.stdout.contains("gardener-node-agent-one"), "{}", output.stdout);
}

#[test]
fn empty_machine_types_are_all_refused() {
    let output = lint(&format!("{PROFILE}  machineTypes:\n{}", "  - {}\n".repeat(20_000)));
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert_eq!(output.stdout.matches("must provide a name").count(), 20_000);
    assert_eq!(output.stdout.matches("Duplicate value").count(), 19_999);
}

#[test]
fn long_keys_are_printed_in_lines() {
    let key = "k".repeat(1_200_000);
    let profile = format!("{PROFILE}  machineTypes:\n  - name: a\n    ? {key}\n    : 1\n");
    let output = outcome(command(&["cloudprofile", "lint", "-"]), &profile);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stdout.lines().all(|line| line.len() <= 120));
    assert_eq!(lint(&profile).code, 1);
}

#[test]
fn nested_anchors_are_refused_early() {
    let mut text = String::new();
    for document in 0..400 {
        for level in 0..110 {
            let name = if level == 0 { format!("d{document}") } else { "a".to_owned() };
            writeln!(text, "{}{name}: &a{document}_{level}", "  ".repeat(level)).unwrap();
        }
        writeln!(text, "{}x: y", "  ".repeat(110)).unwrap();
    }
    let output = outcome(command(&["render", "-"]), &text);
    assert_eq!(output.code, 3);
    assert!(output.stderr.contains("aliases expand to more than is allowed"), "{}", output.stderr);
}
