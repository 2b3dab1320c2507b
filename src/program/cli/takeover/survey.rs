//! The result of surveying a seed or files before a takeover.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use serde_json::Value;

use super::permissions::Permissions;
use super::touches_nodes;
use super::worker::WorkerFacts;
use super::writers::Writers;
use crate::cli::evidence::{Evidence, no_match};
use crate::cli::preview::Comparison;
use crate::cli::preview::pairs::{Key, Loaded, Observed, Unreadable, load_each};
use crate::cli::target::{Given, NameIndex, Reading, targets_in_files};
use controllers::controller::run::served::Served;
use explanations::preview::{Baseline, CloudProfiles, PlacementChange, WorkerChange, compare};
use runtime::reader::files::{NamedFile, files};
use runtime::reader::objects::objects;

pub(super) struct Survey {
    /// Changes of the pools, with the Workers in the order of `facts`.
    pub(super) comparison: Comparison,
    /// Other facts about each Worker.
    pub(super) facts: Vec<WorkerFacts>,
    /// Number of Workers with types or classes that this controller does not serve.
    pub(super) left_alone: usize,
    /// Other writers.
    pub(super) writers: Writers,
    /// Permissions; `None` for files.
    pub(super) permissions: Option<Permissions>,
}

impl Survey {
    /// Compares existing objects with those that this controller would write.
    pub(super) fn of(
        observed: Observed,
        evidence: Evidence,
        mut writers: Writers,
        permissions: Option<Permissions>,
        served: &Served,
        profiles: &CloudProfiles,
    ) -> anyhow::Result<Self> {
        let Observed { mut loaded, mut unreadable, .. } = observed;
        let all = loaded.len() + unreadable.len();
        let types: BTreeSet<String> = loaded
            .values()
            .map(|loaded| &loaded.inputs.worker.value)
            .chain(unreadable.iter().map(|unreadable| &unreadable.worker))
            .map(type_and_class)
            .collect();
        let is_served = |worker: &Value| {
            let spec = &worker["spec"];
            served.includes(spec["type"].as_str().unwrap_or_default(), spec["class"].as_str())
        };
        loaded.retain(|_, loaded| is_served(&loaded.inputs.worker.value));
        unreadable.retain(|unreadable| is_served(&unreadable.worker));
        if loaded.is_empty() && unreadable.is_empty() && evidence.is_complete() {
            let found = types.iter().map(String::as_str);
            return Err(no_match("Worker of type and class", &served.selection(), found));
        }
        writers.count_managers(loaded.values());
        let change = |loaded: &Loaded| {
            compare(Some(&loaded.inputs), Some(&loaded.inputs), &loaded.live, Baseline::Live, profiles)
        };
        let not_compared = unreadable.iter().map(Unreadable::change);
        let facts_of_unreadable = unreadable.iter().map(|unreadable| WorkerFacts::of(&unreadable.worker, None));
        let mut comparison = Comparison::new(evidence);
        comparison.workers = loaded.values().map(change).chain(not_compared).collect();
        comparison.count_evidence();
        Ok(Self {
            left_alone: all - loaded.len() - unreadable.len(),
            facts: loaded.values().map(WorkerFacts::of_loaded).chain(facts_of_unreadable).collect(),
            comparison,
            writers,
            permissions,
        })
    }

    /// Placements whose nodes would be replaced, updated or deleted.
    pub(super) fn rolling(&self) -> impl Iterator<Item = (&WorkerChange, &PlacementChange)> {
        let workers = self.comparison.workers.iter();
        workers.flat_map(|worker| {
            worker
                .placements
                .iter()
                .filter(|placement| touches_nodes(placement))
                .map(move |placement| (worker, placement))
        })
    }
}

pub(super) fn of_files(
    reading: &Reading,
    given: &Given,
    served: &Served,
    profiles: &CloudProfiles,
) -> anyhow::Result<Survey> {
    let mut all = Observed::default();
    let mut evidence = Evidence::of("Worker");
    let mut writers = Writers::default();
    let mut index = NameIndex::default();
    for file in evidence.note_skipped(files(&given.files)) {
        match read(&file, profiles) {
            Ok((workers, objects)) => {
                objects.iter().for_each(|object| writers.see(object, served.type_list()));
                objects.iter().for_each(|object| index.add(object));
                all.loaded.extend(workers.loaded);
                all.unreadable.extend(workers.unreadable);
            }
            Err(error) => evidence.unread(&error),
        }
    }
    let keys = all.loaded.keys().chain(all.unreadable.iter().map(|worker| &worker.key));
    let namespaces: BTreeSet<String> = keys.map(|key| key.0.clone()).collect();
    if namespaces.is_empty() {
        let problems: Vec<&str> = evidence.problems().map(String::as_str).chain(["no Worker in the files"]).collect();
        bail!(problems.join("\n"));
    }
    let scope = targets_in_files(&index, reading, &given.names)?;
    let is_selected = |key: &Key, worker: &Value| {
        let has_labels = reading.selector.as_ref().is_none_or(|selector| selector.selects(worker));
        has_labels && scope.includes(&key.0, &key.1)
    };
    all.loaded.retain(|key, loaded| is_selected(key, &loaded.inputs.worker.value));
    all.unreadable.retain(|unreadable| is_selected(&unreadable.key, &unreadable.worker));
    if all.loaded.is_empty() && all.unreadable.is_empty() && evidence.is_complete() {
        let selected = reading.namespace.as_deref().unwrap_or("(all namespaces)");
        return Err(no_match("Worker in namespace", selected, namespaces.iter().map(String::as_str)));
    }
    Survey::of(all, evidence, writers, None, served, profiles)
}

/// Reads the Workers of a file and all of its objects, because a file may only contain evidence of writers.
fn read(file: &NamedFile, profiles: &CloudProfiles) -> anyhow::Result<(Observed, Vec<Value>)> {
    let text = file.text()?;
    let objects = objects(&text).with_context(|| file.name())?;
    let has_worker = objects.iter().any(|object| object["kind"] == "Worker");
    let workers =
        if has_worker { load_each(&text, profiles).with_context(|| file.name())? } else { Observed::default() };
    Ok((workers, objects))
}

/// The type and class that determine which controller serves a Worker.
fn type_and_class(worker: &Value) -> String {
    let spec = &worker["spec"];
    let worker_type = spec["type"].as_str().unwrap_or_default();
    match spec["class"].as_str() {
        Some(class) => format!("{worker_type} {class}"),
        None => worker_type.to_owned(),
    }
}
