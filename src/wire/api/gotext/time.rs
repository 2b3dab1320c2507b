//! Times in the format of Go's `time.Time.String`.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};

/// The text is not a time that Go parses in an API object, or is outside of the years -9999 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time in RFC 3339 form")]
pub struct TimeError;

/// Formats a time of an API object like Go, in UTC: `2025-03-01T10:20:30Z` becomes `2025-03-01 10:20:30 +0000 UTC`.
///
/// This text is an input of the pool hash (docs/contract.md#hash-of-a-pool). Fractions of a second are printed without
/// trailing zeros. Parsing is as lenient as in Go: one digit for the hour, a comma before the fraction, and offsets up
/// to `24:60` are accepted.
///
/// # Errors
/// If Go's `time.Parse` with `time.RFC3339` rejects the text.
pub fn go_time_text(rfc3339: &str) -> Result<String, TimeError> {
    let mut text = Reader(rfc3339.as_bytes());
    let year = text.number(4)?;
    text.byte(b'-')?;
    let month = text.number(2)?;
    text.byte(b'-')?;
    let day = text.number(2)?;
    text.byte(b'T')?;
    let hour = text.hour()?;
    text.byte(b':')?;
    let minute = text.number(2)?;
    text.byte(b':')?;
    let second = text.number(2)?;
    let nanosecond = text.fraction();
    let offset_in_minutes = text.offset()?;
    if !text.0.is_empty() || second > 59 {
        return Err(TimeError);
    }
    let local = DateTime::from_parts(
        Date::new(year, narrow(month)?, narrow(day)?).map_err(|_| TimeError)?,
        Time::new(narrow(hour)?, narrow(minute)?, narrow(second)?, nanosecond).map_err(|_| TimeError)?,
    );
    let utc = local.checked_sub(offset_in_minutes.minutes()).map_err(|_| TimeError)?;
    Ok(print(utc))
}

fn print(utc: DateTime) -> String {
    let sign = if utc.year() < 0 { "-" } else { "" };
    let fraction = match utc.subsec_nanosecond() {
        0 => String::new(),
        nanosecond => format!(".{nanosecond:09}").trim_end_matches('0').to_owned(),
    };
    format!(
        "{sign}{:04}-{:02}-{:02} {:02}:{:02}:{:02}{fraction} +0000 UTC",
        utc.year().unsigned_abs(),
        utc.month(),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second(),
    )
}

fn narrow(number: i16) -> Result<i8, TimeError> {
    i8::try_from(number).map_err(|_| TimeError)
}

/// The remaining text.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self, target: u8) -> Result<(), TimeError> {
        match self.0.split_first() {
            Some((first, rest)) if *first == target => {
                self.0 = rest;
                Ok(())
            }
            _ => Err(TimeError),
        }
    }

    fn number(&mut self, digits: usize) -> Result<i16, TimeError> {
        let (front, rest) = self.0.split_at_checked(digits).ok_or(TimeError)?;
        let mut number = 0;
        for byte in front {
            if !byte.is_ascii_digit() {
                return Err(TimeError);
            }
            // Callers request at most four digits, so this can't overflow.
            number = number * 10 + i16::from(byte - b'0');
        }
        self.0 = rest;
        Ok(number)
    }

    fn hour(&mut self) -> Result<i16, TimeError> {
        match self.0.get(1) {
            Some(second) if second.is_ascii_digit() => self.number(2),
            _ => self.number(1),
        }
    }

    /// Parses the fraction of a second in nanoseconds; further digits are dropped as in Go.
    fn fraction(&mut self) -> i32 {
        let [b'.' | b',', digits @ ..] = self.0 else {
            return 0;
        };
        let count = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        if count == 0 {
            return 0;
        }
        let nanosecond = digits[..count]
            .iter()
            .copied()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |number, byte| number * 10 + i32::from(byte - b'0'));
        self.0 = &digits[count..];
        nanosecond
    }

    fn offset(&mut self) -> Result<i64, TimeError> {
        let sign = match self.0.split_first() {
            Some((b'Z', rest)) => {
                self.0 = rest;
                return Ok(0);
            }
            Some((b'+', rest)) => {
                self.0 = rest;
                1
            }
            Some((b'-', rest)) => {
                self.0 = rest;
                -1
            }
            _ => return Err(TimeError),
        };
        let hours = self.number(2)?;
        self.byte(b':')?;
        let minutes = self.number(2)?;
        if hours > 24 || minutes > 60 {
            return Err(TimeError);
        }
        Ok(sign * (i64::from(hours) * 60 + i64::from(minutes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9:.,TZ+-]{0,40}") {
            let _ = go_time_text(&text);
        }
    }
}
