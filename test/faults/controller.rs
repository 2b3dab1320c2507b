//! The binary under test with a proxy of its own, which can be killed and started again.

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
    /// As in earnest. For the many.
    Usual,
    /// More than anybody logs in earnest: what must not be told must not be told here either.
    Debug,
}

/// A controller for one namespace.
pub(crate) struct Controller {
    pub(crate) proxy: Proxy,
    name: String,
    folder: PathBuf,
    chatter: Chatter,
    /// Arguments besides the kubeconfig.
    arguments: Vec<String>,
    process: Option<Process>,
}

impl Controller {
    /// Starts one; `number` tells several of one namespace apart.
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

    /// Starts one behind a proxy that is there.
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

    /// Ends it as a crash or a lost node would: at once. Returns when it is dead.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        process.ensure_running()?;
        // Dropping kills it and waits until the kernel has taken it away.
        tokio::task::spawn_blocking(move || drop(process)).await.context("killing the controller")
    }

    /// Starts it again, with a clear way to the API server.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.proxy.resume();
        self.run()
    }

    /// Fails if it has ended by itself.
    pub(crate) fn ensure_running(&self) -> Result<()> {
        self.process.as_ref().map_or(Ok(()), Process::ensure_running)
    }

    /// All that it has logged in all its lives.
    pub(crate) fn log(&self) -> Result<String> {
        let file = self.folder.join(format!("{}.log", self.name));
        let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// For the error of who waits for it in vain.
    pub(crate) fn last_words(&self) -> String {
        let held = if self.proxy.stops() { "; the proxy holds everything" } else { "" };
        let last = self.process.as_ref().map(|process| process.last_lines(5)).unwrap_or_default();
        format!("the controller's last words{held}:\n{last}\n")
    }

    /// Ends it as Kubernetes would: asks first.
    pub(crate) async fn stop(mut self) -> Result<()> {
        match self.process.take() {
            Some(process) => process.stop(Duration::from_secs(3)).await,
            None => Ok(()),
        }
    }
}
