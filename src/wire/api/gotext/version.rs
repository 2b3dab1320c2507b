//! Semantic versions, parsed and ordered like `github.com/Masterminds/semver` v3.

use std::cmp::Ordering;
use std::fmt;

/// Maximum length; the library rejects longer texts.
const LONGEST: usize = 256;

/// A version with numbers for major, minor and patch; missing numbers are zero.
///
/// Ordering follows semver precedence, which ignores build metadata, so `1.0.0+a` equals `1.0.0+b`.
#[derive(Clone, Debug)]
pub struct Version {
    /// Major version.
    pub major: u64,
    /// Minor version.
    pub minor: u64,
    /// Patch version.
    pub patch: u64,
    /// Text after the hyphen, empty for a release.
    pub prerelease: String,
    /// Text after the plus sign, empty if there is none.
    pub metadata: String,
}

/// Reason why a text is not a version. The messages are those of the Go library (units `azure-hash-data-v2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text does not have the format of a version.
    #[error("invalid semantic version")]
    Invalid,
    /// The text has more than 256 bytes.
    #[error("version string is too long (max {LONGEST} bytes)")]
    TooLong,
    /// Major, minor or patch exceeds 64 bits.
    #[error("error parsing version segment: value out of range")]
    OutOfRange,
    /// A number in the prerelease has a leading zero.
    #[error("version segment starts with 0")]
    LeadingZero,
}

impl Version {
    /// The lowest release.
    pub const ZERO: &Self = &Self { major: 0, minor: 0, patch: 0, prerelease: String::new(), metadata: String::new() };

    /// Parses a version leniently: a leading `v`, a missing minor or patch and leading zeros are accepted
    /// (docs/contract.md#hash-of-a-workerconfig).
    ///
    /// # Errors
    /// If `semver.NewVersion` of the Go library rejects the text.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.len() > LONGEST {
            return Err(VersionError::TooLong);
        }
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, metadata) = split(text, '+');
        let (numbers, prerelease) = split(text, '-');
        if !is_dotted(prerelease) || !is_dotted(metadata) {
            return Err(VersionError::Invalid);
        }
        let mut parts = numbers.split('.');
        let mut next = || match parts.next() {
            None => Ok(0),
            Some(digits) => number(digits),
        };
        let major = next();
        let minor = next();
        let patch = next();
        // The format is checked before the size, so `99999999999999999999.x` is "invalid" as in Go.
        if parts.next().is_some() {
            return Err(VersionError::Invalid);
        }
        if [&major, &minor, &patch].contains(&&Err(VersionError::Invalid)) {
            return Err(VersionError::Invalid);
        }
        let prerelease = prerelease.unwrap_or_default();
        let major = major?;
        let minor = minor?;
        let patch = patch?;
        if prerelease.split('.').any(|part| part.len() > 1 && part.starts_with('0') && is_digits(part)) {
            return Err(VersionError::LeadingZero);
        }
        Ok(Self {
            major,
            minor,
            patch,
            prerelease: prerelease.to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
        })
    }

    /// Major and minor version separated by a dot, as in hashes: `1.34`.
    pub fn major_minor(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// Whether the version satisfies the constraint `>= major.minor-0`, which includes prereleases of that minor
    /// version.
    pub fn at_least_including_prereleases(&self, major: u64, minor: u64) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

fn split(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((front, back)) => (front, Some(back)),
        None => (text, None),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_dotted(text: Option<&str>) -> bool {
    text.is_none_or(|text| {
        text.split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
    })
}

fn number(digits: &str) -> Result<u64, VersionError> {
    if !is_digits(digits) {
        return Err(VersionError::Invalid);
    }
    digits.parse().map_err(|_| VersionError::OutOfRange)
}

impl fmt::Display for Version {
    /// Formats all three numbers, without a leading `v`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(formatter, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(formatter, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

fn compare_prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        // A release is higher than its prereleases.
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let mut right = right.split('.');
    for left in left.split('.') {
        let Some(right) = right.next() else {
            return Ordering::Greater;
        };
        // Numbers beyond 64 bits are compared as text, as in Go.
        let order = match (left.parse::<u64>(), right.parse::<u64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => left.cmp(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    if right.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_read_like_upstream() {
        assert_eq!(Version::parse("bad").unwrap_err().to_string(), "invalid semantic version");
        assert_eq!(Version::parse(""), Err(VersionError::Invalid));
        assert_eq!(Version::parse("1.2.3.4"), Err(VersionError::Invalid));
        assert_eq!(Version::parse("1.2.3-01"), Err(VersionError::LeadingZero));
        assert_eq!(Version::parse("1.99999999999999999999"), Err(VersionError::OutOfRange));
        assert_eq!(Version::parse(&"1".repeat(300)), Err(VersionError::TooLong));
    }

    proptest! {
        #[test]
        fn printed_version_parses_back(text in "v?[0-9]{1,3}(\\.[0-9]{1,3}){0,2}(-[0-9a-z.-]{1,9})?(\\+[0-9a-z-]{1,9})?") {
            if let Ok(version) = Version::parse(&text) {
                prop_assert_eq!(Version::parse(&version.to_string()).unwrap().to_string(), version.to_string());
            }
        }
    }
}
