//! The binary: one call.

use std::process::ExitCode;

use gardener_extension_worker::cli::Program;
use tikv_jemallocator::Jemalloc;

/// Gives back to the system what Workers held that are gone, in the time that .cargo/config.toml says (docs/dependencies.md#allocator).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    Program::SHIPPED.run(std::env::args_os())
}
