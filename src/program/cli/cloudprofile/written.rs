//! Messages on stderr about profiles that commands write.

use anstyle::Style;

use crate::cli::preview::words::counted;
use crate::cli::table::{paragraph, some};
use crate::cli::terminal::complain_in_lines;
use profiles::resolved_profile::equivalence::{Difference, EquivalenceCheck, Lost, Reply};

const INDENT: usize = 2;
/// Maximum number of machine types listed per difference, and of differences; JSON lists all.
const NAMED: usize = 4;
const LISTED: usize = 20;

/// Prints a paragraph to stderr, because stdout contains the profile.
pub(super) fn report(text: &str, indent: usize, width: usize) {
    complain_in_lines(paragraph(text, Style::new(), indent, width).trim_end_matches('\n'));
}

/// Reports what the equivalence check compared, and whether a list of exceptions follows.
pub(super) fn print_proof(proof: &EquivalenceCheck, exceptions: bool, width: usize) {
    let text = format!(
        "Compared: {} with {}, {}; every machine type gets the same image as before{}.",
        counted(proof.machine_types as u64, "machine type"),
        counted(proof.versions as u64, "image version"),
        counted(proof.combinations as u64, "question"),
        if exceptions { ", but for what is listed" } else { "" }
    );
    report(&text, 0, width);
}

/// Prints the differences between the two profiles, and images that machine types lose.
pub(super) fn print_differences(differences: &[Difference], lost: &[Lost], width: usize) {
    for difference in differences.iter().take(LISTED) {
        let regions = if difference.regions.is_empty() {
            String::new()
        } else {
            format!(" in {}", difference.regions.join(", "))
        };
        let with_effect = difference.before.effect != difference.after.effect
            && difference.before.image.is_some() == difference.after.image.is_some();
        let text = format!(
            "{} {} for {}{regions}: before {}, now {}",
            difference.image,
            difference.version,
            some(&difference.machine_types, NAMED),
            result(&difference.before, with_effect),
            result(&difference.after, with_effect)
        );
        report(&text, INDENT, width);
    }
    if differences.len() > LISTED {
        report(&format!("and {} more (-o json has all)", differences.len() - LISTED), INDENT, width);
    }
    for lost in lost.iter().take(LISTED) {
        let text =
            format!("{} can't have {} any more, with any version", some(&lost.machine_types, NAMED), lost.image.value);
        report(&text, INDENT, width);
    }
}

fn result(result: &Reply, with_effect: bool) -> String {
    let image = result.image.as_ref().map_or("no image", |image| image.value.as_str());
    let admitted = if result.admitted || result.image.is_none() { "" } else { ", which Gardener refuses" };
    let mut text = format!("{image}{admitted}");
    if with_effect {
        for (name, values) in &result.effect {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            text += &format!(" ({name}: {})", values.join(", "));
        }
    }
    text
}
