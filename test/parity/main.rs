//! Cases measured from the Go extension, compared with the result of `render -o result` for the same input.
//!
//! Reads every case below `test/parity/cases` and below the folders in `PARITY_CASES` (separated by colons). Prints the
//! folders, how many cases of each family are equal, every difference, and the line `N passed, N failed` at the end.
//! `deliberate.yaml` lists the deliberate differences.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod case;
mod compare_render;

use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use case::Outcome;
use test_support::measured::cases::{self, Case};
use test_support::measured::compare::Difference;
use test_support::measured::deliberate::Rules;
use test_support::measured::report::{self, Folder, Total};
use test_support::tier::without_deep_tests;

fn main() -> ExitCode {
    if let Some(code) = without_deep_tests() {
        return code;
    }
    // A panic is a difference and printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/parity");
    let rules = match report::rules(&[own.join("deliberate.yaml")]) {
        Ok(rules) => rules,
        Err(failure) => return failure,
    };
    let (mut total, mut left_to_flows) = (Total::default(), 0);
    for folder in report::folders(vec![own.join("cases")], "PARITY_CASES") {
        left_to_flows += run_folder(&folder, &rules, &mut total);
    }
    println!("\nleft to the flows test: {left_to_flows}");
    total.end()
}

/// Runs the cases of a folder. Returns the number of cases that the plan alone does not decide.
fn run_folder(folder: &Path, rules: &Rules, total: &mut Total) -> usize {
    println!("\ncases in {}", folder.display());
    let cases = match cases::collect(folder) {
        Ok(cases) => cases,
        Err(error) => {
            total.unreadable(&format!("can't be read: {error}"));
            return 0;
        }
    };
    if cases.is_empty() {
        // A mistyped folder must not look like success.
        total.unreadable("no cases in it");
        return 0;
    }
    println!("  {} cases", cases.len());
    let (mut compared, mut left_to_flows) = (Folder::default(), 0);
    for case in cases {
        let (family, name) = (case.family.clone(), case.name.clone());
        match differences(case) {
            None => left_to_flows += 1,
            Some(differences) => total.add(&mut compared, rules, [&family, &name], differences),
        }
    }
    total.close(compared);
    left_to_flows
}

/// The differences of a case; `None` for one that the plan alone does not decide.
fn differences(case: Case) -> Option<Vec<Difference>> {
    match catch_unwind(|| case::outcome(case)) {
        Ok(Ok(Outcome::NotDecidedByPlan)) => None,
        Ok(Ok(Outcome::Rendered { expected, got })) => Some(compare_render::compare(&expected, &got)),
        Ok(Err(problem)) => Some(vec![Difference::of_case(problem)]),
        Err(_) => Some(vec![Difference::of_case("panicked".to_owned())]),
    }
}
