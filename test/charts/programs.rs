//! Programs that others have written, in the versions that `programs/` and this file name.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

pub(crate) use test_support::cluster::helm;
use test_support::cluster::{cache, go_program};

/// The schemas of Kubernetes' own kinds, and who compares with them: a Python package.
const KUBERNETES_VALIDATE: &str = "kubernetes-validate==1.37.0";

fn module(name: &str) -> PathBuf {
    test_support::repository().join("test/charts/programs").join(name)
}

/// promtool, without the discovery of targets at clouds.
pub(crate) async fn promtool() -> Result<PathBuf> {
    let package = "github.com/prometheus/prometheus/cmd/promtool";
    go_program(&module("promtool"), "promtool", package, "remove_all_sd", "4 minutes on two cores").await
}

/// What a program wrote to both outputs, and whether it succeeded.
pub(crate) fn output(command: &mut Command) -> Result<(bool, String)> {
    let output = command.output().with_context(|| format!("starting {:?}", command.get_program()))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// Compares the manifests of a file with the schemas of a version of Kubernetes; returns what is wrong. `None`, and a word
/// on the terminal, where there is no Python or its package can't be fetched.
pub(crate) fn kubernetes_validate(manifests: &Path, version: &str) -> Result<Option<String>> {
    let package = match python_package() {
        Ok(package) => package,
        Err(reason) => {
            // To standard error itself: the test harness keeps what goes through `eprintln!` to itself.
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

/// The folder with the package, fetched once.
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
    // Another process may have been faster.
    if std::fs::rename(unfinished.path(), &folder).is_ok() {
        let _ = unfinished.keep();
    }
    ensure!(folder.is_dir(), "{} could not be made", folder.display());
    Ok(folder)
}
