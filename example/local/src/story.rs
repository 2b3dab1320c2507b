//! The steps of the demo in their order, and their expected results.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::slice;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use tokio::signal::unix::{Signal, SignalKind, signal};

use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, Deletion, MachineControllerManager, Process, eventually};
use test_support::openstack::{OpenStack, Project};
use test_support::program;

use super::hold;
use super::picture::Picture;
use super::seed::{Example, POOL_WITHOUT_QUOTA, resource, workers};
use super::sentence::Kind;
use super::ticker::{Ticker, Voice};
use super::{Arguments, Part};

/// Time limit for each part. On an idle machine a part takes some seconds, with `--unhurried` a minute or two.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(300);
/// Exit status of a program that was ended by a signal, by the convention of shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs the demo, and always cleans up.
pub(crate) async fn report(arguments: &Arguments) -> ExitCode {
    let reported = match arguments.part {
        Some(Part::Hold) => hold::report(arguments).await,
        None => try_to_report(arguments).await,
    };
    match reported {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn try_to_report(arguments: &Arguments) -> Result<ExitCode> {
    let voice = Voice::new();
    let mut interruption = Interruption::new()?;
    let openstack = OpenStack::start()?;
    let project = openstack.project("demo");
    let example = Example::read(arguments.cloud, &project)?;
    let stage = tokio::select! {
        stage = Stage::build(slice::from_ref(&example), &[], arguments, &voice) => stage?,
        () = interruption.comes() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    println!("{}", stage.first_commands(&example)?);
    let ticker = Ticker::start(&stage.client, &example.namespace, voice.clone());
    let code = tokio::select! {
        reported = play(&stage, &example, &project, arguments, &voice) => match reported {
            Ok(()) if arguments.exit || arguments.picture.is_some() => ExitCode::SUCCESS,
            Ok(()) => {
                println!("{}", stage.commands_to_try(&example)?);
                interruption.comes().await;
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("\nThe demo failed. Expected: {error:#}\n{}", stage.ends_of_logs());
                ExitCode::FAILURE
            }
        },
        () = interruption.comes() => ExitCode::from(INTERRUPTED),
    };
    drop(ticker);
    voice.print_line("stopping everything");
    stage.stop().await?;
    Ok(code)
}

/// The parts: machines appear, machines are replaced, machines can't be created.
async fn play(
    stage: &Stage,
    example: &Example,
    openstack: &Project,
    arguments: &Arguments,
    voice: &Voice,
) -> Result<()> {
    let Stage { client, .. } = stage;
    pause(arguments, "the Worker is created").await?;
    voice.print_line(&format!("gardenlet's turn: it writes the Worker with {} pools", example.pools()));
    example.apply_worker(client).await?;
    let first = wait_for_nodes(client, example, example.first_version()?).await?;
    voice.print_line(&format!("the Worker is Succeeded, {} nodes are ready", first.len()));
    for name in openstack.names() {
        voice.print_line(&format!("OpenStack has server group {name}"));
    }

    let next_version = example.next_version()?;
    pause(arguments, &format!("all pools roll to image {next_version}")).await?;
    let roll_begins = voice.printed().len();
    voice.print_line(&format!("gardenlet's turn again: all pools get image {next_version}"));
    example.change_image(client, next_version).await?;
    let second = wait_for_nodes(client, example, next_version).await?;
    ensure!(first.is_disjoint(&second), "all nodes are new; old ones still exist: {:?}", first.intersection(&second));
    voice.print_line(&format!(
        "the Worker is Succeeded, {} other nodes are ready, old classes are deleted",
        second.len()
    ));
    if let Some(folder) = &arguments.picture {
        return take_picture(stage, example, arguments, &voice.printed()[roll_begins..])?.write(folder);
    }
    show_failure(stage, example, arguments, voice).await
}

/// The last part: a pool gets no machines, and `diagnose` prints why.
async fn show_failure(stage: &Stage, example: &Example, arguments: &Arguments, voice: &Voice) -> Result<()> {
    pause(arguments, &format!("the pool {POOL_WITHOUT_QUOTA} is added, and the cloud has no quota left for it"))
        .await?;
    voice.print_line(&format!(
        "gardenlet's turn again: it adds the pool {POOL_WITHOUT_QUOTA}; the cloud has no quota left"
    ));
    example.add_pool_without_quota(&stage.client).await?;
    let workers = workers(&stage.client, &example.namespace);
    eventually(STEP_TIMEOUT, "the Worker reports the used up quota", async || {
        let worker = workers.get(&example.name).await?;
        let codes = &worker.data["status"]["lastError"]["codes"];
        ensure!(*codes == serde_json::json!(["ERR_INFRA_QUOTA_EXCEEDED"]), "status: {}", worker.data["status"]);
        Ok(())
    })
    .await?;
    voice.print_line("the Worker is in Error, the other nodes stay; diagnose reports the reason and the next step");
    let kubeconfig = stage.control_plane.kubeconfig_file(ADMIN)?;
    println!("\n$ gardener-extension-worker diagnose {}", example.namespace);
    println!("{}", output_of(&["diagnose", &example.namespace], &kubeconfig)?);
    Ok(())
}

/// The output of a command of this program. Findings may cause a nonzero exit code.
pub(crate) fn output_of(arguments: &[&str], kubeconfig: &Path) -> Result<String> {
    let own_binary = std::env::current_exe().context("finding this program")?;
    let output = Command::new(own_binary).args(arguments).env("KUBECONFIG", kubeconfig).output()?;
    ensure!(!output.stdout.is_empty(), "{arguments:?} printed nothing: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits for Enter, with `--tour`.
pub(crate) async fn pause(arguments: &Arguments, next: &str) -> Result<()> {
    if !arguments.tour || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    println!("\nPress Enter to continue. Next: {next}.");
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    Ok(())
}

/// `preview` of the change, the roll and `why`.
fn take_picture(stage: &Stage, example: &Example, arguments: &Arguments, roll: &[String]) -> Result<Picture> {
    let kubeconfig = stage.control_plane.kubeconfig_file(ADMIN)?;
    let file = arguments.cloud.file();
    let changed = example.changed_file(arguments.cloud)?;
    let path = changed.path().to_str().context("the name of the changed file")?;
    let deployment = format!("{}/{}", example.namespace, example.first_deployment());
    let mut picture = Picture::default();
    picture.run(&format!("preview {file} changed.yaml"), &["preview", file, path], &kubeconfig)?;
    let of_worker =
        roll.iter().map(String::as_str).filter(|line| line.contains("  Worker  ") || line.contains("  Node  "));
    picture.add("kubectl apply -f changed.yaml", of_worker);
    picture.run(&format!("why {deployment}"), &["why", &deployment], &kubeconfig)?;
    Ok(picture)
}

/// Waits until the Worker is Succeeded and all of its classes have this image. Returns its nodes, which must be ready.
async fn wait_for_nodes(client: &Client, example: &Example, version: &str) -> Result<BTreeSet<String>> {
    let workers = workers(client, &example.namespace);
    let class = resource(Kind::MachineClass.group_version(), Kind::MachineClass.name());
    let classes: Api<DynamicObject> = Api::namespaced_with(client.clone(), &example.namespace, &class);
    let what = format!("the Worker is Succeeded, and all its classes are of image {version}");
    eventually(STEP_TIMEOUT, &what, async || {
        let worker = workers.get(&example.name).await?;
        let last = &worker.data["status"]["lastOperation"];
        ensure!(
            !worker.annotations().contains_key("gardener.cloud/operation"),
            "the controller has not handled the request"
        );
        ensure!(last["state"] == "Succeeded", "last operation: {last}");
        let classes = classes.list(&ListParams::default()).await?.items;
        let is_of_version =
            |class: &DynamicObject| class.labels().get("operatingSystemVersion").is_some_and(|label| label == version);
        let other: Vec<_> =
            classes.iter().filter(|class| !is_of_version(class)).map(|class| class.name_any()).collect();
        ensure!(!classes.is_empty() && other.is_empty(), "other classes exist: {other:?}");
        Ok(())
    })
    .await?;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
    let is_ready = |node: &&Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    let ready: BTreeSet<_> = nodes.iter().filter(is_ready).map(|node| node.name_any()).collect();
    let expected = example.machines();
    ensure!(ready.len() == expected, "{expected} nodes are ready; found {ready:?}");
    Ok(ready)
}

/// All running processes.
pub(crate) struct Stage {
    pub(crate) client: Client,
    // Dropped and stopped in this order.
    controller: Process,
    machines: Vec<MachineControllerManager>,
    pub(crate) control_plane: ControlPlane,
}

impl Stage {
    /// Starts all processes, and writes the objects that the Workers need. `options` are passed to the controller.
    pub(crate) async fn build(
        examples: &[Example],
        options: &[&str],
        arguments: &Arguments,
        voice: &Voice,
    ) -> Result<Self> {
        voice.print_line("starting etcd and kube-apiserver (the first time they are built, which takes minutes)");
        let control_plane = ControlPlane::start().await?;
        let client = control_plane.client(ADMIN).await?;
        voice.print_line("starting the controller: gardener-extension-worker controller");
        let controller = start_controller(&control_plane, options)?;
        voice.print_line(&format!("gardenlet's turn: it writes Cluster and secrets from {}", arguments.cloud.file()));
        for example in examples {
            example.apply_surroundings(&client).await?;
            example.report_machine_controller_manager(&client).await?;
        }
        voice.print_line("starting machine-controller-manager, with a cloud in memory");
        let deletion = if arguments.unhurried { Deletion::AsShipped } else { Deletion::Hastened };
        let mut machines = Vec::new();
        for example in examples {
            machines.push(MachineControllerManager::start(&control_plane, &example.namespace, deletion).await?);
        }
        Ok(Self { client, controller, machines, control_plane })
    }

    pub(crate) async fn stop(self) -> Result<()> {
        let Self { client: _, controller, machines, control_plane } = self;
        controller.stop(Duration::from_secs(3)).await?;
        for machines in machines {
            machines.stop().await?;
        }
        control_plane.stop().await
    }

    fn processes(&self) -> Vec<&Process> {
        let machines = self.machines.iter().flat_map(MachineControllerManager::processes);
        [&self.controller].into_iter().chain(machines).chain([self.control_plane.apiserver()]).collect()
    }

    /// The last lines of all logs.
    pub(crate) fn ends_of_logs(&self) -> String {
        let processes = self.processes().into_iter();
        processes.map(|process| format!("\n{}:\n{}\n", process.name(), process.last_lines(15))).collect()
    }

    /// The kubeconfig, and two commands that have output at any time.
    fn first_commands(&self, example: &Example) -> Result<String> {
        let kubeconfig = self.control_plane.kubeconfig_file(ADMIN)?;
        Ok(format!(
            "
In another terminal:

  export KUBECONFIG={kubeconfig}
  gardener-extension-worker diagnose {namespace}
  kubectl get nodes --watch
",
            kubeconfig = kubeconfig.display(),
            namespace = example.namespace,
        ))
    }

    /// Commands for the running demo.
    fn commands_to_try(&self, example: &Example) -> Result<String> {
        let kubeconfig = self.control_plane.kubeconfig_file(ADMIN)?;
        let Example { namespace, name, .. } = example;
        let logs = self.processes().into_iter().map(|process| format!("  tail -f {}\n", process.log().display()));
        let logs: String = logs.collect();
        Ok(format!(
            "
The demo continues to run and prints each change. If you remove the pool {pool}, the Worker recovers. In another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl -n {namespace} get workers,machineclasses,machinedeployments,machines
  kubectl -n {namespace} edit worker {name}        # for example the minimum of a pool; then request it, as gardenlet does:
  kubectl -n {namespace} annotate worker {name} gardener.cloud/operation=reconcile
  gardener-extension-worker why {namespace}/{deployment}         # which change rolled these nodes
  gardener-extension-worker explain {namespace}             # why each pool has its image and class
  gardener-extension-worker diagnose {namespace}            # what is wrong, and the next step

The logs:

{logs}
Ctrl-C ends and removes everything.",
            kubeconfig = kubeconfig.display(),
            deployment = example.first_deployment(),
            pool = POOL_WITHOUT_QUOTA,
        ))
    }
}

/// Starts this program as the controller, with its own user.
fn start_controller(control_plane: &ControlPlane, options: &[&str]) -> Result<Process> {
    let own_binary = std::env::current_exe().context("finding this program")?;
    let program = program::controller("controller", own_binary, control_plane.kubeconfig_file(CONTROLLER)?);
    let program = options.iter().fold(program, |program, option| program.arg(option));
    Process::start(program, control_plane.folder())
}

/// Ctrl-C, or SIGTERM.
pub(crate) struct Interruption([Signal; 2]);

impl Interruption {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    pub(crate) async fn comes(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
