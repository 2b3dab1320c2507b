//! What a person types. Every command calls the same library as the controller.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 some pool failed, 2 wrong usage or unreadable
//! input; commands with other codes say so in their help.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod completions;
mod explain;
pub mod input;
pub mod json_fields;
mod preview;
mod reference;
pub mod render;
mod table;
mod terminal;
mod why;

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
    /// Watch Workers in a seed cluster and make their machine objects.
    Controller(crate::runtime::ControllerArguments),
    /// Show what a change does to machines before it happens: which pools roll, and why.
    Preview(preview::PreviewArguments),
    /// Show the machine objects of Workers in files, without a cluster.
    Render(render::RenderArguments),
    /// Explain why the machines of each pool are what they are: inputs, image, numbers, hash.
    Explain(explain::ExplainArguments),
    /// Say which input rolled the machines of a machine deployment, and when.
    Why(why::WhyArguments),
    /// Print a script that completes commands and options in a shell.
    Completions(completions::CompletionsArguments),
}

/// Runs the command that the arguments name.
#[must_use]
pub fn run(arguments: Arguments) -> ExitCode {
    match arguments.command {
        Command::Controller(arguments) => crate::runtime::run(arguments),
        Command::Preview(arguments) => preview::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    }
}
