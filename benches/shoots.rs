//! How long a preview of a landscape takes from a terminal: 10,000 Shoots in files against a changed CloudProfile.
//! `cargo bench --bench shoots`; docs/preview.md says what is wanted.

#![allow(missing_docs, clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a benchmark of inputs that are written here")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::time::interval;

const SHOOTS: usize = 10_000;
const EXAMPLE: &str = include_str!("../test/cli/shoots.yaml");

#[tokio::main(flavor = "current_thread")]
async fn main() {
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
        let (seconds, kilobytes) =
            run(folder.path(), &["--profiles", "old.yaml", "--cloudprofile", new, "shoots"]).await;
        println!("{SHOOTS} Shoots, {edit} changed: {seconds:.2} s, peak {} MiB", kilobytes / 1024);
    }
}

/// Seconds, and the most memory in KiB, which is told only while the program runs.
async fn run(folder: &Path, arguments: &[&str]) -> (f64, u64) {
    let begin = Instant::now();
    let mut program = Command::new(env!("CARGO_BIN_EXE_gardener-extension-worker"));
    program.arg("preview").args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = program.spawn().expect("the program");
    let status = format!("/proc/{}/status", process.id().expect("it has not ended"));
    let (mut peak, mut looks) = (0, interval(Duration::from_millis(5)));
    loop {
        tokio::select! {
            ended = process.wait() => {
                ended.expect("a process");
                return (begin.elapsed().as_secs_f64(), peak);
            }
            _ = looks.tick() => {
                let status = fs::read_to_string(&status).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
            }
        }
    }
}
