//! Reads the cases of a folder, in four forms: a file for a family, a folder with `input.yaml` and `expected.yaml` per
//! case, `NAME.json` with both, and `NAME.in.yaml` next to `NAME.out.json`.
//!
//! A family's file is an object:
//!
//! | | |
//! |---|---|
//! | `from` | a file in the same folder with the documents `input` and `expected` |
//! | `base` | common to the cases of this family: edits of these documents, or documents if `from` is missing |
//! | `cases` | edits of `base` for each case |
//! | `form` | `flows` for cases in the form of `NAME.in.yaml` and `NAME.out.json` |

use std::fs;
use std::path::{Path, PathBuf};

use gardener_extension_worker::api::gotext::yaml;
use serde_json::Value;

use super::edits::edited;

/// Form of a case's documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As in `input.yaml` and `expected.yaml`.
    #[default]
    Cases,
    /// As in `NAME.in.yaml` and `NAME.out.json`.
    Flows,
}

/// One measured case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Folders and file of the case, relative to the collected folder.
    pub family: String,
    pub name: String,
    pub form: Form,
    /// The documents, or why they cannot be read.
    pub documents: Result<Documents, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Documents {
    pub input: Value,
    pub expected: Value,
}

/// The folder of the project's own cases for planning.
#[must_use]
pub fn own() -> PathBuf {
    crate::repository().join("test/parity/cases")
}

/// One of the project's own cases by `provider/family/name`.
///
/// # Errors
/// If it does not exist or cannot be read.
pub fn find(name: &str) -> Result<Documents, String> {
    let missing = || format!("no case {name}");
    let (family, name) = name.rsplit_once('/').ok_or_else(missing)?;
    let cases = collect(&own().join(family).with_extension("yaml"))?;
    cases.into_iter().find(|case| case.name == name).ok_or_else(missing)?.documents
}

/// The cases below a folder, or in a file, sorted by name.
///
/// # Errors
/// If a folder or a family's file cannot be read.
pub fn collect(path: &Path) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    if path.is_file() {
        add_family(path, &stem(path), &mut cases)?;
    } else {
        walk(path, path, &mut cases)?;
    }
    Ok(cases)
}

fn walk(root: &Path, folder: &Path, cases: &mut Vec<Case>) -> Result<(), String> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(problem)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(problem)?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            walk(root, &path, cases)?;
        } else if name == "input.yaml" {
            cases.push(Case {
                family: below(root, folder.parent().unwrap_or(root)),
                name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                form: Form::Cases,
                documents: documents(&path, &folder.join("expected.yaml")),
            });
        } else if let Some(name) = name.strip_suffix(".in.yaml") {
            let documents = documents(&path, &folder.join(format!("{name}.out.json")));
            cases.push(Case { family: below(root, folder), name: name.to_owned(), form: Form::Flows, documents });
        } else if let Some(name) = name.strip_suffix(".json").filter(|name| !name.ends_with(".out")) {
            let documents = document(&path).map(|mut both| {
                let [input, expected] = ["input", "expected"].map(|member| both[member].take());
                Documents { input, expected }
            });
            cases.push(Case { family: below(root, folder), name: name.to_owned(), form: Form::Cases, documents });
        } else if name.ends_with(".yaml") && name != "expected.yaml" {
            add_family(&path, &below(root, &path.with_extension("")), cases)?;
        }
    }
    Ok(())
}

/// The path relative to `root`.
fn below(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(below) if !below.as_os_str().is_empty() => below.display().to_string(),
        _ => stem(path),
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn documents(input: &Path, expected: &Path) -> Result<Documents, String> {
    Ok(Documents { input: document(input)?, expected: document(expected)? })
}

fn document(path: &Path) -> Result<Value, String> {
    let problem = |text: String| format!("{}: {text}", path.display());
    let text = fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    if path.extension().is_some_and(|extension| extension == "json") {
        return serde_json::from_str(&text).map_err(|error| problem(error.to_string()));
    }
    let mut documents = yaml::documents(&text).map_err(|error| problem(error.to_string()))?;
    match documents.len() {
        1 => Ok(documents.remove(0)),
        count => Err(problem(format!("{count} documents"))),
    }
}

/// Adds the cases of a file. Files without cases, such as a `from` file, are skipped.
fn add_family(path: &Path, family: &str, cases: &mut Vec<Case>) -> Result<(), String> {
    let file = document(path)?;
    let Some(own) = file["cases"].as_object() else { return Ok(()) };
    let problem = |text: String| format!("{}: {text}", path.display());
    let form = match file["form"].as_str() {
        None => Form::Cases,
        Some("flows") => Form::Flows,
        Some(other) => return Err(problem(format!("form {other:?}"))),
    };
    let with = |documents: &Documents, edits: &Value| -> Result<Documents, String> {
        Ok(Documents {
            input: edited(&documents.input, &edits["input"])?,
            expected: edited(&documents.expected, &edits["expected"])?,
        })
    };
    let whole = |of: &Value| Documents { input: of["input"].clone(), expected: of["expected"].clone() };
    let base = match file["from"].as_str() {
        None => whole(&file["base"]),
        Some(from) => {
            let from = whole(&document(&path.with_file_name(from))?);
            with(&from, &file["base"]).map_err(|text| problem(format!("base: {text}")))?
        }
    };
    for (name, edits) in own {
        let documents = with(&base, edits).map_err(|text| problem(format!("{name}: {text}")));
        cases.push(Case { family: family.to_owned(), name: name.clone(), form, documents });
    }
    Ok(())
}
