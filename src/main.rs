//! The binary: one call.

use std::process::ExitCode;

use gardener_extension_worker::cli::Program;

fn main() -> ExitCode {
    Program::SHIPPED.run(std::env::args_os())
}
