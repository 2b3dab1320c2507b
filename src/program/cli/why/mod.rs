//! `why`: the causes of past rolls, from the controller's record on the machine deployments.

use std::path::PathBuf;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::evidence::{Evidence, Reply};
use super::exit::{self, Exit};
use super::forecast::moment;
use super::screen::{Page, Screen};
use super::target::{Given, Reading, given};
use super::terminal::{OBJECT_FORMATS, OutputFormat, complain, document_text, one_of, width_of};
use decisions::worker::plan::class_inputs::{ANNOTATION, History};
use read::Records;
use record::{history_json, history_text, named};
use runtime::process::threads::block_on;

mod read;
mod record;
mod rolls;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker why garden/prod --since 24h               # one line per roll of a shoot
  gardener-extension-worker why shoot--garden--prod-workers-z1        # each input of a machine deployment
  gardener-extension-worker why ip-10-250-0-7.eu-central-1            # a node, or its machine
  kubectl get machinedeployments -n shoot--garden--prod -o yaml | gardener-extension-worker why -f -

The controller records digests of the inputs of the last three class names in an annotation. It never records values.",
    &[(Exit::Findings, "a machine deployment has no record")]))]
pub(super) struct WhyArguments {
    /// Names of objects, or files with machine deployments. By default, the namespace of the kubeconfig's context.
    #[arg(value_name = "NAME|FILE")]
    objects: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    screen: Screen,
    /// Only show rolls that began within this time, such as 24h, 90m or 7d.
    #[arg(long, value_name = "TIME", value_parser = rolls::age)]
    since: Option<SignedDuration>,
    /// Day or time to which --since refers, such as the creation time of the files. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format. `wide` shows each input of each machine deployment, `name` only the names of machine deployments.
    #[arg(short, long, value_parser = one_of(OBJECT_FORMATS), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &WhyArguments) -> anyhow::Result<Reply> {
    let given = given(&arguments.objects, &arguments.reading)?;
    arguments.screen.show(given.files.is_empty(), || page(arguments, &given))
}

fn page(arguments: &WhyArguments, given: &Given) -> anyhow::Result<Page> {
    let mut evidence = Evidence::of("MachineDeployment");
    let records = match given.files.is_empty() {
        true => block_on(read::of_seed(&arguments.reading, given))?,
        false => read::of_files(&arguments.reading, given, &mut evidence)?,
    };
    let deployments = &records.deployments;
    evidence.evaluated(deployments.len());
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let since = arguments.since.and_then(|age| now.checked_sub(age).ok());
    let mut rolls = explanations::diagnose::rolls(deployments, &records.objects);
    rolls.retain(|roll| since.is_none_or(|since| roll.began >= since));
    let histories: Vec<_> =
        deployments.iter().map(|live| (named(live), live.class_inputs().and_then(History::read))).collect();
    let text = match arguments.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let deployments: Vec<Value> =
                histories.iter().map(|(name, history)| history_json(name, history.as_ref())).collect();
            let document = json!({
                "schema": "why/v1", "evidence": evidence.document(), "rolls": rolls, "machineDeployments": deployments,
            });
            document_text(&document, arguments.output)?
        }
        OutputFormat::Name => histories.iter().map(|(name, _)| format!("{name}\n")).collect(),
        format => {
            let width = width_of(format);
            // Files without a name are usually those of single machine deployments.
            let selects_shoots = given.files.is_empty() || !given.names.is_empty() || arguments.since.is_some();
            match selects_shoots && format == OutputFormat::Table && !records.is_about_deployments() {
                true => rolls::text(&rolls, deployments, since, width),
                false => details(&records, &histories, now, width),
            }
        }
    };
    let complete = histories.iter().all(|(_, history)| history.is_some());
    let exit = if complete { Exit::Done } else { Exit::Findings };
    Ok(Page { text, result: Reply::new(evidence, exit) })
}

/// Each recorded input of each machine deployment, and the selected machines.
fn details(records: &Records, histories: &[(String, Option<History>)], now: Timestamp, width: usize) -> String {
    for (name, _) in histories.iter().filter(|(_, history)| history.is_none()) {
        complain(&format!("{name}: nothing is recorded (no readable annotation {ANNOTATION})"));
    }
    let machines = records.machines().map(|machine| rolls::node_text(machine, &records.deployments, now, width));
    let recorded = histories.iter().filter_map(|(name, history)| Some((name, history.as_ref()?)));
    let texts = machines.chain(recorded.map(|(name, history)| history_text(name, history, width)));
    texts.collect::<Vec<_>>().join("\n")
}
