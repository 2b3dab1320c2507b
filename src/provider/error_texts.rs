//! Gardener's error codes from what a driver of machine-controller-manager says: its own code goes before words.

use std::collections::BTreeSet;

use crate::api::gardener::ErrorCode;

/// Codes and the texts of a cloud that stand for each.
///
/// Texts are compared in any case, so they are written in lower case. `a.*b` is `a` and behind it, on the same line, `b`;
/// `(?<!a)b` is a `b` without an `a` directly before it.
pub(super) type ErrorTexts = &'static [(ErrorCode, &'static [&'static str])];

/// Codes of drivers that leave no doubt.
const DRIVER_CODES: &[(&str, ErrorCode)] = &[
    ("ResourceExhausted", ErrorCode::InfraResourcesDepleted),
    ("Unauthenticated", ErrorCode::InfraUnauthenticated),
    ("PermissionDenied", ErrorCode::InfraUnauthorized),
    ("InvalidArgument", ErrorCode::ConfigurationProblem),
];

/// The codes for a failed machine.
pub(super) fn error_codes(texts: ErrorTexts, driver_code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
    let text = text.to_lowercase();
    let matches = texts.iter().filter(|(_, patterns)| patterns.iter().any(|pattern| is_in(pattern, &text)));
    let matches: BTreeSet<ErrorCode> = matches.map(|(code, _)| *code).collect();
    if matches.contains(&ErrorCode::InfraQuotaExceeded) {
        // Drivers report a used-up quota with their code for missing capacity.
        return [ErrorCode::InfraQuotaExceeded].into();
    }
    match DRIVER_CODES.iter().find(|(driver, _)| driver_code == Some(*driver)) {
        Some((_, known)) => [*known].into(),
        None => matches,
    }
}

fn is_in(pattern: &str, text: &str) -> bool {
    if let Some((before, wanted)) = pattern.strip_prefix("(?<!").and_then(|rest| rest.split_once(')')) {
        return text.match_indices(wanted).any(|(start, _)| !text[..start].ends_with(before));
    }
    match pattern.split_once(".*") {
        None => text.contains(pattern),
        Some((first, second)) => {
            text.lines().any(|line| line.split_once(first).is_some_and(|(_, behind)| behind.contains(second)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_gaps_and_forbidden_beginnings() {
        assert!(is_in("quota.*exceeded", "the quota for cores is exceeded"));
        assert!(!is_in("quota.*exceeded", "exceeded: quota"));
        assert!(!is_in("quota.*exceeded", "quota\nexceeded"));
        assert!(is_in("(?<!request)limitexceeded", "requestlimitexceeded, vcpulimitexceeded"));
        assert!(!is_in("(?<!request)limitexceeded", "requestlimitexceeded"));
    }
}
