//! `cloudprofile`: checks and edits CloudProfiles from files or a garden.

use clap::{Args, Subcommand};

use crate::cli::evidence::Answer;
use decisions::provider::Providers;

mod capability;
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
  gardener-extension-worker cloudprofile capability hypervisorType=gen1 example/cloudprofiles/azure.yaml
  gardener-extension-worker cloudprofile convert example/cloudprofiles/azure-legacy.yaml > azure.yaml
  gardener-extension-worker cloudprofile minimize example/cloudprofiles/azure.yaml > shorter.yaml")]
pub(super) struct CloudProfileArguments {
    #[command(subcommand)]
    command: CloudProfileCommand,
}

#[derive(Debug, Subcommand)]
enum CloudProfileCommand {
    /// Find problems in CloudProfiles, such as rejected values, ties, unused flavors, missing regions and excessive
    /// size.
    Lint(lint::LintArguments),
    /// Show the image that each machine type gets for every image version, or why it gets none.
    Matrix(matrix::MatrixArguments),
    /// Show the effects of an edit on machine types, images, versions and findings.
    Diff(diff::DiffArguments),
    /// Convert a CloudProfile between the old format and capabilities, and prove that every machine type keeps its
    /// image.
    Convert(convert::ConvertArguments),
    /// Shorten a CloudProfile, and prove that every machine type keeps its image.
    Minimize(minimize::MinimizeArguments),
    /// Show what depends on a capability or one of its values, and what breaks without it.
    Capability(capability::CapabilityArguments),
    /// Show versions with their stages and users, and which of them can be removed.
    Versions(versions::VersionsArguments),
}

pub(super) fn run(arguments: &CloudProfileArguments, providers: Providers) -> anyhow::Result<Answer> {
    match &arguments.command {
        CloudProfileCommand::Lint(arguments) => lint::run(arguments, providers),
        CloudProfileCommand::Matrix(arguments) => matrix::run(arguments, providers),
        CloudProfileCommand::Diff(arguments) => diff::run(arguments, providers),
        CloudProfileCommand::Convert(arguments) => convert::run(arguments, providers),
        CloudProfileCommand::Minimize(arguments) => minimize::run(arguments, providers),
        CloudProfileCommand::Capability(arguments) => capability::run(arguments, providers),
        CloudProfileCommand::Versions(arguments) => versions::run(arguments),
    }
}
