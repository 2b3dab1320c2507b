//! Runs the webhooks under test for the tests' API server.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cluster::{CONTROLLER, ControlPlane, Process, Program, eventually, free_ports};
use crate::{http, program};

/// The namespace of its Secret.
pub const NAMESPACE: &str = "default";

/// A running webhook process.
pub struct Webhooks {
    pub port: u16,
    health: u16,
    process: Process,
}

impl Webhooks {
    /// Starts a process with further arguments.
    pub async fn start(
        control_plane: &ControlPlane,
        name: &str,
        arguments: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        Self::start_as(control_plane, CONTROLLER, name, arguments).await
    }

    /// Starts a process that acts as another user.
    pub async fn start_as(
        control_plane: &ControlPlane,
        user: &str,
        name: &str,
        arguments: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        Self::start_command(control_plane, "admission", user, name, arguments).await
    }

    /// Starts another command with webhooks.
    pub async fn start_command(
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

    /// Waits until it is ready.
    pub async fn ready(&self) -> Result<()> {
        eventually(Duration::from_secs(60), "the webhooks are ready", async || {
            self.process.ensure_running()?;
            let (status, response) = self.get("/readyz").await?;
            ensure!(status == 200, "{status} {response}");
            Ok(())
        })
        .await
    }

    /// Returns status and body of its health and metrics endpoint.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        http::get(self.health, path).await
    }

    pub fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.process.log()).context("reading its log")
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Terminates it.
    pub async fn stop(self) -> Result<()> {
        self.process.stop(Duration::from_secs(15)).await
    }
}
