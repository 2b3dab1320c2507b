//! Errors when computing a Worker from a Shoot.

use crate::versions::shoot_defaults::NoDefault;
use decisions::pool::hash::HashError;
use wire::api::gotext::json::DecodeError;

/// Why no Worker can be computed for a Shoot. Paths are those of the Shoot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShootError {
    /// A field has the wrong type.
    #[error("Shoot {0}")]
    Malformed(DecodeError),
    /// No default is available for a missing version or image.
    #[error("{path}: {source}")]
    NoDefault {
        /// Path of the field.
        path: String,
        /// Reason why there is no default.
        source: NoDefault,
    },
    /// A pool has no image.
    #[error("pool {pool}: machine.image is missing")]
    ImageMissing {
        /// Name of the pool.
        pool: String,
    },
    /// Kubelet reservations can't be computed, because the CloudProfile does not contain the machine type.
    #[error("pool {pool}: the CloudProfile has no machine type {machine_type:?} with cpu and memory")]
    UnknownMachineType {
        /// Name of the pool.
        pool: String,
        /// Name of the machine type.
        machine_type: String,
    },
    /// The name of the node agent's Secret can't be computed.
    #[error("pool {pool}: {source}")]
    Hash {
        /// Name of the pool.
        pool: String,
        /// Reason why hashing failed.
        source: HashError,
    },
    /// The shoot has no pools, so Gardener creates no Worker.
    #[error("the Shoot has no pools, hence no Worker")]
    NoPools,
}

impl ShootError {
    /// Error for a field of the wrong type.
    pub(super) fn malformed(path: impl Into<String>, message: impl ToString) -> Self {
        Self::Malformed(DecodeError { path: path.into(), message: message.to_string() })
    }
}
