//! JSON with a stable schema, described in docs/takeover.md.

use serde::Serialize;
use serde_json::Value;

use super::permissions::Permissions;
use super::survey::Survey;
use super::table::ROLLBACK;
use super::worker::WorkerFacts;
use super::writers::Writers;
use crate::cli::preview::json::{WorkerDocument, worker_document};
use crate::cli::terminal::{OutputFormat, document_text, json};

/// Schema name and version. Adding a member keeps the version; changing a member's meaning raises it.
const SCHEMA: &str = "gardener-extension-worker/takeover/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema: &'static str,
    exit_code: u8,
    rolls: Vec<RollDocument<'a>>,
    left_alone: usize,
    evidence: Value,
    errors: Vec<&'a String>,
    both_write: bool,
    writers: &'a Writers,
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<&'a Permissions>,
    way_back: [&'static str; 2],
    workers: Vec<CheckedWorker<'a>>,
}

/// A pool whose nodes the takeover would touch.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RollDocument<'a> {
    namespace: &'a str,
    worker: &'a str,
    pool: &'a str,
    zone: Option<&'a str>,
    verdict: &'static str,
    differences: &'a [String],
}

#[derive(Serialize)]
struct CheckedWorker<'a> {
    #[serde(flatten)]
    facts: &'a WorkerFacts,
    #[serde(flatten)]
    change: WorkerDocument<'a>,
}

/// Everything, including unchanged pools.
pub(super) fn text(survey: &Survey, exit_code: u8, format: OutputFormat) -> anyhow::Result<String> {
    let rolls = survey.rolling().map(|(worker, placement)| RollDocument {
        namespace: &worker.namespace,
        worker: &worker.name,
        pool: &placement.pool,
        zone: placement.zone.as_deref(),
        verdict: placement.verdict.word(),
        differences: &placement.class_differences,
    });
    let workers = survey.comparison.workers.iter().zip(&survey.facts);
    let document = Document {
        schema: SCHEMA,
        exit_code,
        rolls: rolls.collect(),
        left_alone: survey.left_alone,
        evidence: survey.comparison.evidence.document(),
        errors: survey.comparison.evidence.unread_inputs().collect(),
        both_write: survey.writers.both_write(),
        writers: &survey.writers,
        permissions: survey.permissions.as_ref(),
        way_back: ROLLBACK,
        workers: workers.map(|(worker, facts)| CheckedWorker { facts, change: worker_document(worker) }).collect(),
    };
    // A value would change the order of members in JSON.
    if format == OutputFormat::Yaml { document_text(&serde_json::to_value(document)?, format) } else { json(&document) }
}
