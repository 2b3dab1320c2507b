//! Pure: how an operation stands at the end of a reconcile, and why it failed.

use std::collections::BTreeSet;

use crate::api::bounded_text::listed;
use crate::api::gardener::ErrorCode;
use crate::worker::status_text::MOST_OF_FAILURE;

/// How an operation stands at the end of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// It has just started.
    Started,
    /// It goes on when something happens: text for people, and 0 to 100.
    Waiting(String, i32),
    /// It is done.
    Succeeded,
    /// It failed; it is tried again.
    Failed(Failure),
}

impl ReconcileOutcome {
    /// Whether the operation has ended, for now.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed(_))
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Text for people.
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

    /// All failures as one: texts joined, or counted where there are too many; codes united. `None` without any.
    #[must_use]
    pub fn joined(failures: Vec<Self>) -> Option<Self> {
        Self::joined_within(failures, MOST_OF_FAILURE)
    }

    /// The same in at most so many bytes.
    pub(crate) fn joined_within(failures: Vec<Self>, bytes: usize) -> Option<Self> {
        if failures.is_empty() {
            return None;
        }
        let codes = failures.iter().flat_map(|failure| &failure.codes).copied().collect();
        let messages: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
        Some(Self { message: listed(&messages, bytes), codes })
    }
}
