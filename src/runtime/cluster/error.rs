//! Errors of reads from and writes to a cluster.

use kube::core::request;

use crate::process::failure_reason::reason;
use wire::api::gotext::json::DecodeError;

/// A failed read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The request failed or was rejected.
    #[error("{what} can't be read: {}", reason(source))]
    Api {
        /// Description of the object or list.
        what: String,
        source: kube::Error,
    },
    /// The object does not match the schema of its kind.
    #[error("{what} can't be decoded: {reason}")]
    Decode {
        what: String,
        /// Path of the invalid field and the reason.
        reason: String,
    },
    /// A field of the Cluster has the wrong type.
    #[error("Cluster {name:?} can't be decoded: {source}")]
    Cluster {
        name: String,
        /// Path of the invalid field and the reason.
        source: DecodeError,
    },
}

/// A failed write.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The request failed or was rejected.
    #[error("{}", reason(.0))]
    Api(#[from] kube::Error),
    /// The request can't be built.
    #[error("no request can be made: {0}")]
    Request(#[from] request::Error),
    /// The object can't be serialized, or the response can't be parsed.
    #[error("unexpected document: {0}")]
    Document(#[from] serde_json::Error),
    /// The response is not the written object.
    #[error("unexpected answer: {0}")]
    Decode(#[from] DecodeError),
    /// The response to a deletion is neither the object nor a `Success` status.
    #[error("unexpected answer to a deletion: neither the object nor the status \"Success\" of its deletion")]
    NotDeleted,
    /// The object to use is being deleted; it is recreated once the deletion completes.
    #[error("it is being deleted, and created again afterwards")]
    Going,
}

impl WriteError {
    /// Whether the write certainly had no effect.
    #[must_use]
    pub fn had_no_effect(&self) -> bool {
        match self {
            Self::Api(kube::Error::Api(status)) => status.code < 500,
            Self::Going | Self::Request(_) => true,
            Self::Api(_) | Self::Document(_) | Self::Decode(_) | Self::NotDeleted => false,
        }
    }

    /// Whether the write was based on stale data: the object was changed, created or deleted in the meantime.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        match self {
            Self::Api(kube::Error::Api(status)) => matches!(status.code, 404 | 409),
            Self::Going => true,
            Self::Api(_) | Self::Request(_) | Self::Document(_) | Self::Decode(_) | Self::NotDeleted => false,
        }
    }
}
