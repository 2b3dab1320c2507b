//! One process of the binary under test, and what it answers over HTTP.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cluster::{ControlPlane, Process, Program, eventually, free_ports};
use crate::shoot::SOON;

/// A running controller.
pub(crate) struct Controller {
    pub(crate) process: Process,
    health: u16,
    metrics: u16,
}

impl Controller {
    /// Starts one as `user`; `change` adds arguments.
    pub(crate) fn start(
        control_plane: &ControlPlane,
        name: &str,
        user: &str,
        change: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        let [health, metrics] = free_ports()?;
        let program = Program::new(name, env!("CARGO_BIN_EXE_gardener-extension-worker"))
            .arg("controller")
            .flag("kubeconfig", control_plane.kubeconfig_file(user)?)
            .flag("health-port", health.to_string())
            .flag("metrics-port", metrics.to_string())
            .env("NO_COLOR", "1");
        let process = Process::start(change(program), control_plane.folder())?;
        Ok(Self { process, health, metrics })
    }

    /// Status and body of an endpoint beside the metrics.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        self.process.ensure_running()?;
        http(self.health, method, path, body).await
    }

    /// All metrics.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let (status, text) = http(self.metrics, "GET", "/metrics", "").await?;
        ensure!(status == 200, "{status}: {text}");
        Ok(text)
    }

    /// Waits until `/readyz` says so with a text.
    pub(crate) async fn ready(&self, text: &str) -> Result<()> {
        self.readyz(200, text).await
    }

    /// Waits until `/readyz` answers with a status and a text.
    pub(crate) async fn readyz(&self, wanted: u16, text: &str) -> Result<()> {
        eventually(SOON, &format!("{} answers {wanted} {text:?}", self.process.name()), async || {
            let answer = self.ask("GET", "/readyz", "").await?;
            ensure!(answer.0 == wanted && answer.1.contains(text), "{answer:?}");
            Ok(())
        })
        .await
    }
}

/// One request to a port on loopback.
async fn http(port: u16, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), exchange).await.context("no answer")??;
    let (head, body) = answer.split_once("\r\n\r\n").context("half an answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
