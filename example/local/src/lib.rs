//! The main job, live: a Worker becomes ready nodes, another image replaces them, and a pool fails because of a quota. `cargo run -p local` (or `--example local`), or
//! `cargo run -p local -- aws` (or `gcp`, `alicloud`, `openstack`) for another cloud; `-- pebble` for the made-up one of ../tiny. `-- hold` shows how rolls are held.
//!
//! ```text
//! story     what is done, in this order, and what has to come of it
//! seed      what gardenlet would write: the objects of ../azure.yaml (or of another cloud), another image
//! hold      the same for `-- hold`: zones that roll one after the other, and a budget that holds a roll
//! picture   the picture of the README, from what a run printed
//! ticker    watches everything that comes of it and prints a line for each change
//! sentence  what such a line says about an object
//! ```
//!
//! The control plane and machine-controller-manager are those of the tests (`test/support/`). The controller is this very
//! program: called with one of its commands it is `gardener-extension-worker`, so nothing else has to be built or found.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it tells a story")]

mod hold;
mod picture;
mod seed;
mod sentence;
mod story;
mod ticker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Commands of `gardener-extension-worker` that this program has too.
const COMMANDS: [&str; 5] = ["controller", "diagnose", "preview", "rollouts", "why"];

/// The program: the demo, or, called with one of [`COMMANDS`], `gardener-extension-worker` with Pebble.
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|command| COMMANDS.contains(&command.as_str())) {
        return tiny::PROGRAM.run(std::env::args_os());
    }
    run(&Arguments::parse())
}

/// Shows in a real control plane how a Worker becomes ready nodes and how another image replaces them.
#[derive(Parser)]
#[command(name = "local")]
pub struct Arguments {
    /// What to show instead of the usual story.
    #[command(subcommand)]
    part: Option<Part>,
    /// Whose Worker it is.
    #[arg(value_enum, default_value_t = seed::Cloud::Azure)]
    cloud: seed::Cloud,
    /// End after the story instead of waiting for Ctrl-C with everything running.
    #[arg(long, global = true)]
    exit: bool,
    /// Let deletions of machines take 30 s, as in production, instead of less than one.
    #[arg(long, global = true)]
    unhurried: bool,
    /// Wait for Enter before each part, with commands to try in another terminal.
    #[arg(long, global = true)]
    tour: bool,
    /// Write pictures of this run into a folder, `roll-light.svg` and `roll-dark.svg`, and end.
    #[arg(long, value_name = "FOLDER")]
    picture: Option<PathBuf>,
}

/// Another story.
#[derive(Clone, Copy, clap::Subcommand)]
enum Part {
    /// Zones roll one after the other, a budget lets one of two Workers roll, and its class is taken back.
    Hold,
}

/// Tells the story to its end.
pub fn run(arguments: &Arguments) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(story::report(arguments));
    // A build that was interrupted need not be waited for.
    runtime.shutdown_background();
    code
}
