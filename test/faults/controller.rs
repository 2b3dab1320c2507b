//! The binary under test behind its own proxy. It can be killed and restarted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use test_support::cluster::{ControlPlane, Process};
use test_support::program;
use test_support::proxy::Proxy;

/// How much a controller logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chatter {
    /// As in production, for tests with many controllers.
    Usual,
    /// More verbose than in production, because no log level may reveal secrets.
    Debug,
}

/// A controller for one namespace.
pub(crate) struct Controller {
    pub(crate) proxy: Proxy,
    name: String,
    folder: PathBuf,
    chatter: Chatter,
    /// Arguments in addition to the kubeconfig.
    arguments: Vec<String>,
    process: Option<Process>,
}

impl Controller {
    /// Starts a controller; `number` distinguishes several for one namespace.
    pub(crate) async fn start(
        control_plane: &ControlPlane,
        namespace: &str,
        number: u32,
        chatter: Chatter,
    ) -> Result<Self> {
        let proxy = Proxy::start(control_plane, namespace).await?;
        let name = format!("controller-{namespace}-{number}");
        Self::with(proxy, &name, control_plane.folder(), chatter, &[])
    }

    /// Starts a controller behind an existing proxy.
    pub(crate) fn with(
        proxy: Proxy,
        name: &str,
        folder: &Path,
        chatter: Chatter,
        arguments: &[String],
    ) -> Result<Self> {
        let (name, folder, arguments) = (name.to_owned(), folder.to_owned(), arguments.to_vec());
        let mut controller = Self { proxy, name, folder, chatter, arguments, process: None };
        controller.run()?;
        Ok(controller)
    }

    fn run(&mut self) -> Result<()> {
        let log = match self.chatter {
            Chatter::Usual => "info,kube_runtime=error",
            Chatter::Debug => program::DEBUG_LOG,
        };
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.proxy.server()}}],
            "users": [{"name": "test", "user": {"token": self.proxy.token()}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        let file = self.folder.join(format!("{}.kubeconfig", self.name));
        std::fs::write(&file, kubeconfig.to_string())?;
        let program = program::controller(&self.name, program::binary(), file).env("RUST_LOG", log);
        let program = self.arguments.iter().fold(program, |program, argument| program.arg(argument));
        self.process = Some(Process::start(program, &self.folder)?);
        Ok(())
    }

    /// Kills the process as in a crash or node failure. Returns when it has ended.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        process.ensure_running()?;
        // Dropping kills it and waits for it.
        tokio::task::spawn_blocking(move || drop(process)).await.context("killing the controller")
    }

    /// Restarts the process without faults.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.proxy.resume();
        self.run()
    }

    /// Fails if it has ended on its own.
    pub(crate) fn ensure_running(&self) -> Result<()> {
        self.process.as_ref().map_or(Ok(()), Process::ensure_running)
    }

    /// The log of all its processes.
    pub(crate) fn log(&self) -> Result<String> {
        let file = self.folder.join(format!("{}.log", self.name));
        let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The end of the log, for errors after a timeout.
    pub(crate) fn last_words(&self) -> String {
        let held = if self.proxy.stops() { "; the proxy holds everything" } else { "" };
        let last = self.process.as_ref().map(|process| process.last_lines(5)).unwrap_or_default();
        format!("the controller's last words{held}:\n{last}\n")
    }

    /// Terminates the process gracefully, as Kubernetes does.
    pub(crate) async fn stop(mut self) -> Result<()> {
        match self.process.take() {
            Some(process) => process.stop(Duration::from_secs(3)).await,
            None => Ok(()),
        }
    }
}
