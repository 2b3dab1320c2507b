//! The result of `render -o result` for the input of a case.

use std::path::Path;

use anyhow::{Result, ensure};
use gardener_extension_worker::cli::input::{WorkerInput, workers_of_documents};
use gardener_extension_worker::cli::render::render;
use gardener_extension_worker::provider::Providers;
use serde_json::{Value, json};
use test_support::measured::cases::Case;

/// The outcome of a case.
pub(crate) enum Outcome {
    /// Another operation, or waiting: steps after the plan decide the result.
    NotDecidedByPlan,
    /// The measured result, and ours in the same form.
    Rendered { expected: Value, got: Value },
}

/// Renders the input. Upstream reads one Worker per case.
pub(crate) fn outcome(case: Case) -> Result<Outcome, String> {
    let documents = case.documents?;
    let input = documents.input;
    let is_reconcile = input["operation"].is_null() || input["operation"] == "reconcile";
    // Objects that no pool needs any more are deleted when all machines exist.
    let error = documents.expected["error"].as_str();
    let fails_after_machines = error.is_some_and(|error| error.starts_with("post worker reconciliation hook failed"));
    if !is_reconcile || input["mcm"] == "asGiven" || fails_after_machines {
        return Ok(Outcome::NotDecidedByPlan);
    }
    let got = match workers(&case.name, input) {
        // If an object can't be decoded, the controller reports it in the status and changes nothing else.
        Err(error) => json!({"errors": [{"message": format!("{error:#}")}]}),
        Ok(workers) => match <[_; 1]>::try_from(workers) {
            Ok([worker]) => {
                serde_json::to_value(render(worker, Providers::SHIPPED)).map_err(|error| error.to_string())?
            }
            Err(workers) => return Err(format!("{} Workers in the input", workers.len())),
        },
    };
    Ok(Outcome::Rendered { expected: documents.expected, got })
}

fn workers(name: &str, input: Value) -> Result<Vec<WorkerInput>> {
    let workers = workers_of_documents(Path::new(name), vec![input])?;
    ensure!(!workers.is_empty(), "no Worker in it");
    Ok(workers)
}
