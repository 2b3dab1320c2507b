//! The matrix for a terminal: one section per machine type group, or per flavor in the reverse view.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::cli::explain::mismatch_text;
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph, some};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use decisions::provider::explanation::capabilities_text;
use profiles::resolved_profile::matrix::{Choice, ChoiceOutcome, Flavor, Group, Image, Matrix};
use profiles::resolved_profile::selection::Selection;
use wire::api::gotext::version::Version;
use wire::capabilities::Classification;
use wire::capabilities::FlavorVerdict;

const INDENT: usize = 2;
/// Maximum number of machine types listed per group; JSON lists all.
const NAMED: usize = 6;
/// Maximum number of problem rows printed.
const MAX_PROBLEMS: usize = 10;

pub(super) fn text(matrix: &Matrix<'_>, selection: &Selection, width: usize) -> String {
    if matrix.images.is_empty() {
        let (text, style) = match selection.only_problems {
            true => ("Every combination that Gardener admits has an image.", GOOD),
            false => ("No machine type gets it.", ASIDE),
        };
        return paragraph(text, style, 0, width);
    }
    match selection {
        selection if selection.is_backwards() => by_flavor(matrix, width),
        selection if selection.only_problems => problems(matrix, width),
        _ => by_group(matrix, width),
    }
}

/// Combinations for which an image has no match, for the same reason.
struct Problem<'a> {
    image: &'a str,
    reason: String,
    versions: Vec<&'a str>,
    machine_types: BTreeSet<&'a str>,
}

/// Combinations that Gardener admits although no image matches, grouped by reason, most machine types first.
fn problems(matrix: &Matrix<'_>, width: usize) -> String {
    let mut problems: Vec<Problem<'_>> = Vec::new();
    let mut total = 0;
    for (image, choice) in
        newest_first(matrix).into_iter().flat_map(|image| image.choices.iter().map(move |choice| (image, choice)))
    {
        let Some(group) = matrix.groups.get(choice.group) else { continue };
        let regions = choice.regions.join(", ");
        let regions = if regions.is_empty() { regions } else { format!(" [{regions}]") };
        let reason = format!("{}: {}{regions}", choice.outcome.text(), reason(matrix, image, choice));
        let known = problems.iter().position(|known| known.image == image.name && known.reason == reason);
        let known = known.unwrap_or_else(|| {
            problems.push(Problem { image: image.name, reason, versions: Vec::new(), machine_types: BTreeSet::new() });
            problems.len() - 1
        });
        let Some(problem) = problems.get_mut(known) else { continue };
        if !problem.versions.contains(&image.version) {
            problem.versions.push(image.version);
        }
        problem.machine_types.extend(group.machine_types.iter().map(|machine_type| machine_type.name));
        total += group.machine_types.len();
    }
    problems.sort_by_key(|problem| Reverse(problem.versions.len() * problem.machine_types.len()));
    let line = format!("{} admitted and without an image", counted(total as u64, "combination"));
    let mut text = paragraph(&line, BAD, 0, width);
    let mut table = Table::new(["IMAGE", "VERSIONS", "MACHINE TYPES", "WHY THERE IS NO IMAGE"]);
    for Problem { image, reason, versions, machine_types } in problems.iter().take(MAX_PROBLEMS) {
        let types: Vec<&str> = machine_types.iter().copied().collect();
        table.row([(*image).into(), some(versions, NAMED).into(), some(&types, NAMED).into(), reason.as_str().into()]);
    }
    text.push_str(&table.render(INDENT, width));
    if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
        let more = format!("and {} (-o json or -o html has all)", counted(more as u64, "more row"));
        text.push_str(&paragraph(&more, ASIDE, INDENT, width));
    }
    text
}

/// The images in the order of the CloudProfile, with the newest version of each first.
pub(super) fn newest_first<'m, 'a>(matrix: &'m Matrix<'a>) -> Vec<&'m Image<'a>> {
    let location = |image: &Image<'_>| matrix.images.iter().position(|first| first.name == image.name);
    let mut images: Vec<&Image<'_>> = matrix.images.iter().collect();
    images.sort_by_key(|image| (location(image), Reverse(Version::parse(image.version).ok())));
    images
}

fn by_group(matrix: &Matrix<'_>, width: usize) -> String {
    let images = newest_first(matrix);
    let sections = matrix.groups.iter().enumerate().map(|(position, group)| {
        let mut table = Table::new(["IMAGE", "VERSION", "CLASSIFICATION", "FLAVOR", "REFERENCE OR WHY THERE IS NONE"]);
        for image in &images {
            for choice in image.choices.iter().filter(|choice| choice.group == position) {
                table.row([
                    image.name.into(),
                    image.version.into(),
                    classification(image),
                    outcome(choice),
                    result(matrix, image, choice).into(),
                ]);
            }
        }
        format!("{}{}", heading(group, width), table.render(INDENT, width))
    });
    sections.collect::<Vec<_>>().join("\n")
}

fn by_flavor(matrix: &Matrix<'_>, width: usize) -> String {
    let mut sections = Vec::new();
    for image in newest_first(matrix) {
        for (position, flavor) in image.flavors.iter().enumerate() {
            let choices: Vec<_> = image.choices.iter().filter(|choice| choice.flavor == Some(position)).collect();
            let Some(first) = choices.first() else { continue };
            let title =
                format!("{} {} flavor #{position}: {}", image.name, image.version, result(matrix, image, first));
            let mut section = paragraph(&title, HEADING, 0, width);
            section.push_str(&paragraph(&runs_on(flavor), ASIDE, INDENT, width));
            let mut table = Table::new([">TYPES", "NAMES", "THEY HAVE"]);
            for choice in choices {
                let Some(group) = matrix.groups.get(choice.group) else { continue };
                let names: Vec<_> = group.machine_types.iter().map(|machine_type| machine_type.name).collect();
                let names = if choice.regions.is_empty() {
                    names.join(", ")
                } else {
                    format!("{} (in {})", names.join(", "), choice.regions.join(", "))
                };
                let count = group.machine_types.len().to_string();
                table.row([count.into(), names.into(), abilities(group).into()]);
            }
            section.push_str(&table.render(INDENT, width));
            sections.push(section);
        }
    }
    sections.join("\n")
}

fn heading(group: &Group<'_>, width: usize) -> String {
    let names: Vec<_> = group.machine_types.iter().map(|machine_type| machine_type.name).collect();
    let mut text = paragraph(&some(&names, NAMED), HEADING, 0, width);
    text.push_str(&paragraph(&abilities(group), ASIDE, INDENT, width));
    text
}

/// The capabilities that images are compared with.
fn abilities(group: &Group<'_>) -> String {
    match capabilities_text(&group.capabilities) {
        nothing if nothing.is_empty() => {
            format!("Gardener admits images for {}; the provider compares nothing", group.architecture)
        }
        capabilities => capabilities,
    }
}

fn classification(image: &Image<'_>) -> Cell {
    let style = match image.classification {
        Classification::Supported => GOOD,
        Classification::Preview | Classification::Deprecated => CAREFUL,
        _ => ASIDE,
    };
    let date = image.expires.map(|expires| expires.strftime("%F").to_string());
    let text = match (image.classification, date) {
        (Classification::Expired, Some(date)) => format!("expired since {date}"),
        (stage, Some(date)) => format!("{} until {date}", stage.word()),
        (stage, None) => stage.word().to_owned(),
    };
    Cell::styled(text, style)
}

fn outcome(choice: &Choice<'_>) -> Cell {
    match choice.flavor {
        Some(flavor) if choice.admitted => Cell::styled(format!("#{flavor}"), GOOD),
        Some(flavor) => Cell::styled(format!("#{flavor}, not admitted"), CAREFUL),
        None => Cell::styled(choice.outcome.text(), if choice.admitted { BAD } else { ASIDE }),
    }
}

fn result(matrix: &Matrix<'_>, image: &Image<'_>, choice: &Choice<'_>) -> String {
    let of_regions = if choice.regions.is_empty() { &matrix.regions } else { &choice.regions };
    let text = match choice.flavor.and_then(|position| image.flavors.get(position)) {
        Some(flavor) => format!("{}{}", reference_in(flavor, of_regions), proposed(matrix, choice)),
        None => reason(matrix, image, choice),
    };
    if choice.regions.is_empty() { text } else { format!("{text} [{}]", choice.regions.join(", ")) }
}

/// The flavor that the text of GEP-33 would choose, if it differs.
fn proposed(matrix: &Matrix<'_>, choice: &Choice<'_>) -> String {
    let proposed = matrix.decisions.get(choice.decision).and_then(|decision| decision.proposed);
    let proposed = proposed.and_then(|position| choice.candidates.get(position));
    proposed.map_or_else(String::new, |flavor| format!(" (the order in GEP-33's text would choose #{flavor})"))
}

/// The image reference of a flavor in one region. For several regions, the first one, with a count of equal and
/// different ones.
pub(super) fn reference_in(flavor: &Flavor<'_>, regions: &[&str]) -> String {
    let named: Vec<_> = regions.iter().filter_map(|region| Some((region, flavor.regions.get(region)?))).collect();
    let Some((region, name)) = named.first() else {
        return match flavor.reference {
            Some(name) => format!("{} {}", name.member, name.value),
            None => "names no image".to_owned(),
        };
    };
    let same = named.iter().filter(|(_, other)| other == name).count();
    let mut locations = Vec::new();
    if same < regions.len() {
        locations.push(if same == 1 { (*region).to_string() } else { counted(same as u64, "region") });
    }
    match named.len() - same {
        0 => {}
        1 => locations.push("another in 1 more region".to_owned()),
        others => locations.push(format!("others in {others} more regions")),
    }
    let locations = if locations.is_empty() { String::new() } else { format!(" ({})", locations.join("; ")) };
    format!("{} {}{locations}", name.member, name.value)
}

/// Why no image matches: the flavor with the fewest mismatches, or several in case of a tie.
pub(super) fn reason(matrix: &Matrix<'_>, image: &Image<'_>, choice: &Choice<'_>) -> String {
    let verdicts = matrix.decisions.get(choice.decision).map(|decision| decision.verdicts.as_slice());
    let verdicts = || choice.candidates.iter().zip(verdicts.unwrap_or_default());
    match choice.outcome {
        ChoiceOutcome::Chosen => String::new(),
        ChoiceOutcome::Unusable => {
            let chosen = verdicts().find(|(_, verdict)| **verdict == FlavorVerdict::Chosen).map(|(flavor, _)| *flavor);
            let defect = chosen.and_then(|flavor| image.flavors.get(flavor)).and_then(|flavor| flavor.defect);
            let defect = defect.map(|defect| defect.text()).unwrap_or_default();
            format!("flavor {} is chosen, but {defect}", chosen.unwrap_or_default())
        }
        ChoiceOutcome::NoFlavors => "the provider config lists no image".to_owned(),
        ChoiceOutcome::Tied => {
            let tied = verdicts().filter(|(_, verdict)| **verdict == FlavorVerdict::Tied);
            let tied: Vec<_> = tied.map(|(flavor, _)| flavor.to_string()).collect();
            format!("flavors {} list the same capabilities", tied.join(" and "))
        }
        ChoiceOutcome::NoneFits => {
            let missed = verdicts().filter_map(|(_, verdict)| match verdict {
                FlavorVerdict::Rejected { mismatches } => Some(mismatches),
                _ => None,
            });
            let nearest = missed.min_by_key(|mismatches| mismatches.len());
            let nearest = nearest.map(|mismatches| mismatches.iter().map(mismatch_text).collect::<Vec<_>>());
            nearest.unwrap_or_default().join("; ")
        }
    }
}

fn runs_on(flavor: &Flavor<'_>) -> String {
    let capabilities = capabilities_text(flavor.capabilities);
    if capabilities.is_empty() { "runs on every machine".to_owned() } else { format!("runs on {capabilities}") }
}
