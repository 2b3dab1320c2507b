//! `images`: manages machine images. Lists, locks, updates and promotes them, and finds unused ones.

use clap::{Args, Subcommand};

use crate::cli::documentation::linked;
use crate::cli::evidence::Reply;
use decisions::provider::Providers;

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
#[command(after_help = linked("\
Examples:
  gardener-extension-worker images list --source example/images/release-2002.1
  gardener-extension-worker images update --lock images.lock --source example/images/release-2002.1
  gardener-extension-worker images fill --lock images.lock example/images/profiles/aws.yaml > aws.yaml

docs/images.md describes the rollout of a release within 48 hours."))]
pub(super) struct ImagesArguments {
    #[command(subcommand)]
    command: ImagesCommand,
}

#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// Fetch a cloud's images into a file that all other commands read.
    Fetch(fetch::FetchArguments),
    /// List images by flavor, region and version, and mark the newest, unusable and missing ones.
    List(list::ListArguments),
    /// Show the image of each flavor, why it was chosen, and why the others were not.
    Resolve(resolve::ResolveArguments),
    /// Lock the image of each flavor that has none. Locked images stay unchanged.
    Lock(lock::LockArguments),
    /// Update locked flavors to newer images, as the policy allows, and show the changes.
    Update(lock::UpdateArguments),
    /// Write locked images into both halves of CloudProfiles, and prove that no machine type gets another image.
    Fill(fill::FillArguments),
    /// Check in CI that CloudProfiles, lock and sources agree.
    Check(check::CheckArguments),
    /// Promote images from the lock of one landscape to the next after a number of days.
    Promote(promote::PromoteArguments),
    /// Show unused versions and images.
    Unused(unused::UnusedArguments),
}

pub(super) fn run(arguments: &ImagesArguments, providers: Providers) -> anyhow::Result<Reply> {
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
