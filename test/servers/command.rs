//! A process of the binary under test with all of its ports, few descriptors, and an unreachable API server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::good;
use test_support::cluster::{Process, Program, eventually, free_ports};
use test_support::program;

/// Limit of descriptors, one for every file and connection of a process. It is lower than on most systems.
const DESCRIPTORS: u32 = 640;

const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "x",
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {}}],
    "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}]}"#;

/// The command under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Controller,
    Admission,
    Sidecar,
}

impl Command {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Controller => &["controller"],
            Self::Admission => &["admission"],
            Self::Sidecar => &["sidecar", "--image=azure=mcm-azure:v1"],
        }
    }

    /// The path of reviews, if the command has webhooks.
    pub(crate) fn review_path(self) -> Option<&'static str> {
        match self {
            Self::Controller => None,
            Self::Admission => Some("/webhooks/validate"),
            Self::Sidecar => Some("/sidecar/azure"),
        }
    }
}

pub(crate) struct Running {
    pub(crate) command: Command,
    pub(crate) webhooks: u16,
    pub(crate) health: u16,
    pub(crate) metrics: u16,
    pub(crate) process: Process,
    _folder: TempDir,
}

impl Running {
    /// Starts it and waits until it responds on all of its ports.
    pub(crate) async fn start(command: Command) -> Result<Self> {
        let shell = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
        let program = Program::new("program", "/bin/sh").arg("-c").arg(shell);
        Self::start_by(command, program.arg(program::binary())).await
    }

    /// Starts it without a limit, as a process whose memory can be read.
    pub(crate) async fn start_directly(command: Command) -> Result<Self> {
        Self::start_by(command, Program::new("program", program::binary())).await
    }

    async fn start_by(command: Command, program: Program) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [webhooks, health, metrics] = free_ports()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, KUBECONFIG)?;
        let mut program = command.arguments().iter().fold(program, |program, argument| program.arg(argument));
        program = program
            .flag("kubeconfig", kubeconfig)
            .flag("health-port", health.to_string())
            .flag("metrics-port", metrics.to_string())
            .env("NO_COLOR", "1");
        if command.review_path().is_some() {
            write_certificate(folder.path())?;
            program = program
                .flag("webhook-config-server-port", webhooks.to_string())
                .flag("webhook-config-namespace", "default")
                .arg("--webhook-config-unmanaged")
                .flag("tls-cert-file", folder.path().join("tls.crt"))
                .flag("tls-private-key-file", folder.path().join("tls.key"));
        }
        let process = Process::start(program, folder.path())?;
        let running = Self { command, webhooks, health, metrics, process, _folder: folder };
        running.wait_until_ready().await?;
        Ok(running)
    }

    async fn wait_until_ready(&self) -> Result<()> {
        eventually(Duration::from_secs(60), &format!("{:?} answers", self.command), async || {
            self.process.ensure_running()?;
            good::get(self.health, "/healthz").await?;
            good::get(self.metrics, "/metrics").await?;
            match self.command.review_path() {
                None => Ok(()),
                Some(path) => good::review(self.webhooks, path).await,
            }
        })
        .await
    }

    /// Its resident memory in bytes.
    pub(crate) async fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id().await?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        ensure!(kib > 0, "{line}");
        Ok(kib << 10)
    }
}

fn write_certificate(folder: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
    std::fs::write(folder.join("tls.crt"), certificate.pem())?;
    Ok(std::fs::write(folder.join("tls.key"), key.serialize_pem())?)
}
