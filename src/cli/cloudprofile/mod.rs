//! `cloudprofile`: for the people who keep CloudProfiles, from files or from a garden.

use clap::{Args, Subcommand};

use crate::cli::evidence::Answer;
use crate::provider::Providers;

mod convert;
pub(super) mod diff;
mod lint;
mod matrix;
mod minimize;
pub(super) mod source;
mod versions;
mod written;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker cloudprofile lint example/cloudprofiles/azure.yaml
  gardener-extension-worker cloudprofile matrix example/cloudprofiles/azure.yaml --type Standard_D4s_v5
  gardener-extension-worker cloudprofile matrix example/cloudprofiles/azure.yaml -o html > matrix.html
  gardener-extension-worker cloudprofile diff old.yaml new.yaml
  gardener-extension-worker cloudprofile convert example/cloudprofiles/azure-legacy.yaml > azure.yaml
  gardener-extension-worker cloudprofile minimize example/cloudprofiles/azure.yaml > shorter.yaml")]
pub(super) struct CloudProfileArguments {
    #[command(subcommand)]
    command: CloudProfileCommand,
}

#[derive(Debug, Subcommand)]
enum CloudProfileCommand {
    /// Find what is wrong with CloudProfiles, or will be: what is refused, ties, dead flavors, missing regions, size.
    Lint(lint::LintArguments),
    /// Show which image every machine type gets of every image version, or why it gets none.
    Matrix(matrix::MatrixArguments),
    /// Show what an edit does: which machine types get another image, what appears, vanishes or becomes refused.
    Diff(diff::DiffArguments),
    /// Convert a CloudProfile from the old format to capabilities, or back, and prove that every machine type gets the same image.
    Convert(convert::ConvertArguments),
    /// Write a CloudProfile shorter, and prove that every machine type gets the same image.
    Minimize(minimize::MinimizeArguments),
    /// Show which versions there are, in which stage, who uses them, and which can be removed.
    Versions(versions::VersionsArguments),
}

pub(super) fn run(arguments: &CloudProfileArguments, providers: Providers) -> anyhow::Result<Answer> {
    match &arguments.command {
        CloudProfileCommand::Lint(arguments) => lint::run(arguments, providers),
        CloudProfileCommand::Matrix(arguments) => matrix::run(arguments, providers),
        CloudProfileCommand::Diff(arguments) => diff::run(arguments, providers),
        CloudProfileCommand::Convert(arguments) => convert::run(arguments, providers),
        CloudProfileCommand::Minimize(arguments) => minimize::run(arguments, providers),
        CloudProfileCommand::Versions(arguments) => versions::run(arguments),
    }
}
