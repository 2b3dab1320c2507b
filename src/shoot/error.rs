//! Why a Shoot leads to no Worker.

use crate::api::gotext::json::DecodeError;
use crate::pool::hash::HashError;
use crate::versions::shoot_defaults::NoDefault;

/// Why a Shoot leads to no Worker. Paths are those of the Shoot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShootError {
    /// A member has the wrong form.
    #[error("Shoot {0}")]
    Malformed(DecodeError),
    /// Nothing can be chosen for a version or an image that is left open.
    #[error("{path}: {source}")]
    NoDefault {
        /// Where.
        path: String,
        /// Why.
        source: NoDefault,
    },
    /// A pool has no image.
    #[error("pool {pool}: machine.image is missing")]
    ImageMissing {
        /// The pool.
        pool: String,
    },
    /// What kubelets reserve can't be computed from a machine type that the CloudProfile does not have.
    #[error("pool {pool}: the CloudProfile has no machine type {machine_type:?} with cpu and memory")]
    UnknownMachineType {
        /// The pool.
        pool: String,
        /// The type.
        machine_type: String,
    },
    /// The name of the node agent's Secret can't be made.
    #[error("pool {pool}: {source}")]
    Hash {
        /// The pool.
        pool: String,
        /// Why.
        source: HashError,
    },
    /// Gardener makes no Worker for a shoot without pools.
    #[error("the Shoot has no pools, hence no Worker")]
    NoPools,
}

impl ShootError {
    /// A member that has the wrong form.
    pub(super) fn malformed(path: impl Into<String>, message: impl ToString) -> Self {
        Self::Malformed(DecodeError { path: path.into(), message: message.to_string() })
    }
}
