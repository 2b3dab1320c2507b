//! What the suffixes of versions stand for.

use std::str::FromStr;

use super::decisions::DecisionError;
use crate::capabilities::ARCHITECTURE;

/// A suffix, the value of a capability that it stands for, and the value of the version without it:
/// `gen2=hypervisorType:gen2/gen1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuffixMeaning {
    /// The suffix, without its hyphen.
    pub suffix: String,
    /// The capability.
    pub capability: String,
    /// What a version with the suffix has of it.
    pub value: String,
    /// What the version without it has.
    pub without: String,
}

impl FromStr for SuffixMeaning {
    type Err = DecisionError;

    fn from_str(text: &str) -> Result<Self, DecisionError> {
        let error = DecisionError { expected: "SUFFIX=CAPABILITY:VALUE/VALUE_WITHOUT" };
        let (suffix, rest) = text.split_once('=').ok_or(error.clone())?;
        let (capability, values) = rest.split_once(':').ok_or(error.clone())?;
        let (value, without) = values.split_once('/').ok_or(error.clone())?;
        if [suffix, capability, value, without].contains(&"") {
            return Err(error);
        }
        Ok(Self::of(suffix, capability, value, without))
    }
}

impl SuffixMeaning {
    fn of(suffix: &str, capability: &str, value: &str, without: &str) -> Self {
        let [suffix, capability, value, without] = [suffix, capability, value, without].map(str::to_owned);
        Self { suffix, capability, value, without }
    }

    /// Those that everybody uses.
    fn known() -> [Self; 4] {
        [
            Self::of("gen2", "hypervisorType", "gen2", "gen1"),
            Self::of("gen1", "hypervisorType", "gen1", "gen2"),
            Self::of("arm64", ARCHITECTURE, "arm64", "amd64"),
            Self::of("amd64", ARCHITECTURE, "amd64", "arm64"),
        ]
    }
}

/// The meaning of a suffix: what a person said, else what everybody means by it.
pub(super) fn meaning(suffix: &str, said: &[SuffixMeaning]) -> Option<SuffixMeaning> {
    let said = said.iter().find(|meaning| meaning.suffix == suffix).cloned();
    said.or_else(|| SuffixMeaning::known().into_iter().find(|meaning| meaning.suffix == suffix))
}
