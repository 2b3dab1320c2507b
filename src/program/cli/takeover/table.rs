//! Tables for a terminal or a log.

use std::collections::BTreeSet;

use super::survey::Survey;
use super::worker::supported_versions;
use super::writers::Writers;
use crate::cli::exit::Exit;
use crate::cli::preview::table as preview;
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use explanations::preview::{FindingKind, Severity, Verdict};

/// Maximum number of obstacles listed.
const MOST_OBSTACLES: usize = 20;
/// Indentation below a heading.
const INDENT: usize = 2;

/// The verdict with its reasons (effects on pools, other writers, permissions), the rollback, and the remedies.
pub(super) fn text(survey: &Survey, exit: Exit, all: bool, width: usize) -> String {
    let mut text = verdict(survey, exit, width);
    text.push('\n');
    text.push_str(&preview::text(&survey.comparison, all, width));
    if survey.left_alone > 0 {
        let left = counted(survey.left_alone as u64, "Worker");
        text.push_str(&paragraph(&format!("Not checked: {left} of other types or classes."), ASIDE, 0, width));
    }
    text.push_str(&facts(survey, width));
    text.push_str(&writers(&survey.writers, width));
    text.push_str(&permissions(survey, width));
    text.push('\n');
    for line in ROLLBACK {
        text.push_str(&paragraph(line, ASIDE, 0, width));
    }
    text.push_str(&what_to_do(survey, width));
    text
}

/// What to resolve before a plan is carried out. Empty if there is nothing.
pub(super) fn before_the_takeover(survey: &Survey, width: usize) -> String {
    let are_granted = survey.permissions.as_ref().is_none_or(|permissions| permissions.missing.is_empty());
    let permissions = if are_granted { String::new() } else { permissions(survey, width) };
    facts(survey, width) + &permissions + &what_to_do(survey, width)
}

fn heading(text: &str) -> String {
    format!("\n{HEADING}{text}{HEADING:#}\n")
}

/// Unsupported Gardener versions, and operations that should finish first.
fn facts(survey: &Survey, width: usize) -> String {
    let mut table = Table::new(["", ""]);
    let mut is_empty = true;
    for (worker, facts) in survey.comparison.workers.iter().zip(&survey.facts) {
        let mut words = Vec::new();
        if facts.is_supported == Some(false) {
            let version = facts.gardener.as_deref().unwrap_or_default();
            words.push(format!("Gardener {version} is not supported; supported are {}", supported_versions()));
        }
        words.extend(facts.under_way.as_ref().map(|under_way| format!("{under_way}: wait until it has finished")));
        words.extend(facts.failed.as_ref().map(|failed| format!("{failed}: solve it, it does not end by itself")));
        if !words.is_empty() {
            is_empty = false;
            let name = format!("{}/{}", worker.namespace, worker.name);
            table.row([name.into(), Cell::styled(words.join("; "), CAREFUL)]);
        }
    }
    if is_empty { String::new() } else { heading("Before the takeover") + &table.render(INDENT, width) }
}

fn writers(writers: &Writers, width: usize) -> String {
    let mut table = Table::new(["", ""]);
    for theirs in &writers.go_extensions {
        let state = match (theirs.replicas, theirs.reconciles_workers) {
            (0, _) => Cell::styled("does not run", ASIDE),
            (_, true) => Cell::styled(
                "reconciles Workers: set --disable-controllers=worker before this controller starts",
                CAREFUL,
            ),
            (_, false) => Cell::styled("runs without its worker controller", GOOD),
        };
        table.row([format!("Deployment {}/{}", theirs.namespace, theirs.name).into(), state]);
    }
    for lease in &writers.leases {
        let state = match (lease.holder.as_str(), lease.renewed.as_deref()) {
            ("", _) => "no leader".to_owned(),
            (holder, None) => format!("led by {holder}"),
            (holder, Some(renewed)) => format!("led by {holder}, renewed {renewed}"),
        };
        table.row([format!("Lease {}/{}", lease.namespace, lease.name).into(), state.into()]);
    }
    for manager in &writers.managers {
        let objects = counted(manager.objects as u64, "object");
        let last = manager.last.as_ref().map(|last| format!(", last {last}")).unwrap_or_default();
        table.row([format!("manager {}", manager.name).into(), format!("fields of {objects}{last}").into()]);
    }
    if writers.health_checks_of_others > 0 {
        let workers = counted(writers.health_checks_of_others as u64, "Worker");
        let state = format!("of {workers}: another health check's; left to it without --health-check");
        table.row(["condition EveryNodeReady".into(), state.into()]);
    }
    for unknown in &writers.unknown {
        table.row(["not known".into(), Cell::styled(unknown.clone(), CAREFUL)]);
    }
    let rows = table.render(INDENT, width);
    if rows.is_empty() { String::new() } else { heading("Who writes") + &rows }
}

fn permissions(survey: &Survey, width: usize) -> String {
    let Some(permissions) = &survey.permissions else { return String::new() };
    let mut text = heading("Permissions of the controller");
    if permissions.missing.is_empty() {
        let all = format!("all {} are granted", permissions.requested);
        return text + &paragraph(&all, GOOD, INDENT, width);
    }
    let mut table = Table::new(["MISSING", "RESOURCE", "GROUP"]);
    for missing in &permissions.missing {
        let group = if missing.group.is_empty() { "core" } else { missing.group };
        table.row([missing.verb, missing.resource, group].map(|cell| Cell::styled(cell, BAD)));
    }
    text.push_str(&table.render(INDENT, width));
    text
}

/// Whether nodes would be touched, and which.
fn verdict(survey: &Survey, exit: Exit, width: usize) -> String {
    let mut text = format!("{HEADING}Answer{HEADING:#}\n");
    let (line, style) = match exit {
        _ if survey.rolling().next().is_some() => ("Nodes would be replaced, updated or taken away:".to_owned(), BAD),
        Exit::Done => ("No node would roll.".to_owned(), GOOD),
        _ => ("No node rolls as far as is known, but the check is incomplete.".to_owned(), CAREFUL),
    };
    text.push_str(&paragraph(&line, style, INDENT, width));
    text.push_str(&rolling(survey).render(2 * INDENT, width));
    if survey.rolling().next().is_some() {
        let advice = "A change that the Go extension has not written yet shows here as well: let it reconcile these \
                      Workers, then check again.";
        text.push_str(&paragraph(advice, ASIDE, INDENT, width));
    }
    if survey.writers.both_write() {
        let both = "The Go extension reconciles Workers while ours leads: both write. Switch one off.";
        text.push_str(&paragraph(both, BAD, INDENT, width));
    }
    text
}

fn what_to_do(survey: &Survey, width: usize) -> String {
    let obstacles = obstacles(survey);
    if obstacles.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["", ""]);
    for (who, what) in obstacles.iter().take(MOST_OBSTACLES) {
        table.row([who.into(), what.into()]);
    }
    if let Some(more) = obstacles.len().checked_sub(MOST_OBSTACLES).filter(|more| *more > 0) {
        table.row(["…".into(), format!("{more} more; -o json lists all").into()]);
    }
    heading("What prevents a yes, and what to do") + &table.render(INDENT, width)
}

/// Obstacles to a takeover apart from rolling nodes, each with its remedy: permissions, a second writer, unreadable
/// inputs and invalid Workers.
fn obstacles(survey: &Survey) -> Vec<(String, String)> {
    let mut obstacles = Vec::new();
    if survey.permissions.as_ref().is_some_and(|permissions| !permissions.missing.is_empty()) {
        obstacles.push(("permissions".to_owned(), "grant the controller what is MISSING above".to_owned()));
    }
    if survey.writers.both_write() {
        obstacles.push(("writers".to_owned(), "stop one of the two extensions from reconciling Workers".to_owned()));
    }
    obstacles.extend(survey.comparison.evidence.unread_inputs().map(|error| ("input".to_owned(), error.clone())));
    for worker in &survey.comparison.workers {
        let errors: Vec<_> = worker.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        let name = format!("{}/{}", worker.namespace, worker.name);
        if errors.iter().any(|finding| finding.kind == FindingKind::CannotBeEvaluated) {
            obstacles.push((name, "correct the field that is named above, then check again".to_owned()));
        } else if !errors.is_empty() {
            let pools: BTreeSet<&str> = errors.iter().filter_map(|finding| finding.pool.as_deref()).collect();
            let who = if pools.is_empty() {
                "the Worker".to_owned()
            } else {
                format!("pool {}", Vec::from_iter(pools).join(", "))
            };
            obstacles.push((
                name,
                format!("correct {who}: invalid pools keep their machines, and nothing rolls until then"),
            ));
        }
    }
    obstacles
}

/// Placements whose nodes would change, with the differences of their class.
fn rolling(survey: &Survey) -> Table {
    let mut table = Table::new(["", "", "", ""]);
    for (worker, placement) in survey.rolling() {
        let zone = placement.zone.as_ref().map(|zone| format!(" zone {zone}")).unwrap_or_default();
        let differences = match (placement.verdict, placement.class_differences.as_slice()) {
            (Verdict::Delete, _) => "no pool needs the machine deployment".to_owned(),
            (_, []) => "only inputs of the class name differ".to_owned(),
            (_, differences) => differences.join(", "),
        };
        table.row([
            format!("{}/{}", worker.namespace, worker.name).into(),
            format!("{}{zone}", placement.pool).into(),
            Cell::styled(placement.verdict.word(), BAD),
            differences.into(),
        ]);
    }
    table
}

/// How to return to the Go extension.
pub(super) const ROLLBACK: [&str; 2] = [
    "Rollback: stop this controller, then start the Go extension without --disable-controllers=worker.",
    "It finds its own names, hashes and status; this controller adds only annotations of machine deployments, which it leaves alone.",
];
