//! Reads the objects of shoot namespaces from files.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use serde_json::Value;

use super::{Found, Namespace};
use crate::cli::evidence::{Evidence, no_match};
use crate::cli::target::{Given, NameIndex, Reading, Scope, location_of_shoot, targets_in_files};
use explanations::diagnose::ObjectKind;
use runtime::reader::files::{NamedFile, files};
use runtime::reader::objects::{Entry, for_each_object};

/// All objects of files, by namespace.
#[derive(Default)]
struct Objects {
    by_namespace: BTreeMap<String, Vec<Value>>,
    index: NameIndex,
    /// Where the Workers of Shoots in the files are.
    locations_of_shoots: Vec<String>,
}

/// Reads what the names and flags select. A kind is known if it has at least one object, because files need not contain
/// all kinds.
pub(super) fn read(reading: &Reading, given: &Given) -> anyhow::Result<Found> {
    let mut objects = Objects::default();
    let mut evidence = Evidence::of("object");
    for file in evidence.note_skipped(files(&given.files)) {
        if let Err(error) = objects.add_file(&file) {
            evidence.unread(&error);
        }
    }
    let unread: Vec<String> = evidence.problems().cloned().collect();
    let Objects { by_namespace, index, locations_of_shoots } = objects;
    let has_worker = index.namespaces().next().is_some();
    if !has_worker {
        bail!(without_worker(&unread, &locations_of_shoots, given));
    }
    let scope = match targets_in_files(&index, reading, &given.names) {
        Ok(scope) => scope,
        // The name may be in the part that could not be read.
        Err(error) => bail!(unread.into_iter().chain([format!("{error:#}")]).collect::<Vec<_>>().join("\n")),
    };
    let mut namespaces: Vec<Namespace> =
        by_namespace.into_iter().map(|(name, objects)| of_objects(name, objects)).collect();
    namespaces.retain(|namespace| is_in_scope(namespace, &scope));
    if let Some(selector) = &reading.selector {
        namespaces.iter_mut().for_each(|namespace| namespace.keep_workers(|worker| selector.selects(worker)));
    }
    namespaces.retain(Namespace::has_worker);
    if namespaces.is_empty() {
        let selected = reading.namespace.as_deref().unwrap_or("(all namespaces)");
        return Err(no_match("Worker in namespace", selected, index.namespaces()));
    }
    Ok(Found { namespaces, scope, unread })
}

/// The reason why there is nothing to diagnose.
fn without_worker(unread: &[String], locations_of_shoots: &[String], given: &Given) -> String {
    let none = match given.names.first() {
        Some(name) => format!("no Worker in namespace {name:?}: there is no Worker in the input"),
        None => "there is no Worker in the input".to_owned(),
    };
    let reason =
        locations_of_shoots.first().map_or(none, |location| format!("there is no Worker in the input. {location}"));
    unread.iter().cloned().chain([reason]).collect::<Vec<_>>().join("\n")
}

fn is_in_scope(namespace: &Namespace, scope: &Scope) -> bool {
    match scope {
        Scope::All => true,
        Scope::Targets(targets) => targets.iter().any(|target| target.namespace == namespace.name),
    }
}

fn of_objects(name: String, objects: Vec<Value>) -> Namespace {
    let kinds: BTreeSet<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    let known = ObjectKind::ALL.iter().filter(|kind| kinds.contains(kind.as_str())).copied().collect();
    Namespace { name, known, objects, unread: Vec::new() }
}

impl Objects {
    fn add_file(&mut self, file: &NamedFile) -> anyhow::Result<()> {
        let text = file.text()?;
        let mut found = Vec::new();
        let read = for_each_object(&text, &mut |entry| {
            if let Entry::Object(object) = entry {
                found.push(object);
            }
        });
        read.with_context(|| file.name())?;
        found.into_iter().for_each(|object| self.add(object));
        Ok(())
    }

    fn add(&mut self, object: Value) {
        let metadata = &object["metadata"];
        let namespace = match object["kind"].as_str() {
            Some("Shoot") => {
                self.locations_of_shoots.push(location_of_shoot(&object));
                return;
            }
            Some("Cluster") => &metadata["name"],
            _ => &metadata["namespace"],
        };
        let Some(namespace) = namespace.as_str().map(str::to_owned) else { return };
        self.index.add(&object);
        self.by_namespace.entry(namespace).or_default().push(object);
    }
}
