//! The program under test: the binary that cargo built, serving webhooks for the API server of the tests.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use test_support::cluster::{self, CONTROLLER, ControlPlane, Process, Program, eventually, free_ports};
use test_support::{garden, http, program};

/// Its Secret is here.
pub(crate) const NAMESPACE: &str = "default";
/// Name of Secret and configurations, where a test does not say another one.
pub(crate) const NAME: &str = "gardener-extension-worker-admission";

/// A running program.
pub(crate) struct Admission {
    /// Port of the webhooks.
    pub(crate) port: u16,
    health: u16,
    process: Process,
}

/// A garden with the webhooks, which all tests share.
pub(crate) async fn shared() -> Result<(&'static ControlPlane, &'static Admission)> {
    static SHARED: tokio::sync::OnceCell<Admission> = tokio::sync::OnceCell::const_new();
    let control_plane = cluster::shared().await?;
    let start = async || {
        garden::install(control_plane).await?;
        let admission = Admission::start(control_plane, "admission", |program| program).await?;
        admission.ready().await?;
        anyhow::Ok(admission)
    };
    let admission = SHARED.get_or_try_init(start).await?;
    admission.process.ensure_running()?;
    Ok((control_plane, admission))
}

impl Admission {
    /// Starts one more, with more arguments.
    pub(crate) async fn start(
        control_plane: &ControlPlane,
        name: &str,
        arguments: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        Self::start_as(control_plane, CONTROLLER, name, arguments).await
    }

    /// Starts one that acts as another user.
    pub(crate) async fn start_as(
        control_plane: &ControlPlane,
        user: &str,
        name: &str,
        arguments: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        Self::start_command(control_plane, "admission", user, name, arguments).await
    }

    /// Starts another command that has webhooks.
    pub(crate) async fn start_command(
        control_plane: &ControlPlane,
        command: &str,
        user: &str,
        name: &str,
        arguments: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        let [port, health] = free_ports()?;
        let program = Program::new(name, program::binary())
            .arg(command)
            .flag("kubeconfig", control_plane.kubeconfig_file(user)?)
            .flag("webhook-config-mode", "url")
            .flag("webhook-config-url", format!("127.0.0.1:{port}"))
            .flag("webhook-config-server-port", port.to_string())
            .flag("webhook-config-namespace", NAMESPACE)
            .flag("health-port", health.to_string())
            .env("RUST_LOG", program::DEBUG_LOG)
            .env("NO_COLOR", "1");
        let process = Process::start(arguments(program), control_plane.folder())?;
        Ok(Self { port, health, process })
    }

    /// Waits until it says that it is ready.
    pub(crate) async fn ready(&self) -> Result<()> {
        eventually(Duration::from_secs(60), "the webhooks are ready", async || {
            self.process.ensure_running()?;
            let (status, answer) = self.get("/readyz").await?;
            ensure!(status == 200, "{status} {answer}");
            Ok(())
        })
        .await
    }

    /// What it answers an operator.
    pub(crate) async fn get(&self, path: &str) -> Result<(u16, String)> {
        http::get(self.health, path).await
    }

    /// Everything it has logged.
    pub(crate) fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.process.log()).context("reading its log")
    }

    /// Its process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Asks it to end.
    pub(crate) async fn stop(self) -> Result<()> {
        self.process.stop(Duration::from_secs(15)).await
    }
}
