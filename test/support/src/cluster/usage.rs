//! What a process has used, as Linux tells it.

use anyhow::{Context as _, Result};

/// Clock ticks of a second in `/proc/PID/stat`: fixed for all that Linux runs on today.
const TICKS: f64 = 100.0;

/// Processor seconds of a process so far, in user space and in the kernel.
pub fn processor_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("reading what a process has used")?;
    // The name, in parentheses, may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).context("no ticks");
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}

/// A figure of memory in MiB: `VmHWM` at most, `VmRSS` now, `RssAnon` without pages of files.
pub fn memory(pid: u32, figure: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("reading the memory of a process")?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let kibibytes: f64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no such figure")?;
    Ok(kibibytes / 1024.0)
}
