//! Shared layout of explanation sections: heading, indentation, and hazard lines.

use crate::cli::table::{paragraph, printable};
use crate::cli::terminal::{CAREFUL, HEADING};
use explanations::explain::Hazard;

/// Indentation below a heading.
pub(super) const INDENT: usize = 4;

pub(super) fn section(heading: &str) -> String {
    format!("\n  {HEADING}{}{HEADING:#}\n", printable(heading))
}

pub(super) fn hazard_line(location: &str, hazard: &Hazard, width: usize) -> String {
    paragraph(&format!("! {location}{hazard}"), CAREFUL, INDENT, width)
}
