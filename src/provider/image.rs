//! What finding a pool's image has in common for every provider (spec/other-providers.md section 2).
//!
//! The CloudProfile gives candidates, capabilities choose among them; whatever goes wrong there, an image that the Worker
//! used before and keeps in its provider status may still do.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{PoolProblem, WorkerContext};
use crate::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, MachineType, WorkerPool};
pub use crate::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE};
use crate::capabilities::{NoFlavor, best_flavor};

/// Why the CloudProfile gives no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotInProfile {
    /// There is no `CloudProfileConfig`.
    #[error("the CloudProfile has no providerConfig")]
    NoConfig,
    /// The version is not listed.
    #[error("the CloudProfile's providerConfig does not list this image and version")]
    NotListed,
    /// It is listed, but for other regions.
    #[error("the CloudProfile's providerConfig lists this image and version, but not for region {region:?}")]
    NotInRegion {
        /// The region.
        region: String,
    },
    /// It is not asked.
    #[error("the CloudProfile is not asked: {why}")]
    NotAsked {
        /// Why.
        why: &'static str,
    },
    /// It is listed, but no flavor can be chosen.
    #[error("the CloudProfile lists it, but {0}")]
    NoFlavor(NoFlavor),
}

/// Why the provider status gives no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotInStatus {
    /// There is no provider status.
    #[error("the Worker has no provider status with images used before")]
    NoStatus,
    /// The version is not kept.
    #[error("the provider status keeps no such image and version")]
    NotKept,
    /// It is kept for other machines.
    #[error("the provider status keeps it only for other machine capabilities")]
    Incompatible,
}

/// The architecture that a pool asks for.
#[must_use]
pub fn architecture(pool: &WorkerPool) -> &str {
    pool.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)
}

/// The pool's machine type in the CloudProfile.
///
/// # Errors
/// When there is none.
pub fn machine_type<'a>(context: &WorkerContext<'a>, pool: &WorkerPool) -> Result<&'a MachineType, PoolProblem> {
    let profile = context.cloud_profile;
    let mut machine_types = profile.spec.machine_types.iter();
    machine_types.find(|machine_type| machine_type.name == pool.machine_type).ok_or_else(|| {
        PoolProblem::MachineTypeUnknown {
            machine_type: pool.machine_type.clone(),
            cloud_profile: profile.metadata.name.clone().unwrap_or_default(),
        }
    })
}

/// Everything that decides which image of a CloudProfile a pool gets, and what else the profile says of its machine type.
/// `deciding` is the pool whose architecture counts where the machine type names none.
#[must_use]
pub fn asks_profile(context: &WorkerContext<'_>, pool: &WorkerPool, deciding: &WorkerPool) -> Value {
    let MachineImage { name, version } = &pool.machine_image;
    json!({
        "region": context.worker.spec.region,
        "machineType": pool.machine_type,
        "architectures": [architecture(pool), architecture(deciding)],
        "image": [name, version],
        "kept": context.worker.status.provider_status,
    })
}

/// The capabilities that a CloudProfile declares, or those that one in the old format stands for.
pub fn definitions_or(
    declared: &[CapabilityDefinition],
    old_format: impl FnOnce() -> Vec<CapabilityDefinition>,
) -> Cow<'_, [CapabilityDefinition]> {
    if declared.is_empty() { Cow::Owned(old_format()) } else { Cow::Borrowed(declared) }
}

/// The candidates of the first entry that has any: a profile may list an image in several entries.
pub fn of_first_entry<Entry, Candidate>(
    entries: impl Iterator<Item = Entry>,
    candidates: impl Fn(Entry) -> Vec<Candidate>,
) -> Vec<Candidate> {
    entries.map(candidates).find(|candidates| !candidates.is_empty()).unwrap_or_default()
}

/// The best candidate for a machine.
///
/// # Errors
/// When there are no candidates, none fits the machine, or several fit equally well.
pub fn best_candidate<Candidate>(
    mut candidates: Vec<Candidate>,
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    capabilities_of: impl Fn(&Candidate) -> &Capabilities,
) -> Result<Candidate, NotInProfile> {
    if candidates.is_empty() {
        return Err(NotInProfile::NotListed);
    }
    let choice = best_flavor(machine, definitions, &candidates, capabilities_of).map_err(NotInProfile::NoFlavor)?;
    Ok(candidates.swap_remove(choice.index))
}

/// An entry of a list of images, by name and version.
pub trait ImageEntry {
    /// Name of the image.
    fn name(&self) -> &str;

    /// Its version.
    fn version(&self) -> &str;
}

/// The entries for an image.
pub fn of_image<'a, Entry: ImageEntry>(entries: &'a [Entry], image: &MachineImage) -> impl Iterator<Item = &'a Entry> {
    entries.iter().filter(|entry| entry.name() == image.name && entry.version() == image.version)
}

/// The position of an entry among those [of its image](of_image).
pub fn position_of_kept<Entry: ImageEntry>(entries: &[Entry], found: &Entry) -> Option<usize> {
    let same_image = |entry: &&Entry| entry.name() == found.name() && entry.version() == found.version();
    entries.iter().filter(same_image).position(|entry| std::ptr::eq(entry, found))
}

/// What the provider status keeps of an image, for any machine.
///
/// # Errors
/// When there is no status, or nothing in it.
pub fn kept_of_image<'a, Entry: ImageEntry>(
    status: Option<&'a [Entry]>,
    image: &MachineImage,
) -> Result<impl Iterator<Item = &'a Entry>, NotInStatus> {
    let mut kept = of_image(status.ok_or(NotInStatus::NoStatus)?, image).peekable();
    if kept.peek().is_none() { Err(NotInStatus::NotKept) } else { Ok(kept) }
}

/// Neither the CloudProfile nor the provider status gives an image.
#[must_use]
pub fn unresolved(pool: &WorkerPool, in_profile: &NotInProfile, in_status: &NotInStatus) -> PoolProblem {
    PoolProblem::ImageUnresolved {
        image: pool.machine_image.name.clone(),
        version: pool.machine_image.version.clone(),
        machine_type: pool.machine_type.clone(),
        in_profile: in_profile.to_string(),
        in_status: in_status.to_string(),
    }
}
