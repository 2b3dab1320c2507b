//! The binary: arguments, then one call.

use std::process::ExitCode;

use gardener_extension_worker::cli::{parse, run};
use gardener_extension_worker::provider::Providers;

fn main() -> ExitCode {
    parse(std::env::args_os()).map_or_else(|code| code, |arguments| run(arguments, Providers::SHIPPED))
}
