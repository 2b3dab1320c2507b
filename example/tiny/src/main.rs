//! `gardener-extension-worker` with one additional provider: `cargo run -p tiny -- render example/tiny/worker.yaml`.
//! `cargo run -p local -- pebble` runs it in a real control plane.

use std::process::ExitCode;

fn main() -> ExitCode {
    tiny::PROGRAM.run(std::env::args_os())
}
