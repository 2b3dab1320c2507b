//! `cargo run -p local`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::main()
}
