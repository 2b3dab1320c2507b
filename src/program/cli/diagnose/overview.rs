//! `diagnose -A`: the Workers of a seed that need attention, the worst first, with who has to act.

use jiff::Timestamp;

use super::table::{progress_text, verdict};
use crate::cli::durations::ago;
use crate::cli::preview::words::counted;
use crate::cli::program::typed_name;
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, GOOD};
use explanations::diagnose::{Actor, Diagnosis, Finding, Severity};
use wire::api::bounded_text::shortened;

/// Maximum number of Workers in the table; `-o wide` and JSON have all.
const MOST_WORKERS: usize = 100;
/// Maximum bytes of a problem.
const LONGEST_PROBLEM: usize = 160;

/// A Worker with its worst problem.
struct Row<'a> {
    diagnosis: &'a Diagnosis,
    worst: &'a Finding,
    problems: usize,
}

/// The table, and how many Workers are ready or change. `is_wide` shows all rows, and Workers that change.
pub(super) fn text(diagnoses: &[Diagnosis], now: Timestamp, width: usize, is_wide: bool) -> String {
    let mut rows: Vec<Row<'_>> = diagnoses.iter().filter_map(row).collect();
    rows.sort_by_key(|row| (row.worst.actor(), row.worst.kind, row.worst.since, row.diagnosis.worker.clone()));
    let mut table = Table::new(["WORKER", "SINCE", "WHO ACTS", "PROBLEM"]);
    let most = if is_wide { usize::MAX } else { MOST_WORKERS };
    rows.iter().take(most).for_each(|row| add_row(&mut table, row, now));
    let mut text = if rows.is_empty() { String::new() } else { table.render(0, width) + "\n" };
    if let Some(more) = rows.len().checked_sub(most).filter(|more| *more > 0) {
        text.push_str(&paragraph(&format!("{more} more: see -o wide."), ASIDE, 0, width));
    }
    let changing: Vec<&Diagnosis> = diagnoses.iter().filter(|one| !one.ready && !one.has_problem()).collect();
    if is_wide {
        for diagnosis in &changing {
            text.push_str(&changing_text(diagnosis, now, width));
        }
    }
    let ready = diagnoses.iter().filter(|diagnosis| diagnosis.ready).count();
    let workers = counted(diagnoses.len() as u64, "Worker");
    let style = if rows.is_empty() { GOOD } else { BAD };
    let changing = changing.len();
    let summary = format!("{workers}: attention needed for {}, changing: {changing}, ready: {ready}.", rows.len());
    text.push_str(&paragraph(&summary, style, 0, width));
    if let Some(row) = rows.first() {
        let details = format!("Details: {} diagnose {}", typed_name(), printable(&row.diagnosis.worker));
        text.push_str(&paragraph(&details, ASIDE, 0, width));
    }
    text
}

fn row(diagnosis: &Diagnosis) -> Option<Row<'_>> {
    let problems = || diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let worst = problems().min_by_key(|finding| (finding.actor(), finding.kind))?;
    Some(Row { diagnosis, worst, problems: problems().count() })
}

fn add_row(table: &mut Table, row: &Row<'_>, now: Timestamp) {
    let worst = row.worst;
    let more = if row.problems > 1 { format!(" (and {} more)", row.problems - 1) } else { String::new() };
    let problem = format!("{}: {}{more}", worst.subject, shortened(&worst.message, LONGEST_PROBLEM));
    let style = if worst.actor() == Actor::Nobody { ASIDE } else { BAD };
    table.row([
        row.diagnosis.worker.as_str().into(),
        worst.since.map_or("unknown".to_owned(), |since| ago(since, now)).into(),
        Cell::styled(worst.actor().words(), style),
        problem.into(),
    ]);
}

fn changing_text(diagnosis: &Diagnosis, now: Timestamp, width: usize) -> String {
    let (state, style) = verdict(diagnosis);
    let mut text = paragraph(&format!("{}: {state}", diagnosis.worker), style, 0, width);
    for progress in &diagnosis.progress {
        text.push_str(&paragraph(&progress_text(progress, now), ASIDE, 2, width));
    }
    text
}
