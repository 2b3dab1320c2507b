//! `gardener-extension-worker` with one provider more: `cargo run --example tiny -- render example/tiny/worker.yaml`.
//! `cargo run --example local -- pebble` runs it in a real control plane.

mod providers;

use std::process::ExitCode;

use gardener_extension_worker::cli::{parse, run};

fn main() -> ExitCode {
    parse(std::env::args_os()).map_or_else(|code| code, |arguments| run(arguments, providers::PROVIDERS))
}
