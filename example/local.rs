//! `cargo run --example local`: the demo of `local/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::main()
}
