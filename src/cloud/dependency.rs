//! The seam to clouds, between decode and plan: what pools depend on there is created as they need it, and removed when
//! nothing needs it. Whoever knows a cloud implements [`Cloud`]; a provider whose pools depend on nothing has none.
//!
//! ```text
//!  WorkerContext ── ensure ──► Dependencies ──► plan · apply · progress · orphans ── clean_up ──► done
//! ```
//!
//! No call waits for a cloud longer than a moment: what takes longer goes on in a background task, and the Worker is
//! reconciled again when it has ended.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::provider::{Dependencies, WorkerContext, WorkerError};
use crate::worker::machine_objects::MachineObjects;
use crate::worker::reconcile_outcome::Failure;

/// A cloud on which pools of one provider depend.
pub trait Cloud: Send + Sync {
    /// Brings what the pools depend on to what they need, as far as that goes in a moment.
    ///
    /// # Errors
    /// When a document of the whole Worker is missing or wrong. What fails for single pools is part of the answer.
    fn ensure<'a>(&'a self, asked: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>>;

    /// Removes what no pool needs any more and no machine class refers to, once machines are as they shall be.
    ///
    /// # Errors
    /// As [`ensure`](Self::ensure).
    fn clean_up<'a>(
        &'a self,
        context: &'a WorkerContext<'a>,
        used: UsedByClasses,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>>;

    /// Removes all that a Worker without machines has left. It needs no pool that can be planned.
    ///
    /// # Errors
    /// When credentials or infrastructure can't be read.
    fn remove<'a>(
        &'a self,
        worker: &'a Worker,
        cluster: Option<&'a Cluster>,
        secrets: &'a Secrets,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>>;

    /// Whether something goes on for that Worker (by uid) that may change what is there.
    fn is_busy(&self, uid: &str) -> bool;

    /// Nobody asks for that Worker (by uid) any more.
    fn forget(&self, uid: &str);
}

/// Ids that machine classes refer to, each once and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsedByClasses {
    /// As the watches show it. The cloud is only asked whether anything could go; and asked again where others were referred to
    /// when it was decided what goes.
    Seen(Vec<String>),
    /// As it is: what goes does not come back.
    Read(Vec<String>),
}

/// What a Worker asks of a cloud.
#[derive(Clone, Copy)]
pub struct DependencyRequest<'a> {
    /// The Worker and what it is planned from.
    pub context: &'a WorkerContext<'a>,
    /// Its machine objects.
    pub live: &'a MachineObjects,
    /// Whether an operation begins: then the cloud is asked again for all that it was asked before.
    pub begins: bool,
    /// Whether records may be missing of what is there, because the Worker has moved from another seed.
    pub has_moved: bool,
}

/// What pools depend on, as far as it is known.
#[derive(Debug, Default)]
pub struct DependencyState {
    /// `None` when they depend on nothing.
    pub dependencies: Option<Dependencies>,
    /// Whether anything is or may be there that has to be cleaned up in the end.
    pub has_something: bool,
    /// Whether records are new. They are written down before anything is made that refers to them.
    pub records_changed: bool,
    /// When to look again even if nothing happens.
    pub look_again: Option<Duration>,
}

/// How far the removal of unneeded things is.
#[derive(Debug)]
pub enum CleanUp {
    /// Nothing unneeded is left. What that changes in the provider status, as a merge patch of its members.
    Done(Option<Value>),
    /// Something could go, once it is known what machine classes refer to.
    Unneeded,
    /// It goes on behind the scenes: what is waited for.
    Waiting(String),
    /// Something can't be removed; when it is tried again.
    Failed(Failure, Duration),
}
