//! Tables for a terminal or a log.

use anstyle::Style;

use super::Comparison;
use super::words::{self, Total};
use crate::cli::table::{Cell, Table};
use crate::cli::terminal::{self, ASIDE, BAD, CAREFUL, HEADING};
use crate::preview::finding::Severity;
use crate::preview::{Finding, PlacementChange, Verdict, WorkerChange};

const INDENT: usize = 2;

/// The Workers that change (or all), then the total.
pub(super) fn text(comparison: &Comparison, all: bool) -> String {
    let only_one = comparison.workers.len() == 1;
    let mut hidden = 0;
    let mut text = String::new();
    for worker in &comparison.workers {
        if all || only_one || worker.is_worth_showing() {
            text.push_str(&worker_text(worker));
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        text.push_str(&format!("Nothing changes in {}.\n", words::counted(hidden, "other Worker")));
    }
    text.push_str(&line(0, HEADING, &format!("Total: {}", Total::of(comparison).line())));
    text
}

fn worker_text(worker: &WorkerChange) -> String {
    let mut text = line(0, HEADING, &format!("{}/{}", worker.namespace, worker.name));
    if !worker.placements.is_empty() {
        let mut table = Table::new(["POOL", "ZONE", "VERDICT", ">NODES", "SURGE", "CLASS"]);
        for placement in &worker.placements {
            let style = verdict_style(placement);
            table.row([
                placement.pool.as_str().into(),
                placement.zone.as_deref().unwrap_or("-").into(),
                Cell::styled(verdict_word(placement), style),
                words::nodes(placement).into(),
                words::surge(placement).into(),
                words::class_step(placement).into(),
            ]);
        }
        text.push_str(&table.render(INDENT, terminal::width()));
    }
    text.push_str(&causes_text(worker));
    for (finding, zones) in words::shared_findings(&worker.findings) {
        let style = match finding.severity {
            Severity::Error => BAD,
            Severity::Hazard => CAREFUL,
            Severity::Notice => ASIDE,
        };
        text.push_str(&line(INDENT, style, &finding_line(&finding, &zones)));
    }
    text.push('\n');
    text
}

/// Not a table: fields and values are long, and must stay in one piece to be searched for.
fn causes_text(worker: &WorkerChange) -> String {
    let placements: Vec<_> = worker.placements.iter().collect();
    let causes = words::shared_causes(&placements);
    let places: Vec<String> = causes
        .iter()
        .map(|(places, _)| words::place(places.first().map_or("", |place| &place.pool), &words::zones(places)))
        .collect();
    let width = places.iter().map(|place| place.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    if !causes.is_empty() {
        text.push_str(&line(INDENT, Style::new(), "because"));
    }
    for ((zones, cause), place) in causes.iter().zip(&places) {
        let pool = zones.first().map_or("", |place| &place.pool);
        let (field, step) = (words::field(&cause.change, pool), words::step(&cause.change));
        let cause = format!("{place:width$}  {field}: {step}  [{}]", words::effect(cause));
        text.push_str(&line(2 * INDENT, Style::new(), &cause));
    }
    text
}

fn line(indent: usize, style: Style, text: &str) -> String {
    format!("{:indent$}{style}{text}{style:#}\n", "")
}

/// The verdict, marked where new nodes will differ from those there are.
fn verdict_word(placement: &PlacementChange) -> String {
    format!("{}{}", placement.verdict, if placement.new_nodes_differ { " (!)" } else { "" })
}

fn verdict_style(placement: &PlacementChange) -> Style {
    match placement.verdict {
        Verdict::Roll | Verdict::Delete => BAD.bold(),
        Verdict::InPlace | Verdict::Scale | Verdict::Create => CAREFUL,
        Verdict::Metadata | Verdict::None if placement.new_nodes_differ => CAREFUL,
        Verdict::Metadata => Style::new(),
        Verdict::None => ASIDE,
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
