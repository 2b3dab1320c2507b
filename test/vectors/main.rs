//! Tables measured from the Go extension and its libraries, compared with this library.
//!
//! Reads every `*.json` file of its own folder and of the folders in `VECTOR_CASES` (separated by colons), and runs
//! the check that `checks` names for the file. Prints what it read, the first differences of each file, and the line
//! `N passed, N failed` at the end.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod checks;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use test_support::tier::without_deep_tests;

use checks::Verdict;

/// Differences of one file that are printed; the others are only counted.
const PRINTED: usize = 10;

/// A difference between a table and this library.
struct Difference {
    input: Value,
    expected: Value,
    got: String,
}

#[derive(Default)]
struct Total {
    passed: usize,
    failed: usize,
}

fn main() -> ExitCode {
    if let Some(code) = without_deep_tests() {
        return code;
    }
    // A panic inside a check is a difference and printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("test/vectors")];
    let more = std::env::var("VECTOR_CASES").unwrap_or_default();
    folders.extend(more.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from));

    let mut total = Total::default();
    for folder in folders {
        println!("\nvectors in {}", folder.display());
        let mut files = Vec::new();
        if let Err(error) = collect(&folder, &mut files) {
            println!("  cannot be read: {error}");
            total.failed += 1;
        }
        files.sort();
        for file in files {
            run(&folder, &file, &mut total);
        }
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 && total.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn run(folder: &Path, file: &Path, total: &mut Total) {
    let name = file.strip_prefix(folder).unwrap_or(file).display();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let Some(check) = checks::for_table(&stem) else {
        println!("  {name}: no check for {stem}");
        return;
    };
    let cases = match cases(file) {
        Ok(cases) => cases,
        Err(problem) => {
            println!("  {name}: {problem}");
            total.failed += 1;
            return;
        }
    };
    let (mut differences, mut not_requested) = (Vec::new(), 0);
    for case in &cases {
        match catch_unwind(|| check.run(case)).unwrap_or_else(|_| Verdict::Different(panicked(case))) {
            Verdict::Same => total.passed += 1,
            Verdict::Different(difference) => differences.push(difference),
            Verdict::NotRequested => not_requested += 1,
        }
    }
    let not_requested = if not_requested > 0 { format!(", {not_requested} can't happen") } else { String::new() };
    println!("  {name}: {} cases, {} failed{not_requested}", cases.len(), differences.len());
    for difference in differences.iter().take(PRINTED) {
        println!("    input:  {}", difference.input);
        println!("    wanted: {}", difference.expected);
        println!("    got:    {}", difference.got);
    }
    total.failed += differences.len();
}

/// A table is a list, or an object with the list in `cases`. Other members of the object apply to every case.
fn cases(file: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    match serde_json::from_str(&text).map_err(|error| error.to_string())? {
        Value::Array(cases) => Ok(cases),
        Value::Object(mut table) => match table.remove("cases") {
            Some(Value::Array(mut cases)) => {
                for case in cases.iter_mut().filter_map(Value::as_object_mut) {
                    for (name, shared) in &table {
                        case.entry(name.clone()).or_insert_with(|| shared.clone());
                    }
                }
                Ok(cases)
            }
            _ => Err("the table has no list of cases".to_owned()),
        },
        _ => Err("not a table".to_owned()),
    }
}

fn panicked(case: &Value) -> Difference {
    Difference { input: case.clone(), expected: Value::Null, got: "a panic".to_owned() }
}
