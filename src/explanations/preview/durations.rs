//! Durations in the words that people use.

use jiff::SignedDuration;

/// The largest fitting unit: `less than a minute`, `17 min`, `2 h 5 min`, `3 d 4 h`.
#[must_use]
pub fn duration_text(duration: SignedDuration) -> String {
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
#[must_use]
pub fn estimate_text(duration: SignedDuration) -> String {
    format!("about {}", rounded(duration, Rounding::Nearest))
}

/// An estimate with its limits: `about 17 min to 3 h`. The longest is rounded up, because nothing takes longer.
#[must_use]
pub fn estimate_between(shortest: SignedDuration, longest: SignedDuration) -> String {
    let (from, to) = (rounded(shortest, Rounding::Nearest), rounded(longest, Rounding::Up));
    if from == to { format!("about {from}") } else { format!("about {from} to {to}") }
}

/// How to round to whole units.
#[derive(Clone, Copy)]
enum Rounding {
    Nearest,
    Up,
}

fn rounded(duration: SignedDuration, rounding: Rounding) -> String {
    let minutes = duration.as_secs().saturating_add(59) / 60;
    let in_units = |unit: i64| match rounding {
        Rounding::Nearest => (minutes + unit / 2) / unit,
        Rounding::Up => (minutes + unit - 1) / unit,
    };
    match minutes {
        ..=1 => "a minute".to_owned(),
        2..=90 => format!("{minutes} min"),
        91..=2880 => format!("{} h", in_units(60)),
        _ => format!("{} days", in_units(1440)),
    }
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

    #[test]
    fn longest_estimate_is_rounded_up() {
        let between = |shortest, longest| {
            estimate_between(SignedDuration::from_secs(shortest), SignedDuration::from_secs(longest))
        };
        assert_eq!(between(1_020, 10_800), "about 17 min to 3 h");
        assert_eq!(between(10_790, 10_800), "about 3 h");
        assert_eq!(between(300, 8_400), "about 5 min to 3 h", "not longer than 2 h 20 min");
        assert!(between(0, i64::MAX).starts_with("about a minute to 106751991167"), "nothing overflows");
    }
}
