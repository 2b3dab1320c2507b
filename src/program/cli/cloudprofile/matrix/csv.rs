//! The matrix as CSV: one line per machine type, image version and group of regions.

use decisions::provider::explanation::capabilities_text;
use profiles::resolved_profile::matrix::{Choice, Image, Matrix};
use runtime::process::workflow_commands::broken;

use super::table::{reason, reference_in};

const COLUMNS: [&str; 11] = [
    "machineType",
    "usable",
    "image",
    "version",
    "classification",
    "expires",
    "outcome",
    "flavor",
    "capabilities",
    "reference",
    "admitted",
];

pub(super) fn text(matrix: &Matrix<'_>) -> String {
    let mut text = line(&COLUMNS.map(str::to_owned));
    for image in &matrix.images {
        for choice in &image.choices {
            let Some(group) = matrix.groups.get(choice.group) else { continue };
            let rest = of_choice(matrix, image, choice);
            for machine_type in &group.machine_types {
                let start = [machine_type.name.to_owned(), machine_type.usable.to_string()];
                text.push_str(&line(&[&start[..], &rest].concat()));
            }
        }
    }
    text
}

fn of_choice(matrix: &Matrix<'_>, image: &Image<'_>, choice: &Choice<'_>) -> Vec<String> {
    let flavor = choice.flavor.and_then(|position| image.flavors.get(position));
    let reference = match flavor {
        None => reason(matrix, image, choice),
        Some(flavor) => {
            let regions = if choice.regions.is_empty() { &matrix.regions } else { &choice.regions };
            let of_regions = regions.iter().filter_map(|region| {
                let name = flavor.regions.get(region)?;
                Some(format!("{region}={}", name.value))
            });
            let of_regions: Vec<String> = of_regions.collect();
            if of_regions.is_empty() { reference_in(flavor, &[]) } else { of_regions.join(" ") }
        }
    };
    vec![
        image.name.to_owned(),
        image.version.to_owned(),
        image.classification.word().to_owned(),
        image.expires.map(|expires| expires.to_string()).unwrap_or_default(),
        choice.outcome.text().to_owned(),
        choice.flavor.map(|flavor| flavor.to_string()).unwrap_or_default(),
        flavor.map(|flavor| capabilities_text(flavor.capabilities)).unwrap_or_default(),
        reference,
        choice.admitted.to_string(),
    ]
}

/// Formats one line (RFC 4180). A cell that a spreadsheet would read as a formula gets a leading apostrophe. CSV has no
/// escapes, so a cell that a CI runner would read as a command gets a space instead.
fn line(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        let cell = broken(cell);
        let guard = if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{guard}{}\"", cell.replace('"', "\"\""))
        } else {
            format!("{guard}{cell}")
        }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_no_commands() {
        let cells = ["##[a]b", "c\n::d::e"].map(str::to_owned);
        assert_eq!(line(&cells), "# #[a]b,\"c\n: :d::e\"\r\n");
    }

    #[test]
    fn cells_stay_cells() {
        let cells = ["a,b", "say \"x\"", "=1+1", "plain", "-1,2"].map(str::to_owned);
        assert_eq!(line(&cells), "\"a,b\",\"say \"\"x\"\"\",'=1+1,plain,\"'-1,2\"\r\n");
    }
}
