//! Prints the results of the benchmark.

use std::fmt::Display;
use std::time::Duration;

/// Median, 95th percentile and maximum.
pub(crate) fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| {
        let index = (share * times.len() as f64) as usize;
        times.get(index.min(times.len().saturating_sub(1))).map_or(0.0, Duration::as_secs_f64)
    };
    format!("{:.2} / {:.2} / {:.2}", at(0.5), at(0.95), at(1.0))
}

/// Prints a row of a Markdown table.
pub(crate) fn row(cells: &[&dyn Display]) {
    let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
    println!("| {} |", cells.join(" | "));
}

/// Prints the title and head of a table.
pub(crate) fn head(title: &str, columns: &[&str]) {
    println!("\n## {title}\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}
