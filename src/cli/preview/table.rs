//! Tables for a terminal or a log.

use std::io::{IsTerminal, Write};

use super::Comparison;
use super::words::{self, Total};
use crate::preview::finding::Severity;
use crate::preview::{Finding, PlacementChange, Verdict, WorkerChange};

/// How it looks.
pub(super) struct Look {
    colour: bool,
    all: bool,
}

impl Look {
    /// Colour only on a terminal, and not where `NO_COLOR` is set.
    pub(super) fn of_stdout(all: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colour: std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb, all }
    }

    fn paint(&self, text: &str, verdict: Option<Verdict>) -> String {
        let code = match verdict {
            _ if !self.colour => return text.to_owned(),
            Some(Verdict::Roll | Verdict::Delete) => "1;31",
            Some(Verdict::InPlace) => "1;33",
            Some(Verdict::Scale | Verdict::Create) => "33",
            Some(Verdict::Metadata) => "36",
            Some(Verdict::None) => "2",
            None => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Prints the Workers that change, then the total.
pub(super) fn print(comparison: &Comparison, look: &Look, out: &mut impl Write) -> std::io::Result<()> {
    let only_one = comparison.workers.len() == 1;
    let mut hidden = 0_u64;
    for worker in &comparison.workers {
        if look.all || only_one || worker.is_worth_showing() {
            print_worker(worker, look, out)?;
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        writeln!(out, "Nothing changes in {}.", words::counted(hidden, "other Worker"))?;
    }
    writeln!(out, "{}", look.paint(&format!("Total: {}", Total::of(comparison).line()), None))
}

fn print_worker(worker: &WorkerChange, look: &Look, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "{}", look.paint(&format!("{}/{}", worker.namespace, worker.name), None))?;
    if !worker.placements.is_empty() {
        print_rows(worker, look, out)?;
    }
    let placements: Vec<_> = worker.placements.iter().collect();
    let lines: Vec<[String; 2]> = words::shared_causes(&placements)
        .into_iter()
        .map(|(places, cause)| {
            let pool = places.first().map(|place| place.pool.clone()).unwrap_or_default();
            let (field, step) = (words::field(&cause.change, &pool), words::step(&cause.change));
            [words::place(&pool, &words::zones(&places)), format!("{field}: {step}  [{}]", words::effect(cause))]
        })
        .collect();
    if !lines.is_empty() {
        writeln!(out, "  because")?;
        for line in aligned(&lines) {
            writeln!(out, "    {line}")?;
        }
    }
    for (finding, zones) in words::shared_findings(&worker.findings) {
        writeln!(out, "  {}", look.paint(&finding_line(&finding, &zones), severity_paint(finding.severity)))?;
    }
    writeln!(out)
}

fn print_rows(worker: &WorkerChange, look: &Look, out: &mut impl Write) -> std::io::Result<()> {
    let head = ["POOL", "ZONE", "VERDICT", "NODES", "SURGE", "CLASS"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(worker.placements.iter().map(|placement| {
        [
            placement.pool.clone(),
            placement.zone.clone().unwrap_or_else(|| "-".to_owned()),
            verdict_word(placement),
            words::nodes(placement),
            words::surge(placement),
            words::class_step(placement),
        ]
    }));
    for (index, line) in aligned(&rows).into_iter().enumerate() {
        let verdict = index.checked_sub(1).and_then(|index| worker.placements.get(index)).map(|row| row.verdict);
        let line = if verdict.is_some() { look.paint(&line, verdict) } else { line };
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// The verdict, marked where new nodes will differ from those there are.
fn verdict_word(placement: &PlacementChange) -> String {
    format!("{}{}", placement.verdict, if placement.new_nodes_differ { " (!)" } else { "" })
}

fn severity_paint(severity: Severity) -> Option<Verdict> {
    match severity {
        Severity::Error => Some(Verdict::Roll),
        Severity::Hazard => Some(Verdict::Scale),
        Severity::Notice => Some(Verdict::None),
    }
}

fn finding_line(finding: &Finding, zones: &str) -> String {
    let mark = match finding.severity {
        Severity::Error => "error: ",
        Severity::Hazard => "(!) ",
        Severity::Notice => "note: ",
    };
    let place = words::place(finding.pool.as_deref().unwrap_or_default(), zones);
    let separator = if place.is_empty() { "" } else { ": " };
    format!("{mark}{place}{separator}{}", finding.message)
}

/// Columns as wide as their widest cell; no spaces at the end of a line, because logs keep them.
fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).filter(|(_, width)| **width > 0);
            let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}
