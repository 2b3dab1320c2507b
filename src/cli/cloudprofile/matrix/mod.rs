//! `cloudprofile matrix`: which image every machine type gets of every image version.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;

use super::UNREADABLE;
use super::source::OneSource;
use crate::cli::terminal::{exit_code_or, print, width};
use crate::offer::matrix::{Matrix, matrix};
use crate::offer::selection::Selection;
use crate::offer::{Offer, Profile, Resolution};
use crate::provider::Providers;

mod csv;
mod html;
mod table;

/// Arguments of `cloudprofile matrix`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker cloudprofile matrix profile.yaml --type 'Standard_D*' --image gardenlinux
  gardener-extension-worker cloudprofile matrix profile.yaml --html > matrix.html        # for a browser
  gardener-extension-worker cloudprofile matrix profile.yaml --reference ami-0abc         # who gets this image?
  gardener-extension-worker cloudprofile matrix profile.yaml --flavor azure-networking=basic
  gardener-extension-worker cloudprofile matrix --live azure --context garden -o csv

Exit codes: 0 shown, 1 the profile can't be read, or nothing in it is what was asked for.")]
pub(super) struct MatrixArguments {
    #[command(flatten)]
    source: OneSource,
    /// Only machine types of this name; `*` stands for any text. Can be given several times, like all filters.
    #[arg(long = "type", value_name = "NAME")]
    machine_types: Vec<String>,
    /// Only this image: `name` or `name@version`; `*` stands for any text.
    #[arg(long = "image", value_name = "IMAGE")]
    images: Vec<String>,
    /// Only machine types of this CPU architecture.
    #[arg(long = "arch", value_name = "NAME")]
    architectures: Vec<String>,
    /// Only this region; `*` stands for any text.
    #[arg(long = "region", value_name = "NAME")]
    regions: Vec<String>,
    /// The other way round: who gets an image whose reference contains this text?
    #[arg(long = "reference", value_name = "TEXT")]
    references: Vec<String>,
    /// The other way round: who gets a flavor that lists this value of a capability?
    #[arg(long = "flavor", value_name = "NAME=VALUE")]
    flavor: Vec<String>,
    /// Classify versions as of this moment (RFC 3339) instead of now.
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Print one page for a browser: it can be searched, and shows how each choice came about.
    #[arg(long, conflicts_with = "output")]
    html: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    Csv,
}

pub(super) fn run(arguments: &MatrixArguments, providers: Providers) -> ExitCode {
    exit_code_or(UNREADABLE, show(arguments, providers).map(|()| 0))
}

fn show(arguments: &MatrixArguments, providers: Providers) -> anyhow::Result<()> {
    let selection = selection(arguments)?;
    let found = arguments.source.read()?;
    let profile = Profile::read(found.document, providers).with_context(|| found.source)?;
    let offer = profile.offer(arguments.at.unwrap_or_else(Timestamp::now));
    check_filters(&offer, &selection)?;
    let resolution = Resolution::of(&offer);
    let matrix = matrix(&resolution, &selection);
    print(&match arguments.output {
        _ if arguments.html => html::page(&matrix)?,
        Output::Table => table::text(&matrix, selection.asks_backwards(), width()),
        Output::Csv => csv::text(&matrix),
        Output::Json => json(&matrix)?,
    })?;
    Ok(())
}

fn selection(arguments: &MatrixArguments) -> anyhow::Result<Selection> {
    let flavor = arguments.flavor.iter().map(|text| {
        let (name, value) = text.split_once('=').with_context(|| format!("--flavor {text}: NAME=VALUE is expected"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok(Selection {
        machine_types: arguments.machine_types.clone(),
        images: arguments.images.clone(),
        architectures: arguments.architectures.clone(),
        regions: arguments.regions.clone(),
        references: arguments.references.clone(),
        flavor: flavor.collect::<anyhow::Result<_>>()?,
    })
}

/// A filter that nothing follows is a typing error.
fn check_filters(offer: &Offer, selection: &Selection) -> anyhow::Result<()> {
    let Some((option, filter, mut known)) = selection.unmatched(offer).into_iter().next() else { return Ok(()) };
    known.dedup();
    known.truncate(8);
    bail!("--{option} {filter}: nothing in the profile is called that; there are for example {}", known.join(", "));
}

fn json(matrix: &Matrix<'_>) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(matrix).context("the matrix can't be written as JSON")?))
}
