//! Shoots and Workers measured from Gardener's API server and gardenlet, compared with the results of this library
//! (docs/contract.md#from-a-shoot-to-its-worker).
//!
//! Reads every case below `test/shoots/cases` and below the folders in `SHOOT_CASES` (separated by colons). Prints how
//! many cases of each family are equal, every difference, and the line `N passed, N failed` at the end.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may fail")]

mod corpus;
mod pair;
mod paths;
mod preview;
mod single;
mod usage;

use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use test_support::measured::cases::Case;
use test_support::measured::compare::{Difference, differ};
use test_support::measured::deliberate::Rules;
use test_support::measured::report::{self, Folder, Total};
use test_support::tier::without_deep_tests;

use corpus::Corpus;

fn main() -> ExitCode {
    if let Some(code) = without_deep_tests() {
        return code;
    }
    // A panic is a difference and printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/shoots/cases");
    let Ok(rules) = Rules::read(&[]) else { return ExitCode::FAILURE };
    let mut total = Total::default();
    for folder in report::folders(vec![own], "SHOOT_CASES") {
        println!("\ncases in {}", folder.display());
        match Corpus::read(&folder) {
            // A mistyped folder must not look like success.
            Ok(corpus) if corpus.cases.is_empty() => total.unreadable("no cases in it"),
            Ok(corpus) => {
                let mut compared = Folder::default();
                for case in &corpus.cases {
                    total.add(&mut compared, &rules, [&case.family, &case.name], differences(case, &corpus));
                }
                total.close(compared);
                check_usage(&corpus, &mut total);
            }
            Err(error) => total.unreadable(&format!("can't be read: {error}")),
        }
    }
    total.end()
}

/// The code and the page for owners of shoots list every input that rolled a pool, and none that never did.
fn check_usage(corpus: &Corpus, total: &mut Total) {
    let changed = corpus.changed_inputs.lock().expect("no other thread");
    let named = usage::named();
    if *changed != named {
        total.unreadable(&format!(
            "src/profiles/shoot/replacing.rs names {named:?}, but what rolls pools is {changed:?}"
        ));
    }
    if !usage::is_documented() {
        total.unreadable("the table of inputs in docs/usage.md is not that of src/profiles/shoot/replacing.rs");
    }
}

fn differences(case: &Case, corpus: &Corpus) -> Vec<Difference> {
    let documents = match &case.documents {
        Ok(documents) => documents,
        Err(problem) => return vec![Difference::of_case(problem.clone())],
    };
    let (input, expected) = (&documents.input, &documents.expected);
    let result = catch_unwind(|| match input["base"].as_str() {
        Some(base) => pair::result(input, corpus.base(base)?, expected, corpus),
        None => single::result(input, expected, corpus),
    });
    let mut differences = Vec::new();
    match result {
        Ok(Ok((reference, got))) => differ(Vec::new(), &reference, &got, &mut differences),
        Ok(Err(problem)) => differences.push(Difference::of_case(problem)),
        Err(_) => differences.push(Difference::of_case("panicked".to_owned())),
    }
    differences
}

/// The measured result, and the library's.
type Compared = (Value, Value);
