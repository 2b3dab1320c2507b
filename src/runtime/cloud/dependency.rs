//! Interface to clouds, between decode and plan. Creates what pools depend on when they need it, and removes it when
//! nothing needs it. Each cloud implements [`Cloud`]; a provider whose pools have no dependencies has none.
//!
//! ```text
//!  WorkerContext ── ensure ──► Dependencies ──► plan · apply · progress · orphans ── clean_up ──► done
//! ```
//!
//! Calls wait only briefly for a cloud. Longer work continues in a background task, which requeues the Worker when it
//! has ended.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use decisions::provider::{Dependencies, WorkerContext, WorkerError};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::status::reconcile_outcome::Failure;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// A cloud on which pools of one provider depend.
pub trait Cloud: Send + Sync {
    /// Provides the dependencies of the pools, as far as that is possible within a short time.
    ///
    /// # Errors
    /// If an object of the whole Worker is missing or invalid. Failures of single pools are part of the result.
    fn ensure<'a>(&'a self, requested: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>>;

    /// Removes dependencies that no pool needs and no machine class refers to. Called once the machines are up to
    /// date.
    ///
    /// # Errors
    /// As [`ensure`](Self::ensure).
    fn clean_up<'a>(
        &'a self,
        context: &'a WorkerContext<'a>,
        used: UsedByClasses,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>>;

    /// Removes all dependencies of a Worker without machines. Works even if no pool can be planned.
    ///
    /// # Errors
    /// If credentials or infrastructure can't be read.
    fn remove<'a>(
        &'a self,
        worker: &'a Worker,
        cluster: Option<&'a Cluster>,
        secrets: &'a Secrets,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>>;

    /// Whether a task for the Worker with this UID is running that may change the cloud.
    fn is_busy(&self, uid: &str) -> bool;

    /// Drops the state of the Worker with this UID.
    fn forget(&self, uid: &str);
}

/// IDs that machine classes refer to, sorted and unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsedByClasses {
    /// From the store. Only checks whether anything could be removed, and checks again if a removal was decided with
    /// other references.
    Seen(Vec<String>),
    /// From a fresh read, because a removal is irreversible.
    Read(Vec<String>),
}

/// Request of a reconcile for the dependencies of a Worker.
#[derive(Clone, Copy)]
pub struct DependencyRequest<'a> {
    /// The inputs of the plan.
    pub context: &'a WorkerContext<'a>,
    /// The machine objects of the Worker.
    pub live: &'a MachineObjects,
    /// Whether an operation begins, so that finished tasks have to run again.
    pub begins: bool,
    /// Whether records may be missing, because the Worker was migrated from another seed.
    pub has_moved: bool,
}

/// Known dependencies of pools.
#[derive(Debug, Default)]
pub struct DependencyState {
    /// `None` if the pools have no dependencies.
    pub dependencies: Option<Dependencies>,
    /// Whether there is or may be anything to clean up at the end.
    pub has_something: bool,
    /// Whether records have changed. They have to be written before any object refers to the dependencies.
    pub records_changed: bool,
    /// When to requeue even without an event.
    pub check_again: Option<Duration>,
}

/// Progress of the removal of unneeded dependencies.
#[derive(Debug)]
pub enum CleanUp {
    /// Finished. Has the changes to the provider status, as a merge patch of its members.
    Done(Option<Value>),
    /// Something could be removed, once the references of machine classes are read.
    Unneeded,
    /// A background task is running, with this description.
    Waiting(String),
    /// Something can't be removed, with the retry delay.
    Failed(Failure, Duration),
}
