//! Cases measured from the Go extension, compared with what `render -o result` makes of the same input.
//!
//! Reads every folder with an `input.yaml` below `test/parity/cases` and below the folders in `PARITY_CASES` (separated
//! by colons). Prints what it read, how many cases of each family are equal, every difference, and the line
//! `N passed, N failed` at the end. Deliberate differences stand in `deliberate.yaml`.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod case;
mod compare;
mod deliberate;
mod images;

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use case::{Case, Outcome};
use compare::Difference;
use deliberate::Rules;

/// Differences of one case that are printed; the others are only counted.
const PRINTED: usize = 8;
/// Characters of a value that are printed.
const SHOWN: usize = 240;

#[derive(Default)]
struct Family {
    passed: usize,
    failed: usize,
    report: String,
}

#[derive(Default)]
struct Total {
    passed: usize,
    failed: usize,
    left_to_flows: usize,
    /// Cases by deliberate difference.
    deliberate: BTreeMap<String, usize>,
}

fn main() -> ExitCode {
    // A panic is a difference and printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/parity");
    let rules = match Rules::read(&own.join("deliberate.yaml")) {
        Ok(rules) => rules,
        Err(problem) => {
            println!("deliberate.yaml: {problem}\n\n0 passed, 1 failed");
            return ExitCode::FAILURE;
        }
    };
    let mut folders = vec![own.join("cases")];
    let more = std::env::var("PARITY_CASES").unwrap_or_default();
    folders.extend(more.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from));

    let mut total = Total::default();
    for folder in folders {
        run_folder(&folder, &rules, &mut total);
    }
    println!("\nleft to the flows test: {}", total.left_to_flows);
    println!("deliberate differences (docs/compatibility.md):");
    for (rule, cases) in &total.deliberate {
        println!("  {rule}: {cases} cases");
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 && total.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_folder(folder: &Path, rules: &Rules, total: &mut Total) {
    println!("\ncases in {}", folder.display());
    let mut cases = Vec::new();
    if let Err(error) = case::collect(folder, &mut cases) {
        println!("  can't be read: {error}");
        total.failed += 1;
        return;
    }
    if cases.is_empty() {
        // A mistyped folder must not look like success.
        println!("  no cases in it");
        total.failed += 1;
        return;
    }
    let count = cases.len();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for case in cases {
        let family = families.entry(case.family(folder)).or_default();
        match run_case(&case, rules, total) {
            None => total.left_to_flows += 1,
            Some(differences) if differences.is_empty() => family.passed += 1,
            Some(differences) => {
                family.failed += 1;
                family.report.push_str(&report(&case, &differences));
            }
        }
    }
    println!("  {count} cases");
    for (name, family) in &families {
        total.passed += family.passed;
        total.failed += family.failed;
        let compared = family.passed + family.failed;
        if compared > 0 {
            println!("  {name}: {}/{compared}", family.passed);
        }
        print!("{}", family.report);
    }
}

/// The differences that are not deliberate; `None` for a case that no plan decides.
fn run_case(case: &Case, rules: &Rules, total: &mut Total) -> Option<Vec<Difference>> {
    let outcome = match catch_unwind(|| case.render()) {
        Ok(Ok(Outcome::NotDecidedByPlan)) => return None,
        Ok(Ok(Outcome::Rendered { expected, got })) => compare::compare(&expected, &got),
        Ok(Err(problem)) => vec![Difference::of_case(problem)],
        Err(_) => vec![Difference::of_case("panicked".to_owned())],
    };
    let (deliberate, remaining) = rules.apply(outcome);
    for rule in deliberate {
        *total.deliberate.entry(rule).or_default() += 1;
    }
    Some(remaining)
}

fn report(case: &Case, differences: &[Difference]) -> String {
    let mut report = format!("    {}\n", case.name());
    for difference in differences.iter().take(PRINTED) {
        let shown = |text: &str| text.chars().take(SHOWN).collect::<String>();
        report.push_str(&format!("      {}\n", difference.path.join("/")));
        report.push_str(&format!("        wanted: {}\n", shown(&difference.wanted.to_string())));
        report.push_str(&format!("        got:    {}\n", shown(&difference.got.to_string())));
    }
    if differences.len() > PRINTED {
        report.push_str(&format!("      and {} more\n", differences.len() - PRINTED));
    }
    report
}
