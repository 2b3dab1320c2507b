//! How many machines of a deployment may be too many or missing during a roll (machine-controller-manager v0.62,
//! `ResolveFenceposts`).

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What it means that both bounds of a zone resolve to 0, for people.
pub const BOTH_ZERO: &str = "so a node is removed before its replacement is ready";

/// The bounds of a deployment in machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollBounds {
    /// Machines above the target number.
    pub above: i64,
    /// Machines that may be missing.
    pub missing: i64,
    /// Whether both came to 0, and one missing machine is taken instead.
    pub both_zero: bool,
}

impl RollBounds {
    /// For that many replicas: a surge in percent is rounded up, an unavailability down. `None` where a bound is neither a number
    /// nor a percentage; an absent one is 0.
    #[must_use]
    pub fn of(surge: Option<&IntOrString>, unavailable: Option<&IntOrString>, replicas: i64) -> Option<Self> {
        let above = resolve(surge, replicas, 99)?;
        let missing = resolve(unavailable, replicas, 0)?;
        let both_zero = above == 0 && missing == 0;
        let missing = if both_zero { 1 } else { missing };
        Some(Self { above, missing: missing.min(replicas), both_zero })
    }
}

fn resolve(bound: Option<&IntOrString>, replicas: i64, round: i64) -> Option<i64> {
    match bound {
        None => Some(0),
        Some(IntOrString::Int(number)) => Some(i64::from(*number)),
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%')?.parse::<i64>().ok()?;
            Some(percent.saturating_mul(replicas).saturating_add(round) / 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(surge: &str, unavailable: &str, replicas: i64) -> Option<(i64, i64, bool)> {
        let parsed = |text: &str| match text.parse() {
            Ok(number) => IntOrString::Int(number),
            Err(_) => IntOrString::String(text.to_owned()),
        };
        let bounds = RollBounds::of(Some(&parsed(surge)), Some(&parsed(unavailable)), replicas)?;
        Some((bounds.above, bounds.missing, bounds.both_zero))
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        assert_eq!(bounds("25%", "25%", 5), Some((2, 1, false)));
        assert_eq!(bounds("1", "0", 5), Some((1, 0, false)));
        assert_eq!(bounds("x", "0", 5), None);
        assert_eq!(bounds("1", "x%", 5), None);
        assert_eq!(bounds("0", "1", i64::MAX), Some((0, 1, false)), "nothing overflows");
    }

    #[test]
    fn one_machine_is_missing_where_both_are_zero() {
        assert_eq!(bounds("0", "0", 5), Some((0, 1, true)));
        assert_eq!(bounds("0", "10%", 5), Some((0, 1, true)));
        assert_eq!(bounds("0%", "0%", 5), Some((0, 1, true)));
        assert_eq!(bounds("0", "0", 0), Some((0, 0, true)));
        assert_eq!(RollBounds::of(None, None, 2).map(|bounds| bounds.both_zero), Some(true));
    }
}
