//! `why`: the causes of past rolls, from the controller's record on the machine deployments.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::evidence::{Answer, Evidence};
use super::exit::{self, Exit};
use super::screen::{Page, Screen};
use super::target::{Given, Reading, given};
use super::terminal::{OBJECT_FORMATS, OutputFormat, complain, document_text, one_of, width_of};
use decisions::worker::plan::class_inputs::{ANNOTATION, History};
use record::{history_json, history_text, named};
use runtime::process::threads::block_on;

mod read;
mod record;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker why garden/prod --kubeconfig seed.yaml
  gardener-extension-worker why shoot--garden--prod-workers-z1       # a machine deployment, a machine or a node
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
    /// Output format. `wide` has longer lines, `name` only the names of machine deployments.
    #[arg(short, long, value_parser = one_of(OBJECT_FORMATS), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &WhyArguments) -> anyhow::Result<Answer> {
    let given = given(&arguments.objects, &arguments.reading)?;
    arguments.screen.show(given.files.is_empty(), || page(arguments, &given))
}

fn page(arguments: &WhyArguments, given: &Given) -> anyhow::Result<Page> {
    let mut evidence = Evidence::of("MachineDeployment");
    let deployments = match given.files.is_empty() {
        true => block_on(read::of_seed(&arguments.reading, given))?,
        false => read::of_files(&arguments.reading, given, &mut evidence)?,
    };
    evidence.evaluated(deployments.len());
    let histories: Vec<_> =
        deployments.iter().map(|live| (named(live), live.class_inputs().and_then(History::read))).collect();
    let text = match arguments.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let deployments: Vec<Value> =
                histories.iter().map(|(name, history)| history_json(name, history.as_ref())).collect();
            let document = json!({
                "schema": "why/v1", "evidence": evidence.document(), "machineDeployments": deployments,
            });
            document_text(&document, arguments.output)?
        }
        OutputFormat::Name => histories.iter().map(|(name, _)| format!("{name}\n")).collect(),
        _ => {
            let width = width_of(arguments.output);
            for (name, _) in histories.iter().filter(|(_, history)| history.is_none()) {
                complain(&format!("{name}: nothing is recorded (no readable annotation {ANNOTATION})"));
            }
            let recorded = histories.iter().filter_map(|(name, history)| Some((name, history.as_ref()?)));
            let texts: Vec<_> = recorded.map(|(name, history)| history_text(name, history, width)).collect();
            texts.join("\n")
        }
    };
    let complete = histories.iter().all(|(_, history)| history.is_some());
    let exit = if complete { Exit::Done } else { Exit::Findings };
    Ok(Page { text, answer: Answer::new(evidence, exit) })
}
