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
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
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
        let questions = process.stdin.take().context("no standard input")?;
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Self { questions, answers, _process: process })
    }

    /// Sends a request and waits for the response.
    pub async fn ask(&mut self, question: &Value) -> Result<Value> {
        let mut line = serde_json::to_vec(question)?;
        line.push(b'\n');
        self.questions.write_all(&line).await.context("asking a part of Gardener")?;
        let mut answer = String::new();
        let length = self.answers.read_line(&mut answer).await.context("waiting for a part of Gardener")?;
        ensure!(length > 0, "a part of Gardener has ended");
        Ok(serde_json::from_str(&answer)?)
    }
}
