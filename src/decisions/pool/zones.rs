//! Splits the machine counts of a pool among its zones.
//!
//! The first zones get the remainder. Percentages use 64-bit floats in exactly the Go extension's order of operations,
//! because different rounding would change the surge.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Position of a zone in the list of zones of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonePosition {
    /// Index, starting at 0.
    pub index: u32,
    /// Number of zones, at least 1.
    pub count: u32,
}

/// The zones of a pool with their positions.
pub fn positions(zones: &[String]) -> impl Iterator<Item = (ZonePosition, &str)> {
    let count = u32::try_from(zones.len()).unwrap_or(u32::MAX);
    (0..).zip(zones).map(move |(index, zone)| (ZonePosition { index, count }, zone.as_str()))
}

/// A surge or unavailability that is neither a number nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a number nor a whole percentage such as \"25%\"")]
pub struct NotAPercentage(pub String);

/// The share of the zone in `total` machines.
#[must_use]
pub fn distribute(total: i32, zone: ZonePosition) -> i32 {
    let total = i64::from(total);
    let count = i64::from(zone.count.max(1));
    let remainder = total % count;
    let share = total / count + i64::from(i64::from(zone.index) < remainder);
    // A share exceeds the total at most by the one machine of a remainder.
    i32::try_from(share).unwrap_or(i32::MAX)
}

/// The share of the zone in a surge or unavailability. A number is split like machines. A percentage of `total`
/// machines is scaled by the zone's share relative to an even share, and rounded up.
///
/// # Errors
/// If `value` is text without a whole number before its last character.
pub fn distribute_int_or_percentage(
    value: &IntOrString,
    total: i32,
    zone: ZonePosition,
) -> Result<IntOrString, NotAPercentage> {
    match value {
        IntOrString::Int(number) => Ok(IntOrString::Int(distribute(*number, zone))),
        IntOrString::String(text) => distribute_percentage(text, total, zone).map(IntOrString::String),
    }
}

fn distribute_percentage(text: &str, total: i32, zone: ZonePosition) -> Result<String, NotAPercentage> {
    let percentage = whole_percentage(text).ok_or_else(|| NotAPercentage(text.to_owned()))?;
    let count = zone.count.max(1);
    if i64::from(total) % i64::from(count) == 0 {
        return Ok(format!("{percentage}%"));
    }
    let even_share = f64::from(total) / f64::from(count);
    let ratio = 100.0 / even_share * f64::from(distribute(total, zone));
    #[expect(clippy::cast_precision_loss, reason = "Go converts the integer to a float as well")]
    let scaled = (ratio * percentage as f64 / 100.0).ceil();
    // Go converts to an integer, which has no negative zero.
    Ok(format!("{:.0}%", scaled + 0.0))
}

/// Parses the whole number before the last character like Go's `Atoi`: an optional sign and ASCII digits.
fn whole_percentage(text: &str) -> Option<i64> {
    let mut characters = text.chars();
    characters.next_back()?;
    characters.as_str().parse().ok()
}
