//! `complete`: what can follow on the command line, for the shell. kubectl runs it as `kubectl_complete-worker`.
//!
//! Names come from the cluster. After a failure nothing is completed, because a shell displays no error here.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command};
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};

use super::evidence::Reply;
use super::exit;
use super::table::printable;
use super::target::shoot_of_namespace;
use super::terminal::print;
use runtime::cluster::seed::Seed;
use runtime::process::threads::block_on;
use wire::api::gardener::Worker;

/// Commands whose arguments are names of objects.
const OF_OBJECTS: [&str; 6] = ["diagnose", "rollouts", "why", "explain", "preview", "check"];
/// Time in which the cluster has to answer.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of completions.
const MAX_NAMES: usize = 2_000;
/// Directive for cobra's scripts, which kubectl uses: complete no files.
const NO_FILES: &str = ":4";
/// The same, but files are completed as well.
const FILES_TOO: &str = ":0";

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Example:
  gardener-extension-worker complete diagnose shoot--garden
  ln -s gardener-extension-worker kubectl_complete-worker      # in a folder of PATH: kubectl completes `kubectl worker`", &[]))]
pub(super) struct CompleteArguments {
    /// The words after the program's name. The last one is completed.
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(super) fn run(arguments: &CompleteArguments, command: &Command) -> anyhow::Result<Reply> {
    let (last, before) = arguments.words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut names = candidates(command, last, before);
    names.retain(|name| name.starts_with(last));
    names.sort();
    names.dedup();
    names.truncate(MAX_NAMES);
    let reads_objects = before.iter().any(|word| OF_OBJECTS.contains(&word.as_str()));
    let directive = if reads_objects && !last.starts_with('-') { FILES_TOO } else { NO_FILES };
    let lines: String = names.iter().map(|name| format!("{}\n", printable(name))).collect();
    print(&format!("{lines}{directive}\n"))?;
    Ok(Reply::of_program())
}

fn candidates(command: &Command, last: &str, before: &[String]) -> Vec<String> {
    let mut current = command;
    for word in before {
        current = current.find_subcommand(word).unwrap_or(current);
    }
    if last.starts_with('-') {
        let flags = current.get_arguments().filter(|argument| !argument.is_hide_set());
        return flags.filter_map(|flag| flag.get_long()).map(|long| format!("--{long}")).collect();
    }
    let is_namespace = before.last().is_some_and(|flag| ["-n", "--namespace"].contains(&flag.as_str()));
    if is_namespace || OF_OBJECTS.contains(&current.get_name()) {
        return block_on(names(before, last, is_namespace)).unwrap_or_default();
    }
    let commands = current.get_subcommands().filter(|below| !below.is_hide_set());
    commands.map(|below| below.get_name().to_owned()).collect()
}

async fn names(before: &[String], last: &str, only_namespaces: bool) -> anyhow::Result<Vec<String>> {
    let seed = Seed::new(value(before, "--kubeconfig").map(PathBuf::from), value(before, "--context"));
    let client = seed.client().await?;
    tokio::time::timeout(CLUSTER_TIMEOUT, listed(&client, last, only_namespaces)).await?
}

/// The value of a flag among the words.
fn value(words: &[String], flag: &str) -> Option<String> {
    let behind = words.iter().position(|word| word == flag).and_then(|location| words.get(location + 1)).cloned();
    behind.or_else(|| words.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned)))
}

/// Namespaces and shoots, or the Worker and the pools of a namespace that is typed already.
async fn listed(client: &Client, last: &str, only_namespaces: bool) -> anyhow::Result<Vec<String>> {
    let resource = ApiResource::erase::<Worker>(&());
    let within = last.split_once('/').map(|(namespace, _)| namespace).filter(|name| shoot_of_namespace(name).is_some());
    let mut names = Vec::new();
    if let Some(namespace) = within {
        let workers: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        for worker in workers.list(&ListParams::default()).await?.items {
            names.push(format!("{namespace}/{}", worker.name_any()));
            let pools = worker.data["spec"]["pools"].as_array().into_iter().flatten();
            names.extend(pools.filter_map(|pool| Some(format!("{namespace}/{}", pool["name"].as_str()?))));
        }
        return Ok(names);
    }
    let workers: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    for worker in workers.list_metadata(&ListParams::default()).await?.items {
        let Some(namespace) = worker.namespace() else { continue };
        if !only_namespaces && let Some((project, shoot)) = shoot_of_namespace(&namespace) {
            names.push(format!("{project}/{shoot}"));
        }
        names.push(namespace);
    }
    Ok(names)
}
