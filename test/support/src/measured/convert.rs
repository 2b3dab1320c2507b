//! Converts a folder of cases in any form to family files: `CASES=FOLDER FAMILIES=FOLDER cargo test -p test-support --
//! --ignored families_are_written`. Then reads the files again and compares the cases.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::cases::{Case, Documents, Form, collect};
use super::edits::{ABSENT, LIKE, RENAME, in_order, renamed};
use super::print::print;

/// The file that the families of a folder start from.
const PLAIN: &str = "plain.yaml";

/// Number of word replacements tried for a document, and for a value in it.
const CANDIDATES: [usize; 2] = [8, 4];

/// The edits that turn one document into another.
#[must_use]
pub fn edits(base: &Value, target: &Value) -> Value {
    Value::Object(of_document(base, target, 0))
}

/// Approximate length of edits in a file.
pub(super) fn cost(edits: &Map<String, Value>) -> usize {
    edits.iter().map(|(pointer, value)| pointer.len() + value.to_string().len() + 4).sum()
}

/// Cost without renames, which are too slow when only the size matters.
pub(super) fn rough_cost(base: &Value, target: &Value) -> usize {
    let mut edits = Map::new();
    between("", base, target, usize::MAX, &mut edits);
    cost(&edits)
}

fn of_document(base: &Value, target: &Value, depth: usize) -> Map<String, Value> {
    let plain = |base: &Value| {
        let mut edits = Map::new();
        between("", base, target, depth, &mut edits);
        edits
    };
    let mut best = plain(base);
    let mut names: Vec<(String, String)> = Vec::new();
    for candidate in candidates(base, target).into_iter().take(CANDIDATES.get(depth).copied().unwrap_or_default()) {
        if names.iter().any(|(old, _)| *old == candidate.0) {
            continue;
        }
        let tried = [names.as_slice(), &[candidate]].concat();
        let pairs: Vec<_> = tried.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
        let mut edits = plain(&renamed(base, &pairs));
        edits.insert(RENAME.to_owned(), tried.iter().map(|(old, new)| (old.clone(), json!(new))).collect());
        if cost(&edits) < cost(&best) {
            (best, names) = (edits, tried);
        }
    }
    best
}

/// Words that replace others at the same positions, largest savings first.
fn candidates(base: &Value, target: &Value) -> Vec<(String, String)> {
    let mut found = BTreeMap::new();
    compare_words(base, target, &mut found);
    let mut found: Vec<_> = found.into_iter().filter(|(_, count)| *count > 1).collect();
    found.sort_by_key(|((old, new), count)| std::cmp::Reverse(count * (old.len() + new.len())));
    found.into_iter().map(|(pair, _)| pair).collect()
}

fn compare_words(base: &Value, target: &Value, found: &mut BTreeMap<(String, String), usize>) {
    match (base, target) {
        (Value::String(base), Value::String(target)) => add_words(base, target, found),
        (Value::Array(base), Value::Array(target)) => {
            base.iter().zip(target).for_each(|(base, target)| compare_words(base, target, found));
        }
        (Value::Object(base), Value::Object(target)) => {
            for (key, member) in base {
                if let Some(other) = target.get(key) {
                    compare_words(member, other, found);
                }
            }
            let [deleted, new] = [(base, target), (target, base)]
                .map(|(of, other)| of.iter().filter(|(key, _)| !other.contains_key(*key)));
            for ((deleted, base), (new, target)) in deleted.zip(new) {
                add_words(deleted, new, found);
                compare_words(base, target, found);
            }
        }
        _ => {}
    }
}

fn add_words(base: &str, target: &str, found: &mut BTreeMap<(String, String), usize>) {
    let words =
        |text: &str| -> Vec<String> { text.split(|next: char| !next.is_alphanumeric()).map(str::to_owned).collect() };
    let (base, target) = (words(base), words(target));
    if base.len() == target.len() {
        for (old, new) in base.into_iter().zip(target) {
            if old != new && !old.is_empty() {
                *found.entry((old, new)).or_default() += 1;
            }
        }
    }
}

fn step(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// Adds the edits between two values.
fn between(pointer: &str, base: &Value, target: &Value, depth: usize, edits: &mut Map<String, Value>) {
    // Compare as text, because 1 and 1.0 differ.
    let [left, right] = [base, target].map(Value::to_string);
    if left == right {
        return;
    }
    let mut parts = Map::new();
    match (base, target) {
        (Value::Object(base), Value::Object(target)) => {
            for key in base.keys().chain(target.keys()).collect::<BTreeSet<_>>() {
                let at = step(pointer, key);
                match (base.get(key), target.get(key)) {
                    (Some(base), Some(target)) => between(&at, base, target, depth, &mut parts),
                    (_, Some(target)) => drop(parts.insert(at, target.clone())),
                    (_, None) => drop(parts.insert(at, ABSENT.into())),
                }
            }
        }
        (Value::Array(base), Value::Array(target)) => between_lists(pointer, base, target, depth, &mut parts),
        _ => drop(parts.insert(pointer.to_owned(), target.clone())),
    }
    let whole = Map::from_iter([(pointer.to_owned(), target.clone())]);
    edits.extend(if cost(&parts) <= cost(&whole) || pointer.is_empty() { parts } else { whole });
}

fn between_lists(pointer: &str, base: &[Value], target: &[Value], depth: usize, edits: &mut Map<String, Value>) {
    for (index, item) in target.iter().enumerate() {
        let at = step(pointer, &index.to_string());
        let mut best = Map::new();
        match base.get(index) {
            Some(base) => between(&at, base, item, depth, &mut best),
            None => drop(best.insert(at.clone(), item.clone())),
        }
        if depth < CANDIDATES.len() && cost(&best) > 60 && item.is_object() {
            // The list as it is when this item is inserted.
            let now = target[..index].iter().chain(base.get(index + 1..).unwrap_or_default());
            let indices = (0..index).chain(index + 1..);
            for (other, like) in indices.zip(now).filter(|(_, like)| like.is_object()) {
                let mut value = of_document(like, item, depth + 1);
                value.insert(LIKE.to_owned(), step(pointer, &other.to_string()).into());
                let edits = Map::from_iter([(at.clone(), Value::Object(value))]);
                if cost(&edits) < cost(&best) {
                    best = edits;
                }
            }
        }
        edits.extend(best);
    }
    if target.len() < base.len() {
        edits.insert(step(pointer, &target.len().to_string()), ABSENT.into());
    }
}

/// Members in reading order: names first, pointers by their steps.
pub(super) fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |key: &str| {
        ["form", "from", "base", "cases", RENAME, LIKE, "input", "expected", "name"]
            .iter()
            .position(|first| *first == key)
            .unwrap_or(usize::MAX)
    };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by(|(left, _), (right, _)| rank(left).cmp(&rank(right)).then_with(|| in_order(left, right)));
    members
}

/// Writes a file per family of cases. Families in one folder start from the same documents.
///
/// # Errors
/// If a case cannot be read or a file cannot be written.
pub fn write_families(cases: &Path, families: &Path) -> Result<(), String> {
    let mut folders = BTreeMap::<String, BTreeMap<String, Vec<Case>>>::new();
    for case in collect(cases)? {
        let (folder, family) = case.family.rsplit_once('/').unwrap_or(("", &case.family));
        folders.entry(folder.to_owned()).or_default().entry(family.to_owned()).or_default().push(case);
    }
    for (folder, of_folder) in folders {
        let folder = families.join(folder);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        write_folder(&folder, of_folder)?;
    }
    Ok(())
}

fn write_folder(folder: &Path, families: BTreeMap<String, Vec<Case>>) -> Result<(), String> {
    let write = |file: &str, value: &Value| {
        std::fs::write(folder.join(file), print(value)).map_err(|error| format!("{}: {error}", folder.display()))
    };
    let mut bases = Vec::new();
    for cases in families.values() {
        let documents = cases.iter().map(|case| case.documents.as_ref().map_err(Clone::clone));
        bases.push(central(documents.collect::<Result<_, _>>()?)?);
    }
    let plain = if bases.len() > 1 { Some(central(bases.iter().collect())?) } else { None };
    if let Some(plain) = &plain {
        write(PLAIN, &json!({"input": plain.input, "expected": plain.expected}))?;
    }
    for ((family, cases), base) in families.iter().zip(&bases) {
        let mut file = json!({"base": {"input": base.input, "expected": base.expected}, "cases": {}});
        if let Some(plain) = &plain {
            file["from"] = PLAIN.into();
            file["base"] = between_documents(plain, base);
        }
        if cases.iter().all(|case| case.form == Form::Flows) {
            file["form"] = "flows".into();
        }
        for case in cases {
            file["cases"][&case.name] = between_documents(base, case.documents.as_ref().map_err(Clone::clone)?);
        }
        write(&format!("{family}.yaml"), &file)?;
    }
    Ok(())
}

/// The documents with the smallest difference from all others; among similar ones the smallest, which is easiest to
/// read.
fn central(all: Vec<&Documents>) -> Result<Documents, String> {
    let distance = |of: &Documents| -> usize {
        let to = |other: &&Documents| rough_cost(&of.input, &other.input) + rough_cost(&of.expected, &other.expected);
        all.iter().map(to).sum()
    };
    let size = |of: &Documents| of.input.to_string().len() + of.expected.to_string().len();
    let distances: Vec<_> = all.iter().map(|documents| distance(documents)).collect();
    let least = distances.iter().min().copied().unwrap_or_default();
    let near = all.iter().zip(distances).filter(|(_, distance)| *distance <= least + least / 4);
    near.map(|(documents, _)| *documents).min_by_key(|documents| size(documents)).cloned().ok_or("no cases".to_owned())
}

fn between_documents(base: &Documents, target: &Documents) -> Value {
    let mut edited = Map::new();
    for (member, base, target) in
        [("input", &base.input, &target.input), ("expected", &base.expected, &target.expected)]
    {
        let edits = of_document(base, target, 0);
        if !edits.is_empty() {
            edited.insert(member.to_owned(), Value::Object(edits));
        }
    }
    Value::Object(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "writes files, as CASES and FAMILIES name them"]
    fn families_are_written() {
        let [cases, families] = ["CASES", "FAMILIES"].map(|name| std::env::var(name).expect(name));
        write_families(cases.as_ref(), families.as_ref()).unwrap();
        let read = |folder: &str| {
            let cases = collect(folder.as_ref()).unwrap().into_iter();
            let cases = cases.map(|case| {
                let documents = case.documents.unwrap();
                // Compare as text, because 1 and 1.0 differ.
                let texts = [documents.input.to_string(), documents.expected.to_string()];
                ((case.family, case.name), (case.form, texts))
            });
            cases.collect::<BTreeMap<_, _>>()
        };
        let [before, after] = [read(&cases), read(&families)];
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        for (case, documents) in &before {
            assert!(after[case] == *documents, "{case:?} is another one");
        }
        println!("{} cases are the same", before.len());
    }
}
