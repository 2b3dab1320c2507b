//! `preview --save`: records planned rolls, which a condition compares with actual ones (docs/preview.md#saved-rolls).

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{Timestamp, Unit};
use serde::Serialize;

use super::Comparison;
use super::words::counted;
use crate::cli::terminal::{complain, json};
use crate::cli::whole_file::write_atomically;
use decisions::worker::plan::class_inputs::ChangedInputs;
use decisions::worker::plan::planned_rolls::PlannedRolls;
use explanations::preview::WorkerChange;

const SCHEMA: &str = "gardener-extension-worker/planned-rolls/v1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    saved: Timestamp,
    workers: Vec<SavedWorker<'a>>,
}

/// The planned rolls of a Worker.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SavedWorker<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Number of machines by pool.
    nodes: BTreeMap<&'a str, i64>,
    /// Annotation value for the Shoot or Worker.
    planned_rolls: String,
}

/// Saves the planned rolls of all comparable Workers. Lists Workers whose planned rolls are not fully known instead of
/// saving them.
pub(super) fn save(path: &Path, comparison: &Comparison) -> anyhow::Result<()> {
    let saved = Timestamp::now().round(Unit::Second)?;
    let mut workers = Vec::new();
    for worker in &comparison.workers {
        match planned(worker) {
            Ok(pools) => workers.push(SavedWorker {
                namespace: &worker.namespace,
                name: &worker.name,
                nodes: nodes(worker),
                planned_rolls: PlannedRolls::new(saved, pools).annotation()?,
            }),
            Err(why) => complain(&format!("{}/{}: its rolls are not saved: {why}", worker.namespace, worker.name)),
        }
    }
    let saved_workers = counted(workers.len() as u64, "Worker");
    write_atomically(path, &json(&Document { schema: SCHEMA, saved, workers })?)?;
    complain(&format!("{}: rolls of {saved_workers} saved", path.display()));
    Ok(())
}

/// The changing inputs by pool.
fn planned(worker: &WorkerChange) -> Result<BTreeMap<String, ChangedInputs>, String> {
    if worker.breaks() {
        return Err("it can't be compared, or becomes invalid".to_owned());
    }
    let mut pools: BTreeMap<String, ChangedInputs> = BTreeMap::new();
    for placement in worker.placements.iter().filter(|placement| placement.verdict.is_roll()) {
        let unknown = || format!("there is no record of what the class of pool {:?} was made of", placement.pool);
        let inputs = placement.changed_inputs.clone().ok_or_else(unknown)?;
        pools.entry(placement.pool.clone()).or_default().extend(inputs);
    }
    Ok(pools)
}

fn nodes(worker: &WorkerChange) -> BTreeMap<&str, i64> {
    let mut nodes = BTreeMap::new();
    for placement in worker.placements.iter().filter(|placement| placement.verdict.is_roll()) {
        *nodes.entry(placement.pool.as_str()).or_default() += placement.nodes.affected;
    }
    nodes
}
