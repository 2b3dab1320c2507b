//! Why a cluster can't be read or written.

use kube::core::request;

use crate::api::gotext::json::DecodeError;
use crate::process::failure_reason::reason;

/// Why something can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The API server said no, or nothing.
    #[error("{what} can't be read: {}", reason(source))]
    Api {
        /// What was read.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// An object is not what its kind says.
    #[error("{what} can't be decoded: {reason}")]
    Decode {
        /// What was read.
        what: String,
        /// Where and why.
        reason: String,
    },
    /// A member of the Cluster has the wrong type.
    #[error("Cluster {name:?} can't be decoded: {source}")]
    Cluster {
        /// Name of the Cluster.
        name: String,
        /// Where and why.
        source: DecodeError,
    },
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The API server said no, or nothing.
    #[error("{}", reason(.0))]
    Api(#[from] kube::Error),
    /// The request can't be made.
    #[error("no request can be made: {0}")]
    Request(#[from] request::Error),
    /// An object can't be written as text, or the API server's answer can't be read.
    #[error("unexpected document: {0}")]
    Document(#[from] serde_json::Error),
    /// The API server's answer is not the object that was written.
    #[error("unexpected answer: {0}")]
    Decode(#[from] DecodeError),
    /// The API server's answer to a deletion says neither that the object is gone nor what holds it.
    #[error("unexpected answer to a deletion: neither the object nor the status \"Success\" of its deletion")]
    NotDeleted,
    /// What is to be used is being deleted, and is made again once it has gone.
    #[error("it is being deleted, and made again once it has gone")]
    Going,
}

impl WriteError {
    /// Whether the write was computed from what is not so any more: somebody has changed, made or deleted the object.
    #[must_use]
    pub(crate) fn is_outdated(&self) -> bool {
        match self {
            Self::Api(kube::Error::Api(status)) => matches!(status.code, 404 | 409),
            Self::Going => true,
            Self::Api(_) | Self::Request(_) | Self::Document(_) | Self::Decode(_) | Self::NotDeleted => false,
        }
    }
}
