//! Runs a part of Gardener as a program that reads a request per line and writes a response per line
//! (`test/control-plane/gardener/main.go`).

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::binaries;

/// A running program. It ends when its standard input is closed.
pub struct GardenerPart {
    queries: ChildStdin,
    responses: BufReader<ChildStdout>,
    _process: Child,
}

impl GardenerPart {
    /// Starts a part by its name, with further arguments.
    pub async fn start<Argument: AsRef<std::ffi::OsStr>>(part: &str, arguments: &[Argument]) -> Result<Self> {
        let binary = binaries::gardener().await?.parts;
        let mut process = Command::new(&binary)
            .arg(part)
            .args(arguments)
            // Times in texts use the time zone of gardenlet's container.
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let queries = process.stdin.take().context("no standard input")?;
        let responses = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Self { queries, responses, _process: process })
    }

    /// Sends a request and waits for the response.
    pub async fn request(&mut self, query: &Value) -> Result<Value> {
        let mut line = serde_json::to_vec(query)?;
        line.push(b'\n');
        self.queries.write_all(&line).await.context("asking a part of Gardener")?;
        let mut response = String::new();
        let length = self.responses.read_line(&mut response).await.context("waiting for a part of Gardener")?;
        ensure!(length > 0, "a part of Gardener has ended");
        Ok(serde_json::from_str(&response)?)
    }
}
