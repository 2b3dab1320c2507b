//! The command line. Every command uses the same library as the controller.
//!
//! Data is printed to stdout, and everything else to stderr. `exit` contains the exit codes of all commands.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use conclude::conclude;
use exit::Exit;

mod cloudprofile;
mod complete;
mod completions;
mod conclude;
pub(crate) mod configuration_file;
mod diagnose;
mod documentation;
mod durations;
mod environment;
mod evidence;
mod exit;
mod explain;
mod forecast;
mod images;
mod in_parallel;
pub mod input;
pub mod json_fields;
mod landscape;
mod man;
mod page;
mod preview;
mod program;
mod progress;
mod reference;
pub mod render;
mod rollouts;
mod sarif;
mod schema;
mod screen;
mod table;
mod takeover;
mod target;
mod terminal;
mod thread_cache;
mod version;
mod whole_file;
mod why;
mod worker_warnings;

pub use program::{Call, Program};
pub use reference::reference;

/// A Gardener extension that turns Workers into machines.
#[derive(Debug, Parser)]
#[command(name = "gardener-extension-worker", version, about, propagate_version = true, after_help = exit::overview())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile the Workers of a seed.
    Controller(controllers::controller::ControllerArguments),
    /// Serve webhooks that reject invalid CloudProfiles and Shoots when users write them.
    Admission(crate::admission::AdmissionArguments),
    /// Serve a webhook that adds the provider's sidecar to machine-controller-manager.
    Sidecar(crate::sidecar::SidecarArguments),
    /// Preview the effect of a change on machines, with the pools that roll and the causes.
    Preview(preview::PreviewArguments),
    /// Prepare a takeover of Workers from the Go extension.
    Takeover(takeover::TakeoverArguments),
    /// Show the machine objects of Workers in files, without a cluster.
    Render(render::RenderArguments),
    /// Show why a Worker is not ready, and the next step, from a cluster or from files.
    Diagnose(diagnose::DiagnoseArguments),
    /// List pools that roll, wait, are stopped or on hold, what ends that, and the command that changes it.
    Rollouts(rollouts::RolloutsArguments),
    /// Explain the inputs, image, replicas and hash that determine the machines of each pool.
    Explain(explain::ExplainArguments),
    /// Show which input rolled the machines of a machine deployment, and when.
    Why(why::WhyArguments),
    /// Forecast version changes of shoots, with their time and cause, until they are stable or stuck.
    Forecast(forecast::ForecastArguments),
    /// Check, compare, convert and shorten CloudProfiles.
    Cloudprofile(cloudprofile::CloudProfileArguments),
    /// Find, lock and compare machine images, and fill CloudProfiles with them.
    Images(images::ImagesArguments),
    /// Print a script that completes commands and options in a shell.
    Completions(completions::CompletionsArguments),
    /// Print what can follow on the command line.
    #[command(hide = true)]
    Complete(complete::CompleteArguments),
    /// Print or write manual pages.
    Man(man::ManArguments),
    /// Print the JSON schema of a command's output, or of CloudProfiles.
    Schema(schema::SchemaArguments),
    /// Print the version.
    Version(version::VersionArguments),
}

impl Command {
    /// Whether the command runs until it is stopped.
    fn is_server(&self) -> bool {
        matches!(self, Self::Controller(_) | Self::Admission(_) | Self::Sidecar(_))
    }
}

impl Call {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        if !self.arguments.command.is_server() {
            thread_cache::enable();
        }
        let Self { program, arguments, clouds } = self;
        let providers = program.providers;
        let result = match arguments.command {
            Command::Controller(arguments) => match arguments.scope(providers) {
                Ok(scope) => {
                    return process_exit(controllers::controller::run::start::run(arguments, scope, providers, clouds));
                }
                Err(error) => Err(exit::wrong_usage(format!("{error:#}"))),
            },
            Command::Admission(arguments) => return process_exit(crate::admission::run(arguments, providers)),
            Command::Sidecar(arguments) => return process_exit(crate::sidecar::run(arguments, providers)),
            Command::Preview(arguments) => preview::run(&arguments, providers),
            Command::Takeover(arguments) => takeover::run(&arguments, providers),
            Command::Render(arguments) => render::run(&arguments, providers),
            Command::Diagnose(arguments) => diagnose::run(&arguments, providers),
            Command::Rollouts(arguments) => rollouts::run(&arguments, providers),
            Command::Explain(arguments) => explain::run(&arguments, providers),
            Command::Why(arguments) => why::run(&arguments),
            Command::Forecast(arguments) => forecast::run(&arguments),
            Command::Cloudprofile(arguments) => cloudprofile::run(&arguments, providers),
            Command::Images(arguments) => images::run(&arguments, providers),
            Command::Completions(arguments) => completions::run(&arguments, program.command()),
            Command::Complete(arguments) => complete::run(&arguments, &program.command()),
            Command::Man(arguments) => man::run(&arguments, program.command()),
            Command::Schema(arguments) => schema::run(&arguments),
            Command::Version(arguments) => version::run(&arguments, providers),
        };
        conclude(result).into()
    }
}

/// A server process only reports whether it failed.
fn process_exit(code: ExitCode) -> ExitCode {
    if code == ExitCode::SUCCESS { code } else { Exit::Failed.into() }
}
