//! `takeover plan`: writes the patches of a takeover for one landscape, each with a command that verifies it and one
//! that undoes it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::registration::Registration;
use super::steps::{Landscape, Step};
use super::{Selection, exit_of, table};
use crate::cli::evidence::Reply;
use crate::cli::exit::{self, Exit};
use crate::cli::preview::words::counted;
use crate::cli::terminal::{complain, print, width};
use crate::cli::whole_file::write_atomically;
use decisions::provider::Providers;
use runtime::reader::files::files;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  kubectl get extensions.operator.gardener.cloud -o yaml > extensions.yaml     # in the runtime cluster
  gardener-extension-worker takeover plan --registrations extensions.yaml --worker-type azure --to plan \\
    --chart registry.example.org/charts/gardener-extension-worker:0.1.0 --kubeconfig seed.yaml

Without gardener-operator, the file has the ControllerRegistrations and ControllerDeployments of the garden. No plan is written
without Workers, or if a node would roll. The plan itself changes nothing.",
    &[(Exit::Findings, "a permission is missing, or both extensions write"), (Exit::Roll, "nodes would be replaced or updated in place"), (Exit::Delete, "machines would be deleted"), (Exit::Invalid, "")]))]
pub(super) struct PlanArguments {
    #[command(flatten)]
    selection: Selection,
    /// File or folder with the registrations of the landscape: Extensions of gardener-operator, or
    /// ControllerRegistrations with their ControllerDeployments.
    #[arg(long, value_name = "FILE", required = true)]
    registrations: Vec<PathBuf>,
    /// Reference of this extension's chart in a registry, unless the extension is already registered.
    #[arg(long, value_name = "REF")]
    chart: Option<String>,
    /// Folder for the patches.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

pub(super) fn run(arguments: &PlanArguments, providers: Providers) -> anyhow::Result<Reply> {
    let survey = arguments.selection.survey(&arguments.selection.given()?, providers)?;
    let exit = exit_of(&survey);
    if !matches!(exit, Exit::Done | Exit::Findings) {
        print(&table::text(&survey, exit, false, width()))?;
        complain("no plan is written, because of this check");
        return Ok(Reply::new(survey.comparison.evidence, exit));
    }
    let mut worker_types: Vec<&str> = survey.facts.iter().map(|facts| facts.worker_type.as_str()).collect();
    worker_types.sort_unstable();
    worker_types.dedup();
    let registrations = registrations(&arguments.registrations)?;
    let folder = word(&arguments.to);
    let chart = arguments.chart.as_deref();
    let landscape = Landscape { registrations: &registrations, worker_types: &worker_types, chart, folder: &folder };
    let steps = landscape.steps()?;
    write(&arguments.to, &steps)?;
    let workers = counted(survey.facts.len() as u64, "Worker");
    let summary = format!(
        "{workers} of {}: no node would roll.\n{}",
        worker_types.join(", "),
        table::before_the_takeover(&survey, width())
    );
    print(&text(&steps, &summary))?;
    Ok(Reply::new(survey.comparison.evidence, exit))
}

fn registrations(paths: &[PathBuf]) -> anyhow::Result<Vec<Registration>> {
    let found = files(paths);
    if let Some(skipped) = found.skipped.first() {
        bail!("{}: {}", skipped.input, skipped.reason);
    }
    let mut objects = Vec::new();
    for file in &found.files {
        objects.extend(file.objects()?);
    }
    Registration::all(&objects)
}

fn write(folder: &Path, steps: &[Step]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: can't be created", folder.display()))?;
    for (name, document) in steps.iter().flat_map(|step| &step.files) {
        let text = serde_saphyr::to_string(document).context("a patch can't be written as YAML")?;
        write_atomically(&folder.join(name), &text)?;
    }
    Ok(())
}

/// The folder as a word of a shell, with a slash.
fn word(folder: &Path) -> String {
    let path = format!("{}/", folder.display().to_string().trim_end_matches('/'));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// The steps for a terminal. Commands are not wrapped, so that they can be copied.
fn text(steps: &[Step], summary: &str) -> String {
    let mut text = summary.to_owned();
    for (number, step) in (1..).zip(steps) {
        text.push_str(&format!("\n{number}. {}\n", step.title));
        let undo = step.undo.iter().map(|command| ("undo", command.as_str()));
        let commands = step.commands.iter().map(|command| ("run", command.as_str()));
        for (what, command) in commands.chain([("verify", step.verify.as_str()), ("expect", step.expect)]).chain(undo) {
            text.push_str(&format!("   {what:<6}  {command}\n"));
        }
    }
    text + "\nTo go back, run the commands after `undo`, from the last step to the first. After that of step 4, wait on each seed\nuntil every pod of this controller has the argument --shadow, so that two controllers never write:\n  kubectl get pods --all-namespaces --selector app.kubernetes.io/name=gardener-extension-worker -o yaml\n"
}
