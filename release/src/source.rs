//! The commit that a release is made from, and what Cargo.toml says about the package.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::Value;

use crate::NAME;

/// A commit of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Version of the package.
    pub version: String,
    /// Hash of the commit, with `-dirty` if files differ from it.
    pub commit: String,
    /// Time of the commit, in seconds since 1970.
    pub time: i64,
    /// URL of the documentation, if it is published.
    pub homepage: Option<String>,
    /// URL of the repository, if it is published.
    pub repository: Option<String>,
    /// Registry and name of the image, unless the command names another one.
    pub image: String,
}

impl Source {
    /// Reads the commit of a repository.
    ///
    /// # Errors
    ///
    /// If this is no repository, or files differ from the commit and `allow_dirty` is off.
    pub fn read(root: &Path, allow_dirty: bool) -> Result<Self> {
        let changed = output(root, "git", &["status", "--porcelain"])?;
        ensure!(
            changed.is_empty() || allow_dirty,
            "these files differ from the commit; commit or remove them, or use --allow-dirty:\n{changed}"
        );
        let dirty = if changed.is_empty() { "" } else { "-dirty" };
        let commit = output(root, "git", &["rev-parse", "HEAD"])? + dirty;
        let time = output(root, "git", &["log", "-1", "--format=%ct"])?.parse().context("the time of the commit")?;
        let package = package(root)?;
        let text = |path: &str| package.pointer(path).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            version: text("/version").context("Cargo.toml has no version")?,
            commit,
            time,
            homepage: text("/homepage"),
            repository: text("/repository"),
            image: text("/metadata/release/image").context("Cargo.toml has no package.metadata.release.image")?,
        })
    }

    /// Time of the commit as text.
    ///
    /// # Errors
    ///
    /// If it is out of range.
    pub fn date(&self) -> Result<String> {
        Ok(Timestamp::from_second(self.time).context("the time of the commit")?.to_string())
    }
}

/// URL of the published repository, if there is one.
///
/// # Errors
///
/// If the metadata of Cargo can't be read.
pub fn repository(root: &Path) -> Result<Option<String>> {
    Ok(package(root)?["repository"].as_str().map(str::to_owned))
}

/// The package of the program in the metadata of Cargo.
fn package(root: &Path) -> Result<Value> {
    let metadata = output(root, "cargo", &["metadata", "--locked", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading the metadata of Cargo")?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    packages.find(|package| package["name"] == NAME).cloned().with_context(|| format!("no package {NAME}"))
}

/// What a program prints, without the last line break.
pub(crate) fn output(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.with_context(|| format!("starting {program}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {error}");
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
