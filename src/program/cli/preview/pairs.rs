//! Pairs the Workers of two sides. Files with the same relative path in two folders are read together, so that a
//! landscape need not fit in memory. Workers that moved between files are matched at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::cache::{Cache, CachedResult, Deciding};
use super::shoots::ShootReader;
use super::{Comparison, NewSide, Replaced};
use crate::cli::evidence::Evidence;
use crate::cli::in_parallel::in_parallel;
use crate::cli::input::WorkerDocuments;
use crate::cli::progress::Progress;
use crate::cli::worker_warnings;
use decisions::worker::machines::machine_objects::MachineObjects;
use explanations::preview::{Baseline, CloudProfiles, Inputs, WorkerChange, compare};
use runtime::reader::files::{NamedFile, files, name_of};
use runtime::reader::index::{IndexedWorker, ObjectIndex};

/// A Worker with its inputs and machine objects.
pub(in crate::cli) struct Loaded {
    pub(in crate::cli) inputs: Inputs,
    pub(in crate::cli) live: MachineObjects,
}

/// Namespace and name.
pub(in crate::cli) type Key = (String, String);

/// A pair of files that are read together.
#[derive(Default)]
pub(super) struct Unit {
    pub(super) old: Option<NamedFile>,
    pub(super) new: Option<NamedFile>,
}

/// The result of one unit.
#[derive(Default)]
struct Part {
    result: CachedResult,
    errors: Vec<String>,
    only_old: BTreeMap<Key, Loaded>,
    only_new: BTreeMap<Key, Loaded>,
}

/// Compares two files or folders. Without the second, compares the first with the NEW derived by `made`.
pub(super) fn compare_files(
    old: &Path,
    new: Option<&Path>,
    made: &NewSide,
    profiles: &CloudProfiles,
) -> anyhow::Result<Comparison> {
    let mut evidence = Evidence::of("Worker");
    let units: Vec<Unit> = units(old, new, &mut evidence);
    // A single file is not a complete landscape, so Workers missing from it are not deleted.
    let is_excerpt = old.is_dir() && new.is_some_and(|new| !new.is_dir());
    let missing = if new.is_some() { Missing::Side } else { Missing::Old };
    compare_units(&units, missing, is_excerpt, evidence, made, profiles)
}

/// Which side must contain Workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Only the old side, because there is no other.
    Old,
    /// Both sides.
    Side,
    /// At least one side, because a revision may be the first with a Worker.
    Both,
}

/// Compares the files of two sides, using the profiles found in each side's files.
pub(super) fn compare_units(
    units: &[Unit],
    missing: Missing,
    is_excerpt: bool,
    evidence: Evidence,
    made: &NewSide,
    profiles: &CloudProfiles,
) -> anyhow::Result<Comparison> {
    let has_new = missing != Missing::Old;
    let old_files = units.iter().filter_map(|unit| unit.old.as_ref());
    let new_files = units.iter().filter_map(|unit| unit.new.as_ref());
    let readers = [made.of_shoots.of_side(old_files, profiles), made.of_shoots.of_side(new_files, profiles)];
    let mut comparison = Comparison::new(evidence);
    let cache = made.cache.as_deref().map(|folder| {
        let (cache, warning) = open_cache(folder, has_new, made, &readers, profiles);
        comparison.warnings.extend(warning);
        cache
    });
    let progress = Progress::new("files", units.len());
    let mut parts = in_parallel(units, |unit| {
        let part = part_of(unit, has_new, made, (&readers, profiles), cache.as_ref());
        progress.step();
        part
    });
    drop(progress);
    if let Some(Err(error)) = cache.map(|cache| cache.save()) {
        comparison.warnings.push(format!("answers can't be kept: {error:#}"));
    }
    let mut only_old = BTreeMap::new();
    let mut only_new = BTreeMap::new();
    if comparison.evidence.is_complete() {
        refuse_empty(&parts, missing)?;
    }
    comparison.warnings.extend(repeated(parts.iter().flat_map(|part| &part.result.old_keys), "OLD"));
    comparison.warnings.extend(repeated(parts.iter().flat_map(|part| &part.result.new_keys), "NEW"));
    for part in &mut parts {
        comparison.workers.append(&mut part.result.workers);
        part.errors.drain(..).for_each(|error| comparison.evidence.unread_text(error));
        comparison.warnings.append(&mut part.result.warnings);
        comparison.replaced += part.result.replaced;
        only_old.append(&mut part.only_old);
        only_new.append(&mut part.only_new);
    }
    for (key, old) in only_old {
        let new = only_new.remove(&key);
        if new.is_some() || !is_excerpt {
            let live = new.as_ref().map_or(&old.live, |new| choose_live(&old, new));
            let new = new.as_ref().map(|new| &new.inputs);
            comparison.workers.push(compare(Some(&old.inputs), new, live, Baseline::Rendered, profiles));
        }
    }
    for new in only_new.into_values() {
        comparison.workers.push(compare(None, Some(&new.inputs), &new.live, Baseline::Rendered, profiles));
    }
    Ok(comparison)
}

/// Rejects a side without Workers: every Worker would appear to be created or deleted.
fn refuse_empty(parts: &[Part], missing: Missing) -> anyhow::Result<()> {
    if parts.iter().any(|part| !part.errors.is_empty()) {
        return Ok(());
    }
    let has = |keys: fn(&Part) -> &[Key]| parts.iter().any(|part| !keys(part).is_empty());
    let (has_old, has_new) = (has(|part| &part.result.old_keys), has(|part| &part.result.new_keys));
    match missing {
        Missing::Both => ensure!(has_old || has_new, "no Worker and no Shoot in the working tree or the revision"),
        _ => ensure!(has_old, "no Worker in OLD"),
    }
    ensure!(has_new || missing != Missing::Side, "no Worker in NEW");
    Ok(())
}

/// Workers that occur in several files of a side.
fn repeated<'a>(keys: impl Iterator<Item = &'a Key>, side: &str) -> impl Iterator<Item = String> {
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<&Key> = keys.filter(|key| !seen.insert(*key)).collect();
    repeated.into_iter().map(move |key| format!("{}/{}: several files of {side} have this Worker", key.0, key.1))
}

/// The machine objects of the old side, or of the new side if the old has none.
fn choose_live<'a>(old: &'a Loaded, new: &'a Loaded) -> &'a MachineObjects {
    if old.live.deployments.is_empty() { &new.live } else { &old.live }
}

fn units(old: &Path, new: Option<&Path>, evidence: &mut Evidence) -> Vec<Unit> {
    let mut by_location: BTreeMap<PathBuf, Unit> = BTreeMap::new();
    let both_folders = old.is_dir() && new.is_some_and(Path::is_dir);
    // Two single files form one unit, regardless of their names.
    let location = |side: &Path, file: &NamedFile| {
        if both_folders {
            file.path.strip_prefix(side).unwrap_or(&file.path).to_owned()
        } else if side.is_dir() {
            file.path.clone()
        } else {
            PathBuf::new()
        }
    };
    for file in evidence.note_skipped(files(&[old.to_owned()])) {
        let location = location(old, &file);
        by_location.entry(location).or_default().old = Some(file);
    }
    if let Some(new) = new {
        for file in evidence.note_skipped(files(&[new.to_owned()])) {
            let location = location(new, &file);
            by_location.entry(location).or_default().new = Some(file);
        }
    }
    by_location.into_values().collect()
}

fn open_cache(
    folder: &Path,
    has_new: bool,
    made: &NewSide,
    readers: &[ShootReader; 2],
    profiles: &CloudProfiles,
) -> (Cache, Option<String>) {
    let deciding = Deciding {
        flags: format!("{has_new} {:?} {}", profiles.image_policy(), made.of_shoots.flags()),
        profiles: [&readers[0], &readers[1]].map(|reader| reader.profiles(profiles)),
        replacement: made.replacement.as_ref().map(|replacement| replacement.profile()),
        now: made.of_shoots.source().now,
    };
    Cache::open(folder, &deciding)
}

/// Computes the result of a unit or takes it from the cache.
fn part_of(
    unit: &Unit,
    has_new: bool,
    made: &NewSide,
    context: (&[ShootReader; 2], &CloudProfiles),
    cache: Option<&Cache>,
) -> Part {
    let mut part = Part::default();
    let mut text = |file: &Option<NamedFile>| {
        let text = file.as_ref()?.text();
        text.map_err(|error| part.errors.push(format!("{error:#}"))).ok()
    };
    let texts = [text(&unit.old), text(&unit.new)];
    let cache = match cache {
        Some(cache) if part.errors.is_empty() => cache,
        _ => return compare_unit(unit, texts, part, has_new, made, context),
    };
    let file = |file: &'_ Option<NamedFile>| file.as_ref().map(|file| file.path.clone());
    let paths = [file(&unit.old), file(&unit.new)];
    let [old, new] = [0, 1].map(|side: usize| Some((paths.get(side)?.as_deref()?, texts.get(side)?.as_deref()?)));
    let key = Cache::key([old, new]);
    if let Some(result) = cache.get(&key) {
        return Part { result, ..Part::default() };
    }
    let part = compare_unit(unit, texts, part, has_new, made, context);
    // Results that involve other files cannot be cached by this unit's files.
    if part.errors.is_empty() && part.only_old.is_empty() && part.only_new.is_empty() {
        cache.put(&key, &part.result);
    }
    part
}

fn compare_unit(
    unit: &Unit,
    [old_text, new_text]: [Option<String>; 2],
    mut part: Part,
    has_new: bool,
    made: &NewSide,
    (readers, profiles): (&[ShootReader; 2], &CloudProfiles),
) -> Part {
    let [old_reader, new_reader] = readers;
    let is_same = has_new && old_text.is_some() && old_text == new_text;
    let mut read = |file: &Option<NamedFile>, text: Option<String>, reader: &ShootReader| {
        let (Some(file), Some(text)) = (file, text) else { return Side::default() };
        let side = Side::read(&text, file, (profiles, reader)).with_context(|| file.name());
        side.map_err(|error| part.errors.push(format!("{error:#}"))).unwrap_or_default()
    };
    let old = read(&unit.old, old_text, old_reader);
    let is_same = is_same && (!old.has_shoots() || old_reader.is_same(new_reader, profiles));
    let new = if is_same { Side::default() } else { read(&unit.new, new_text, new_reader) };
    if !part.errors.is_empty() {
        // Comparing one side alone would report every Worker as created or deleted.
        return part;
    }
    let sides = Sides { old, new, unchanged: is_same || !has_new, made, profiles };
    let keys: Vec<&Key> =
        sides.old.workers.keys().chain(sides.new.workers.keys()).collect::<BTreeSet<_>>().into_iter().collect();
    let compared = in_parallel(&keys, |key| sides.compare(key));
    let result = &mut part.result;
    result.old_keys = sides.old.workers.keys().cloned().collect();
    result.new_keys = if is_same { result.old_keys.clone() } else { sides.new.workers.keys().cloned().collect() };
    // Warn about the new side only, because Gardener has already accepted the old one.
    result.warnings = if sides.unchanged { sides.old.repeated } else { sides.new.repeated };
    for (key, compared) in keys.iter().zip(compared) {
        match compared {
            Ok(compared) => compared.add_to(&mut part, key),
            Err(error) => return Part { errors: vec![format!("{error:#}")], ..Part::default() },
        }
    }
    part
}

/// The Workers of one side of a unit. They are decoded one by one, because their trees need ten times the memory of the
/// text.
#[derive(Default)]
struct Side {
    file: PathBuf,
    objects: ObjectIndex,
    workers: BTreeMap<Key, Origin>,
    /// Warnings about Workers that occur several times.
    repeated: Vec<String>,
}

/// What a Worker is made of.
enum Origin {
    Worker(IndexedWorker),
    Shoot(Inputs),
}

impl Side {
    /// Reads a text. Without Workers, derives them from its Shoots.
    fn read(
        text: &str,
        file: &NamedFile,
        (profiles, of_shoots): (&CloudProfiles, &ShootReader),
    ) -> anyhow::Result<Self> {
        let objects = ObjectIndex::of_text(text)?;
        let mut origins: Vec<(Key, Origin)> = objects.workers().iter().map(of_worker).collect();
        if origins.is_empty() {
            origins.extend(of_shoots.shoots_of(text, profiles)?.into_iter().map(of_shoot));
        }
        ensure!(!(origins.is_empty() && file.explicit), "no Worker in it");
        let mut side = Self { file: file.path.clone(), objects, ..Self::default() };
        for (key, origin) in origins {
            let at = location_of(&side.file, &key);
            if side.workers.insert(key, origin).is_some() {
                side.repeated.push(format!("{at}: several Workers have this name; the last one counts"));
            }
        }
        Ok(side)
    }

    fn has_shoots(&self) -> bool {
        self.workers.values().any(|origin| matches!(origin, Origin::Shoot(_)))
    }

    /// Decodes a Worker, if this side has it.
    fn load(&self, key: &Key, profiles: &CloudProfiles) -> anyhow::Result<Option<Loaded>> {
        let loaded = match self.workers.get(key) {
            None => return Ok(None),
            Some(Origin::Shoot(inputs)) => Loaded { inputs: inputs.clone(), live: MachineObjects::default() },
            Some(Origin::Worker(worker)) => {
                let documents = WorkerDocuments::new(worker, &self.objects);
                documents.and_then(|documents| loaded(documents, profiles))?
            }
        };
        Ok(Some(loaded))
    }

    /// Warnings about values of a Worker that Gardener would reject.
    fn warnings(&self, key: &Key, loaded: &Loaded) -> Vec<String> {
        if loaded.inputs.made_from_shoot.is_some() {
            return Vec::new();
        }
        let at = location_of(&self.file, key);
        let mistakes = worker_warnings::warnings(&loaded.inputs.worker.value);
        mistakes.into_iter().map(|mistake| format!("{at}: {mistake}")).collect()
    }
}

fn of_worker(worker: &IndexedWorker) -> (Key, Origin) {
    ((worker.namespace.clone(), worker.name.clone()), Origin::Worker(worker.clone()))
}

fn of_shoot(inputs: Inputs) -> (Key, Origin) {
    ((inputs.namespace().to_owned(), inputs.name().to_owned()), Origin::Shoot(inputs))
}

fn location_of(file: &Path, key: &Key) -> String {
    format!("{}: {}/{}", file.display(), key.0, key.1)
}

/// Both sides of a unit.
struct Sides<'a> {
    old: Side,
    new: Side,
    /// Whether NEW is derived from OLD, or the same.
    unchanged: bool,
    made: &'a NewSide,
    profiles: &'a CloudProfiles,
}

/// The result for one Worker.
struct Compared {
    warnings: Vec<String>,
    replaced: Replaced,
    outcome: Outcome,
}

enum Outcome {
    Changed(Box<WorkerChange>),
    OnlyOld(Box<Loaded>),
    OnlyNew(Box<Loaded>),
    Neither,
}

impl Sides<'_> {
    fn compare(&self, key: &Key) -> anyhow::Result<Compared> {
        let old = self.old.load(key, self.profiles).with_context(|| name_of(&self.old.file))?;
        let new = self.new.load(key, self.profiles).with_context(|| name_of(&self.new.file))?;
        let warnings = if self.unchanged {
            old.as_ref().map(|old| self.old.warnings(key, old))
        } else {
            new.as_ref().map(|new| self.new.warnings(key, new))
        };
        let mut replaced = Replaced::default();
        let outcome = match (old, new) {
            (Some(old), _) if self.unchanged => {
                let change = self.made.compare(&old, Baseline::Rendered, self.profiles, &mut replaced);
                Outcome::Changed(Box::new(change))
            }
            (Some(old), Some(new)) => {
                let live = choose_live(&old, &new);
                let new = Some(&new.inputs);
                let change = compare(Some(&old.inputs), new, live, Baseline::Rendered, self.profiles);
                Outcome::Changed(Box::new(change))
            }
            (Some(old), None) => Outcome::OnlyOld(Box::new(old)),
            (None, Some(new)) => Outcome::OnlyNew(Box::new(new)),
            (None, None) => Outcome::Neither,
        };
        Ok(Compared { warnings: warnings.unwrap_or_default(), replaced, outcome })
    }
}

impl Compared {
    fn add_to(self, part: &mut Part, key: &Key) {
        part.result.warnings.extend(self.warnings);
        part.result.replaced += self.replaced;
        match self.outcome {
            Outcome::Changed(change) => part.result.workers.push(*change),
            Outcome::OnlyOld(old) => drop(part.only_old.insert(key.clone(), *old)),
            Outcome::OnlyNew(new) => drop(part.only_new.insert(key.clone(), *new)),
            Outcome::Neither => {}
        }
    }
}

/// Workers read from files or a seed.
#[derive(Default)]
pub(in crate::cli) struct Observed {
    /// Workers with their inputs and machine objects.
    pub(in crate::cli) loaded: BTreeMap<Key, Loaded>,
    /// Workers that cannot be decoded.
    pub(in crate::cli) unreadable: Vec<Unreadable>,
    /// The namespaces of Workers that were not selected.
    pub(in crate::cli) other_namespaces: BTreeSet<String>,
}

impl Observed {
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.loaded.is_empty() && self.unreadable.is_empty()
    }
}

/// A Worker that cannot be decoded.
pub(in crate::cli) struct Unreadable {
    pub(in crate::cli) key: Key,
    /// Raw object.
    pub(in crate::cli) worker: Value,
    /// The object and field that cannot be decoded, without values.
    pub(in crate::cli) reason: String,
}

impl Unreadable {
    /// The entry printed in place of a comparison.
    pub(in crate::cli) fn change(&self) -> WorkerChange {
        WorkerChange::not_compared(&self.key.0, &self.key.1, &self.reason)
    }
}

/// Loads the Workers of a text. A Worker that cannot be decoded does not affect others.
pub(in crate::cli) fn load_each(text: &str, profiles: &CloudProfiles) -> anyhow::Result<Observed> {
    let mut observed = Observed::default();
    let objects = ObjectIndex::of_text(text)?;
    for worker in objects.workers() {
        let documents = WorkerDocuments::new(worker, &objects)?;
        let key = (worker.namespace.clone(), worker.name.clone());
        let worker = documents.worker.clone();
        match loaded(documents, profiles) {
            Ok(loaded) => drop(observed.loaded.insert(key, loaded)),
            Err(error) => observed.unreadable.push(Unreadable { key, worker, reason: format!("{error:#}") }),
        }
    }
    Ok(observed)
}

fn loaded(documents: WorkerDocuments, profiles: &CloudProfiles) -> anyhow::Result<Loaded> {
    let WorkerDocuments { worker, cluster, surroundings } = documents;
    let (secrets, live) = surroundings?;
    let inputs = Inputs::new(worker, cluster, secrets, profiles).context("CloudProfile of the Cluster")?;
    Ok(Loaded { inputs, live })
}

/// Loads the Workers of a text, all of which must be readable. Also returns warnings about values that Gardener would
/// reject.
pub(super) fn load_text(
    text: &str,
    file: &NamedFile,
    context: (&CloudProfiles, &ShootReader),
) -> anyhow::Result<(BTreeMap<Key, Loaded>, Vec<String>)> {
    let mut side = Side::read(text, file, context)?;
    let mut warnings = std::mem::take(&mut side.repeated);
    let mut all = BTreeMap::new();
    for key in side.workers.keys() {
        if let Some(loaded) = side.load(key, context.0)? {
            warnings.extend(side.warnings(key, &loaded));
            all.insert(key.clone(), loaded);
        }
    }
    Ok((all, warnings))
}
