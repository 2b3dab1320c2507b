//! Formats errors of an object for users.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use json_patch::Patch;

use runtime::webhook::{Denial, DenialCause, Verdict};
use wire::api::bounded_text::{Bound, beginning, joined, shortened};
use wire::api::gotext::field::{FieldError, FieldErrors};

/// Maximum number of listed errors; the rest are counted.
const LISTED: usize = 20;
/// Maximum characters of one error, because values of an object may be long.
const MAX_ERROR_CHARS: usize = 2000;
/// Maximum bytes of all errors in the message, and again in the causes.
const MOST_BYTES: usize = 32 * 1024;
/// Maximum bytes of an object's kind and name, or of a field path.
const MOST_OF_NAME: usize = 1024;

/// Collects the errors of a review: the listed ones and the number of the others. `stop` is set when the review is
/// given up at its deadline.
pub(super) fn listed_errors(stop: Option<&Arc<AtomicBool>>) -> FieldErrors {
    // The cause that counts the others names the field of the first of them, so one more is kept.
    FieldErrors::at_most(LISTED + 1, stop.cloned())
}

/// Denies an object with errors, else allows it. `what` is its kind and name.
pub(super) fn verdict(what: &str, errors: &FieldErrors, warnings: Vec<String>) -> Verdict {
    if errors.is_empty() {
        return Verdict::Allowed { patch: Patch::default(), warnings };
    }
    Verdict::Denied(denial(what, errors))
}

fn denial(what: &str, errors: &FieldErrors) -> Denial {
    let number = errors.count();
    let errors = &errors.0;
    let what = shortened(what, MOST_OF_NAME);
    let bound = Bound { items: LISTED, bytes: MOST_BYTES };
    let rest = |rest: &[FieldError]| format!("\n* and {} more", rest.len() + number - errors.len());
    let list = joined(errors, "\n* ", bound, problem, rest);
    let message = match number {
        1 => format!("{what}: {list}"),
        number => format!("{what} has {number} problems:\n* {list}"),
    };
    let share = MOST_BYTES / errors.len().clamp(1, LISTED);
    let mut causes: Vec<DenialCause> = errors.iter().take(LISTED).map(|error| cause(error, share)).collect();
    // kubectl prints the causes, if any, instead of the message.
    if let Some(first) = errors.get(LISTED) {
        let message = format!("and {} more", number - LISTED);
        causes.push(DenialCause { message, ..cause(first, share) });
    }
    Denial { code: 422, reason: "Invalid", message, causes }
}

/// One error on one line, because each line of a message is one error.
fn problem(error: &FieldError, bytes: usize) -> String {
    one_line(&error.to_string(), bytes)
}

fn cause(error: &FieldError, bytes: usize) -> DenialCause {
    let message = one_line(&error.body(), bytes);
    let field = shortened(&error.field, MOST_OF_NAME);
    DenialCause { reason: error.error_type.reason(), message, field }
}

fn one_line(text: &str, bytes: usize) -> String {
    shortened(&beginning(text, MAX_ERROR_CHARS).replace('\n', "\\n"), bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use wire::api::gotext::field::FieldPath;

    proptest! {
        #[test]
        fn any_refusal_has_its_size_and_counts_all_problems(
            what in ".{0,2000}",
            problems in prop::collection::vec((any::<String>(), "\\PC{0,30}", 1_usize..2000), 1..60),
        ) {
            let mut errors = FieldErrors::default();
            for (field, value, times) in &problems {
                errors.invalid(FieldPath::new(field), value.repeat(*times), value.repeat(*times));
            }
            let Verdict::Denied(denial) = verdict(&what, &errors, Vec::new()) else { panic!("it is refused") };
            prop_assert!(denial.message.len() <= MOST_BYTES + MOST_OF_NAME + 100, "{} bytes", denial.message.len());
            let causes: usize = denial.causes.iter().map(|cause| cause.field.len() + cause.message.len()).sum();
            prop_assert!(causes <= MOST_BYTES + (LISTED + 1) * MOST_OF_NAME + 30, "{causes} bytes");
            prop_assert!(!denial.message.contains(|one: char| one.is_control() && !"\n\t".contains(one)));
            let bullets = denial.message.lines().skip(1).filter(|line| line.starts_with("* ")).count();
            if problems.len() > LISTED {
                let last = denial.message.rsplit("\n* and ").next().unwrap();
                let rest: usize = last.strip_suffix(" more").unwrap().parse().unwrap();
                prop_assert_eq!(bullets - 1 + rest, problems.len());
            }
        }
    }
}
