//! The inputs of the parity cases as material for other inputs.

use std::fs;
use std::path::{Path, PathBuf};

use gardener_extension_worker::api::gotext::yaml;
use serde_json::Value;

/// One input.
#[derive(Clone, Debug)]
pub(crate) struct ParityInput {
    /// Folder of the case, for messages.
    pub(crate) name: String,
    /// The bundle.
    pub(crate) bundle: Value,
}

/// Every input below `test/parity/cases` that is a file of YAML.
pub(crate) fn all() -> Vec<ParityInput> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/parity/cases");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    let inputs: Vec<_> = paths.iter().filter_map(|path| read(&root, path)).collect();
    assert!(inputs.len() > 100, "only {} inputs below {}", inputs.len(), root.display());
    inputs
}

/// The input of one case.
pub(crate) fn one(name: &str) -> ParityInput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/parity/cases");
    read(&root, &root.join(name).join("input.yaml")).unwrap_or_else(|| panic!("no case {name}"))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, paths);
        } else if path.ends_with("input.yaml") {
            paths.push(path);
        }
    }
}

fn read(root: &Path, path: &Path) -> Option<ParityInput> {
    let documents = yaml::documents(&fs::read_to_string(path).ok()?).ok()?;
    let name = path.parent()?.strip_prefix(root).ok()?.display().to_string();
    Some(ParityInput { name, bundle: documents.into_iter().next()? })
}
