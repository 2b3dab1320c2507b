//! Proves from outside that other crates can add providers: the made-up cloud of `example/tiny` is compiled against the
//! public library only, supports the commands, and runs in the live demo until an image change has rolled its nodes.
//!
//! This binary is all three: the test, the demo, and the program under test (the demo starts itself as the controller).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod quarry;

use std::process::{Command, ExitCode};

use clap::Parser as _;
use gardener_extension_worker::cli::Program;
use serde_json::{Value, json};
use test_support::conformance::{Example, check};
use test_support::tier::without_deep_tests;
use tiny::PROVIDERS;

/// The program of `example/tiny`, with a cloud.
const PROGRAM: Program = Program { providers: PROVIDERS, clouds: &[&quarry::QuarryFactory] };
/// Commands of the program that this test runs by starting itself.
const COMMANDS: [&str; 5] = ["controller", "diagnose", "render", "explain", "cloudprofile"];
/// The argument with which this binary runs as the demo.
const DEMO: &str = "demo";
/// Maximum number of lines of the provider, including its imports.
const LINES: usize = 200;

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    if command.is_some_and(|command| COMMANDS.contains(&command.as_str())) {
        return PROGRAM.run(std::env::args_os());
    }
    if std::env::args().nth(1).as_deref() == Some(DEMO) {
        return local::run(&local::Arguments::parse_from(["local", "pebble", "--exit"]));
    }
    if let Some(code) = without_deep_tests() {
        return code;
    }
    is_tiny();
    plans_its_pools();
    explains_its_images();
    resolves_its_cloud_profile();
    conforms();
    clouds_bring_arguments();
    println!("the example is planned and explained; now live");
    live()
}

fn clouds_bring_arguments() {
    let help = output(&["controller", "--help"]);
    assert!(help.contains("--quarry-log") && !help.contains("--azure"), "{help}");
    assert!(PROGRAM.command().try_get_matches_from(["program", "controller"]).is_err(), "it is required");
}

/// The demo, which starts this binary as the controller. The controller calls the cloud before it creates machines, and
/// after they are ready.
fn live() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let this = std::env::current_exe().unwrap();
    let demo = Command::new(this).arg(DEMO).env(quarry::VARIABLE, &log).status().unwrap();
    let requested = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = requested.lines().collect();
    assert!(lines.first() == Some(&"ensure pebble") && lines.contains(&"clean up"), "the cloud was asked: {lines:?}");
    if demo.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_tiny() {
    let lines = include_str!("../../example/pebble/src/lib.rs").lines().count();
    assert!(lines <= LINES, "{lines} lines");
}

/// The provider passes the checks for all providers.
fn conforms() {
    let example = Example {
        provider: PROVIDERS.for_worker_type("pebble").unwrap(),
        documents: include_str!("../../example/tiny/worker.yaml"),
        pool: "flat",
        members: &[],
        hashed: &[("/nodeAgentSecretName", "other"), ("/providerConfig/scratchSize", "101Gi")],
        not_hashed: &[("/maximum", "9"), ("/labels", "{a: b}"), ("/annotations", "{a: b}")],
    };
    check(&example).unwrap();
}

/// The output of the program.
fn output(arguments: &[&str]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&output(arguments)).unwrap()
}

fn plans_its_pools() {
    let rendered = document(&["render", "example/tiny/worker.yaml", "-o", "result"]);
    let classes = rendered["machineClasses"].as_array().unwrap_or_else(|| panic!("{rendered:#}"));
    let specs: Vec<&Value> = classes.iter().map(|class| &class["providerSpec"]).collect();
    let machine = |kind: &str, zone: &str, image: &str, scratch: Option<&str>| json!({"kind": kind, "zone": zone, "network": "net-beach", "image": image, "scratchSize": scratch});
    let expected = [
        machine("slate-8", "north-a", "img-3-arm64", Some("100Gi")),
        machine("granite-4", "north-a", "img-3-amd64", None),
        machine("granite-4", "north-b", "img-3-amd64", None),
    ];
    assert!(specs.len() == expected.len() && expected.iter().all(|spec| specs.contains(&spec)), "{specs:#?}");
    assert_eq!(
        rendered["workerStatus"]["providerStatus"]["machineImages"],
        json!([
            {"name": "gardenlinux", "version": "1877.3.0", "id": "img-3-amd64", "capabilities": {"architecture": ["amd64"]}},
            {"name": "gardenlinux", "version": "1877.3.0", "id": "img-3-arm64", "capabilities": {"architecture": ["arm64"]}},
        ])
    );
}

fn explains_its_images() {
    let explained = document(&["explain", "example/tiny/worker.yaml", "-o", "json"]);
    let pool = &explained["workers"][0]["pools"][1];
    assert_eq!(pool["image"]["chosen"]["reference"], json!({"member": "id", "value": "img-3-arm64"}), "{pool:#}");
    assert_eq!(pool["error"], Value::Null);
}

fn resolves_its_cloud_profile() {
    let text = include_str!("../../example/tiny/worker.yaml");
    let documents = gardener_extension_worker::api::gotext::yaml::documents(text).unwrap();
    let cluster = documents.iter().find(|document| document["kind"] == "Cluster").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.json");
    std::fs::write(&file, cluster["spec"]["cloudProfile"].to_string()).unwrap();
    let table = output(&["cloudprofile", "matrix", file.to_str().unwrap()]);
    assert!(table.contains("img-9-arm64") && table.contains("slate-8"), "{table}");
}
