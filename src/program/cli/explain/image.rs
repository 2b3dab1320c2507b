//! How an image was selected: the table of candidates and the ranking steps.

use super::section::{INDENT, section};
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, BAD, GOOD};
use decisions::provider::explanation::{
    ChosenImage, Fitting, ImageCandidate, ImageExplanation, Origin, capabilities_text,
};
use wire::capabilities::{Classification, FlavorVerdict, Mismatch};

/// Maximum number of suggestions printed; JSON lists all.
const SUGGESTIONS: usize = 6;

/// The image of the pool in one line.
pub(super) fn chosen_text(image: &ImageExplanation, width: usize) -> String {
    let name = format!("{} {}", image.name, image.version);
    let (text, style) = match &image.chosen {
        Some(ChosenImage { reference: Some(reference), .. }) => {
            (format!("Image: {name}, {} {}", reference.member, reference.value), GOOD)
        }
        Some(_) => (format!("Image: {name}"), GOOD),
        None => (format!("Image: none for {name}"), BAD),
    };
    paragraph(&text, style, INDENT, width)
}

pub(super) fn image_text(image: &ImageExplanation, width: usize) -> String {
    let outcome = match &image.chosen {
        Some(chosen) => format!("from the {}", chosen.origin),
        None => "not resolved".to_owned(),
    };
    let mut text = section(&format!("Image {} {}: {outcome}", image.name, image.version));
    if !image.machine.is_empty() {
        let line = format!("The machine type has {}", capabilities_text(&image.machine));
        text.push_str(&paragraph(&line, ASIDE, INDENT, width));
    }
    if image.candidates.is_empty() {
        text.push_str(&paragraph("No image of this name and version is listed.", BAD, INDENT, width));
    } else {
        text.push_str(&candidates_table(image).render(INDENT, width));
    }
    text.push_str(&ranking_text(image, width));
    if let Some(nearest) = image.nearest_miss {
        text.push_str(&nearest_text(image, nearest, width));
    }
    if let Some(fitting) = &image.fitting {
        text.push_str(&fitting_text(image, fitting, width));
    }
    text
}

fn candidates_table(image: &ImageExplanation) -> Table {
    let mut table = Table::new([">#", "VERDICT", "WHY", "RUNS ON", "IMAGE"]);
    for (position, candidate) in image.candidates.iter().enumerate() {
        let (verdict, why) = verdict_cells(image, candidate);
        let reference = candidate.reference.as_ref();
        let capabilities = capabilities_text(&candidate.capabilities);
        table.row([
            position.to_string().into(),
            verdict,
            why.into(),
            if capabilities.is_empty() { "every machine".into() } else { capabilities.into() },
            match reference {
                None => Cell::styled("no reference", BAD),
                Some(reference) if candidate.origin != Origin::CloudProfile => {
                    format!("{} {} (kept in the {})", reference.member, reference.value, candidate.origin).into()
                }
                Some(reference) => format!("{} {}", reference.member, reference.value).into(),
            },
        ]);
    }
    table
}

fn verdict_cells(image: &ImageExplanation, candidate: &ImageCandidate) -> (Cell, String) {
    match &candidate.verdict {
        FlavorVerdict::Chosen => (Cell::styled("chosen", GOOD), String::new()),
        FlavorVerdict::Outranked { step } => {
            let step = step.and_then(|step| image.ranking.get(step));
            let why = step.map(|step| format!("lacks {}={}", step.capability, step.value)).unwrap_or_default();
            (Cell::styled("outranked", ASIDE), why)
        }
        FlavorVerdict::Tied => (Cell::styled("tied", BAD), "another one has the same capabilities".to_owned()),
        FlavorVerdict::Rejected { mismatches } if mismatches.is_empty() => {
            (Cell::styled("rejected", BAD), "names no image".to_owned())
        }
        FlavorVerdict::Rejected { mismatches } => {
            let why = mismatches.iter().map(mismatch_text).collect::<Vec<_>>().join("; ");
            (Cell::styled("rejected", BAD), why)
        }
        FlavorVerdict::NotReached => (Cell::styled("not reached", ASIDE), "an earlier one fits".to_owned()),
        FlavorVerdict::NotCompared => (Cell::styled("not compared", ASIDE), "the machine type is unknown".to_owned()),
    }
}

pub(in crate::cli) fn mismatch_text(mismatch: &Mismatch) -> String {
    let required = mismatch.required.join(", ");
    let provided = mismatch.provided.join(", ");
    format!("{} (machine {{{required}}}, image {{{provided}}})", mismatch.capability)
}

fn ranking_text(image: &ImageExplanation, width: usize) -> String {
    let steps = image.ranking.iter().map(|step| {
        let kept = step.kept.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        format!("{}={} keeps {kept}", step.capability, step.value)
    });
    let steps: Vec<_> = steps.collect();
    if steps.is_empty() {
        return String::new();
    }
    paragraph(&format!("Ranking: {}", steps.join(", then ")), ASIDE, INDENT, width)
}

fn nearest_text(image: &ImageExplanation, nearest: usize, width: usize) -> String {
    let Some(FlavorVerdict::Rejected { mismatches }) =
        image.candidates.get(nearest).map(|candidate| &candidate.verdict)
    else {
        return String::new();
    };
    let reasons = mismatches.iter().map(mismatch_text).collect::<Vec<_>>().join("; ");
    let missed = mismatches.len();
    let all = image.machine.0.len();
    paragraph(
        &format!("Nearest miss: #{nearest} fails on {missed} of {all} capabilities: {reasons}"),
        BAD,
        INDENT,
        width,
    )
}

fn fitting_text(image: &ImageExplanation, fitting: &Fitting, width: usize) -> String {
    let mut text = String::new();
    if !image.machine.is_empty() {
        let images = fitting.images.iter().map(|image| match image.classification.map(Classification::word) {
            None | Some("") => format!("{} {}", image.name, image.version),
            Some(stage) => format!("{} {} ({stage})", image.name, image.version),
        });
        text.push_str(&suggestion("Images for this machine type", images.collect(), width));
    }
    text.push_str(&suggestion("Machine types for this image", fitting.machine_types.clone(), width));
    text
}

fn suggestion(what: &str, all: Vec<String>, width: usize) -> String {
    let mut text = all.iter().take(SUGGESTIONS).cloned().collect::<Vec<_>>().join(", ");
    if all.is_empty() {
        text.push_str("none in the CloudProfile");
    } else if all.len() > SUGGESTIONS {
        text.push_str(&format!(" and {} more", all.len() - SUGGESTIONS));
    }
    paragraph(&format!("{what}: {text}"), anstyle::Style::new(), INDENT, width)
}
