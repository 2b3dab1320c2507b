//! The main job, live: a Worker results in ready nodes, another image replaces them, and a pool fails due to a quota.
//! `cargo run -p local` (or `--example local`) uses Azure, and `cargo run -p local -- aws` (or `gcp`, `alicloud`,
//! `openstack`) another cloud. `-- pebble` uses the made-up one of ../tiny. `-- hold` shows how rolls are held.
//!
//! ```text
//! story     the steps in their order, and the expected results
//! seed      the objects that gardenlet would write: those of ../azure.yaml (or of another cloud), then another image
//! hold      the same for `-- hold`: zones that roll one after the other, and a budget that holds a roll
//! picture   the picture of the README, from the output of a run
//! ticker    watches the Worker and the objects that result from it, and prints a line for each change
//! sentence  the text of such a line about an object
//! ```
//!
//! The control plane and machine-controller-manager are those of the tests (`test/support/`). The controller is this
//! program itself: called with one of its commands, it runs as `gardener-extension-worker`. No other program has to be
//! built or found.

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

/// Commands of `gardener-extension-worker` that this program also has.
const COMMANDS: [&str; 5] = ["controller", "diagnose", "preview", "rollouts", "why"];

/// Runs the demo, or `gardener-extension-worker` with Pebble if called with one of [`COMMANDS`].
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|command| COMMANDS.contains(&command.as_str())) {
        return tiny::PROGRAM.run(std::env::args_os());
    }
    run(&Arguments::parse())
}

/// Shows in a real control plane how a Worker results in ready nodes, and how another image replaces them.
#[derive(Parser)]
#[command(name = "local")]
pub struct Arguments {
    /// The story to show instead of the usual one.
    #[command(subcommand)]
    part: Option<Part>,
    /// The cloud of the example.
    #[arg(value_enum, default_value_t = seed::Cloud::Azure)]
    cloud: seed::Cloud,
    /// End after the story instead of running until Ctrl-C.
    #[arg(long, global = true)]
    exit: bool,
    /// Let deletions of machines take 30 s, as in production, instead of less than one second.
    #[arg(long, global = true)]
    unhurried: bool,
    /// Wait for Enter before each part, so that you can try the printed commands in another terminal.
    #[arg(long, global = true)]
    tour: bool,
    /// Write pictures of this run (`roll-light.svg` and `roll-dark.svg`) into a folder, and end.
    #[arg(long, value_name = "FOLDER")]
    picture: Option<PathBuf>,
}

/// Other stories.
#[derive(Clone, Copy, clap::Subcommand)]
enum Part {
    /// Zones roll one after the other, a budget lets one of two Workers roll, and its class is reverted.
    Hold,
}

/// Runs the story to its end.
pub fn run(arguments: &Arguments) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(story::report(arguments));
    // Does not wait for an interrupted build.
    runtime.shutdown_background();
    code
}
