//! From the old format to capabilities and back: both halves of a profile at once, with a proof.
//!
//! * `decisions`: what only a person can say;
//! * `to_capabilities`, `to_old_format`: the two ways.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::document::without_status;
use super::equivalence::{Difference, EquivalenceCheck, Lost, compare};
use super::profile::{Profile, ProfileError};
use super::{Offer, Resolution};
use crate::provider::Providers;

mod decisions;
mod to_capabilities;
mod to_old_format;

pub use super::suffix::{DecisionError, SuffixMeaning};
pub use decisions::TypeDecision;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Capabilities (GEP-33).
    Capabilities,
    /// The format before.
    Old,
}

/// What a person knows that a profile does not say.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// What version suffixes stand for, besides those that everybody uses.
    pub suffixes: Vec<SuffixMeaning>,
    /// What machine types can do.
    pub machine_types: Vec<TypeDecision>,
}

/// A converted profile.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversion {
    /// The profile.
    pub profile: Value,
    /// What could not be decided from the profile.
    pub undecided: Vec<Undecided>,
    /// Questions that are answered differently because somebody said so, or because the new format says more.
    pub intended: Vec<Difference>,
    /// Images that machine types can't have any more because somebody said that they can't run them.
    pub given_up: Vec<Lost>,
    /// What was compared; all other answers are the same.
    pub proof: EquivalenceCheck,
}

/// Something that a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Undecided {
    /// What it is about: an image, a version, machine types.
    pub subject: String,
    /// What is open, and what was done for the time being.
    pub open: String,
    /// How to say it.
    pub advice: String,
}

/// Why a profile can't be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// It can't be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A decision is about a capability that the converted profile does not define.
    #[error("--decide: the profile would not define {0:?}; say what it stands for with --suffix")]
    UnknownCapability(String),
    /// The result would not be the same, so there is none.
    #[error("the result would not be equivalent; nothing is printed")]
    NotEquivalent(Box<EquivalenceCheck>),
}

/// Converts the document of a CloudProfile.
///
/// # Errors
/// When it can't be read, or when machine types would lose an image that nobody said they can't run.
pub fn convert(
    document: &Value,
    format: Format,
    knowledge: &Knowledge,
    providers: Providers,
) -> Result<Conversion, ConvertError> {
    let before = Before::read(document, providers)?;
    match format {
        Format::Capabilities => to_capabilities::convert(&before, knowledge, providers),
        Format::Old => to_old_format::convert(&before, providers),
    }
}

/// The profile that is converted.
struct Before {
    profile: Profile,
    offer: Offer,
}

impl Before {
    fn read(document: &Value, providers: Providers) -> Result<Self, ProfileError> {
        let profile = Profile::read_completed(without_status(document), providers)?;
        // The moment does not matter: which image belongs to whom does not change with time.
        let offer = profile.offer(Timestamp::UNIX_EPOCH);
        Ok(Self { profile, offer })
    }

    /// The architectures by which core's half admits a version.
    fn admitted_architectures(&self, image: &str, version: &str) -> &[String] {
        let offered = self.offer.images.iter().find(|known| known.image == image && known.version == version);
        offered.map(|offered| offered.architectures.as_slice()).unwrap_or_default()
    }

    /// Compares the result with it.
    fn check(&self, converted: &Value, providers: Providers) -> Result<EquivalenceCheck, ProfileError> {
        let after = Profile::read_completed(converted.clone(), providers)?.offer(Timestamp::UNIX_EPOCH);
        Ok(compare(&Resolution::of(&self.offer), &Resolution::of(&after)))
    }
}
