//! Durations in Go format: `metav1.Duration`, `time.ParseDuration`, `Duration.String`.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The absolute value of the minimum duration, one more than the maximum.
const LIMIT: u64 = 1 << 63;

/// A signed duration in nanoseconds, at most about 292 years.
///
/// In JSON it is a string such as `1h30m0s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Reason why a text is not a Go duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a sequence of numbers with units.
    #[error("invalid duration")]
    Invalid,
    /// A number has no unit.
    #[error("missing unit in duration")]
    MissingUnit,
    /// A unit is none of `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`.
    #[error("unknown unit in duration")]
    UnknownUnit,
    /// The duration is longer than 292 years.
    #[error("duration is out of range")]
    OutOfRange,
}

impl Duration {
    /// Creates a duration from nanoseconds.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// The length in nanoseconds.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// Parses a text such as `1h30m`, `1.5h` or `-100ms`.
    ///
    /// # Errors
    /// If Go's `time.ParseDuration` rejects the text.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        // The only number that needs no unit.
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(DurationError::Invalid);
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (part, behind) = leading_part(rest)?;
            rest = behind;
            total = in_range(total.checked_add(part))?;
        }
        if negative {
            // `0 - total` reaches the minimum, unlike `-(total)`.
            return 0i64.checked_sub_unsigned(total).map(Self).ok_or(DurationError::OutOfRange);
        }
        i64::try_from(total).map(Self).map_err(|_| DurationError::OutOfRange)
    }
}

/// Splits off the first number with its unit, and returns its nanoseconds and the rest.
fn leading_part(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = leading_integer(text)?;
    let mut has_digits = rest.len() != text.len();
    let (fraction, scale, rest) = match rest.strip_prefix('.') {
        Some(behind_point) => {
            let (fraction, scale, rest) = leading_fraction(behind_point);
            has_digits |= rest.len() != behind_point.len();
            (fraction, scale, rest)
        }
        None => (0, 1.0, rest),
    };
    if !has_digits {
        return Err(DurationError::Invalid);
    }
    let end = rest.find(|character: char| character == '.' || character.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = nanoseconds_of(unit)?;
    let value = in_range(whole.checked_mul(unit))?;
    // Go multiplies in double precision and truncates. A more exact result would differ in the last nanosecond.
    let of_fraction = (fraction as f64 * (unit as f64 / scale)) as u64;
    Ok((in_range(value.checked_add(of_fraction))?, rest))
}

fn in_range(nanoseconds: Option<u64>) -> Result<u64, DurationError> {
    nanoseconds.filter(|nanoseconds| *nanoseconds <= LIMIT).ok_or(DurationError::OutOfRange)
}

fn leading_integer(text: &str) -> Result<(u64, &str), DurationError> {
    let end = end_of_digits(text);
    let mut value: u64 = 0;
    for digit in text[..end].bytes() {
        value = in_range(value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0'))))?;
    }
    Ok((value, &text[end..]))
}

/// Parses the digits after the decimal point to a number and its power-of-ten divisor. Excess digits are ignored.
fn leading_fraction(text: &str) -> (u64, f64, &str) {
    let end = end_of_digits(text);
    let mut value: u64 = 0;
    let mut scale = 1.0;
    for digit in text[..end].bytes() {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale, &text[end..])
}

fn end_of_digits(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len())
}

fn nanoseconds_of(unit: &str) -> Result<u64, DurationError> {
    match unit {
        "" => Err(DurationError::MissingUnit),
        "ns" => Ok(1),
        // The second is the micro sign, the third the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(MICROSECOND),
        "ms" => Ok(MILLISECOND),
        "s" => Ok(SECOND),
        "m" => Ok(MINUTE),
        "h" => Ok(HOUR),
        _ => Err(DurationError::UnknownUnit),
    }
}

impl fmt::Display for Duration {
    /// Formats like Go: in hours, minutes and seconds from one second, otherwise in the largest smaller unit.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        if magnitude == 0 {
            return formatter.write_str("0s");
        }
        if self.0 < 0 {
            formatter.write_str("-")?;
        }
        if magnitude < MICROSECOND {
            return write!(formatter, "{magnitude}ns");
        }
        if magnitude < MILLISECOND {
            write_decimal(formatter, magnitude, MICROSECOND, 3)?;
            return formatter.write_str("\u{b5}s");
        }
        if magnitude < SECOND {
            write_decimal(formatter, magnitude, MILLISECOND, 6)?;
            return formatter.write_str("ms");
        }
        if magnitude >= HOUR {
            write!(formatter, "{}h", magnitude / HOUR)?;
        }
        if magnitude >= MINUTE {
            write!(formatter, "{}m", magnitude % HOUR / MINUTE)?;
        }
        write_decimal(formatter, magnitude % MINUTE, SECOND, 9)?;
        formatter.write_str("s")
    }
}

/// Writes `value / unit` with as many decimals as necessary, at most `places`.
fn write_decimal(formatter: &mut fmt::Formatter<'_>, value: u64, unit: u64, locations: usize) -> fmt::Result {
    write!(formatter, "{}", value / unit)?;
    let fraction = format!("{:0locations$}", value % unit);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return Ok(());
    }
    write!(formatter, ".{fraction}")
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Duration;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                Duration::parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_go_refuses() {
        assert_eq!(Duration::parse("5"), Err(DurationError::MissingUnit));
        assert_eq!(Duration::parse("5d"), Err(DurationError::UnknownUnit));
        assert_eq!(Duration::parse(""), Err(DurationError::Invalid));
        assert_eq!(Duration::parse(".s"), Err(DurationError::Invalid));
        assert_eq!(Duration::parse("2562048h"), Err(DurationError::OutOfRange), "more than 64 bits of nanoseconds");
    }

    #[test]
    fn is_a_string_in_json() {
        let parsed: Option<Duration> = serde_json::from_str("\"10m\"").unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), "\"10m0s\"");
        assert_eq!(serde_json::from_str::<Option<Duration>>("null").unwrap(), None);
        assert!(serde_json::from_str::<Duration>("600").is_err());
    }

    proptest! {
        #[test]
        fn every_duration_survives_printing_and_parsing(nanoseconds: i64) {
            let duration = Duration::from_nanoseconds(nanoseconds);
            prop_assert_eq!(Duration::parse(&duration.to_string()), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.hmsnuµ]{0,40}") {
            let _ = Duration::parse(&text);
        }
    }
}
