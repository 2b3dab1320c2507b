//! Measures a preview of a landscape on the command line: 10,000 Shoots and 10,000 Workers in files with a changed
//! CloudProfile. `cargo bench --bench shoots`; docs/preview.md states the targets, docs/performance-evidence.md the results.
//! `SHOOTS` sets another number for both.

#![allow(missing_docs, clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a benchmark of inputs that are written here")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::time::interval;

const PROJECTS: usize = 100;
const EXAMPLE: &str = include_str!("../test/cli/shoots.yaml");
const WORKER: &str = include_str!("../example/azure.yaml");

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let expected = std::env::var("SHOOTS").ok().and_then(|number| number.parse().ok());
    let each = expected.unwrap_or(10_000_usize).div_ceil(PROJECTS);
    let folder = tempfile::tempdir().expect("a folder");
    let (profile, shoot) = EXAMPLE.split_once("---\n").expect("a profile and a Shoot");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("old.yaml", profile);
    write("new.yaml", &profile.replace("greatest:1592.4.0", "newest:1592.4.0"));
    for project in 0..PROJECTS {
        let shoots = folder.path().join(format!("shoots/p{project}"));
        fs::create_dir_all(&shoots).expect("a folder");
        for number in 0..each {
            let text = shoot.replace(
                "name: canary, namespace: garden-meadow",
                &format!("name: s{number}, namespace: garden-p{project}"),
            );
            let text = text.replace("shoot--meadow--canary", &format!("shoot--p{project}--s{number}"));
            fs::write(shoots.join(format!("s{number}.yaml")), text).expect("a file");
        }
    }
    let cached = ["--cache", "cache"];
    for (what, new, options) in [
        ("nothing changed", "old.yaml", &[][..]),
        ("the CloudProfile changed", "new.yaml", &[]),
        ("the same, kept", "new.yaml", &cached),
        ("one Shoot changed, the others kept", "new.yaml", &cached),
    ] {
        if what.starts_with("one Shoot") {
            let file = "shoots/p0/s0.yaml";
            let text = fs::read_to_string(folder.path().join(file)).expect("a Shoot");
            write(file, &text.replace("maxSurge: 3", "maxSurge: 2"));
        }
        let arguments = [&["--profiles", "old.yaml", "--cloudprofile-new", new, "shoots"], options].concat();
        let (seconds, kilobytes, _) = run(folder.path(), &arguments).await;
        println!("{} Shoots, {what}: {seconds:.2} s, peak {} MiB", each * PROJECTS, kilobytes / 1024);
    }
    let workers = each * PROJECTS;
    write_workers(folder.path(), workers);
    for output in ["table", "json", "markdown"] {
        let (seconds, kilobytes, bytes) =
            run(folder.path(), &["--cloudprofile-new", "worker-profile.yaml", "workers", "-o", output]).await;
        let (peak, printed) = (kilobytes / 1024, bytes / 1024);
        println!("{workers} Workers as {output}: {seconds:.2} s, peak {peak} MiB, {printed} KiB printed");
    }
}

/// Writes Workers, and their CloudProfile with another image.
fn write_workers(folder: &Path, workers: usize) {
    let (_, profile) = WORKER.split_once("  cloudProfile:\n").expect("a Cluster with its profile");
    let (profile, _) = profile.split_once("\n  seed:").expect("the Seed comes next");
    let changed = profile.replace("\n    ", "\n").replace("-gen2/Versions", "-another/Versions");
    fs::write(folder.join("worker-profile.yaml"), changed.trim_start()).expect("a file");
    for number in 0..workers {
        let location = folder.join(format!("workers/p{}", number / 100));
        fs::create_dir_all(&location).expect("a folder");
        let text = WORKER.replace("shoot--meadow--riverside", &format!("shoot--meadow--s{number}"));
        fs::write(location.join(format!("s{number}.yaml")), text).expect("a file");
    }
}

/// Returns the duration in seconds, the peak memory in KiB (only available while the program runs), and the printed
/// bytes.
async fn run(folder: &Path, arguments: &[&str]) -> (f64, u64, u64) {
    let begin = Instant::now();
    let mut program = Command::new(env!("CARGO_BIN_EXE_gardener-extension-worker"));
    let printed = folder.join("printed");
    let stdout = fs::File::create(&printed).expect("a file");
    program.arg("preview").args(arguments).current_dir(folder).stdout(stdout).stderr(Stdio::null());
    let mut process = program.spawn().expect("the program");
    let status = format!("/proc/{}/status", process.id().expect("it has not ended"));
    let (mut peak, mut checks) = (0, interval(Duration::from_millis(5)));
    loop {
        tokio::select! {
            ended = process.wait() => {
                ended.expect("a process");
                let bytes = fs::metadata(printed).expect("what was printed").len();
                return (begin.elapsed().as_secs_f64(), peak, bytes);
            }
            _ = checks.tick() => {
                let status = fs::read_to_string(&status).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
            }
        }
    }
}
