//! Pure: the result of a reconcile for its operation, and why it failed.

use std::collections::BTreeSet;

use crate::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::listed;
use wire::api::gardener::ErrorCode;

/// Result of a reconcile for its operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// It has just started.
    Started,
    /// It waits for an event: human-readable message, and progress from 0 to 100.
    Waiting(String, i32),
    /// It is complete.
    Succeeded,
    /// It failed and is retried.
    Failed(Failure),
}

impl ReconcileOutcome {
    /// Whether the operation has ended, possibly until a retry.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed(_))
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Human-readable message.
    pub message: String,
    /// Gardener error codes, sorted.
    pub codes: BTreeSet<ErrorCode>,
}

impl Failure {
    /// A failure without a code.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), codes: BTreeSet::new() }
    }

    /// Merges failures: joins their messages, counting those that don't fit, and unites their codes. `None` without
    /// any.
    #[must_use]
    pub fn joined(failures: Vec<Self>) -> Option<Self> {
        Self::joined_within(failures, MAX_FAILURE_BYTES)
    }

    /// Like [`joined`](Self::joined), with a message of at most `bytes`.
    pub(crate) fn joined_within(failures: Vec<Self>, bytes: usize) -> Option<Self> {
        if failures.is_empty() {
            return None;
        }
        let codes = failures.iter().flat_map(|failure| &failure.codes).copied().collect();
        let messages: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
        Some(Self { message: listed(&messages, bytes), codes })
    }
}
