//! What a process has used, as Linux tells it, and how the figures of the bench are printed.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Clock ticks of a second in `/proc/PID/stat`: fixed for all that Linux runs on today.
const TICKS: f64 = 100.0;

/// Processor seconds of a process so far, in user space and in the kernel.
pub(crate) fn processor_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("reading what a process has used")?;
    // The name, in parentheses, may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).context("no ticks");
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}

/// A figure of memory in MiB: `VmRSS` now, `VmHWM` at most.
pub(crate) fn memory(pid: u32, figure: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("reading the memory of a process")?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let kibibytes: f64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no such figure")?;
    Ok(kibibytes / 1024.0)
}

/// The median, the 95th of a hundred and the longest.
pub(crate) fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| {
        let index = (share * times.len() as f64) as usize;
        times.get(index.min(times.len().saturating_sub(1))).map_or(0.0, Duration::as_secs_f64)
    };
    format!("{:.2} / {:.2} / {:.2}", at(0.5), at(0.95), at(1.0))
}

/// A row of a table of Markdown.
pub(crate) fn row(cells: &[&dyn Display]) {
    let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
    println!("| {} |", cells.join(" | "));
}

/// The first rows of a table.
pub(crate) fn head(title: &str, columns: &[&str]) {
    println!("\n## {title}\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}
