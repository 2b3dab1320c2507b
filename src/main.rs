//! The binary: arguments, then one call.

use std::process::ExitCode;

use clap::Parser;
use gardener_extension_worker::cli::{Arguments, run};

fn main() -> ExitCode {
    run(Arguments::parse())
}
