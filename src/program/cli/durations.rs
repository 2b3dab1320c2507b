//! Durations in the words that people use.

use jiff::Timestamp;

pub(super) use explanations::preview::{duration_text, estimate_text};

/// `2 min ago`, or `in the future` if clocks differ.
pub(super) fn ago(since: Timestamp, now: Timestamp) -> String {
    let age = now.duration_since(since);
    if age.is_negative() { "in the future".to_owned() } else { format!("{} ago", duration_text(age)) }
}
