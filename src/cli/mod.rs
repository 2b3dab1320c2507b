//! What a person types. Every command calls the same library as the controller.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 some pool failed, 2 wrong usage or unreadable
//! input; commands with other codes say so in their help.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::provider::Providers;
use terminal::{complain, exit_code, print};

mod cloudprofile;
mod completions;
mod configuration_file;
mod explain;
pub mod input;
pub mod json_fields;
mod preview;
mod reference;
pub mod render;
mod table;
mod takeover;
mod terminal;
mod why;

/// Exit code of `preview`, `takeover` and `cloudprofile` where something can't be read: their 2 is a finding.
const UNREADABLE: u8 = 1;

pub use reference::reference;

/// A Gardener extension that turns Workers into machines.
#[derive(Debug, Parser)]
#[command(name = "gardener-extension-worker", version, about, propagate_version = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile the Workers of a seed.
    Controller(crate::controller::ControllerArguments),
    /// Serve webhooks that deny wrong CloudProfiles and Shoots when a person writes them.
    Admission(crate::admission::AdmissionArguments),
    /// Serve a webhook that adds the provider's sidecar to machine-controller-manager.
    Sidecar(crate::sidecar::SidecarArguments),
    /// Show what a change does to machines before it happens: which pools roll, and why.
    Preview(preview::PreviewArguments),
    /// Prepare a takeover of Workers from the Go extension.
    Takeover(takeover::TakeoverArguments),
    /// Show the machine objects of Workers in files, without a cluster.
    Render(render::RenderArguments),
    /// Explain why the machines of each pool are what they are: inputs, image, numbers, hash.
    Explain(explain::ExplainArguments),
    /// Show which input rolled the machines of a machine deployment, and when.
    Why(why::WhyArguments),
    /// Check, compare, convert and shorten CloudProfiles.
    Cloudprofile(cloudprofile::CloudProfileArguments),
    /// Print a script that completes commands and options in a shell.
    Completions(completions::CompletionsArguments),
}

/// Reads the arguments of the process.
///
/// # Errors
/// The exit code when there is nothing to run: 0 after help, else 2. For `preview`, `takeover` and `cloudprofile` that is 1,
/// because their other codes report findings.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    configuration_file::with_file(&arguments).and_then(Arguments::try_parse_from).map_err(|refusal| {
        let text = refusal.render().ansi().to_string();
        if refusal.use_stderr() {
            complain(text.trim_end());
            return ExitCode::from(failure(
                &arguments.get(1).map(|command| command.to_string_lossy()).unwrap_or_default(),
            ));
        }
        // Nothing is left to do when stdout is closed.
        let _ = print(&text);
        ExitCode::SUCCESS
    })
}

/// The exit code of a command that could not do its work.
fn failure(command: &str) -> u8 {
    if ["preview", "takeover", "cloudprofile"].contains(&command) { UNREADABLE } else { 2 }
}

/// Runs the command that the arguments name, for Workers of these providers.
#[must_use]
pub fn run(arguments: Arguments, providers: Providers) -> ExitCode {
    let (command, result) = match arguments.command {
        Command::Controller(arguments) => return crate::controller::start::run(arguments, providers),
        Command::Admission(arguments) => return crate::admission::run(arguments, providers),
        Command::Sidecar(arguments) => return crate::sidecar::run(arguments, providers),
        Command::Preview(arguments) => ("preview", preview::run(&arguments, providers)),
        Command::Takeover(arguments) => ("takeover", takeover::run(&arguments, providers)),
        Command::Render(arguments) => ("render", render::run(&arguments, providers)),
        Command::Explain(arguments) => ("explain", explain::run(&arguments, providers)),
        Command::Why(arguments) => ("why", why::run(&arguments)),
        Command::Cloudprofile(arguments) => ("cloudprofile", cloudprofile::run(&arguments, providers)),
        Command::Completions(arguments) => ("completions", completions::run(&arguments)),
    };
    exit_code(failure(command), result)
}
