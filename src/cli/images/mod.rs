//! `images`: for the people who keep machine images: which there are, which one is used, what changes, what is unused.

use clap::{Args, Subcommand};

use crate::cli::evidence::Answer;
use crate::provider::Providers;

mod check;
mod fetch;
mod fill;
mod input;
mod list;
mod lock;
mod machine_templates;
mod promote;
mod resolve;
mod unused;
mod written;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker images list --source example/images/release-2002.1
  gardener-extension-worker images update --lock images.lock --source example/images/release-2002.1
  gardener-extension-worker images fill --lock images.lock example/images/profiles/aws.yaml > aws.yaml

docs/images.md goes through a release that has to be rolled out in 48 hours.")]
pub(super) struct ImagesArguments {
    #[command(subcommand)]
    command: ImagesCommand,
}

#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// Ask a cloud for its images, and write the file that all other commands read.
    Fetch(fetch::FetchArguments),
    /// List images by flavor, region and version: which is the newest, which can't be used, which are gone.
    List(list::ListArguments),
    /// Show which image each flavor gets, why this one, and why not the others.
    Resolve(resolve::ResolveArguments),
    /// Lock the image of each flavor that has none yet. What is locked stays.
    Lock(lock::LockArguments),
    /// Move locked flavors to newer images, as the policy allows, and show what changes.
    Update(lock::UpdateArguments),
    /// Write locked images into both halves of CloudProfiles, and prove that no machine type gets another image.
    Fill(fill::FillArguments),
    /// Check that CloudProfiles, lock and sources agree: a gate for CI.
    Check(check::CheckArguments),
    /// Move images from the lock of one landscape to that of the next, after some days.
    Promote(promote::PromoteArguments),
    /// Show which versions and images are unused.
    Unused(unused::UnusedArguments),
}

pub(super) fn run(arguments: &ImagesArguments, providers: Providers) -> anyhow::Result<Answer> {
    match &arguments.command {
        ImagesCommand::Fetch(arguments) => fetch::run(arguments),
        ImagesCommand::List(arguments) => list::run(arguments),
        ImagesCommand::Resolve(arguments) => resolve::run(arguments, providers),
        ImagesCommand::Lock(arguments) => lock::lock(arguments),
        ImagesCommand::Update(arguments) => lock::update(arguments),
        ImagesCommand::Fill(arguments) => fill::run(arguments, providers),
        ImagesCommand::Check(arguments) => check::run(arguments, providers),
        ImagesCommand::Promote(arguments) => promote::run(arguments),
        ImagesCommand::Unused(arguments) => unused::run(arguments, providers),
    }
}
