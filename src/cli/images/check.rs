//! `images check`: whether CloudProfiles, lock and sources agree.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::input::{CatalogueArguments, lock, profiles};
use crate::cli::exit::{self, Exit};
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, BAD, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use crate::images::check::{ImageCheck, check};
use crate::offer::profile::Profile;
use crate::provider::Providers;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images check example/images/profiles/aws.yaml --source example/images/release-2001.2
  gardener-extension-worker images check profiles/ --lock images.lock --source images/ --owner 111111111111 -o json

Each image of a version that has not expired must be in a source, available, not deprecated, of an allowed owner, for the
machines that its flavor claims, in every region of the profile, and the one that the lock has.",
    &[(Exit::Findings, "something is found")]))]
pub(super) struct CheckArguments {
    /// Files or folders with CloudProfiles.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// The lock to compare with.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// How to print.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &CheckArguments, providers: Providers) -> anyhow::Result<Exit> {
    let known = arguments.catalogue.read()?;
    let lock = arguments.lock.as_deref().map(|path| lock(path, false)).transpose()?;
    let mut checked = Vec::new();
    for (source, document) in profiles(&arguments.files)? {
        let profile = Profile::read(document, providers).with_context(|| source.clone())?;
        let check = check(&profile, &known.catalogue, lock.as_ref(), &known.policy);
        checked.push((source, profile.name().to_owned(), check));
    }
    if arguments.output == OutputFormat::Json {
        let profiles: Vec<Value> = checked
            .iter()
            .map(|(source, name, check)| json!({"file": source, "profile": name, "checked": check.checked, "findings": check.findings}))
            .collect();
        print(&json(&json!({"schema": "images-check/v1", "profiles": profiles}))?)?;
    } else {
        let texts = checked.iter().map(|(_, name, check)| text(name, check, width()));
        print(&texts.collect::<Vec<_>>().join("\n"))?;
    }
    let is_clean = checked.iter().all(|(_, _, check)| check.findings.is_empty());
    Ok(if is_clean { Exit::Done } else { Exit::Findings })
}

fn text(name: &str, check: &ImageCheck, width: usize) -> String {
    let checked = counted(check.checked as u64, "image");
    let total = match check.findings.len() as u64 {
        0 => paragraph(&format!("{name}: {checked}, nothing found."), GOOD, 0, width),
        found => paragraph(&format!("{name}: {checked}, {}.", counted(found, "finding")), HEADING, 0, width),
    };
    let mut table = Table::new(["RULE", "IMAGE", "ID", "WHAT", "WHERE"]);
    for finding in &check.findings {
        table.row([
            Cell::styled(finding.rule.id(), BAD),
            finding.subject.as_str().into(),
            finding.id.as_str().into(),
            finding.reason.as_str().into(),
            Cell::styled(finding.path.as_str(), ASIDE),
        ]);
    }
    if check.findings.is_empty() { total } else { format!("{total}{}", table.render(2, width)) }
}
