//! Measures `render`, `explain`, `preview` and `diagnose` of many Workers in one file, and of the same Workers in a file each.
//! `cargo bench --bench worker_files`; docs/performance-evidence.md has the results. `WORKERS` sets the number, 10,000 by default.

#![allow(missing_docs, clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a benchmark of inputs that are written here")]

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

const WORKER: &str = include_str!("../test/cli/azure.yaml");
const NAMESPACE: &str = "shoot--garden--prod";

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let expected = std::env::var("WORKERS").ok().and_then(|number| number.parse().ok());
    let workers: usize = expected.unwrap_or(10_000);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(path("workers")).expect("a folder");
    let mut all = String::new();
    for number in 0..workers {
        let worker = WORKER.replace(NAMESPACE, &format!("{NAMESPACE}{number}"));
        fs::write(path(&format!("workers/{number}.yaml")), &worker).expect("a file");
        writeln!(all, "{worker}\n---").expect("memory");
    }
    fs::write(path("workers.yaml"), all).expect("a file");
    let last = format!("{NAMESPACE}{}", workers - 1);
    for form in ["workers.yaml", "workers"] {
        let input = path(form);
        let commands: [&[&str]; 4] = [
            &["render", &input, "-o", "result"],
            &["explain", &input],
            &["preview", &input, &input],
            &["diagnose", &last, &input],
        ];
        for arguments in commands {
            println!("{workers} Workers, {} of {form}: {:.1} s", arguments[0], seconds(arguments));
        }
    }
}

fn seconds(arguments: &[&str]) -> f64 {
    let begin = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gardener-extension-worker"));
    let status =
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the program runs");
    // 3 would be an error of the input.
    assert_ne!(status.code(), Some(3), "{arguments:?}");
    begin.elapsed().as_secs_f64()
}
