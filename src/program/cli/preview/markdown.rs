//! Markdown for a pull request comment: the total first, then only changes.

use super::Comparison;
use super::groups;
use super::words::{self, Total};
use crate::cli::table::printable;
use explanations::preview::{PlacementChange, Severity, WorkerChange};

/// Comments have a length limit, so a whole landscape does not fit.
const MOST_WORKERS: usize = 50;
/// With more changed Workers, they are grouped by cause.
const MOST_UNGROUPED: usize = 10;
/// Maximum number of groups, and of causes per group.
const MOST_GROUPS: usize = 20;
const MOST_CAUSES: usize = 4;

/// Prints the total and the changed Workers. Many Workers are grouped by cause, unless `all` is set.
pub(super) fn text(comparison: &Comparison, all: bool) -> String {
    let headline = comparison.evidence.headline(&Total::of(comparison).line());
    let mut text = format!("### Worker preview\n\n**{headline}**\n\n");
    for error in comparison.evidence.problems() {
        text.push_str(&format!("- :x: {}\n", escaped(error)));
    }
    let displayed: Vec<_> = comparison.workers.iter().filter(|worker| worker.is_worth_showing()).collect();
    if !all && displayed.len() > MOST_UNGROUPED {
        text.push_str(&grouped(&comparison.workers));
        return text;
    }
    for worker in displayed.iter().take(MOST_WORKERS) {
        text.push_str(&worker_text(worker));
    }
    if let Some(more) = displayed.len().checked_sub(MOST_WORKERS).filter(|more| *more > 0) {
        text.push_str(&format!("… and {}; `-o json` lists all.\n", words::counted(more as u64, "more Worker")));
    }
    text
}

/// One row per cause.
fn grouped(workers: &[WorkerChange]) -> String {
    let groups = groups::groups(workers);
    let mut text = String::new();
    if !groups.is_empty() {
        text.push_str("| Verdict | Workers | Pools | Nodes | Cause | Such as |\n|---|---|---|---|---|---|\n");
    }
    for group in groups.iter().take(MOST_GROUPS) {
        let differ = if group.new_nodes_differ { "<br>new nodes differ" } else { "" };
        let least = if group.at_least { ">=" } else { "" };
        let causes = group.causes.iter().take(MOST_CAUSES).map(|cause| escaped(cause)).collect::<Vec<_>>();
        let more = group.causes.len().saturating_sub(MOST_CAUSES);
        let more = if more > 0 { format!("<br>and {more} more") } else { String::new() };
        text.push_str(&format!(
            "| {}{differ} | {} | {} | {least}{} | {}{more} | {} |\n",
            group.verdict,
            group.workers,
            group.pools,
            group.nodes,
            causes.join("<br>"),
            escaped(&group.examples.join(", "))
        ));
    }
    if let Some(more) = groups.len().checked_sub(MOST_GROUPS).filter(|more| *more > 0) {
        text.push_str(&format!("\n… and {}; `-o json` has all.\n", words::counted(more as u64, "more group")));
    }
    text.push('\n');
    for group in groups::finding_groups(workers) {
        let count = words::counted(group.workers as u64, "Worker");
        let location = group.examples.first().map(|location| escaped(location)).unwrap_or_default();
        text.push_str(&format!(
            "- {} {count}, such as {location}: {}\n",
            mark(group.first.severity),
            escaped(&group.first.message)
        ));
    }
    text
}

fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => ":x:",
        Severity::Hazard => ":warning:",
        Severity::Notice => ":information_source:",
    }
}

fn worker_text(worker: &WorkerChange) -> String {
    let mut text = format!("#### {}/{}\n\n", escaped(&worker.namespace), escaped(&worker.name));
    let changed: Vec<_> = worker.placements.iter().filter(|placement| placement.is_change()).collect();
    if !changed.is_empty() {
        text.push_str("| Pool | Zones | Verdict | Nodes | Surge | Cause |\n|---|---|---|---|---|---|\n");
    }
    for group in alike(&changed) {
        let Some(first) = group.first() else { continue };
        let all = |text: fn(&PlacementChange) -> String| {
            let mut texts: Vec<String> = group.iter().map(|placement| text(placement)).collect();
            texts.dedup();
            escaped(&texts.join(", "))
        };
        let causes: Vec<String> = first.causes.iter().map(|cause| cause_text(cause, &first.pool)).collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            escaped(&first.pool),
            escaped(&words::zones(&group)),
            verdict_text(first),
            all(words::nodes),
            all(words::surge),
            causes.join("<br>")
        ));
    }
    if !changed.is_empty() {
        text.push('\n');
    }
    for (finding, zones) in words::shared_findings(&worker.findings) {
        let mark = mark(finding.severity);
        let location = words::location(finding.pool.as_deref().unwrap_or_default(), &zones);
        let separator = if location.is_empty() { "" } else { ": " };
        text.push_str(&format!("- {mark} {}{separator}{}\n", escaped(&location), escaped(&finding.message)));
    }
    if !worker.findings.is_empty() {
        text.push('\n');
    }
    text
}

/// Groups the zones of a pool with equal changes.
fn alike<'a>(changed: &[&'a PlacementChange]) -> Vec<Vec<&'a PlacementChange>> {
    let causes = |placement: &PlacementChange| -> Vec<String> {
        placement.causes.iter().map(|cause| cause_text(cause, &placement.pool)).collect()
    };
    let mut groups: Vec<Vec<&PlacementChange>> = Vec::new();
    for placement in changed.iter().copied() {
        let fares_alike = |group: &&mut Vec<&PlacementChange>| {
            group.first().is_some_and(|first| {
                first.pool == placement.pool
                    && first.verdict == placement.verdict
                    && first.new_nodes_differ == placement.new_nodes_differ
                    && causes(first) == causes(placement)
            })
        };
        match groups.iter_mut().find(fares_alike) {
            Some(group) => group.push(placement),
            None => groups.push(vec![placement]),
        }
    }
    groups
}

fn verdict_text(placement: &PlacementChange) -> String {
    let differ = if placement.new_nodes_differ { "<br>new nodes differ" } else { "" };
    if placement.verdict.is_roll() {
        format!("**{}**{differ}", placement.verdict)
    } else {
        format!("{}{differ}", placement.verdict)
    }
}

fn cause_text(cause: &explanations::preview::Cause, pool: &str) -> String {
    let field = words::field(&cause.change, pool);
    format!("{}: {} ({})", escaped(&field), escaped(&words::step(&cause.change)), words::effect(cause))
}

/// Escapes text for a table cell: no markup, mentions, line breaks or terminal control characters.
pub(in crate::cli) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in printable(&text.replace(['\n', '\r', '\t'], " ")).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("&#64;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    // A platform makes links of bare addresses.
    escaped.replace("://", "&#58;//").replace("www.", "www&#46;")
}
