//! The results as a table.

use std::fmt;
use std::time::Duration;

/// A row of the table.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) covered: String,
    /// Durations without faults.
    pub(crate) undisturbed: Times,
    /// Durations from the fault to the end.
    pub(crate) recovery: Times,
    pub(crate) violations: Vec<String>,
}

/// Durations of many runs.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(longest) = self.0.last() else { return formatter.write_str("–") };
        let median = self.0[self.0.len() / 2];
        match self.0.len() {
            1 => write!(formatter, "{:.1} s", longest.as_secs_f64()),
            _ => write!(formatter, "{:.1} / {:.1} s", median.as_secs_f64(), longest.as_secs_f64()),
        }
    }
}

/// The table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| fault | covered | violations | undisturbed: median / longest | from the fault to the end: median / longest |\n\
         |---|---|---|---|---|\n",
    );
    for row in rows {
        let Row { what, covered, undisturbed, recovery, violations } = row;
        let violations = violations.len();
        text.push_str(&format!("| {what} | {covered} | {violations} | {undisturbed} | {recovery} |\n"));
    }
    text
}
