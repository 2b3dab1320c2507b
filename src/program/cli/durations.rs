//! Durations in the words that people use.

use jiff::{SignedDuration, Timestamp};

/// The largest fitting unit: `less than a minute`, `17 min`, `2 h 5 min`, `3 d 4 h`.
pub(super) fn duration_text(duration: SignedDuration) -> String {
    let minutes = duration.as_mins();
    let with_rest = |whole: i64, unit: &str, rest: i64, small: &str| match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {small}"),
    };
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => "less than a minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => with_rest(hours, "h", minutes, "min"),
        (days, hours, _) => with_rest(days, "d", hours, "h"),
    }
}

/// An estimated duration, rounded because it is one: `about 17 min`, `about 3 h`.
pub(super) fn estimate_text(duration: SignedDuration) -> String {
    let minutes = duration.as_secs().saturating_add(59) / 60;
    match minutes {
        ..=1 => "about a minute".to_owned(),
        2..=90 => format!("about {minutes} min"),
        91..=2880 => format!("about {} h", (minutes + 30) / 60),
        _ => format!("about {} days", (minutes + 720) / 1440),
    }
}

/// `2 min ago`, or `in the future` if clocks differ.
pub(super) fn ago(since: Timestamp, now: Timestamp) -> String {
    let age = now.duration_since(since);
    if age.is_negative() { "in the future".to_owned() } else { format!("{} ago", duration_text(age)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        for (seconds, text) in [
            (0, "less than a minute"),
            (60, "1 min"),
            (7_500, "2 h 5 min"),
            (7_200, "2 h"),
            (100_000, "1 d 3 h"),
            (172_800, "2 d"),
        ] {
            assert_eq!(duration_text(SignedDuration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn estimates_are_rounded() {
        for (seconds, text) in [
            (0, "about a minute"),
            (61, "about 2 min"),
            (1_020, "about 17 min"),
            (10_800, "about 3 h"),
            (400_000, "about 5 days"),
        ] {
            assert_eq!(estimate_text(SignedDuration::from_secs(seconds)), text);
        }
    }
}
