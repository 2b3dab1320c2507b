//! `why`: the causes of past rolls, from the controller's record on the machine deployment.

use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;
use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::evidence::{Evidence, Reply};
use super::exit::{self, Exit};
use super::input::machine_deployments_of_path;
use super::table::{Cell, Table, printable};
use super::terminal::{ASIDE, CAREFUL, HEADING, OutputFormat, complain, json, one_of, print, width};
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::plan::class_inputs::{ANNOTATION, ClassChange, Difference, Generation, History, InputChange};
use runtime::cluster::seed::Seed;
use runtime::process::threads::block_on;
use wire::api::machine::MachineDeployment;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker why shoot--garden--prod/shoot--garden--prod-workers-z1 --kubeconfig seed.yaml
  kubectl get machinedeployments -n shoot--garden--prod -o yaml | gardener-extension-worker why -

The controller records digests of the inputs of the last three class names in an annotation. It never records values.",
    &[(Exit::Findings, "a machine deployment has no record")]))]
pub(super) struct WhyArguments {
    /// Machine deployment of the cluster as `namespace/name`, or a file with machine deployments, or `-` for standard
    /// input.
    #[arg(value_name = "DEPLOYMENT|FILE")]
    target: String,
    #[command(flatten)]
    seed: Seed,
    /// Output format. Tables are for people, and a JSON document is for programs.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &WhyArguments) -> anyhow::Result<Reply> {
    let mut evidence = Evidence::of("MachineDeployment");
    let deployments = match deployment_in_cluster(&arguments.target) {
        Some((namespace, name)) => vec![fetch(&arguments.seed, namespace, name)?],
        None => machine_deployments_of_path(Path::new(&arguments.target), &mut evidence)?,
    };
    evidence.evaluated(deployments.len());
    let histories: Vec<_> =
        deployments.iter().map(|live| (named(live), live.class_inputs().and_then(History::read))).collect();
    match arguments.output {
        OutputFormat::Json => {
            let deployments: Vec<Value> =
                histories.iter().map(|(name, history)| history_json(name, history.as_ref())).collect();
            print(&json(&json!({
                "schema": "why/v1", "evidence": evidence.document(), "machineDeployments": deployments,
            }))?)?;
        }
        _ => {
            let width = width();
            let recorded = histories.iter().filter_map(|(name, history)| Some((name, history.as_ref()?)));
            let texts: Vec<_> = recorded.map(|(name, history)| history_text(name, history, width)).collect();
            print(&texts.join("\n"))?;
            for (name, _) in histories.iter().filter(|(_, history)| history.is_none()) {
                complain(&format!("{name}: nothing is recorded (no readable annotation {ANNOTATION})"));
            }
        }
    }
    let complete = histories.iter().all(|(_, history)| history.is_some());
    Ok(Reply::new(evidence, if complete { Exit::Done } else { Exit::Findings }))
}

/// Parses `namespace/name`. Returns `None` for the name of a file.
fn deployment_in_cluster(target: &str) -> Option<(&str, &str)> {
    let is_path_like = [".yaml", ".yml", ".json"].iter().any(|end| target.ends_with(end)) || Path::new(target).exists();
    let (namespace, name) = target.split_once('/').filter(|_| !is_path_like)?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            && text != "."
    };
    (is_name(namespace) && is_name(name)).then_some((namespace, name))
}

fn fetch(seed: &Seed, namespace: &str, name: &str) -> anyhow::Result<LiveDeployment> {
    block_on(async {
        let client = seed.client().await?;
        let api: Api<DynamicObject> =
            Api::namespaced_with(client, namespace, &ApiResource::erase::<MachineDeployment>(&()));
        let found = api.get_opt(name).await.with_context(|| format!("MachineDeployment {namespace}/{name}"))?;
        let Some(object) = found else { bail!("MachineDeployment {namespace}/{name} does not exist") };
        LiveDeployment::read_without_codes(serde_json::to_value(object)?)
            .with_context(|| format!("MachineDeployment {namespace}/{name}"))
    })
}

fn named(live: &LiveDeployment) -> String {
    let metadata = &live.object.metadata;
    let part = |part: &Option<String>| printable(part.as_deref().unwrap_or_default());
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

fn history_text(name: &str, history: &History, width: usize) -> String {
    let mut text = format!("{HEADING}{name}{HEADING:#}\n");
    let mut changes = history.changes().peekable();
    if changes.peek().is_none() {
        let class = history.generations.first().map(since_text).unwrap_or_default();
        text.push_str(&format!("  {ASIDE}no roll is recorded; {class}{ASIDE:#}\n"));
    }
    let mut table = Table::new(["", "", ""]);
    changes.for_each(|change| change_row(&change, &mut table));
    text.push_str(&table.render(2, width));
    text
}

fn since_text(generation: &Generation) -> String {
    let how = if generation.found { "was found at" } else { "was made at" };
    format!("class {} {how} {}", printable(&generation.class), generation.since)
}

fn class_text(generation: &Generation) -> String {
    let by = if generation.found { " (made by another controller)" } else { "" };
    format!("{}{by}", generation.class)
}

/// Formats a change with its time, both classes and the inputs that differ.
fn change_row(change: &ClassChange<'_>, table: &mut Table) {
    let from = change.from;
    let to = change.to;
    let recorded = if from.found { "found" } else { "recorded" };
    let before = format!("{}, {recorded} {}", class_text(from), from.since);
    table.row([to.since.to_string().into(), "to".into(), class_text(to).into()]);
    table.row(["".into(), "from".into(), before.into()]);
    match &change.difference {
        Difference::Inputs(inputs) => {
            for input in inputs {
                table.row(["".into(), Cell::styled(input.how, CAREFUL), cause_text(input).into()]);
            }
        }
        Difference::Order => table.row(["".into(), Cell::styled("changed", CAREFUL), "the order of the inputs".into()]),
        Difference::Unknown => {
            let text = "the inputs of one of the classes were not recorded";
            table.row(["".into(), Cell::styled("unknown", CAREFUL), text.into()]);
        }
    }
}

fn cause_text(input: &InputChange) -> String {
    let name = &input.input;
    match (input.is_opaque(), &input.because[..]) {
        (false, _) => name.clone(),
        (true, []) => format!("{name}, because of an input that is not known here"),
        (true, because) => format!("{name}, because of {}", because.join(", ")),
    }
}

fn history_json(name: &str, history: Option<&History>) -> Value {
    let changes = history.into_iter().flat_map(History::changes).map(|change| {
        let inputs = match &change.difference {
            Difference::Inputs(inputs) => inputs
                .iter()
                .map(|input| json!({"input": input.input, "how": input.how, "because": input.because}))
                .collect(),
            Difference::Order | Difference::Unknown => Vec::new(),
        };
        let difference = match change.difference {
            Difference::Inputs(_) => "inputs",
            Difference::Order => "order",
            Difference::Unknown => "unknown",
        };
        json!({
            "from": generation_json(change.from),
            "to": generation_json(change.to),
            "difference": difference,
            "inputs": inputs,
        })
    });
    let changes: Vec<Value> = changes.collect();
    let class = history.and_then(|history| history.generations.first()).map(generation_json);
    json!({"name": name, "recorded": history.is_some(), "class": class, "changes": changes})
}

fn generation_json(generation: &Generation) -> Value {
    json!({"class": generation.class, "since": generation.since.to_string(), "found": generation.found})
}
