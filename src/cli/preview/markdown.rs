//! Markdown that suits a comment at a pull request: the total first, then only what changes.

use std::io::Write;

use super::Comparison;
use super::words::{self, Total};
use crate::preview::finding::Severity;
use crate::preview::{PlacementChange, WorkerChange};

/// Comments have a limited length, so that a landscape does not fit into one.
const MOST_WORKERS: usize = 50;

/// Prints the total and the Workers that change.
pub(super) fn print(comparison: &Comparison, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "### Worker preview\n\n**{}**\n", Total::of(comparison).line())?;
    for error in &comparison.errors {
        writeln!(out, "- :x: {}", escaped(error))?;
    }
    let shown: Vec<_> = comparison.workers.iter().filter(|worker| worker.is_worth_showing()).collect();
    for worker in shown.iter().take(MOST_WORKERS) {
        print_worker(worker, out)?;
    }
    if let Some(more) = shown.len().checked_sub(MOST_WORKERS).filter(|more| *more > 0) {
        writeln!(out, "… and {}; `-o json` lists all.", words::counted(more as u64, "more Worker"))?;
    }
    Ok(())
}

fn print_worker(worker: &WorkerChange, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "#### {}/{}\n", escaped(&worker.namespace), escaped(&worker.name))?;
    let changed: Vec<_> = worker.placements.iter().filter(|placement| placement.is_change()).collect();
    if !changed.is_empty() {
        writeln!(out, "| Pool | Zones | Verdict | Nodes | Surge | Cause |\n|---|---|---|---|---|---|")?;
    }
    for group in groups(&changed) {
        let Some(first) = group.first() else { continue };
        let all = |text: fn(&PlacementChange) -> String| {
            let mut texts: Vec<String> = group.iter().map(|placement| text(placement)).collect();
            texts.dedup();
            escaped(&texts.join(", "))
        };
        let causes: Vec<String> = first.causes.iter().map(|cause| cause_text(cause, &first.pool)).collect();
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            escaped(&first.pool),
            escaped(&words::zones(&group)),
            verdict_text(first),
            all(words::nodes),
            all(words::surge),
            causes.join("<br>")
        )?;
    }
    writeln!(out)?;
    for (finding, zones) in words::shared_findings(&worker.findings) {
        let mark = match finding.severity {
            Severity::Error => ":x:",
            Severity::Hazard => ":warning:",
            Severity::Notice => ":information_source:",
        };
        let place = words::place(finding.pool.as_deref().unwrap_or_default(), &zones);
        let separator = if place.is_empty() { "" } else { ": " };
        writeln!(out, "- {mark} {}{separator}{}", escaped(&place), escaped(&finding.message))?;
    }
    if !worker.findings.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

/// Zones of a pool that fare alike.
fn groups<'a>(changed: &[&'a PlacementChange]) -> Vec<Vec<&'a PlacementChange>> {
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

fn cause_text(cause: &crate::preview::Cause, pool: &str) -> String {
    let field = words::field(&cause.change, pool);
    format!("{}: {} ({})", escaped(&field), escaped(&words::step(&cause.change)), words::effect(cause))
}

/// Text that stays text inside a table: no markup, no mentions, no line ends.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
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
    escaped
}
