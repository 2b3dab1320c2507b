//! Compares measured results of Gardener's own maintenance with the forecasts of this library (docs/versions.md).
//!
//! Reads all cases below `test/maintenance/cases` and below the folders in `MAINTENANCE_CASES` (separated by colons).
//! Prints the number of equal cases of each family, every difference, and the line `N passed, N failed` at the end.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a test may fail")]

mod defaults;
mod edits;
mod history;
mod wake_up;

use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use test_support::measured::cases::{self, Case};
use test_support::measured::compare::{Difference, differ};
use test_support::measured::deliberate::Rules;
use test_support::measured::report::{self, Folder, Total};
use test_support::tier::without_deep_tests;

fn main() -> ExitCode {
    if let Some(code) = without_deep_tests() {
        return code;
    }
    // A panic is a difference, and is printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/maintenance/cases");
    let Ok(rules) = Rules::read(&[]) else { return ExitCode::FAILURE };
    let mut total = Total::default();
    for folder in report::folders(vec![own], "MAINTENANCE_CASES") {
        println!("\ncases in {}", folder.display());
        match cases::collect(&folder) {
            // A mistyped folder must not look like success.
            Ok(cases) if cases.is_empty() => total.unreadable("no cases in it"),
            Ok(cases) => {
                let mut compared = Folder::default();
                for case in cases {
                    let (family, name) = (case.family.clone(), case.name.clone());
                    total.add(&mut compared, &rules, [&family, &name], differences(case));
                }
                total.close(compared);
            }
            Err(error) => total.unreadable(&format!("can't be read: {error}")),
        }
    }
    total.end()
}

fn differences(case: Case) -> Vec<Difference> {
    let documents = match case.documents {
        Ok(documents) => documents,
        Err(problem) => return vec![Difference::of_case(problem)],
    };
    let result = |input: &Value| -> Result<Value, String> {
        if input.get("shoot").is_some() {
            history::result(input)
        } else if input.get("newCloudProfile").is_some() {
            edits::result(input)
        } else {
            wake_up::result(input)
        }
    };
    let mut differences = Vec::new();
    match catch_unwind(|| result(&documents.input)) {
        Ok(Ok(got)) => differ(Vec::new(), &documents.expected, &got, &mut differences),
        Ok(Err(problem)) => differences.push(Difference::of_case(problem)),
        Err(_) => differences.push(Difference::of_case("panicked".to_owned())),
    }
    differences
}
