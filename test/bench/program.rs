//! The controller as a process: what it costs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cluster::{ControlPlane, Process, Program, eventually};

/// The binary that cargo has built for this bench.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_gardener-extension-worker");

/// The running controller.
pub(crate) struct Controller {
    process: Process,
    pid: u32,
}

impl Controller {
    /// Starts it with a kubeconfig.
    pub(crate) async fn start(control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Self> {
        let program = Program::new("controller", BINARY).arg("controller").flag("kubeconfig", kubeconfig);
        let process = Process::start(program, control_plane.folder())?;
        let pid = eventually(Duration::from_secs(10), "the controller runs", async || process.pid_of(BINARY)).await?;
        Ok(Self { process, pid })
    }

    /// Processor time until now, of user and system.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu(self.pid)
    }

    /// Memory that it has now, in KiB.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.status("VmRSS")
    }

    /// The most memory that it had since [`forget_peak`](Self::forget_peak), in KiB.
    pub(crate) fn peak(&self) -> Result<u64> {
        self.status("VmHWM")
    }

    /// From now on peaks count anew.
    pub(crate) fn forget_peak(&self) -> Result<()> {
        std::fs::write(self.file("clear_refs"), "5").context("resetting the peak")
    }

    /// The end of its log, for an error.
    pub(crate) fn last_lines(&self) -> String {
        self.process.last_lines(20)
    }

    /// Ends it.
    pub(crate) async fn stop(self) -> Result<()> {
        self.process.stop(Duration::from_secs(5)).await
    }

    fn status(&self, member: &str) -> Result<u64> {
        let text = std::fs::read_to_string(self.file("status")).context("the controller has ended")?;
        let line = text.lines().find_map(|line| line.strip_prefix(member)?.strip_prefix(':'));
        let value = line.and_then(|line| line.split_whitespace().next()).with_context(|| format!("no {member}"))?;
        Ok(value.parse()?)
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }
}

/// Processor time of a process. The kernel counts in hundredths of a second.
fn cpu(pid: u32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the process has ended")?;
    // The name in parentheses may hold anything; the numbers come after it.
    let (_, numbers) = text.rsplit_once(')').context("an unknown form of /proc/PID/stat")?;
    let ticks: Vec<u64> = numbers.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(10 * ticks.iter().sum::<u64>()))
}
