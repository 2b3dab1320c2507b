//! Resource amounts in the format of Kubernetes: `resource.Quantity`.

use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::json;

/// Maximum number of digits that Go stores in a 64-bit integer; longer amounts are stored exactly.
const SMALL_DIGITS: i64 = 18;

/// Decimal places to which an exact amount is rounded up (nano).
const LOCATIONS: usize = 9;

/// Maximum number of zeros to write out. Go has no limit and would run out of memory.
const MOST_ZEROS: i64 = 4096;

/// The maximum amount with a binary suffix; larger amounts are capped.
const BINARY_LIMIT: &str = "9223372036854775807";

/// An exact amount such as `500m`, `16Gi` or `1e3`.
///
/// `Display` prints the canonical text that Go prints after parsing the amount, because that text is hashed. Like Go,
/// it keeps the original text if that looks canonical. Quantities are compared by their numbers.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The original text, if Go prints it unchanged.
    text: Option<Box<str>>,
}

#[derive(Clone, Debug)]
enum Amount {
    /// `value · 10^scale`. The scale is unlimited, so the number may exceed 64 bits.
    Small { value: i64, scale: i32 },
    /// `± unscaled / 10^places`; `unscaled` has only digits without leading zeros, and is empty for zero.
    Exact { negative: bool, unscaled: String, locations: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    DecimalExponent,
    DecimalSuffix,
    BinarySuffix,
}

/// Reason why a text is not a quantity. The messages are those of the Go library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The text has no digits.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The exponent would require thousands of digits.
    #[error("quantity is out of range")]
    OutOfRange,
}

/// The parts of a text before any computation.
struct Parts<'a> {
    negative: bool,
    /// Digits before the decimal point without leading zeros, or `0`.
    whole: &'a str,
    /// Digits after the decimal point.
    fraction: &'a str,
    suffix: &'a str,
    /// Whether the text has any digit; Go checks it only for exact amounts.
    has_digits: bool,
}

/// Decimal suffixes with their powers of ten.
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Binary suffixes; each is ten bits larger than the previous one.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

enum Suffix {
    Decimal { exponent: i32, format: Format },
    Binary { bits: u32 },
}

impl Default for Quantity {
    /// Zero, to which Go also decodes JSON null.
    fn default() -> Self {
        Self { amount: Amount::Small { value: 0, scale: 0 }, format: Format::DecimalSuffix, text: None }
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Self { amount: Amount::Small { value, scale: 0 }, ..Self::default() }
    }
}

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    /// If Go's `resource.ParseQuantity` rejects the text, or would need thousands of digits.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = Parts::of(text)?;
        let suffix = Suffix::parse(parts.suffix)?;
        if let Some(small) = parts.small(text, &suffix) {
            return Ok(small);
        }
        parts.exact(&suffix)
    }

    /// Go's `Quantity.Value()`: the amount as a whole number, rounded up.
    ///
    /// Amounts beyond 64 bits result in the same wrong number as in Go: `12E` results in 0. Rounding of negative
    /// amounts is as inconsistent as in Go.
    pub fn value_rounded_up(&self) -> i64 {
        match &self.amount {
            Amount::Small { value, scale } if *scale < 0 => divide_away_from_zero(*value, scale.unsigned_abs()),
            Amount::Small { value, scale } => multiply_like_go(*value, scale.unsigned_abs()),
            Amount::Exact { negative, unscaled, locations } => exact_rounded_up(*negative, unscaled, *locations),
        }
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        match &self.amount {
            Amount::Small { value, .. } => *value == 0,
            Amount::Exact { unscaled, .. } => unscaled.is_empty(),
        }
    }

    fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        match self.format {
            Format::BinarySuffix => self.canonical_binary(),
            format => self.canonical_decimal(format),
        }
    }

    /// Below 1 KiB, or if a fraction would be lost, Go falls back to decimal suffixes.
    fn canonical_binary(&self) -> String {
        let (negative, magnitude) = match &self.amount {
            Amount::Small { value, .. } => (*value < 0, Some(u128::from(value.unsigned_abs()))),
            Amount::Exact { negative, unscaled, locations } => {
                let (whole, fraction) = unscaled.split_at(unscaled.len().saturating_sub(*locations));
                let is_whole = fraction.bytes().all(|digit| digit == b'0');
                (*negative, if is_whole { whole.parse().ok() } else { None })
            }
        };
        let Some(magnitude) = magnitude.filter(|magnitude| *magnitude >= 1024) else {
            return self.canonical_decimal(Format::DecimalSuffix);
        };
        let step = (magnitude.trailing_zeros() / 10).min(6);
        let sign = if negative { "-" } else { "" };
        format!("{sign}{}{}", magnitude >> (10 * step), BINARY_SUFFIXES[step as usize])
    }

    fn canonical_decimal(&self, format: Format) -> String {
        let (negative, mut digits, mut exponent) = self.digits_and_exponent();
        while exponent % 3 != 0 {
            digits.push('0');
            exponent -= 1;
        }
        let suffix = match format {
            Format::DecimalExponent if exponent == 0 => String::new(),
            Format::DecimalExponent => format!("e{exponent}"),
            // Beyond exa, Go omits the suffix, which changes the number. This matches Go.
            _ => {
                let known = DECIMAL_SUFFIXES.iter().find(|(_, known)| i64::from(*known) == exponent);
                known.map_or_else(String::new, |(suffix, _)| (*suffix).to_owned())
            }
        };
        let sign = if negative { "-" } else { "" };
        format!("{sign}{digits}{suffix}")
    }

    /// The number in a normalised form: sign, digits without trailing zeros, exponent.
    fn digits_and_exponent(&self) -> (bool, String, i64) {
        let (negative, mut digits, mut exponent) = match &self.amount {
            Amount::Small { value, scale } => (*value < 0, value.unsigned_abs().to_string(), i64::from(*scale)),
            Amount::Exact { negative, unscaled, locations } => {
                let locations = i64::try_from(*locations).unwrap_or_default();
                (*negative, unscaled.clone(), -locations)
            }
        };
        if self.is_zero() {
            return (false, String::new(), 0);
        }
        while digits.ends_with('0') {
            digits.pop();
            exponent += 1;
        }
        (negative, digits, exponent)
    }
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let without_zeros = unsigned.trim_start_matches('0');
        if without_zeros.is_empty() {
            // Go parses only zeros, or only a sign, as zero.
            return Ok(Self { negative: false, whole: "0", fraction: "", suffix: "", has_digits: true });
        }
        let (whole, rest) = split_digits(without_zeros);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(behind_point) => split_digits(behind_point),
            None => ("", rest),
        };
        let letters = suffix.bytes().position(|byte| !b"eEinumkKMGTP".contains(&byte)).unwrap_or(suffix.len());
        let behind_letters = &suffix[letters..];
        let digits = behind_letters.strip_prefix(['-', '+']).unwrap_or(behind_letters);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        Ok(Self {
            negative,
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
            has_digits: without_zeros.len() != unsigned.len() || !whole.is_empty() || !fraction.is_empty(),
        })
    }

    /// Go's fast path: a number with few digits, stored as an integer with a scale.
    fn small(&self, text: &str, suffix: &Suffix) -> Option<Quantity> {
        let whole_digits = digit_count(self.whole)?;
        let fraction_digits = digit_count(self.fraction)?;
        let (exponent, format, factor, spare_digits) = match *suffix {
            Suffix::Decimal { exponent, format } => {
                (exponent, format, 1, SMALL_DIGITS - whole_digits - fraction_digits)
            }
            Suffix::Binary { bits } if self.fraction.is_empty() => (
                0,
                Format::BinarySuffix,
                1i64 << bits,
                // Three decimal digits for ten bits, with one to spare.
                15 - whole_digits - i64::from(bits * 3 / 10) - 1,
            ),
            Suffix::Binary { .. } => return None,
        };
        // Go computes the scale in 32 bits with wraparound.
        let scale = exponent.wrapping_sub(i32::try_from(fraction_digits).ok()?);
        if spare_digits < 0 || i64::from(scale) < -(LOCATIONS as i64) {
            return None;
        }
        let shifted = format!("{}{}", self.whole, self.fraction);
        let value: i64 = shifted.parse().ok()?;
        let product = value.checked_mul(factor)?;
        let is_canonical = match format {
            Format::BinarySuffix => value & 7 != 0,
            _ => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
        };
        Some(Quantity {
            amount: Amount::Small { value: if self.negative { -product } else { product }, scale },
            format,
            text: is_canonical.then(|| text.into()),
        })
    }

    /// Go's slow path: any number of digits, rounded up to nano.
    fn exact(&self, suffix: &Suffix) -> Result<Quantity, QuantityError> {
        if !self.has_digits {
            return Err(QuantityError::Numeric);
        }
        let shifted = format!("{}{}", self.whole, self.fraction);
        let fraction_digits = digit_count(self.fraction).ok_or(QuantityError::OutOfRange)?;
        let (digits, locations, mut format) = match *suffix {
            Suffix::Decimal { exponent, format } => (shifted, fraction_digits - i64::from(exponent), format),
            Suffix::Binary { bits } => (multiply_digits(&shifted, 1u64 << bits), fraction_digits, Format::BinarySuffix),
        };
        let mut unscaled = round_up_to_nano(digits.trim_start_matches('0'), locations)?;
        let mut locations = LOCATIONS;
        if format == Format::BinarySuffix {
            if is_above_binary_limit(&unscaled) {
                unscaled = BINARY_LIMIT.to_owned();
                locations = 0;
            } else if !unscaled.is_empty() && unscaled.len() <= LOCATIONS {
                // Between zero and one.
                format = Format::DecimalSuffix;
            }
        }
        Ok(Quantity { amount: Amount::Exact { negative: self.negative, unscaled, locations }, format, text: None })
    }
}

impl Suffix {
    fn parse(suffix: &str) -> Result<Self, QuantityError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
            return Ok(Self::Decimal { exponent: *exponent, format: Format::DecimalSuffix });
        }
        if let Some((bits, _)) = (0..).step_by(10).zip(BINARY_SUFFIXES).find(|(_, known)| *known == suffix) {
            return Ok(Self::Binary { bits });
        }
        let digits = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
        let exponent: i64 = digits.parse().map_err(|_| QuantityError::Suffix)?;
        // Go truncates to the lower 32 bits.
        Ok(Self::Decimal { exponent: exponent as i32, format: Format::DecimalExponent })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn digit_count(digits: &str) -> Option<i64> {
    i64::try_from(digits.len()).ok()
}

/// Multiplies a decimal number by an integer of at most 61 bits.
fn multiply_digits(digits: &str, factor: u64) -> String {
    let mut product: Vec<u8> = Vec::with_capacity(digits.len() + 20);
    let mut carry: u128 = 0;
    for digit in digits.bytes().rev() {
        carry += u128::from(digit - b'0') * u128::from(factor);
        product.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        product.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    product.iter().rev().copied().map(char::from).collect()
}

/// Converts `digits / 10^places` to nano, rounded away from zero.
fn round_up_to_nano(digits: &str, locations: i64) -> Result<String, QuantityError> {
    if digits.is_empty() {
        return Ok(String::new());
    }
    let surplus = locations - LOCATIONS as i64;
    if surplus <= 0 {
        if -surplus > MOST_ZEROS {
            return Err(QuantityError::OutOfRange);
        }
        let zeros = usize::try_from(-surplus).unwrap_or_default();
        return Ok(format!("{digits}{}", "0".repeat(zeros)));
    }
    let kept = usize::try_from(surplus).ok().and_then(|surplus| digits.len().checked_sub(surplus));
    let Some(kept) = kept else {
        return Ok("1".to_owned());
    };
    let (kept, dropped) = digits.split_at(kept);
    if dropped.bytes().all(|digit| digit == b'0') {
        return Ok(kept.to_owned());
    }
    Ok(add_one(kept))
}

fn add_one(digits: &str) -> String {
    let front = digits.trim_end_matches('9');
    let zeros = "0".repeat(digits.len() - front.len());
    match front.split_at_checked(front.len().wrapping_sub(1)) {
        Some((front, last)) => {
            let next = last.bytes().map(|digit| char::from(digit + 1));
            front.chars().chain(next).chain(zeros.chars()).collect()
        }
        None => format!("1{zeros}"),
    }
}

/// Compares nanos with the limit. Texts of the same length are ordered like their numbers.
fn is_above_binary_limit(nano: &str) -> bool {
    let limit = format!("{BINARY_LIMIT}{}", "0".repeat(LOCATIONS));
    (nano.len(), nano) > (limit.len(), limit.as_str())
}

/// The lower 64 bits of a decimal number as a signed integer.
fn lower_bits(negative: bool, digits: &str) -> i64 {
    let bits =
        digits.bytes().fold(0u64, |bits, digit| bits.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))) as i64;
    if negative { bits.wrapping_neg() } else { bits }
}

fn exact_rounded_up(negative: bool, unscaled: &str, locations: usize) -> i64 {
    if locations == 0 || unscaled.is_empty() {
        return lower_bits(negative, unscaled);
    }
    let is_short = (unscaled.len(), unscaled) < (BINARY_LIMIT.len(), BINARY_LIMIT);
    if negative || is_short {
        // In Go, this applies to all negative numbers, even beyond 64 bits.
        let bits = lower_bits(negative, unscaled);
        let nano = 1_000_000_000;
        return bits / nano + i64::from(bits % nano != 0);
    }
    let (whole, fraction) = unscaled.split_at(unscaled.len().saturating_sub(locations));
    let has_fraction = fraction.bytes().any(|digit| digit != b'0');
    lower_bits(false, whole).wrapping_add(i64::from(has_fraction))
}

fn divide_away_from_zero(value: i64, locations: u32) -> i64 {
    let divisor = 10i64.checked_pow(locations);
    // A divisor beyond 64 bits exceeds every value.
    let (quotient, remainder) = match divisor {
        Some(divisor) => (value / divisor, value % divisor),
        None => (0, value),
    };
    quotient + remainder.signum()
}

/// `value · 10^places`, with Go's results on overflow: the lower 64 bits for powers that Go multiplies in one step,
/// otherwise zero.
fn multiply_like_go(value: i64, locations: u32) -> i64 {
    if value == 0 {
        return 0;
    }
    let product = 10i64.checked_pow(locations).and_then(|factor| value.checked_mul(factor));
    match (product, locations) {
        (Some(product), _) => product,
        (None, 1 | 2 | 3 | 6 | 9) => value.wrapping_mul(10i64.wrapping_pow(locations)),
        (None, _) => 0,
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => formatter.write_str(text),
            None => formatter.write_str(&self.canonical()),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.digits_and_exponent() == other.digits_and_exponent()
    }
}

impl Eq for Quantity {}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Go uses the text of the JSON value, with or without quotes.
struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity as string or number")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
        self.visit_str(&json::float_text(number))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn errors_read_like_upstream() {
        assert_eq!(Quantity::parse("1 Gi"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1K"), Err(QuantityError::Suffix));
        assert_eq!(Quantity::parse("Ei"), Err(QuantityError::Numeric));
    }

    #[test]
    fn an_exponent_of_billions_costs_nothing() {
        assert_eq!(Quantity::parse("1234567890123456789012e2147483647"), Err(QuantityError::OutOfRange));
        assert_eq!(quantity("1e-2147483647").to_string(), "1e-9");
        assert_eq!(quantity("0e2147483647").value_rounded_up(), 0);
        assert_eq!(quantity("1e2147483646").value_rounded_up(), 0);
    }

    #[test]
    fn reads_strings_and_numbers_from_json() {
        let read = |json: &str| serde_json::from_str::<Quantity>(json).unwrap().to_string();
        assert_eq!(read("\" 0.1 \""), "100m");
        assert_eq!(read("4"), "4");
        assert_eq!(read("1.5"), "1500m");
        assert_eq!(read("1e21"), "1e+21");
        assert_eq!(read("null"), "0");
        assert!(serde_json::from_str::<Quantity>("true").is_err());
        assert_eq!(serde_json::to_string(&quantity("1024Mi")).unwrap(), "\"1Gi\"");
    }

    #[test]
    fn equality_is_that_of_the_numbers() {
        assert_eq!(quantity("1Gi"), quantity("1024Mi"));
        assert_eq!(quantity("1"), quantity("1000m"));
        assert_eq!(quantity("0"), quantity("-0.0Ki"));
        assert_ne!(quantity("1"), quantity("-1"));
    }

    proptest! {
        #[test]
        fn the_canonical_text_stays_the_same_when_read_again(
            text in "[-+]?[0-9]{0,22}(\\.[0-9]{0,12})?([numkMGTPE]|[KMGTPE]i|[eE]-?[0-9]{1,2})?"
        ) {
            if let Ok(quantity) = Quantity::parse(&text) {
                let canonical = quantity.to_string();
                let again = Quantity::parse(&canonical).unwrap();
                prop_assert_eq!(again.to_string(), canonical);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+.0-9eEinumkKMGTP]{0,30}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity.to_string(), quantity.value_rounded_up());
            }
        }
    }
}
