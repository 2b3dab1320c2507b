//! Texts for causes, classes and totals, shared by all output formats.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Comparison;
use crate::cli::table::printable;
use explanations::preview::{
    Cause, Change, ChangeKind, ChangedObject, Effect, Finding, PlacementChange, Severity, Verdict,
};

/// Maximum length of a printed value; longer values are shortened in the middle.
const LONGEST_VALUE: usize = 60;

/// The object of a change as text.
pub(super) fn object(change: &Change) -> String {
    match &change.object {
        ChangedObject::Worker => "Worker".to_owned(),
        ChangedObject::CloudProfile => "CloudProfile".to_owned(),
        ChangedObject::Shoot => "Shoot".to_owned(),
        ChangedObject::Secret { namespace, name } => format!("Secret {namespace}/{name}"),
        ChangedObject::MachineDeployment => "MachineDeployment".to_owned(),
    }
}

/// The changed field, relative to the pool if it belongs to one.
pub(super) fn field(change: &Change, pool: &str) -> String {
    let path = change.path.to_string();
    match &change.object {
        ChangedObject::Worker => {
            let of_pool = path.strip_prefix(&format!("spec.pools[{pool}]")).map(|rest| rest.trim_start_matches('.'));
            match of_pool {
                Some("") => "pool".to_owned(),
                Some(rest) => rest.to_owned(),
                None => path,
            }
        }
        ChangedObject::Secret { .. } => object(change),
        ChangedObject::Shoot => {
            let of_pool = path.strip_prefix(&format!("spec.provider.workers[{pool}]."));
            of_pool.map_or_else(|| format!("Shoot {path}"), str::to_owned)
        }
        _ => format!("{} {path}", object(change)),
    }
}

/// The old and new value of the field.
pub(super) fn step(change: &Change) -> String {
    if matches!(change.object, ChangedObject::Secret { .. }) {
        return "changed".to_owned();
    }
    if change.object == ChangedObject::MachineDeployment && change.old == change.new {
        return "differs from what the Worker leads to".to_owned();
    }
    match change.kind {
        ChangeKind::Insert(_) => "added".to_owned(),
        ChangeKind::Remove => "removed".to_owned(),
        ChangeKind::Order => format!("order {} -> {}", list(change.old.as_ref()), list(change.new.as_ref())),
        ChangeKind::Value => format!("{} -> {}", value(change.old.as_ref()), value(change.new.as_ref())),
    }
}

fn list(value: Option<&Value>) -> String {
    let entries = value.and_then(Value::as_array).into_iter().flatten();
    entries.map(|entry| entry.as_str().unwrap_or_default()).collect::<Vec<_>>().join(", ")
}

fn value(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "(none)".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    shortened(&text)
}

fn shortened(text: &str) -> String {
    let text = printable(text);
    let length = text.chars().count();
    if length <= LONGEST_VALUE {
        return text;
    }
    let start: String = text.chars().take(LONGEST_VALUE / 2).collect();
    let end: String = text.chars().skip(length - LONGEST_VALUE / 2).collect();
    format!("{start}…{end}")
}

/// The effect of a cause, unless it repeats the row's verdict.
pub(super) fn effect(cause: &Cause) -> String {
    let Effect { verdict, new_nodes_differ } = cause.effect;
    let mut words = match (verdict, new_nodes_differ) {
        (Verdict::None, true) => "new nodes differ".to_owned(),
        (verdict, true) => format!("{verdict}, new nodes differ"),
        (verdict, false) => verdict.to_string(),
    };
    if cause.joint {
        words.push_str(", only together with others");
    }
    words
}

/// The changed part of the class name. Classes of one pool differ only in the hash.
pub(super) fn class_step(placement: &PlacementChange) -> String {
    match (&placement.old_class, &placement.new_class) {
        (Some(old), Some(new)) if old != new => {
            let (old_parts, new_parts): (Vec<_>, Vec<_>) = (old.split('-').collect(), new.split('-').collect());
            let differing: Vec<_> = old_parts.iter().zip(&new_parts).filter(|(old, new)| old != new).collect();
            match differing.as_slice() {
                [(old, new)] if old_parts.len() == new_parts.len() => format!("{old} -> {new}"),
                _ => format!("{old} -> {new}"),
            }
        }
        _ => String::new(),
    }
}

/// Nodes before the change, and after it if the number differs.
pub(super) fn nodes(placement: &PlacementChange) -> String {
    let nodes = placement.nodes;
    let least = if nodes.seen || placement.old_class.is_none() { "" } else { ">=" };
    match placement.verdict {
        Verdict::Create => nodes.after.to_string(),
        Verdict::Delete => format!("{least}{}", nodes.before),
        _ if nodes.before != nodes.after => format!("{least}{} -> {}", nodes.before, nodes.after),
        _ => format!("{least}{}", nodes.before),
    }
}

/// Additional and missing nodes during the roll.
pub(super) fn surge(placement: &PlacementChange) -> String {
    match &placement.surge {
        Some(surge) if surge.manual => "by hand".to_owned(),
        Some(surge) => format!("+{} -{}", surge.above, surge.missing),
        None => String::new(),
    }
}

/// Totals over all Workers.
#[derive(Debug, Default)]
pub(super) struct Total {
    pub(super) workers: usize,
    pub(super) changed_workers: usize,
    pub(super) placements: BTreeMap<Verdict, usize>,
    pub(super) nodes: BTreeMap<Verdict, i64>,
    /// Verdicts whose node count is a lower bound.
    unseen: BTreeSet<Verdict>,
    pub(super) new_nodes_differ: usize,
    pub(super) findings: BTreeMap<Severity, usize>,
}

impl Total {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let mut total = Self { workers: comparison.workers.len(), ..Self::default() };
        for worker in &comparison.workers {
            total.changed_workers += usize::from(worker.placements.iter().any(PlacementChange::is_change));
            for placement in &worker.placements {
                *total.placements.entry(placement.verdict).or_default() += 1;
                *total.nodes.entry(placement.verdict).or_default() += placement.nodes.affected;
                total.new_nodes_differ += usize::from(placement.new_nodes_differ);
                if !placement.nodes.seen && (placement.verdict.is_roll() || placement.verdict == Verdict::Delete) {
                    total.unseen.insert(placement.verdict);
                }
            }
            for finding in &worker.findings {
                *total.findings.entry(finding.severity).or_default() += 1;
            }
        }
        total
    }

    pub(super) fn line(&self) -> String {
        let mut parts: Vec<String> = Verdict::ALL
            .iter()
            .filter_map(|verdict| {
                let count = *self.placements.get(verdict)?;
                let nodes = self.nodes.get(verdict).copied().unwrap_or_default();
                let least = if self.unseen.contains(verdict) { "at least " } else { "" };
                Some(match verdict {
                    Verdict::Metadata | Verdict::None => format!("{count} {verdict}"),
                    // Only the minimum or maximum changes.
                    Verdict::Scale if nodes == 0 => format!("{count} {verdict}"),
                    _ => format!("{count} {verdict} ({least}{})", counted(nodes.unsigned_abs(), "node")),
                })
            })
            .collect();
        if self.new_nodes_differ > 0 {
            parts.push(format!("{} where new nodes differ", self.new_nodes_differ));
        }
        for (severity, word) in [(Severity::Error, "error"), (Severity::Hazard, "hazard")] {
            if let Some(count) = self.findings.get(&severity) {
                parts.push(counted(*count as u64, word));
            }
        }
        let workers = counted(self.workers as u64, "Worker");
        if parts.is_empty() { format!("{workers}: no pools") } else { format!("{workers}: {}", parts.join(", ")) }
    }
}

/// `1 pool`, `2 pools`.
pub(in crate::cli) fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Groups equal causes of several zones, in order of first appearance.
pub(super) fn shared_causes<'a>(placements: &[&'a PlacementChange]) -> Vec<(Vec<&'a PlacementChange>, &'a Cause)> {
    let mut shared: Vec<(Vec<&PlacementChange>, &Cause)> = Vec::new();
    for placement in placements.iter().copied() {
        for cause in &placement.causes {
            let is_same = |other: &Cause| {
                (&other.change, other.effect, other.joint) == (&cause.change, cause.effect, cause.joint)
            };
            let known = shared.iter_mut().find(|(locations, other)| {
                locations.iter().all(|location| location.pool == placement.pool) && is_same(other)
            });
            match known {
                Some((locations, _)) => locations.push(placement),
                None => shared.push((vec![placement], cause)),
            }
        }
    }
    shared
}

/// The zones of placements, separated by commas.
pub(super) fn zones(placements: &[&PlacementChange]) -> String {
    placements.iter().filter_map(|placement| placement.zone.as_deref()).collect::<Vec<_>>().join(",")
}

/// Merges equal findings of several zones of a pool.
pub(super) fn shared_findings(findings: &[Finding]) -> Vec<(Finding, String)> {
    let mut shared: Vec<(Finding, Vec<String>)> = Vec::new();
    for finding in findings {
        let plain = Finding { zone: None, ..finding.clone() };
        let zones = match shared.iter_mut().find(|(other, _)| *other == plain) {
            Some((_, zones)) => zones,
            None => {
                shared.push((plain, Vec::new()));
                let Some((_, zones)) = shared.last_mut() else { continue };
                zones
            }
        };
        zones.extend(finding.zone.clone());
    }
    shared.into_iter().map(|(finding, zones)| (finding, zones.join(","))).collect()
}

/// A pool and its zones as a line prefix.
pub(super) fn location(pool: &str, zones: &str) -> String {
    match (pool, zones) {
        (pool, "") => pool.to_owned(),
        (pool, zones) if zones.contains(',') => format!("{pool} zones {zones}"),
        (pool, zones) => format!("{pool} zone {zones}"),
    }
}
