//! How long a preview of a landscape takes from a terminal: 10,000 Shoots in files against a changed CloudProfile.
//! `cargo bench --bench shoots`; docs/preview.md says what is wanted.

#![allow(missing_docs, clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a benchmark of inputs that are written here")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SHOOTS: usize = 10_000;
const EXAMPLE: &str = include_str!("../test/cli/shoots.yaml");

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (profile, shoot) = EXAMPLE.split_once("---\n").expect("a profile and a Shoot");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("old.yaml", profile);
    write("new.yaml", &profile.replace("greatest:1592.4.0", "newest:1592.4.0"));
    for project in 0..100 {
        let shoots = folder.path().join(format!("shoots/p{project}"));
        fs::create_dir_all(&shoots).expect("a folder");
        for number in 0..SHOOTS / 100 {
            let text = shoot.replace(
                "name: canary, namespace: garden-meadow",
                &format!("name: s{number}, namespace: garden-p{project}"),
            );
            let text = text.replace("shoot--meadow--canary", &format!("shoot--p{project}--s{number}"));
            fs::write(shoots.join(format!("s{number}.yaml")), text).expect("a file");
        }
    }
    for edit in ["nothing", "the CloudProfile"] {
        let new = if edit == "nothing" { "old.yaml" } else { "new.yaml" };
        let (seconds, kilobytes) = run(folder.path(), &["--profiles", "old.yaml", "--cloudprofile", new, "shoots"]);
        println!("{SHOOTS} Shoots, {edit} changed: {seconds:.2} s, peak {} MiB", kilobytes / 1024);
    }
}

/// Seconds, and the most memory in KiB.
fn run(folder: &Path, arguments: &[&str]) -> (f64, u64) {
    let begin = Instant::now();
    let mut program = Command::new(env!("CARGO_BIN_EXE_gardener-extension-worker"));
    program.arg("preview").args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = program.spawn().expect("the program");
    let mut peak = 0;
    while process.try_wait().expect("a process").is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    (begin.elapsed().as_secs_f64(), peak)
}
