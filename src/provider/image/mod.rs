//! Which image the machines of a pool start from: one selector for every provider.
//!
//! ```text
//!  CloudProfile ── ProfileConfig::flavors ─┐
//!                                          ├─► WorkerImages::select ─► ImageSelection: the image, or why there is none,
//!  ImageProvider::kept_images ─────────────┘                           and what became of every candidate
//! ```
//!
//! The CloudProfile lists candidates, and capabilities choose among them. Whatever goes wrong there, an image that is kept
//! beside the CloudProfile (used before, or copied by the infrastructure controller) may still do. A provider says how its
//! documents name images ([`ProfileFormat`]), and where images are kept ([`ImageProvider`]).

use super::profile::ProfileFormat;
use super::{PoolProblem, WorkerContext, WorkerError};
use crate::api::gardener::{MachineType, Worker, WorkerPool};
use crate::capabilities::{DEFAULT_ARCHITECTURE, NoFlavor};

mod kept;
mod selection;
mod status;
mod suggestions;
mod used;

pub use kept::{ComparedWith, ImageEntry, ImagesDocument, KeepsImages, KeptImage, KeptImages};
pub use selection::{ImageSelection, ImageSource, SelectedImage, WorkerImages};
pub(in crate::provider) use status::recorded_images;
pub use status::status_images;
pub(in crate::provider) use used::{
    ReferenceMember, UsedImage, images_document, used_images_document, used_images_status,
};

/// What a provider says about images beside its half of CloudProfiles. One that is no [`Provider`](super::Provider) as
/// well has CloudProfiles that are understood, and Workers that are not served.
pub trait ImageProvider: ProfileFormat {
    /// The members of documents that name an image, for messages.
    fn image_members(&self) -> &'static str;

    /// What pools may start from when the CloudProfile gives no image.
    ///
    /// # Errors
    /// When the document that keeps them can't be read.
    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError>;

    /// The pool whose architecture counts for a machine type that lists capabilities, but no architecture.
    fn architecture_pool<'a>(&self, _worker: &'a Worker, pool: &'a WorkerPool, _machine_type: &str) -> &'a WorkerPool {
        pool
    }
}

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
    /// It is listed with an empty id.
    #[error(
        "the CloudProfile's providerConfig lists this image and version for region {region:?}, but without a reference"
    )]
    NoReference {
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

/// Why no kept image does, with the path of the document that keeps them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// The version is not kept.
    #[error("{0} has no such image and version")]
    Missing(&'static str),
    /// It is kept for other machines.
    #[error("{0} has it only for other machine capabilities")]
    Incompatible(&'static str),
}

/// The architecture that a pool asks for.
#[must_use]
pub fn architecture(pool: &WorkerPool) -> &str {
    pool.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)
}

/// The first pool of a machine type, which decides for all of them at clouds whose Go extension writes its architecture into
/// the machine type.
pub(in crate::provider) fn first_pool_of<'a>(worker: &'a Worker, machine_type: &str) -> Option<&'a WorkerPool> {
    worker.spec.pools.iter().find(|pool| pool.machine_type == machine_type)
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
