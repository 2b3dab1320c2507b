//! Everything that was found, from a seed or from files.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;

use super::permissions::Permissions;
use super::touches_nodes;
use super::worker::WorkerFacts;
use super::writers::Writers;
use crate::cli::input::{files, objects, text_of_file};
use crate::cli::preview::Comparison;
use crate::cli::preview::pairs::{Loaded, Observed, Unreadable, load_each};
use crate::controller::served::Served;
use crate::preview::{Baseline, CloudProfiles, PlacementChange, WorkerChange, compare};
use crate::process::failure_reason::reason;

pub(super) struct Survey {
    /// What becomes of the pools; the Workers in the order of `facts`.
    pub(super) comparison: Comparison,
    /// What else is to be said of each Worker.
    pub(super) facts: Vec<WorkerFacts>,
    /// Workers of other types and classes.
    pub(super) left_alone: usize,
    /// Who else writes.
    pub(super) writers: Writers,
    /// What is allowed; files do not say.
    pub(super) permissions: Option<Permissions>,
}

impl Survey {
    /// Compares what there is with what we would write.
    pub(super) fn of(
        observed: Observed,
        errors: Vec<String>,
        mut writers: Writers,
        permissions: Option<Permissions>,
        served: &Served,
        profiles: &CloudProfiles,
    ) -> Self {
        let Observed { mut loaded, mut unreadable, .. } = observed;
        let all = loaded.len() + unreadable.len();
        let is_served = |worker: &Value| {
            let spec = &worker["spec"];
            served.includes(spec["type"].as_str().unwrap_or_default(), spec["class"].as_str())
        };
        loaded.retain(|_, loaded| is_served(&loaded.inputs.worker.value));
        unreadable.retain(|unreadable| is_served(&unreadable.worker));
        writers.count_managers(loaded.values());
        let change = |loaded: &Loaded| {
            compare(Some(&loaded.inputs), Some(&loaded.inputs), &loaded.live, Baseline::Live, profiles)
        };
        let not_compared = unreadable.iter().map(Unreadable::change);
        let facts_of_unreadable = unreadable.iter().map(|unreadable| WorkerFacts::of(&unreadable.worker, None));
        Self {
            left_alone: all - loaded.len() - unreadable.len(),
            facts: loaded.values().map(WorkerFacts::of_loaded).chain(facts_of_unreadable).collect(),
            comparison: Comparison {
                workers: loaded.values().map(change).chain(not_compared).collect(),
                errors,
                ..Comparison::default()
            },
            writers,
            permissions,
        }
    }

    /// Pools and zones whose nodes would be replaced, updated or taken away.
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
    paths: &[PathBuf],
    namespace: Option<&str>,
    served: &Served,
    profiles: &CloudProfiles,
) -> anyhow::Result<Survey> {
    let (mut all, mut errors, mut writers) = (Observed::default(), Vec::new(), Writers::default());
    for file in files(paths)? {
        let read = || -> anyhow::Result<(Observed, Vec<Value>)> {
            let text = text_of_file(&file.path)?;
            let of_file = || file.path.display().to_string();
            let objects = objects(&text).with_context(of_file)?;
            // A file may tell only of who writes.
            let has_worker = objects.iter().any(|object| object["kind"] == "Worker");
            let workers =
                if has_worker { load_each(&text, profiles).with_context(of_file)? } else { Observed::default() };
            Ok((workers, objects))
        };
        match read() {
            Ok((workers, objects)) => {
                objects.iter().for_each(|object| writers.see(object, served.type_list()));
                all.loaded.extend(workers.loaded);
                all.unreadable.extend(workers.unreadable);
            }
            Err(error) => errors.push(reason(error.as_ref())),
        }
    }
    let is_wanted = |of_worker: &str| namespace.is_none_or(|namespace| namespace == of_worker);
    all.loaded.retain(|key, _| is_wanted(&key.0));
    all.unreadable.retain(|worker| is_wanted(&worker.key.0));
    if all.loaded.is_empty() && all.unreadable.is_empty() {
        errors.push("no Worker in the files".to_owned());
        anyhow::bail!(errors.join("\n"));
    }
    Ok(Survey::of(all, errors, writers, None, served, profiles))
}
