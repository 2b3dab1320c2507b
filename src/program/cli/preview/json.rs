//! JSON with a stable schema, described in docs/preview.md.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Comparison;
use super::groups::{Group, groups};
use super::words::{self, Total};
use crate::cli::terminal::print_json_with_items;
use explanations::preview::{
    Cause, ChangeKind, ChangedObject, Effect, Finding, Nodes, PlacementChange, Severity, SurgePlan, Verdict,
    WorkerChange,
};

/// Schema name and version. Adding a member keeps the version; changing a member's meaning raises it.
const SCHEMA: &str = "gardener-extension-worker/preview/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema: &'static str,
    exit_code: u8,
    total: TotalDocument,
    evidence: Value,
    errors: Vec<&'a String>,
    groups: Vec<Group>,
    /// Placeholder: Workers are streamed, so that a landscape need not fit in memory as text.
    workers: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TotalDocument {
    workers: usize,
    changed_workers: usize,
    placements: BTreeMap<&'static str, usize>,
    nodes: BTreeMap<&'static str, i64>,
    new_nodes_differ: usize,
    findings: BTreeMap<Severity, usize>,
}

/// A Worker with the changes of its pools.
#[derive(Serialize)]
pub(in crate::cli) struct WorkerDocument<'a> {
    namespace: &'a str,
    name: &'a str,
    placements: Vec<PlacementDocument<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlacementDocument<'a> {
    pool: &'a str,
    zone: Option<&'a str>,
    deployment: &'a str,
    verdict: Verdict,
    new_nodes_differ: bool,
    class_differences: &'a [String],
    nodes: Nodes,
    class: ClassNames<'a>,
    surge: Option<&'a SurgePlan>,
    causes: Vec<CauseDocument<'a>>,
    hash_inputs: &'a [String],
}

#[derive(Serialize)]
struct ClassNames<'a> {
    old: Option<&'a str>,
    new: Option<&'a str>,
}

#[derive(Serialize)]
struct CauseDocument<'a> {
    object: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    field: String,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<&'a Value>,
    effect: Effect,
    joint: bool,
}

/// Prints everything, including unchanged pools.
pub(super) fn print_document(comparison: &Comparison, exit_code: u8) -> anyhow::Result<()> {
    let document = without_workers(comparison, exit_code);
    print_json_with_items(&document, "workers", &comparison.workers, |worker| Ok(worker_document(worker)))
}

/// The same as one document.
pub(super) fn document(comparison: &Comparison, exit_code: u8) -> anyhow::Result<Value> {
    let mut document = serde_json::to_value(without_workers(comparison, exit_code))?;
    let workers: Vec<WorkerDocument<'_>> = comparison.workers.iter().map(worker_document).collect();
    document["workers"] = serde_json::to_value(workers)?;
    Ok(document)
}

fn without_workers(comparison: &Comparison, exit_code: u8) -> Document<'_> {
    let total = Total::of(comparison);
    Document {
        schema: SCHEMA,
        exit_code,
        total: TotalDocument {
            workers: total.workers,
            changed_workers: total.changed_workers,
            placements: Verdict::ALL
                .iter()
                .map(|verdict| (verdict.word(), total.placements.get(verdict).copied().unwrap_or_default()))
                .collect(),
            nodes: Verdict::ALL
                .iter()
                .filter(|verdict| !matches!(verdict, Verdict::Metadata | Verdict::None))
                .map(|verdict| (verdict.word(), total.nodes.get(verdict).copied().unwrap_or_default()))
                .collect(),
            new_nodes_differ: total.new_nodes_differ,
            findings: [Severity::Error, Severity::Hazard, Severity::Notice]
                .into_iter()
                .map(|severity| (severity, total.findings.get(&severity).copied().unwrap_or_default()))
                .collect(),
        },
        evidence: comparison.evidence.document(),
        errors: comparison.evidence.unread_inputs().collect(),
        groups: groups(&comparison.workers),
        workers: [],
    }
}

pub(in crate::cli) fn worker_document(worker: &WorkerChange) -> WorkerDocument<'_> {
    WorkerDocument {
        namespace: &worker.namespace,
        name: &worker.name,
        placements: worker.placements.iter().map(placement_document).collect(),
        findings: &worker.findings,
    }
}

fn placement_document(placement: &PlacementChange) -> PlacementDocument<'_> {
    PlacementDocument {
        pool: &placement.pool,
        zone: placement.zone.as_deref(),
        deployment: &placement.deployment,
        verdict: placement.verdict,
        new_nodes_differ: placement.new_nodes_differ,
        class_differences: &placement.class_differences,
        nodes: placement.nodes,
        class: ClassNames { old: placement.old_class.as_deref(), new: placement.new_class.as_deref() },
        surge: placement.surge.as_ref(),
        causes: placement.causes.iter().map(cause_document).collect(),
        hash_inputs: &placement.hash_inputs,
    }
}

fn cause_document(cause: &Cause) -> CauseDocument<'_> {
    let change = &cause.change;
    let (object, secret) = match &change.object {
        ChangedObject::Worker => ("Worker", None),
        ChangedObject::CloudProfile => ("CloudProfile", None),
        ChangedObject::Shoot => ("Shoot", None),
        ChangedObject::Secret { .. } => ("Secret", Some(words::object(change))),
        ChangedObject::MachineDeployment => ("MachineDeployment", None),
    };
    CauseDocument {
        object,
        secret: secret.map(|secret| secret.trim_start_matches("Secret ").to_owned()),
        field: if object == "Secret" { "data".to_owned() } else { change.path.to_string() },
        change: match change.kind {
            ChangeKind::Value => "value",
            ChangeKind::Insert(_) => "added",
            ChangeKind::Remove => "removed",
            ChangeKind::Order => "order",
        },
        old: change.old.as_ref(),
        new: change.new.as_ref(),
        effect: cause.effect,
        joint: cause.joint,
    }
}
