//! Resource usage of a process according to `/proc`.

use anyhow::{Context as _, Result};

/// Clock ticks per second in `/proc/PID/stat`; the same on all current Linux platforms.
const TICKS: f64 = 100.0;

/// CPU seconds of a process so far, in user space and kernel.
pub fn processor_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("reading what a process has used")?;
    // The process name, in parentheses, may contain blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).context("no ticks");
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}

/// A memory figure in MiB: `VmHWM` (peak), `VmRSS` (current), `RssAnon` (without file pages).
pub fn memory(pid: u32, figure: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("reading the memory of a process")?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let kibibytes: f64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no such figure")?;
    Ok(kibibytes / 1024.0)
}
