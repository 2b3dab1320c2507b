//! Commands in documents that run some tests. Without a match, `cargo test FILTER` passes and proves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Paths of tests by target: `--lib` for all crates, otherwise the name of the target.
fn tests() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "test", "example", "release"] {
        walk(&root.join(folder), &mut files);
    }
    let name = Regex::new(r"\bfn (\w+)").unwrap();
    let mut tests = BTreeMap::<String, Vec<String>>::new();
    for path in files {
        let parts: Vec<&str> = path.strip_prefix(root).unwrap().iter().map(|part| part.to_str().unwrap()).collect();
        let (target, module) = match parts.as_slice() {
            ["src", _, module @ ..] | ["test", "support", "src", module @ ..] => ("--lib", module),
            ["test", target, module @ ..] => (*target, module),
            [package, ..] => (*package, &parts[1..]),
            [] => continue,
        };
        let module = module.join("::").replace(".rs", "").replace("::mod", "");
        let text = std::fs::read_to_string(&path).unwrap();
        let paths = name
            .captures_iter(&text)
            .map(|name| format!("{module}::tests::{}", &name[1]).replacen("main::tests::", "", 1));
        tests.entry(target.to_owned()).or_default().extend(paths);
    }
    tests
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The filters of `cargo test`, each with its target. If a command has several targets, each filter applies to all of
/// them.
fn filters(command: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = command.split_whitespace().skip(2).collect();
    let targets: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1]).collect();
    let is_value = |position: usize| position > 0 && ["--test", "-p", "--config"].contains(&words[position - 1]);
    let filters = words.iter().enumerate().filter(|(position, word)| !word.starts_with('-') && !is_value(*position));
    let filters: Vec<&str> = filters.map(|(_, word)| *word).collect();
    let targets = if targets.is_empty() { vec!["--lib"] } else { targets };
    let of_targets =
        |filter: &&str| targets.iter().map(|target| ((*target).to_owned(), (*filter).to_owned())).collect::<Vec<_>>();
    filters.iter().flat_map(of_targets).collect()
}

#[test]
fn test_filters_match_tests() {
    let tests = tests();
    let command = Regex::new(r"cargo test [^`|#\n]*").unwrap();
    let mut without = Vec::new();
    for (path, text) in super::documents::documents() {
        for found in command.find_iter(&text) {
            for (target, filter) in filters(found.as_str()) {
                // Names of measured cases are not names of functions.
                let is_case = filter.contains(['/', '<', '.', '-']) || filter.chars().any(char::is_uppercase);
                let has_match = tests.get(&target).is_some_and(|paths| paths.iter().any(|path| path.contains(&filter)));
                if !has_match && !is_case {
                    without.push(format!("{}: {}: no test matches {filter:?}", path.display(), found.as_str().trim()));
                }
            }
        }
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
}
