//! Runs the steps of the recipes in `example/ci` like a runner, in a repository with a branch.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gardener_extension_worker::api::gotext::yaml;
use serde_json::Value;
use tempfile::TempDir;

use crate::preview_git::{Repository, SHOOT};

/// A folder for `PATH` with the program, and stubs of other programs.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(test_support::program::binary(), folder.path().join("gardener-extension-worker"))
            .unwrap();
        Self(folder)
    }

    fn add(&self, name: &str, result: &str) {
        let path = self.0.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\ncat <<'END'\n{result}\nEND\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// The exit code and output of a script.
    fn run(&self, repository: &Repository, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(arguments).current_dir(repository.path("")).env("PATH", path).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }
}

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("example/ci").join(name)
}

fn document(name: &str) -> Value {
    yaml::documents(&std::fs::read_to_string(recipe(name)).unwrap()).unwrap().remove(0)
}

/// Checks that the gate passes a commit that rolls, with its table, and then stops a commit that deletes a pool.
fn check(run: impl Fn(&Repository) -> (i32, String)) {
    let repository = Repository::new();
    repository.edit(SHOOT, "version: 1592.4.0", "version: 1592.9.0");
    let (code, table) = run(&repository);
    assert!(code == 0 && table.contains("ROLL"), "{code}: {table}");
    repository.edit(SHOOT, "name: batch", "name: batch-2");
    let (code, table) = run(&repository);
    assert!(code == 6 && table.contains("DELETE"), "{code}: {table}");
}

#[test]
fn a_pull_request_of_github_gets_the_table() {
    let steps = document("github-actions.yaml")["jobs"]["preview"]["steps"].clone();
    let step = |name: &str| steps.as_array().unwrap().iter().find(|step| step["name"] == name).unwrap()["run"].clone();
    assert!(step("comment").as_str().unwrap().contains("--body-file preview.md"));
    let programs = Programs::new();
    check(|repository| {
        repository.git(&["update-ref", "refs/remotes/origin/main", "main"]);
        let summary = repository.path(".git/summary");
        let variables = [("GITHUB_BASE_REF", "main"), ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
        let script = step("preview");
        let (code, message) = programs.run(repository, &["-e", "-c", script.as_str().unwrap()], &variables);
        let printed = std::fs::read_to_string(&summary).unwrap_or_default();
        assert!(printed.ends_with(&std::fs::read_to_string(repository.path("preview.md")).unwrap()));
        (code, message + &printed)
    });
}

#[test]
fn a_merge_request_of_gitlab_gets_the_table() {
    let job = document("gitlab-ci.yaml")["preview-of-nodes"].clone();
    assert_eq!(job["artifacts"]["paths"][0], "preview.md");
    let lines = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let script = lines.collect::<Vec<_>>().join("\n");
    let programs = Programs::new();
    check(|repository| programs.run(repository, &["-e", "-c", &script], &[("CI_MERGE_REQUEST_DIFF_BASE_SHA", "main")]));
}

#[test]
fn what_is_deployed_is_the_base_of_argo_cd_and_flux() {
    let programs = Programs::new();
    check(|repository| {
        let head = repository.head();
        programs
            .add("argocd", &format!("{{\n  \"status\": {{\n    \"sync\": {{\n      \"revision\": \"{head}\"\n}}}}}}"));
        programs.add("kubectl", &format!("main@sha1:{head}"));
        let of = |script: &str, paths: &[&str]| {
            let script = recipe(script);
            programs.run(repository, &[&[script.to_str().unwrap(), "landscape"], paths].concat(), &[])
        };
        let (argo, flux) = (of("argocd.sh", &["shoots", "profiles"]), of("flux.sh", &[]));
        assert_eq!(argo, flux);
        argo
    });
    programs.add("argocd", "{}");
    let repository = Repository::new();
    let (code, message) = programs.run(&repository, &[recipe("argocd.sh").to_str().unwrap(), "landscape"], &[]);
    assert!(code != 0 && message.contains("not deployed from git"), "{message}");
}
