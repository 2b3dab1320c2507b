//! `cloudprofile minimize`: shortens a profile without changing its images.

use anyhow::Context;
use clap::Args;

use super::source::OneSource;
use super::written::{print_proof, report};
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit};
use crate::cli::terminal::{OutputFormat, json, one_of, print, width, yaml_in_place_of};
use decisions::provider::Providers;
use profiles::resolved_profile::minimize::{Bytes, Minimized, minimize};

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile minimize example/cloudprofiles/aws.yaml > shorter.yaml
  gardener-extension-worker cloudprofile minimize profile.yaml -o json | jq .steps

The profile is printed to stdout, and the steps and the comparison to stderr. The order and
comments of a file with one profile stay.",
    &[]))]
pub(super) struct MinimizeArguments {
    #[command(flatten)]
    source: OneSource,
    /// Output format. YAML contains only the profile, JSON also the report.
    #[arg(short, long, value_parser = one_of(&["yaml", "json"]), default_value = "yaml")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &MinimizeArguments, providers: Providers) -> anyhow::Result<Reply> {
    let found = arguments.source.read()?;
    let minimized = minimize(&found.document, providers).context(found.source)?;
    let evidence = Evidence::whole("CloudProfile", 1);
    match arguments.output {
        OutputFormat::Json => print(&json(&evidence.attach(serde_json::to_value(&minimized)?))?)?,
        _ => {
            print(&yaml_in_place_of(found.text.as_deref(), &minimized.profile)?)?;
            print_everything(&minimized, width());
        }
    }
    Ok(Reply::new(evidence, Exit::Done))
}

fn print_everything(minimized: &Minimized, width: usize) {
    for step in &minimized.steps {
        report(&format!("{}: {} bytes", step.step, step.bytes), 0, width);
    }
    report(
        &format!("As JSON {}; as Gardener stores it {}.", change(minimized.bytes), change(minimized.stored)),
        0,
        width,
    );
    print_proof(&minimized.proof, false, width);
    if minimized.every_machine {
        report("So does every other machine that the capabilities of the profile can describe.", 0, width);
    }
}

fn change(bytes: Bytes) -> String {
    format!("{} → {} bytes", bytes.before, bytes.after)
}
