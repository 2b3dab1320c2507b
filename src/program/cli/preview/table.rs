//! Tables for a terminal or a log.

use anstyle::Style;

use super::Comparison;
use super::groups::{finding_groups, groups};
use super::words::{self, Total};
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, HEADING};
use explanations::preview::{Finding, PlacementChange, Severity, Verdict, WorkerChange};

/// With more changed Workers, they are grouped by cause.
const MOST_WORKERS: usize = 10;
/// Maximum number of groups, and of causes per group.
const MOST_GROUPS: usize = 8;
const MOST_CAUSES: usize = 4;
/// Indentation of lines below a Worker; causes are indented twice.
const INDENT: usize = 2;

/// The changed Workers (or all of them), then the total.
pub(in crate::cli) fn text(comparison: &Comparison, all: bool, width: usize) -> String {
    let only_one = comparison.workers.len() == 1;
    let (displayed, hidden): (Vec<_>, Vec<_>) =
        comparison.workers.iter().partition(|worker| all || only_one || worker.is_worth_showing());
    let mut text = if !all && displayed.len() > MOST_WORKERS {
        grouped(&comparison.workers, width)
    } else {
        displayed.into_iter().map(|worker| worker_text(worker, all, width)).collect()
    };
    if !hidden.is_empty() {
        let others = words::counted(hidden.len() as u64, "other Worker");
        text.push_str(&paragraph(&format!("Nothing changes in {others}."), ASIDE, 0, width));
    }
    let total = format!("Total: {}", Total::of(comparison).line());
    text.push_str(&paragraph(&comparison.evidence.headline(&total), HEADING, 0, width));
    text
}

/// Prints the Workers grouped by cause.
fn grouped(workers: &[WorkerChange], width: usize) -> String {
    let groups = groups(workers);
    let mut text = String::new();
    for group in groups.iter().take(MOST_GROUPS) {
        let style = verdict_style(group.verdict);
        let differ = if group.new_nodes_differ { " (!)" } else { "" };
        let least = if group.at_least { "at least " } else { "" };
        let counts = [(group.workers, "Worker"), (group.pools, "pool")];
        let [of_workers, pools] = counts.map(|(count, noun)| words::counted(count as u64, noun));
        let nodes = match group.nodes {
            0 if !group.at_least => String::new(),
            nodes => format!(", {least}{}", words::counted(nodes.unsigned_abs(), "node")),
        };
        text.push_str(&format!("{style}{}{differ}{style:#}: {of_workers}, {pools}{nodes}\n", group.verdict));
        for cause in group.causes.iter().take(MOST_CAUSES) {
            text.push_str(&paragraph(&format!("because {cause}"), Style::new(), INDENT, width));
        }
        if let Some(more) = group.causes.len().checked_sub(MOST_CAUSES).filter(|more| *more > 0) {
            text.push_str(&paragraph(
                &format!("and {}", words::counted(more as u64, "more cause")),
                ASIDE,
                INDENT,
                width,
            ));
        }
        text.push_str(&examples(&group.examples, group.workers, width));
    }
    if let Some(more) = groups.len().checked_sub(MOST_GROUPS).filter(|more| *more > 0) {
        text.push_str(&paragraph(&format!("… and {}", words::counted(more as u64, "more group")), ASIDE, 0, width));
    }
    for group in finding_groups(workers) {
        let location = group.examples.first().map(String::as_str).unwrap_or_default();
        let finding = finding_text(group.first, group.first.zone.as_deref().unwrap_or_default());
        let count = words::counted(group.workers as u64, "Worker");
        let style = severity_style(group.first.severity);
        text.push_str(&paragraph(&format!("{count}, such as {location}: {finding}"), style, 0, width));
    }
    text.push('\n');
    text.push_str(&paragraph("--all shows every Worker.", ASIDE, 0, width));
    text
}

fn examples(names: &[String], all: usize, width: usize) -> String {
    let others = if all > names.len() { " …" } else { "" };
    paragraph(&format!("{}{others}", names.join(", ")), ASIDE, INDENT, width)
}

fn worker_text(worker: &WorkerChange, with_sources: bool, width: usize) -> String {
    let name = printable(&format!("{}/{}", worker.namespace, worker.name));
    let mut text = format!("{HEADING}{name}{HEADING:#}\n");
    if !worker.placements.is_empty() {
        text.push_str(&placements_table(&worker.placements).render(INDENT, width));
    }
    let placements: Vec<_> = worker.placements.iter().collect();
    let causes = words::shared_causes(&placements);
    if !causes.is_empty() {
        let mut table = Table::new(["", "", ""]);
        for (locations, cause) in causes {
            let pool = locations.first().map(|location| location.pool.as_str()).unwrap_or_default();
            table.row([
                words::location(pool, &words::zones(&locations)).into(),
                Cell::styled(words::effect(cause), verdict_style(cause.effect.verdict)),
                format!("{}: {}", words::field(&cause.change, pool), words::step(&cause.change)).into(),
            ]);
        }
        text.push_str(&paragraph("because", Style::new(), INDENT, width));
        text.push_str(&table.render(2 * INDENT, width));
    }
    for (finding, zones) in words::shared_findings(&worker.findings) {
        text.push_str(&paragraph(&finding_text(&finding, &zones), severity_style(finding.severity), INDENT, width));
        if let (Some(source), true) = (&finding.source, with_sources) {
            text.push_str(&paragraph(source, ASIDE, 2 * INDENT, width));
        }
    }
    text.push('\n');
    text
}

fn placements_table(placements: &[PlacementChange]) -> Table {
    let mut table = Table::new(["POOL", "ZONE", "VERDICT", "NODES", "SURGE", "CLASS"]);
    for placement in placements {
        let style = verdict_style(placement.verdict);
        let cells = [
            placement.pool.clone(),
            placement.zone.clone().unwrap_or_else(|| "-".to_owned()),
            verdict_word(placement),
            words::nodes(placement),
            words::surge(placement),
            words::class_step(placement),
        ];
        table.row(cells.map(|cell| Cell::styled(cell, style)));
    }
    table
}

/// The verdict, with a mark if new nodes will differ from existing ones.
fn verdict_word(placement: &PlacementChange) -> String {
    format!("{}{}", placement.verdict, if placement.new_nodes_differ { " (!)" } else { "" })
}

fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Roll | Verdict::Delete => BAD.bold(),
        Verdict::InPlace => CAREFUL.bold(),
        Verdict::Scale | Verdict::Create => CAREFUL,
        Verdict::Metadata => Style::new(),
        Verdict::None => ASIDE,
    }
}

fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Hazard => CAREFUL,
        Severity::Notice => ASIDE,
    }
}

fn finding_text(finding: &Finding, zones: &str) -> String {
    let mark = match finding.severity {
        Severity::Error => "error: ",
        Severity::Hazard => "(!) ",
        Severity::Notice => "note: ",
    };
    let location = words::location(finding.pool.as_deref().unwrap_or_default(), zones);
    let separator = if location.is_empty() { "" } else { ": " };
    format!("{mark}{location}{separator}{}", finding.message)
}
