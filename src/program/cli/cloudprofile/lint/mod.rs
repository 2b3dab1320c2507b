//! `cloudprofile lint`: finds current and upcoming problems of CloudProfiles.

use clap::{Args, ValueEnum};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::source::{Found, Sources};
use crate::cli::documentation::linked;
use crate::cli::evidence::Reply;
use crate::cli::exit::{self, Exit};
use crate::cli::forecast::moment;
use crate::cli::terminal::{OutputFormat, one_of, print, print_commands, width};
use decisions::provider::Providers;
use profiles::cloud_profile::validation::FeatureGates;
use profiles::resolved_profile::lint::{Report, Settings, Severity, lint, lint_namespaced};

mod github;
mod json;
mod junit;
mod sarif;
mod table;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile lint example/cloudprofiles/azure.yaml
  gardener-extension-worker cloudprofile lint --severity warning profiles/         # a gate that ignores notes
  gardener-extension-worker cloudprofile lint -o sarif profiles/ > findings.sarif  # for code scanning
  gardener-extension-worker cloudprofile lint -o github profiles/                  # marks lines of a pull request
  gardener-extension-worker cloudprofile lint --parent azure.yaml project.yaml     # a NamespacedCloudProfile before you create it
  gardener-extension-worker cloudprofile lint --live --context garden

docs/cloudprofiles.md explains every rule with an example.",
    &[(Exit::Findings, "there are findings")]))]
pub(super) struct LintArguments {
    #[command(flatten)]
    sources: Sources,
    /// Minimum severity. Less severe findings are neither printed nor counted.
    #[arg(long, value_enum, default_value_t = Least::Note)]
    severity: Least,
    /// Number of days within which a version is reported as expiring soon.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    soon: u16,
    /// Check as of this day or time. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Accept values that Gardener's feature gate VersionClassificationLifecycle allows.
    #[arg(long)]
    lifecycle: bool,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json", "sarif", "github", "junit"]), default_value = "table")]
    output: OutputFormat,
    /// Published URL of docs/cloudprofiles.md, such as https://docs.example.org/cloudprofiles. SARIF output links each
    /// rule to it. Defaults to the page in the published documentation, if there is one.
    #[arg(long, value_name = "URL", value_parser = absolute)]
    docs_url: Option<String>,
    /// Show every finding separately in tables. By default, tables group similar findings and list the ten most severe.
    #[arg(short, long)]
    all: bool,
}

fn absolute(url: &str) -> Result<String, &'static str> {
    let is_absolute = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    if is_absolute { Ok(url.to_owned()) } else { Err("begin with https://") }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Least {
    Note,
    Warning,
    Error,
}

impl From<Least> for Severity {
    fn from(least: Least) -> Self {
        match least {
            Least::Note => Self::Note,
            Least::Warning => Self::Warning,
            Least::Error => Self::Error,
        }
    }
}

/// A profile with its findings.
struct Linted {
    found: Found,
    report: Report,
}

pub(super) fn run(arguments: &LintArguments, providers: Providers) -> anyhow::Result<Reply> {
    let settings = Settings {
        now: arguments.at.unwrap_or_else(Timestamp::now),
        soon: SignedDuration::from_hours(24 * i64::from(arguments.soon)),
        gates: FeatureGates { lifecycle: arguments.lifecycle, ..FeatureGates::default() },
    };
    let mut linted = Vec::new();
    let (found, mut evidence) = arguments.sources.read()?;
    for found in found {
        let checked = match &found.parent {
            None => lint(&found.document, settings, providers),
            Some(parent) => lint_namespaced(&found.document, parent, settings, providers),
        };
        let mut report = match checked {
            Ok(report) => report,
            Err(error) => {
                let name = found.document["metadata"]["name"].as_str().unwrap_or_default();
                evidence.unevaluated(format!("{}: {} {name}: {error}", found.source, found.kind));
                continue;
            }
        };
        report.findings.retain(|finding| finding.severity <= arguments.severity.into());
        evidence.evaluated(1);
        linted.push(Linted { found, report });
    }
    if linted.is_empty() {
        return Ok(Reply::new(evidence, Exit::Failed));
    }
    let text = match arguments.output {
        OutputFormat::Json => json::text(&linted, &evidence)?,
        OutputFormat::Sarif => sarif::text(&linted, arguments.docs_url.as_deref())?,
        OutputFormat::Github => github::text(&linted),
        OutputFormat::Junit => junit::text(&linted),
        _ => table::text(&linted, &evidence, arguments.all, width()),
    };
    if arguments.output == OutputFormat::Github { print_commands(&text) } else { print(&text) }?;
    let is_clean = linted.iter().all(|linted| linted.report.findings.is_empty());
    Ok(Reply::new(evidence, if is_clean { Exit::Done } else { Exit::Findings }))
}

impl Linted {
    /// Line of a field in the file.
    fn line(&self, path: &str) -> Option<usize> {
        self.found.location.as_ref()?.line_of(path)
    }
}

/// URL that explains a rule.
fn documentation(rule: profiles::resolved_profile::lint::Rule) -> String {
    linked(&format!("docs/cloudprofiles.md#{rule}"))
}
