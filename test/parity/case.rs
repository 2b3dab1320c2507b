//! One case: a folder with `input.yaml` and `expected.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::cli::input::{NamedFile, workers_of_file};
use gardener_extension_worker::cli::render::render;
use gardener_extension_worker::provider::Providers;
use serde_json::{Value, json};

/// A case by its folder.
pub(crate) struct Case {
    folder: PathBuf,
}

/// What became of a case.
pub(crate) enum Outcome {
    /// Another operation, or waiting: what happens there is decided by steps that follow a plan.
    NotDecidedByPlan,
    /// The measured result, and ours in the same form.
    Rendered { expected: Value, got: Value },
}

/// Finds the cases below a folder, in the order of names.
pub(crate) fn collect(folder: &Path, cases: &mut Vec<Case>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    if folder.join("input.yaml").is_file() {
        cases.push(Case { folder: folder.to_owned() });
    }
    for entry in entries {
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), cases)?;
        }
    }
    Ok(())
}

impl Case {
    /// Name of the case.
    pub(crate) fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder above the case, as far as it lies below `root`.
    pub(crate) fn family(&self, root: &Path) -> String {
        let family = self.folder.parent().unwrap_or(root);
        match family.strip_prefix(root) {
            Ok(below) if !below.as_os_str().is_empty() => below.display().to_string(),
            _ => family.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// Renders the input. Upstream reads one Worker per case.
    pub(crate) fn render(&self) -> Result<Outcome, String> {
        let path = self.folder.join("input.yaml");
        let input = document(&path)?;
        let is_reconcile = input["operation"].is_null() || input["operation"] == "reconcile";
        if !is_reconcile || input["mcm"] == "asGiven" {
            return Ok(Outcome::NotDecidedByPlan);
        }
        let expected = document(&self.folder.join("expected.yaml"))?;
        let got = match workers_of_file(&NamedFile { path, explicit: true }) {
            // An object that can't be decoded: the controller says so in the status and leaves everything as it is.
            Err(error) => json!({"errors": [{"message": format!("{error:#}")}]}),
            Ok(workers) => match <[_; 1]>::try_from(workers) {
                Ok([worker]) => {
                    serde_json::to_value(render(worker, Providers::SHIPPED)).map_err(|error| error.to_string())?
                }
                Err(workers) => return Err(format!("{} Workers in the input", workers.len())),
            },
        };
        Ok(Outcome::Rendered { expected, got })
    }
}

fn document(path: &Path) -> Result<Value, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let documents = yaml::documents(&text).map_err(|error| format!("{name}: {error}"))?;
    documents.into_iter().next().ok_or_else(|| format!("{name}: empty"))
}
