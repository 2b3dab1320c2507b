//! Suffixes that distinguish variants of an image version in old profiles, such as `1877.3.0-gen2`, and their meaning.

use std::str::FromStr;

use wire::capabilities::ARCHITECTURE;

/// Commonly used suffixes: suffix, capability, value of the version with the suffix, value of the version without it.
const KNOWN: [[&str; 4]; 4] = [
    ["gen2", "hypervisorType", "gen2", "gen1"],
    ["gen1", "hypervisorType", "gen1", "gen2"],
    ["arm64", ARCHITECTURE, "arm64", "amd64"],
    ["amd64", ARCHITECTURE, "amd64", "arm64"],
];

/// A suffix, the value of a capability that it denotes, and the value of the version without it, for example
/// `gen2=hypervisorType:gen2/gen1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuffixMeaning {
    /// The suffix, without its hyphen.
    pub suffix: String,
    /// The capability.
    pub capability: String,
    /// The value of a version with the suffix.
    pub value: String,
    /// The value of the version without it.
    pub without: String,
}

/// A decision that can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} is expected")]
pub struct DecisionError {
    pub(super) expected: &'static str,
}

impl FromStr for SuffixMeaning {
    type Err = DecisionError;

    fn from_str(text: &str) -> Result<Self, DecisionError> {
        let parts = || {
            let (suffix, rest) = text.split_once('=')?;
            let (capability, values) = rest.split_once(':')?;
            let (value, without) = values.split_once('/')?;
            Some([suffix, capability, value, without]).filter(|parts| !parts.contains(&""))
        };
        parts().map(Self::of).ok_or(DecisionError { expected: "SUFFIX=CAPABILITY:VALUE/VALUE_WITHOUT" })
    }
}

impl SuffixMeaning {
    fn of(parts: [&str; 4]) -> Self {
        let [suffix, capability, value, without] = parts.map(str::to_owned);
        Self { suffix, capability, value, without }
    }
}

/// The meaning of a suffix: the one that the user defined, or the common one.
pub(super) fn meaning_of(suffix: &str, message: &[SuffixMeaning]) -> Option<SuffixMeaning> {
    let message = message.iter().find(|meaning| meaning.suffix == suffix).cloned();
    message.or_else(|| KNOWN.into_iter().find(|known| known[0] == suffix).map(SuffixMeaning::of))
}

/// Whether a suffix has a commonly known meaning.
pub(super) fn is_known_suffix(suffix: &str) -> bool {
    KNOWN.iter().any(|known| known[0] == suffix)
}

/// The version without its suffix, and the suffix: a known one, or one whose version also exists without it.
pub(super) fn suffix_of<'a>(version: &'a str, versions_of_image: &[&str]) -> Option<(&'a str, &'a str)> {
    let (base, suffix) = version.split_once('-')?;
    let is_suffix = is_known_suffix(suffix) || versions_of_image.contains(&base);
    (is_suffix && !base.is_empty() && !suffix.is_empty()).then_some((base, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_is_listed_or_has_a_plain_version() {
        assert_eq!(suffix_of("1.0.0-gen2", &[]), Some(("1.0.0", "gen2")));
        assert_eq!(suffix_of("1.0.0-fips", &["1.0.0"]), Some(("1.0.0", "fips")));
        assert_eq!(suffix_of("1.0.0-rc.1", &["1.0.1"]), None);
        assert_eq!(suffix_of("1.0.0", &["1.0.0"]), None);
    }
}
