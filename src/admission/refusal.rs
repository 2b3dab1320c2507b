//! What is wrong with an object, as a person reads it.

use std::fmt::Write as _;

use crate::api::gotext::field::{FieldError, FieldErrors};
use crate::runtime::webhook::{Denial, Verdict};

/// Problems that are listed; the others are counted.
const LISTED: usize = 20;
/// Longest text of one problem; values of an object may be long.
const LONGEST: usize = 2000;

/// Refuses an object, or lets it pass when nothing is wrong. `what` is its kind and name.
pub(super) fn verdict(what: &str, errors: &FieldErrors, warnings: Vec<String>) -> Verdict {
    if errors.is_empty() {
        return Verdict::Allowed { patch: Vec::new(), warnings };
    }
    Verdict::Denied(denial(what, errors))
}

fn denial(what: &str, errors: &FieldErrors) -> Denial {
    let errors = &errors.0;
    let texts: Vec<String> = errors.iter().take(LISTED).map(|error| shortened(&error.to_string())).collect();
    let message = match &texts[..] {
        [only] if errors.len() == 1 => format!("{what}: {only}"),
        texts => {
            let mut message = format!("{what} has {} problems:", errors.len());
            for text in texts {
                // Writing to a string does not fail.
                let _ = write!(message, "\n* {text}");
            }
            if errors.len() > texts.len() {
                let _ = write!(message, "\n* and {} more", errors.len() - texts.len());
            }
            message
        }
    };
    let cause = |error: &FieldError| (error.field.clone(), shortened(&error.to_string()));
    let causes = errors.iter().take(LISTED).map(cause).collect();
    Denial { code: 422, reason: "Invalid", message, causes }
}

/// The text without what goes beyond the longest, cut between characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::gotext::field::FieldPath;

    fn message(count: usize) -> String {
        let mut errors = FieldErrors::default();
        for index in 0..count {
            errors.invalid(FieldPath::new("spec").index(index), "x".repeat(3000), "must be short");
        }
        match verdict("CloudProfile azure", &errors, Vec::new()) {
            Verdict::Denied(denial) => denial.message,
            Verdict::Allowed { .. } => String::new(),
        }
    }

    #[test]
    fn messages_stay_readable() {
        assert_eq!(message(0), "");
        assert!(message(1).starts_with("CloudProfile azure: spec[0]: Invalid value: "));
        let many = message(100);
        assert!(many.starts_with("CloudProfile azure has 100 problems:\n* spec[0]: "));
        assert!(many.ends_with("\n* and 80 more"));
        assert!(many.len() < 50_000, "{}", many.len());
    }
}
