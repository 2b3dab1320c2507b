//! How the figures of the bench are printed.

use std::fmt::Display;
use std::time::Duration;

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
