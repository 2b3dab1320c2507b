//! `cloudprofile matrix`: the image of every machine type for every image version.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;

use super::source::OneSource;
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit};
use crate::cli::forecast::moment;
use crate::cli::terminal::{OutputFormat, json, one_of, print, width};
use decisions::provider::Providers;
use profiles::resolved_profile::matrix::matrix;
use profiles::resolved_profile::selection::Selection;
use profiles::resolved_profile::{Profile, Resolution, ResolvedProfile};

mod csv;
mod html;
mod table;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile matrix profile.yaml --type 'Standard_D*' --image gardenlinux
  gardener-extension-worker cloudprofile matrix profile.yaml -o html > matrix.html       # for a browser
  gardener-extension-worker cloudprofile matrix profile.yaml --only problems
  gardener-extension-worker cloudprofile matrix profile.yaml --reference ami-0abc         # machine types with this image
  gardener-extension-worker cloudprofile matrix profile.yaml --flavor azure-networking=basic
  gardener-extension-worker cloudprofile matrix --live azure --context garden -o csv",
    &[]))]
pub(super) struct MatrixArguments {
    #[command(flatten)]
    source: OneSource,
    /// Only include machine types with this name. `*` matches any text. Repeatable, like all filters.
    #[arg(long = "type", value_name = "NAME")]
    machine_types: Vec<String>,
    /// Only include this image, as `name` or `name@version`. `*` matches any text.
    #[arg(long = "image", value_name = "IMAGE")]
    images: Vec<String>,
    /// Only include machine types of this CPU architecture.
    #[arg(long = "arch", value_name = "NAME")]
    architectures: Vec<String>,
    /// Only include this region. `*` matches any text.
    #[arg(long = "region", value_name = "NAME")]
    regions: Vec<String>,
    /// Find machine types whose image reference contains this text.
    #[arg(long = "reference", value_name = "TEXT")]
    references: Vec<String>,
    /// Find machine types whose flavor lists this value of a capability.
    #[arg(long = "flavor", value_name = "NAME=VALUE")]
    flavor: Vec<String>,
    /// Only include combinations that Gardener admits but that get no image, for versions that have not expired.
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Classify versions as of this day or time. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format. `html` is a searchable page that explains each choice.
    #[arg(short, long, value_parser = one_of(&["table", "json", "csv", "html"]), default_value = "table")]
    output: OutputFormat,
    /// Alias for `-o html`.
    #[arg(long, conflicts_with = "output")]
    html: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    Problems,
}

pub(super) fn run(arguments: &MatrixArguments, providers: Providers) -> anyhow::Result<Reply> {
    let selection = selection(arguments)?;
    let found = arguments.source.read()?;
    let profile = Profile::read(found.document, providers).with_context(|| found.source)?;
    let resolved_profile = profile.resolved_profile(arguments.at.unwrap_or_else(Timestamp::now));
    check_filters(&resolved_profile, &selection)?;
    let resolution = Resolution::of(&resolved_profile);
    let matrix = matrix(&resolution, &selection);
    let evidence = Evidence::whole("CloudProfile", 1);
    print(&match arguments.output {
        _ if arguments.html => html::page(&matrix)?,
        OutputFormat::Html => html::page(&matrix)?,
        OutputFormat::Csv => csv::text(&matrix),
        OutputFormat::Json => json(&evidence.attach(serde_json::to_value(&matrix)?))?,
        _ => table::text(&matrix, &selection, width()),
    })?;
    Ok(Reply::new(evidence, Exit::Done))
}

fn selection(arguments: &MatrixArguments) -> anyhow::Result<Selection> {
    let flavor = arguments.flavor.iter().map(|text| {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| exit::wrong_usage(format!("--flavor {text}: NAME=VALUE is expected")))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok(Selection {
        machine_types: arguments.machine_types.clone(),
        images: arguments.images.clone(),
        architectures: arguments.architectures.clone(),
        regions: arguments.regions.clone(),
        references: arguments.references.clone(),
        flavor: flavor.collect::<anyhow::Result<_>>()?,
        only_problems: arguments.only == Some(Only::Problems),
    })
}

/// Rejects filters without a match, because they contain a typing error.
fn check_filters(resolved_profile: &ResolvedProfile, selection: &Selection) -> anyhow::Result<()> {
    let Some((option, filter, mut known)) = selection.unmatched(resolved_profile).into_iter().next() else {
        return Ok(());
    };
    known.dedup();
    known.truncate(8);
    bail!("--{option} {filter}: nothing in the profile is called that; there are for example {}", known.join(", "));
}
