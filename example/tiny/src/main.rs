//! `gardener-extension-worker` with one provider more: `cargo run -p tiny -- render example/tiny/worker.yaml`.
//! `cargo run -p local -- pebble` runs it in a real control plane.

use std::process::ExitCode;

use gardener_extension_worker::cli::{parse, run};

fn main() -> ExitCode {
    parse(std::env::args_os()).map_or_else(|code| code, |arguments| run(arguments, tiny::PROVIDERS))
}
