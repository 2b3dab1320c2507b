//! `images fetch`: writes a cloud's images to a file for all other commands.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::cli::documentation::linked;
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit};
use crate::cli::preview::words::counted;
use crate::cli::terminal::{complain, print};
use crate::cli::whole_file::write_atomically;
use profiles::images::catalogue::Catalogue;
use profiles::images::query::ImageQuery;
use profiles::images::sources::ImageList;
use runtime::cloud::image_source::ImageSource;

mod azure;
#[cfg(feature = "live-images")]
mod ec2;
mod glance;

#[derive(Debug, Args)]
#[command(after_help = examples())]
pub(super) struct FetchArguments {
    #[command(subcommand)]
    cloud: FetchCommand,
}

#[derive(Debug, Subcommand)]
enum FetchCommand {
    /// Fetch the images of accounts from EC2. Requires a build with the feature `live-images`.
    #[cfg(feature = "live-images")]
    Ec2(ec2::Ec2Arguments),
    /// Fetch the images of community and shared galleries from Azure's resource manager.
    Azure(azure::AzureArguments),
    /// Fetch the images of OpenStack projects from Glance.
    Glance(glance::GlanceArguments),
}

/// Text after the options in `--help`, with the clouds of this build.
fn examples() -> String {
    let ec2 = "\n  gardener-extension-worker images fetch ec2 --region eu-central-1 --owner self --to images/aws.yaml";
    let ec2 = if cfg!(feature = "live-images") { ec2 } else { "" };
    linked(&format!(
        "Examples:{ec2}
  gardener-extension-worker images fetch azure --location westeurope --community-gallery NAME --to images/azure.yaml
  gardener-extension-worker images fetch glance --region eu-de-1 --owner PROJECT --to images/openstack.yaml

docs/images.md describes the required permissions and credentials."
    ))
}

/// Arguments that select the output.
#[derive(Debug, Args)]
struct Target {
    /// File to write, atomically. By default, the document is printed to stdout.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(super) fn run(arguments: &FetchArguments) -> anyhow::Result<Reply> {
    match &arguments.cloud {
        #[cfg(feature = "live-images")]
        FetchCommand::Ec2(arguments) => ec2::run(arguments),
        FetchCommand::Azure(arguments) => azure::run(arguments),
        FetchCommand::Glance(arguments) => glance::run(arguments),
    }
}

/// Help text of a cloud's command.
fn help(text: &str) -> String {
    exit::help(text, &[(Exit::Findings, "done, but there are no matching images")])
}

/// A source and the queries for it.
type Query = (Box<dyn ImageSource>, Vec<ImageQuery>);

/// Runs all queries and writes the images. If one source fails, nothing is written.
async fn fetch(lookups: &[Query], target: &Target) -> anyhow::Result<Reply> {
    let mut listings = Vec::new();
    for (source, queries) in lookups {
        for query in queries {
            listings.push(source.images(query).await?);
        }
    }
    let catalogue = Catalogue::new(listings)?;
    let list = ImageList::new(catalogue.images()).covering(catalogue.coverage());
    let text = serde_saphyr::to_string(&list).context("the images can't be written as YAML")?;
    let count = counted(catalogue.images().len() as u64, "image");
    match &target.to {
        Some(path) => {
            write_atomically(path, &text)?;
            complain(&format!("{}: {count} written.", path.display()));
        }
        None => print(&text)?,
    }
    let exit = if catalogue.images().is_empty() { Exit::Findings } else { Exit::Done };
    Ok(Reply::new(Evidence::whole("image", catalogue.images().len()), exit))
}
