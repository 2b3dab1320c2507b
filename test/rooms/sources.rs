//! The files of `src/`, without comments and tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// A file of `src/`.
pub(crate) struct Source {
    /// The path below `src/`.
    pub(crate) file: String,
    /// The code, with empty lines in place of comments.
    pub(crate) code: String,
}

/// All files, ordered by path.
pub(crate) fn all() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    let tests: BTreeSet<PathBuf> = files.iter().flat_map(|file| test_modules(file)).collect();
    files.retain(|file| !tests.contains(file));
    files.sort();
    let sources = files.into_iter().map(|path| {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        Source { file, code: code_of(&fs::read_to_string(&path).unwrap()) }
    });
    sources.collect()
}

/// The files of modules that a file declares for tests only.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let declared = Regex::new(r"#\[cfg\(test\)\]\nmod (\w+);").unwrap();
    let text = fs::read_to_string(file).unwrap();
    declared.captures_iter(&text).map(|name| file.with_file_name(format!("{}.rs", &name[1]))).collect()
}

pub(crate) fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            files.push(path);
        } else if !path.ends_with("proptest-regressions") {
            walk(&path, files);
        }
    }
}

/// Tests are at the end of a file.
fn code_of(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = source.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}
