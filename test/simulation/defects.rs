//! Reintroduces fixed defects one at a time (`defects/*.patch`); seeds must find each of them. A patch can contain a
//! line `Seeds: FIRST..END` with seeds that meet the conditions of its defect. If no seed finds it any more, or
//! too rarely for ten minutes, it contains a line `Unit tests: FILTER` with the unit tests that do.
//!
//!     cargo test --test simulation each_defect_is_found -- --ignored --nocapture
//!     DEFECT=late_answer cargo test --test simulation each_defect_is_found -- --ignored --nocapture

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use test_support::repository;

use crate::BREAKS;

/// Suffix of a failed unit test's line.
const FAILS: &str = " ... FAILED";

/// Time limit in seconds for seeds to find a defect.
fn most() -> String {
    env::var("UNTIL_VIOLATION").unwrap_or_else(|_| "600".to_owned())
}

/// The patches in order of their names, or only that of `DEFECT`.
fn patches() -> Result<Vec<(String, PathBuf)>> {
    let expected = env::var("DEFECT").ok();
    let mut patches = Vec::new();
    for entry in fs::read_dir(repository().join("test/simulation/defects"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if expected.as_ref().is_none_or(|expected| *expected == name) {
            patches.push((name, path));
        }
    }
    patches.sort();
    ensure!(!patches.is_empty(), "there is no such patch");
    Ok(patches)
}

fn apply(folder: &Path, arguments: &[&str], patch: &Path) -> Result<()> {
    // The copy may be inside the repository, where git would ignore the patch's files without this.
    let applied = Command::new("git")
        .arg("apply")
        .args(arguments)
        .arg(patch)
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .current_dir(folder)
        .output()?;
    ensure!(applied.status.success(), "{}: {}", patch.display(), String::from_utf8_lossy(&applied.stderr));
    Ok(())
}

/// Copies the repository. Skips equal files, so that cargo rebuilds little.
fn copy(to: &Path) -> Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository())
        .output()?;
    for file in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (from, to) = (repository().join(file), to.join(file));
        // git may list a file that has been deleted.
        let Ok(content) = fs::read(&from) else { continue };
        if fs::read(&to).ok().is_none_or(|there| there != content) {
            fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
            fs::write(&to, content)?;
        }
    }
    Ok(())
}

/// How a defect is found.
enum Finder {
    /// By lives: the default seeds of all themes, or the seeds that the patch specifies.
    Lives(Option<String>),
    UnitTests(String),
}

impl Finder {
    fn of(patch: &Path) -> Result<Self> {
        let text = fs::read_to_string(patch)?;
        let named = |what: &str| text.lines().find_map(|line| line.strip_prefix(what)).map(str::to_owned);
        Ok(named("Unit tests: ").map_or_else(|| Self::Lives(named("Seeds: ")), Self::UnitTests))
    }

    /// Builds the copy and runs the tests. Returns the output line that reports the defect (`None` if not found) and
    /// the duration.
    fn find(&self, tree: &Path) -> Result<(Option<String>, Duration)> {
        let (target, tests, seeds, line): (&[&str], Vec<&str>, _, _) = match self {
            Self::Lives(seeds) => {
                let package = &["-p", "gardener-extension-worker", "--test", "simulation"];
                (package, vec!["lives", "--", "--nocapture"], seeds.as_deref(), BREAKS)
            }
            // Of the program and all crates that it consists of.
            Self::UnitTests(filter) => (&["--lib"], vec![filter], None, FAILS),
        };
        cargo_test(tree, seeds, &[target, &["--no-run"]].concat(), line)?;
        let began = Instant::now();
        let printed = cargo_test(tree, seeds, &[target, &tests].concat(), line)?;
        Ok((printed.lines().find(|printed| printed.contains(line)).map(str::to_owned), began.elapsed()))
    }
}

/// Runs a test of the copy and returns its output. The test must pass or print that line.
fn cargo_test(tree: &Path, seeds: Option<&str>, more: &[&str], line: &str) -> Result<String> {
    let mut cargo = Command::new(env!("CARGO"));
    let cargo = cargo
        .args(["test", "--locked", "--no-fail-fast"])
        .args(more)
        .envs(seeds.map(|seeds| ("SEEDS", seeds)))
        .env("UNTIL_VIOLATION", most())
        // A separate target folder, because cargo would confuse the artifacts of copy and repository.
        .env("CARGO_TARGET_DIR", tree.with_file_name("target"))
        .current_dir(tree)
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&cargo.stdout);
    ensure!(cargo.status.success() || printed.contains(line), "{printed}{}", text(&cargo.stderr));
    Ok(printed)
}

#[test]
fn each_defect_can_be_put_back() -> Result<()> {
    patches()?.iter().try_for_each(|(_, patch)| apply(repository(), &["--check"], patch))
}

#[test]
#[ignore = "builds the controller once for each defect"]
fn each_defect_is_found() -> Result<()> {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("defects/tree");
    let mut missed = Vec::new();
    for (name, patch) in patches()? {
        copy(&tree)?;
        apply(&tree, &[], &patch)?;
        match Finder::of(&patch)?.find(&tree)? {
            (Some(found), after) => println!("{name}: {:.0} s: {found}", after.as_secs_f64()),
            (None, _) => missed.push(name),
        }
    }
    ensure!(missed.is_empty(), "not found within {} s: {missed:?}", most());
    Ok(())
}
