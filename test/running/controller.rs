//! One process of the binary under test, and its HTTP endpoints.

use std::path::Path;

use anyhow::{Result, ensure};
use test_support::cluster::{ControlPlane, Process, Program, eventually, free_ports, memory};
use test_support::shoot::SOON;
use test_support::{http, program};

/// A running controller.
pub(crate) struct Controller {
    pub(crate) process: Process,
    health: u16,
    metrics: u16,
}

impl Controller {
    /// Starts a process as `user`; `change` adds arguments.
    pub(crate) fn start(
        control_plane: &ControlPlane,
        name: &str,
        user: &str,
        change: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        Self::start_at(control_plane, name, &control_plane.kubeconfig_file(user)?, change)
    }

    /// Starts a process with a kubeconfig.
    pub(crate) fn start_at(
        control_plane: &ControlPlane,
        name: &str,
        kubeconfig: &Path,
        change: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        let [health, metrics] = free_ports()?;
        let program = program::controller(name, program::measured(), kubeconfig)
            .flag("health-port", health.to_string())
            .flag("metrics-port", metrics.to_string());
        let process = Process::start(change(program), control_plane.folder())?;
        Ok(Self { process, health, metrics })
    }

    /// Status and body of an endpoint on the health port.
    pub(crate) async fn request(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        self.process.ensure_running()?;
        http::request(self.health, method, path, body).await
    }

    pub(crate) async fn metrics(&self) -> Result<String> {
        let (status, text) = http::get(self.metrics, "/metrics").await?;
        ensure!(status == 200, "{status}: {text}");
        Ok(text)
    }

    /// Peak memory in MiB, according to Linux.
    pub(crate) async fn peak_memory(&self) -> Result<f64> {
        self.memory("VmHWM").await
    }

    /// A memory figure in MiB: `VmHWM` (peak), `VmRSS` (current), `RssAnon` (without file pages).
    pub(crate) async fn memory(&self, figure: &str) -> Result<f64> {
        memory(self.process.id().await?, figure)
    }

    /// Waits until `/readyz` returns 200 with a text.
    pub(crate) async fn ready(&self, text: &str) -> Result<()> {
        self.readyz(200, text).await
    }

    /// Waits until `/readyz` returns a status with a text.
    pub(crate) async fn readyz(&self, expected: u16, text: &str) -> Result<()> {
        eventually(SOON, &format!("{} answers {expected} {text:?}", self.process.name()), async || {
            let response = self.request("GET", "/readyz", "").await?;
            ensure!(response.0 == expected && response.1.contains(text), "{response:?}");
            Ok(())
        })
        .await
    }
}
