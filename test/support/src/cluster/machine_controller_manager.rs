//! Runs the real machine-controller-manager for one namespace: two processes, with a fake cloud whose VMs are Nodes of
//! the same cluster.
//!
//! A MachineClass whose `providerSpec.tags` contain `demo.fail: <code>` (such as `ResourceExhausted`) fails to create
//! machines with that error. MachineClasses, their Secrets, Machines and Nodes have finalizers, so stop it only after
//! they are deleted.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::control_plane::{ControlPlane, free_ports};
use super::process::{Process, Program, last_lines, log_file};
use super::{MACHINE_CONTROLLER_MANAGER, binaries, eventually};
use crate::http;

/// The process that turns MachineDeployments into MachineSets and Machines.
const MACHINE_DEPLOYMENTS: &str = "machine-deployments";
/// The process that turns Machines into VMs.
const MACHINES: &str = "machines";
const ATTEMPTS: u32 = 3;
const START: Duration = Duration::from_secs(60);

/// Speed of machine deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Under a second. A change of the machine's `spec.creationTimeout` triggers each next step.
    Hastened,
    /// 25 to 30 s: six steps with pauses of 5 s that no flag changes.
    AsShipped,
}

/// Both processes. Dropping kills them.
pub struct MachineControllerManager {
    machine_deployments: Process,
    machines: Process,
}

impl MachineControllerManager {
    /// Starts both processes and waits until they are healthy.
    pub async fn start(control_plane: &ControlPlane, namespace: &str, deletion: Deletion) -> Result<Self> {
        let binary = binaries::machine_controller_manager().await?;
        let kubeconfig = control_plane.kubeconfig_file(MACHINE_CONTROLLER_MANAGER)?;
        let half = async |half: &str| -> Result<Process> {
            let mut attempt = 1;
            loop {
                let [port] = free_ports()?;
                let mut program = Program::new(name(half, namespace), &binary)
                    .arg(half)
                    .flag("control-kubeconfig", &kubeconfig)
                    .flag("target-kubeconfig", &kubeconfig)
                    .flag("namespace", namespace)
                    .flag("leader-elect", "false")
                    .flag("address", "127.0.0.1")
                    .flag("port", port.to_string())
                    .flag("kube-api-qps", "200")
                    .flag("kube-api-burst", "400")
                    .flag("v", "3");
                if half == MACHINES {
                    program = program
                        // Instead of 10 min, so that a repaired class recovers during a test.
                        .flag("resource-exhausted-retry", "5s")
                        .flag("hasten-deletion", (deletion == Deletion::Hastened).to_string());
                }
                let process = Process::start(program, control_plane.folder())?;
                match healthy(&process, port).await {
                    Err(error) if attempt < ATTEMPTS && format!("{error:#}").contains("address already in use") => {
                        attempt += 1
                    }
                    outcome => break outcome.map(|()| process),
                }
            }
        };
        let (machine_deployments, machines) = tokio::try_join!(half(MACHINE_DEPLOYMENTS), half(MACHINES))?;
        Ok(Self { machine_deployments, machines })
    }

    /// Both processes.
    pub fn processes(&self) -> [&Process; 2] {
        [&self.machine_deployments, &self.machines]
    }

    /// The end of the logs of both processes for a namespace, for error messages.
    pub fn last_lines(logs: &Path, namespace: &str, count: usize) -> String {
        let mut text = String::new();
        for half in [MACHINE_DEPLOYMENTS, MACHINES] {
            let lines = last_lines(&log_file(logs, &name(half, namespace)), count);
            text += &format!("\nlast lines of {half}:\n{lines}");
        }
        text
    }

    pub async fn stop(self) -> Result<()> {
        self.machine_deployments.stop(Duration::from_secs(3)).await?;
        self.machines.stop(Duration::from_secs(3)).await
    }
}

fn name(half: &str, namespace: &str) -> String {
    format!("{half}-{namespace}")
}

/// Waits for `/healthz`. Fails immediately if the process has ended.
async fn healthy(process: &Process, port: u16) -> Result<()> {
    let what = format!("{} is healthy", process.name());
    let healthy = eventually(START, &what, async || {
        if let Err(ended) = process.ensure_running() {
            return Ok(Err(ended));
        }
        let (status, response) = http::get(port, "/healthz").await?;
        ensure!(status == 200, "/healthz answers {status}: {response}");
        Ok(Ok(()))
    });
    match healthy.await {
        Ok(outcome) => outcome,
        Err(error) => bail!("{error:#}; its last lines:\n{}", process.last_lines(15)),
    }
}
