//! `images check`: checks that CloudProfiles, lock and sources agree.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::input::{CatalogueArguments, lock, profiles};
use crate::cli::cloudprofile::source::Location;
use crate::cli::documentation::linked;
use crate::cli::evidence::Reply;
use crate::cli::exit::{self, Exit, wrong_usage};
use crate::cli::preview::words::counted;
use crate::cli::sarif::{self, SarifResult, SarifRule};
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use decisions::provider::Providers;
use profiles::images::check::{ImageCheck, ImageFinding, ImageRule, check};
use profiles::resolved_profile::lint::Severity;
use profiles::resolved_profile::profile::Profile;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images check example/images/profiles/aws.yaml --source example/images/release-2001.2
  gardener-extension-worker images check profiles/ --lock images.lock --source images/ --owner 111111111111 -o json
  gardener-extension-worker images check profiles/ --lock images.lock --source images/ -o sarif > findings.sarif

Each image of a version that has not expired must be in a source, available, not deprecated, and have an allowed owner. It must
fit the machines of its flavor, exist in every region of the profile, and equal the locked image. Flavors of one version that fit
the same machines produce a warning, which does not affect the exit code.",
    &[(Exit::Findings, "there are errors")]))]
pub(super) struct CheckArguments {
    /// Files or folders with CloudProfiles.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// Lock to compare with.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json", "sarif"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &CheckArguments, providers: Providers) -> anyhow::Result<Reply> {
    let known = arguments.catalogue.read()?;
    let mut evidence = known.evidence.clone();
    let lock = arguments.lock.as_deref().map(|path| lock(path, false)).transpose()?;
    let mut checked = Vec::new();
    for file in profiles(&arguments.files, &mut evidence)? {
        let profile = Profile::read(file.document, providers).with_context(|| file.source.clone())?;
        let check = check(&profile, &known.catalogue, lock.as_ref(), &known.policy);
        checked.push(Checked {
            source: file.source,
            location: file.location,
            profile: profile.name().to_owned(),
            check,
        });
    }
    if arguments.catalogue.is_empty() && arguments.lock.is_none() {
        return Err(wrong_usage("nothing to compare with: name --source or --lock (see --help)"));
    }
    print(&match arguments.output {
        OutputFormat::Json => json(&evidence.attach(document(&checked)))?,
        OutputFormat::Sarif => sarif_text(&checked)?,
        _ => {
            let texts = checked.iter().map(|checked| text(&checked.profile, &checked.check, width()));
            texts.collect::<Vec<_>>().join("\n")
        }
    })?;
    let mut findings = checked.iter().flat_map(|checked| &checked.check.findings);
    let has_error = findings.any(|finding| finding.severity == Severity::Error);
    Ok(Reply::new(evidence, if has_error { Exit::Findings } else { Exit::Done }))
}

/// A profile with its findings.
struct Checked {
    source: String,
    location: Option<Location>,
    profile: String,
    check: ImageCheck,
}

impl Checked {
    fn line(&self, finding: &ImageFinding) -> Option<usize> {
        self.location.as_ref()?.line_of(&finding.path)
    }
}

fn document(checked: &[Checked]) -> Value {
    let profile = |checked: &Checked| {
        let findings = checked.check.findings.iter().map(|finding| {
            let mut document = json!(finding);
            if let Some(line) = checked.line(finding) {
                document["line"] = line.into();
            }
            document
        });
        let findings: Vec<Value> = findings.collect();
        json!({"file": checked.source, "profile": checked.profile, "checked": checked.check.checked, "findings": findings})
    };
    json!({"schema": "images-check/v1", "profiles": checked.iter().map(profile).collect::<Vec<_>>()})
}

fn sarif_text(checked: &[Checked]) -> anyhow::Result<String> {
    let rule = |rule: ImageRule| SarifRule {
        id: rule.id(),
        title: rule.title(),
        help: linked("docs/images.md#what-check-finds lists the rules."),
        url: None,
    };
    let findings =
        checked.iter().flat_map(|checked| checked.check.findings.iter().map(move |finding| (checked, finding)));
    let results = findings.map(|(checked, finding)| {
        let id = if finding.id.is_empty() { String::new() } else { format!(" {}", finding.id) };
        SarifResult {
            rule: finding.rule as usize,
            level: finding.severity.word(),
            message: format!("{}{id}: {}", finding.subject, finding.reason),
            file: &checked.source,
            line: checked.line(finding),
            path: &finding.path,
        }
    });
    let results: Vec<SarifResult<'_>> = results.collect();
    sarif::text(&ImageRule::ALL.map(rule), &results)
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
            Cell::styled(finding.rule.id(), if finding.severity == Severity::Error { BAD } else { CAREFUL }),
            finding.subject.as_str().into(),
            finding.id.as_str().into(),
            finding.reason.as_str().into(),
            Cell::styled(finding.path.as_str(), ASIDE),
        ]);
    }
    if check.findings.is_empty() { total } else { format!("{total}{}", table.render(2, width)) }
}
