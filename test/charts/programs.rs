//! Third-party programs in the versions that `programs/` and this file specify.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

pub(crate) use test_support::cluster::helm;
use test_support::cluster::{cache, go_program};

/// The Python package that validates against the schemas of Kubernetes' own kinds.
const KUBERNETES_VALIDATE: &str = "kubernetes-validate==1.37.0";

fn module(name: &str) -> PathBuf {
    test_support::repository().join("test/charts/programs").join(name)
}

/// promtool, without service discovery for clouds.
pub(crate) async fn promtool() -> Result<PathBuf> {
    let package = "github.com/prometheus/prometheus/cmd/promtool";
    go_program(&module("promtool"), "promtool", package, "remove_all_sd", "4 minutes on two cores").await
}

/// Runs a command. Returns whether it succeeded, with the text of both outputs.
pub(crate) fn output(command: &mut Command) -> Result<(bool, String)> {
    let output = command.output().with_context(|| format!("starting {:?}", command.get_program()))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// Validates the manifests of a file against the schemas of a Kubernetes version. Returns the errors. Returns `None`
/// and prints a note if Python is missing or its package can't be fetched.
pub(crate) fn kubernetes_validate(manifests: &Path, version: &str) -> Result<Option<String>> {
    let package = match python_package() {
        Ok(package) => package,
        Err(reason) => {
            // Writes to standard error directly, because the test harness captures `eprintln!`.
            let word = format!("SKIPPED: manifests are not compared with Kubernetes' schemas: {reason:#}\n");
            std::io::stderr().write_all(word.as_bytes())?;
            return Ok(None);
        }
    };
    let mut command = Command::new("python3");
    command.args(["-m", "kubernetes_validate", "--strict", "--no-warn", "-k", version]).arg(manifests);
    let (succeeded, text) = output(command.env("PYTHONPATH", package))?;
    let wrong: Vec<&str> = text.lines().filter(|line| !line.starts_with("INFO")).collect();
    ensure!(succeeded || !wrong.is_empty(), "kubernetes-validate fails and says nothing");
    Ok(Some(if succeeded { String::new() } else { wrong.join("\n") }))
}

/// The folder with the package, which is fetched only once.
fn python_package() -> Result<PathBuf> {
    let folder = cache()?.join("python").join(KUBERNETES_VALIDATE);
    if folder.is_dir() {
        return Ok(folder);
    }
    let parent = folder.parent().context("the cache has a folder")?;
    std::fs::create_dir_all(parent)?;
    let unfinished = tempfile::tempdir_in(parent)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"])
        .arg(unfinished.path())
        .arg(KUBERNETES_VALIDATE);
    let (succeeded, text) = output(&mut pip)?;
    ensure!(succeeded, "pip can't install {KUBERNETES_VALIDATE}: {text}");
    // Another process may have created the folder first.
    if std::fs::rename(unfinished.path(), &folder).is_ok() {
        let _ = unfinished.keep();
    }
    ensure!(folder.is_dir(), "{} could not be made", folder.display());
    Ok(folder)
}
