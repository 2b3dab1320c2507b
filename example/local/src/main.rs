//! `cargo run -p local`, see the library. Called with `controller` it is `gardener-extension-worker` with Pebble.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("controller") {
        let arguments = gardener_extension_worker::cli::Arguments::parse();
        return gardener_extension_worker::cli::run(arguments, tiny::PROVIDERS);
    }
    local::run(&local::Arguments::parse())
}
