//! The binary of the extension and its command line tools.

use std::process::ExitCode;

use gardener_extension_worker::cli::Program;
use tikv_jemallocator::Jemalloc;

/// Returns freed memory to the system after the delay set in .cargo/config.toml (docs/dependencies.md#allocator).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    Program::SHIPPED.run(std::env::args_os())
}
