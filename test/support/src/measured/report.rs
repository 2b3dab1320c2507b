//! Prints the results: equal cases per family, all differences that are not deliberate, and the total.

#![allow(clippy::print_stdout, reason = "the report of these programs is their output")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use super::compare::Difference;
use super::deliberate::Rules;

/// Maximum number of differences printed per case; the rest are counted.
const PRINTED: usize = 8;
/// Maximum number of characters printed per value.
const OUTPUT: usize = 240;

/// Total of all folders.
#[derive(Default)]
pub struct Total {
    passed: usize,
    failed: usize,
    /// Number of cases by deliberate difference.
    deliberate: BTreeMap<String, usize>,
}

/// The cases of one folder.
#[derive(Default)]
pub struct Folder(BTreeMap<String, Family>);

#[derive(Default)]
struct Family {
    passed: usize,
    failed: usize,
    report: String,
}

impl Total {
    /// Adds a case to its folder. Deliberate differences are counted, others fail the case.
    pub fn add(&mut self, folder: &mut Folder, rules: &Rules, [family, case]: [&str; 2], differences: Vec<Difference>) {
        let (deliberate, remaining) = rules.apply(differences);
        for rule in deliberate {
            *self.deliberate.entry(rule).or_default() += 1;
        }
        let family = folder.0.entry(family.to_owned()).or_default();
        if remaining.is_empty() {
            family.passed += 1;
        } else {
            family.failed += 1;
            family.report.push_str(&report(case, &remaining));
        }
    }

    /// A folder that cannot be read is a failure.
    pub fn unreadable(&mut self, problem: &str) {
        println!("  {problem}");
        self.failed += 1;
    }

    /// Prints a folder and adds it to the total.
    pub fn close(&mut self, folder: Folder) {
        for (name, family) in folder.0 {
            self.passed += family.passed;
            self.failed += family.failed;
            println!("  {name}: {}/{}", family.passed, family.passed + family.failed);
            print!("{}", family.report);
        }
    }

    pub fn end(self) -> ExitCode {
        println!("deliberate differences (docs/compatibility.md):");
        for (rule, cases) in &self.deliberate {
            println!("  {rule}: {cases} cases");
        }
        println!("\n{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 && self.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Folders with cases: the given ones and those in an environment variable, separated by colons.
pub fn folders(own: Vec<PathBuf>, variable: &str) -> Vec<PathBuf> {
    let more = std::env::var(variable).unwrap_or_default();
    own.into_iter().chain(more.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from)).collect()
}

/// Reads tables of rules; a mistake in them ends the program.
pub fn rules(tables: &[PathBuf]) -> Result<Rules, ExitCode> {
    Rules::read(tables).map_err(|problem| {
        println!("{problem}\n\n0 passed, 1 failed");
        ExitCode::FAILURE
    })
}

fn report(case: &str, differences: &[Difference]) -> String {
    let mut report = format!("    {case}\n");
    for difference in differences.iter().take(PRINTED) {
        let output = |text: &str| text.chars().take(OUTPUT).collect::<String>();
        report.push_str(&format!("      {}\n", difference.path.join("/")));
        report.push_str(&format!("        wanted: {}\n", output(&difference.reference.to_string())));
        report.push_str(&format!("        got:    {}\n", output(&difference.got.to_string())));
    }
    if differences.len() > PRINTED {
        report.push_str(&format!("      and {} more\n", differences.len() - PRINTED));
    }
    report
}
