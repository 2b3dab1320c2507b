//! `docs/how-to`: each `sh` block prints the `text` block below it. A line `…` matches any lines.

use std::path::{Path, PathBuf};

use crate::golden::assert_same;
use crate::images::{copy, shell};

/// A folder with the examples and with the program for `PATH`.
fn folder() -> tempfile::TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    copy(&root.join("example"), &folder.path().join("example"));
    std::os::unix::fs::symlink(root.join("test"), folder.path().join("test")).unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    let program = folder.path().join("bin/gardener-extension-worker");
    std::os::unix::fs::symlink(test_support::program::binary(), program).unwrap();
    folder
}

fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to")).unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

/// Whether the parts between `…` are printed in this order.
fn reports(displayed: &str, printed: &str) -> bool {
    let mut rest = format!("\n{printed}");
    for part in format!("\n{displayed}").split("\n…") {
        let part = format!("{}\n", part.trim_end_matches('\n'));
        if part == "\n" {
            continue;
        }
        let Some(start) = rest.find(&part) else { return false };
        rest = rest.split_off(start + part.len() - 1);
    }
    true
}

/// The page with the current output of its commands. Shortened outputs stay if they still match.
fn with_outputs(page: &str) -> (String, usize) {
    let folder = folder();
    let mut parts = page.split("```sh\n");
    let mut now = parts.next().unwrap().to_owned();
    let mut commands = 0;
    for part in parts {
        let (script, rest) = part.split_once("```\n").unwrap();
        let (displayed, rest) =
            rest.strip_prefix("```text\n").expect("a command has its output").split_once("```\n").unwrap();
        let printed = shell(&folder, script.trim_end());
        let is_right = displayed.lines().any(|line| line == "…") && reports(displayed, &printed);
        let output = if is_right { displayed } else { &printed };
        now.push_str(&format!("```sh\n{script}```\n```text\n{output}```\n{rest}"));
        commands += 1;
    }
    (now, commands)
}

#[test]
fn each_page_matches_the_output() {
    let mut commands = 0;
    let pages = pages();
    for path in &pages {
        let (now, found) = with_outputs(&std::fs::read_to_string(path).unwrap());
        commands += found;
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_same(&format!("docs/how-to/{name}"), &now);
    }
    assert_eq!(pages.len(), 13);
    assert!(commands >= 15, "only {commands}");
}

#[test]
fn shortened_outputs_are_compared() {
    let printed = "a\nb\nc\nd\n";
    for displayed in ["a\n…\nc\nd\n", "…\nb\n…\n", "a\nb\nc\nd\n", "b\nc\n"] {
        assert!(reports(displayed, printed), "{displayed}");
    }
    for displayed in ["b\n…\na\n", "a\nc\n", "…\ne\n", "c\n…\nc\n"] {
        assert!(!reports(displayed, printed), "{displayed}");
    }
}
