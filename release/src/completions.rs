//! Completions for shells and manual pages, which the program itself prints.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::NAME;

/// Shells, with the name under which each finds the file.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "gardener-extension-worker.bash"),
    ("elvish", "gardener-extension-worker.elv"),
    ("fish", "gardener-extension-worker.fish"),
    ("powershell", "_gardener-extension-worker.ps1"),
    ("zsh", "_gardener-extension-worker"),
];

/// The files by their path in the archive.
pub(crate) fn files(program: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for (shell, name) in SHELLS {
        files.insert(format!("completions/{name}"), printed(program, &["completions", shell])?);
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_str().context("the temporary folder has no name in UTF-8")?;
    printed(program, &["man", "--folder", path])?;
    for entry in std::fs::read_dir(folder.path())? {
        let entry = entry?;
        files.insert(format!("man/{}", entry.file_name().to_string_lossy()), std::fs::read(entry.path())?);
    }
    ensure!(files.contains_key(&format!("man/{NAME}.1")), "{} writes no manual page", program.display());
    Ok(files)
}

fn printed(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {arguments:?}: {error}", program.display());
    Ok(output.stdout)
}
