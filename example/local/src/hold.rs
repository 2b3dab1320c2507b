//! `local -- hold`: the zones of a pool roll one after the other, a budget lets one of two Workers roll, and a class
//! whose machines fail is reverted.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::task::JoinHandle;

use test_support::cluster::{ADMIN, eventually};

use super::Arguments;
use super::seed::{Example, Identity, resource, workers};
use super::sentence::Kind;
use super::story::{INTERRUPTED, Interruption, STEP_TIMEOUT, Stage, output_of, pause};
use super::ticker::Voice;

/// Interval between two counts of the machines.
const COUNT_PERIOD: Duration = Duration::from_millis(100);

/// Runs the demo, and always cleans up.
pub(crate) async fn report(arguments: &Arguments) -> Result<ExitCode> {
    let voice = Voice::new();
    let mut interruption = Interruption::new()?;
    let examples = [Example::of_one_pool("riverside")?, Example::of_one_pool("lakeside")?];
    let stage = tokio::select! {
        stage = Stage::build(&examples, &["--roll-budget=1"], arguments, &voice) => stage?,
        () = interruption.comes() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let code = tokio::select! {
        reported = play(&stage, &examples, arguments, &voice) => match reported {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("\nThe demo failed. Expected: {error:#}\n{}", stage.ends_of_logs());
                ExitCode::FAILURE
            }
        },
        () = interruption.comes() => ExitCode::from(INTERRUPTED),
    };
    if code == ExitCode::SUCCESS && !arguments.exit {
        println!("\nCtrl-C ends and removes everything.");
        interruption.comes().await;
    }
    voice.print_line("stopping everything");
    stage.stop().await?;
    Ok(code)
}

async fn play(stage: &Stage, examples: &[Example; 2], arguments: &Arguments, voice: &Voice) -> Result<()> {
    let [first, second] = examples;
    let client = &stage.client;
    for example in examples {
        voice
            .print_line(&format!("gardenlet's turn: it writes the Worker {} with a pool in three zones", example.name));
        example.apply_worker(client).await?;
    }
    for example in examples {
        succeeded(client, example).await?;
    }
    voice.print_line(&format!("both Workers are Succeeded, each with {} nodes", first.machines()));
    roll_zone_by_zone(client, first, arguments, voice).await?;
    hold_and_take_back(stage, [first, second], arguments, voice).await
}

/// The zones of a pool roll one after the other.
async fn roll_zone_by_zone(client: &Client, example: &Example, arguments: &Arguments, voice: &Voice) -> Result<()> {
    pause(arguments, "the zones of a pool roll one after the other").await?;
    let version = example.next_version()?;
    voice.print_line(&format!("{} gets image {version}, with the annotation zone-by-zone", example.name));
    let count = Count::start(client, example, voice);
    example.roll_zone_by_zone(client, version).await?;
    succeeded(client, example).await?;
    let Numbers { above, below } = count.stop();
    voice.print_line(&format!("all zones have rolled; most nodes at once: {above} too many, {below} too few"));
    Ok(())
}

/// Another identity renames the classes of both Workers. The budget lets only the first one roll, whose machines fail.
async fn hold_and_take_back(
    stage: &Stage,
    examples: [&Example; 2],
    arguments: &Arguments,
    voice: &Voice,
) -> Result<()> {
    let [first, second] = examples;
    let client = &stage.client;
    pause(arguments, "another identity renames the classes of both Workers").await?;
    let before = machines_that_run(client, &examples).await?;
    voice.print_line(&format!(
        "{} and {} get another identity; new machines of {} fail",
        first.name, second.name, first.name
    ));
    first.change_identity(client, Identity::OtherWhoseMachinesFail).await?;
    eventually(STEP_TIMEOUT, "a machine of the new class fails", async || {
        let machines = machines(client, first).await?;
        let fails = machines.iter().any(|machine| phase(machine) == "Failed" || phase(machine) == "CrashLoopBackOff");
        ensure!(fails, "{} machines, and none fails", machines.len());
        Ok(())
    })
    .await?;
    second.change_identity(client, Identity::Other).await?;
    succeeded(client, second).await?;
    let worker = workers(client, &second.namespace).get(&second.name).await?;
    let held = condition(&worker, "RollsHeld").context("the condition RollsHeld")?;
    ensure!(held["status"] == "True" && held["reason"] == "BudgetUsedUp", "the condition is {held}");
    voice.print_line(&format!(
        "{} keeps its class and is Succeeded, because {} uses the only slot",
        second.name, first.name
    ));
    let kubeconfig = stage.control_plane.kubeconfig_file(ADMIN)?;
    println!("\n$ gardener-extension-worker rollouts -A");
    println!("{}", output_of(&["rollouts", "-A"], &kubeconfig)?);

    pause(arguments, "the identity is restored").await?;
    voice.print_line("both Workers get their identity back");
    for example in examples {
        example.change_identity(client, Identity::Own).await?;
    }
    for example in examples {
        succeeded(client, example).await?;
    }
    let after = machines_that_run(client, &examples).await?;
    let replaced = before.difference(&after).count();
    ensure!(replaced == 0, "no machine was replaced; gone: {:?}", before.difference(&after));
    voice.print_line(&format!("both Workers are Succeeded; {replaced} of {} machines were replaced", before.len()));
    Ok(())
}

/// Waits until the requested operation has succeeded.
async fn succeeded(client: &Client, example: &Example) -> Result<()> {
    let workers = workers(client, &example.namespace);
    eventually(STEP_TIMEOUT, &format!("the Worker {} is Succeeded", example.name), async || {
        let worker = workers.get(&example.name).await?;
        let last = &worker.data["status"]["lastOperation"];
        let is_requested = worker.annotations().contains_key("gardener.cloud/operation");
        ensure!(!is_requested && last["state"] == "Succeeded", "last operation: {last}");
        Ok(())
    })
    .await
}

fn condition<'a>(worker: &'a DynamicObject, of_type: &str) -> Option<&'a Value> {
    worker.data["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == of_type)
}

async fn machines(client: &Client, example: &Example) -> Result<Vec<DynamicObject>> {
    let resource = resource(Kind::Machine.group_version(), Kind::Machine.name());
    let machines: Api<DynamicObject> = Api::namespaced_with(client.clone(), &example.namespace, &resource);
    Ok(machines.list(&ListParams::default()).await?.items)
}

fn phase(machine: &DynamicObject) -> &str {
    machine.data["status"]["currentStatus"]["phase"].as_str().unwrap_or_default()
}

/// Names of running machines.
async fn machines_that_run(client: &Client, examples: &[&Example]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for example in examples {
        let machines = machines(client, example).await?;
        names.extend(machines.iter().filter(|machine| phase(machine) == "Running").map(ResourceExt::name_any));
    }
    Ok(names)
}

/// Differences from the target number of machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    above: usize,
    below: usize,
}

/// Counts machines until stopped, prints each change, and records the largest differences.
struct Count {
    task: JoinHandle<()>,
    largest: Arc<Mutex<Numbers>>,
}

impl Count {
    fn start(client: &Client, example: &Example, voice: &Voice) -> Self {
        let largest = Arc::new(Mutex::new(Numbers::default()));
        let (client, voice, example) = (client.clone(), voice.clone(), example.clone());
        let shared = Arc::clone(&largest);
        let task = tokio::spawn(async move {
            let mut last = Numbers::default();
            loop {
                if let Ok(machines) = machines(&client, &example).await {
                    let running = machines.iter().filter(|machine| phase(machine) == "Running").count();
                    let target = example.machines();
                    let now =
                        Numbers { above: machines.len().saturating_sub(target), below: target.saturating_sub(running) };
                    if now != last {
                        voice.print_line(&format!("  nodes: {} too many, {} too few", now.above, now.below));
                        last = now;
                    }
                    let mut largest = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    largest.above = largest.above.max(now.above);
                    largest.below = largest.below.max(now.below);
                }
                tokio::time::sleep(COUNT_PERIOD).await;
            }
        });
        Self { task, largest }
    }

    fn stop(self) -> Numbers {
        self.task.abort();
        *self.largest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
