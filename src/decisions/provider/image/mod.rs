//! Selects the image for the machines of a pool, for all providers.
//!
//! ```text
//!  CloudProfile ── ProfileConfig::flavors ─┐
//!                                          ├─► WorkerImages::select ─► ImageSelection: the image, or why none fits,
//!  ImageProvider::kept_images ─────────────┘                           and the result for every candidate
//! ```
//!
//! The CloudProfile lists candidates, and capabilities decide between them. If none fits, an image kept outside of the
//! CloudProfile (used before, or copied by the infrastructure controller) may still fit. A provider implements how its
//! documents refer to images ([`ProfileFormat`]) and where images are kept ([`ImageProvider`]).

use super::profile::ProfileFormat;
use super::{PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::{MachineType, Worker, WorkerPool};
use wire::capabilities::{DEFAULT_ARCHITECTURE, NoFlavor};

mod kept;
mod selection;
mod status;
mod suggestions;
mod used;

pub use kept::{ComparedWith, FallbackImages, ImageEntry, ImagesDocument, ImagesDocumentKind, KeptImage};
pub use selection::{ImageSelection, ImageSource, SelectedImage, WorkerImages};
pub(in crate::provider) use status::recorded_images;
pub use status::status_images;
pub(in crate::provider) use used::{
    ReferenceMember, UsedImage, images_document, used_images_document, used_images_status,
};

/// A provider's handling of images outside of CloudProfiles. A type that implements only this and not
/// [`Provider`](super::Provider) supports CloudProfiles, but no Workers.
pub trait ImageProvider: ProfileFormat {
    /// The document members that can refer to an image, for messages.
    fn image_members(&self) -> &'static str;

    /// Fallback images for pools without an image in the CloudProfile.
    ///
    /// # Errors
    /// If the document that keeps them can't be decoded.
    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError>;

    /// The pool whose architecture applies to a machine type that has capabilities, but no architecture.
    fn architecture_pool<'a>(&self, _worker: &'a Worker, pool: &'a WorkerPool, _machine_type: &str) -> &'a WorkerPool {
        pool
    }
}

/// Reason why the CloudProfile has no fitting image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotInProfile {
    /// The CloudProfile has no provider config.
    #[error("the CloudProfile has no providerConfig")]
    NoConfig,
    /// The version is not listed.
    #[error("the CloudProfile's providerConfig does not list this image and version")]
    NotListed,
    /// The version is listed only for other regions.
    #[error("the CloudProfile's providerConfig lists this image and version, but not for region {region:?}")]
    NotInRegion {
        /// Region of the Worker.
        region: String,
    },
    /// The version is listed with an empty reference.
    #[error(
        "the CloudProfile's providerConfig lists this image and version for region {region:?}, but without a reference"
    )]
    NoReference {
        /// Region of the Worker.
        region: String,
    },
    /// The CloudProfile is not used for this pool.
    #[error("the CloudProfile is not asked: {why}")]
    NotRequested {
        /// Reason why it is not used.
        why: &'static str,
    },
    /// The version is listed, but no flavor fits.
    #[error("the CloudProfile lists it, but {0}")]
    NoFlavor(NoFlavor),
}

/// Reason why no kept image fits, with the path of the document that keeps them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// The version is not kept.
    #[error("{0} has no such image and version")]
    Missing(&'static str),
    /// The version is kept only for other machines.
    #[error("{0} has it only for other machine capabilities")]
    Incompatible(&'static str),
}

/// The requested architecture of a pool.
#[must_use]
pub fn architecture(pool: &WorkerPool) -> &str {
    pool.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)
}

/// The first pool of a machine type. It decides for all its pools on clouds whose Go extension writes the pool's
/// architecture into the machine type.
pub(in crate::provider) fn first_pool_of<'a>(worker: &'a Worker, machine_type: &str) -> Option<&'a WorkerPool> {
    worker.spec.pools.iter().find(|pool| pool.machine_type == machine_type)
}

/// Finds the pool's machine type in the CloudProfile.
///
/// # Errors
/// If the CloudProfile does not list it.
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
