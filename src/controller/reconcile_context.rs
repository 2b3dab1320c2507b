//! One reconcile under way: the Worker, where its operation stands, and what the steps work with.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use tracing::info;

use crate::api::gardener::Worker;
use crate::cloud::dependency::Cloud;
use crate::cluster::shoot_namespace::ShootNamespace;
use crate::controller::context::ControllerContext;
use crate::controller::error::ReconcileError;
use crate::controller::memory::WorkerMemory;
use crate::controller::status_writes;
use crate::provider::Provider;
use crate::worker::reconcile_state::{ReconcileEvent, ReconcileState};
use crate::worker::request::Operation;

/// A Worker that waits is reconciled again after this time even if nothing is heard, and then without the store: a
/// connection that has died silently shows nothing for as long.
pub(crate) const RESYNC_PERIOD: Duration = Duration::from_secs(10 * 60);

/// One reconcile under way.
pub(crate) struct ReconcileContext<'a> {
    pub(crate) controller: &'a ControllerContext,
    /// The Worker as it was when the reconcile began.
    pub(crate) worker: &'a Worker,
    pub(crate) uid: String,
    pub(crate) provider: &'static dyn Provider,
    pub(crate) shoot: ShootNamespace,
    pub(crate) operation: Operation,
    pub(crate) state: ReconcileState,
    /// The Worker as it was after `Processing` was written.
    marked: Option<Arc<Worker>>,
}

impl<'a> ReconcileContext<'a> {
    pub(crate) fn new(
        controller: &'a ControllerContext,
        worker: &'a Worker,
        provider: &'static dyn Provider,
        operation: Operation,
        state: ReconcileState,
    ) -> Self {
        let uid = worker.uid().unwrap_or_default();
        let shoot = controller.shoot_namespace(worker, provider);
        Self { controller, worker, uid, provider, shoot, operation, state, marked: None }
    }

    /// What the pools of the Worker depend on is provided here; `None` where they depend on nothing.
    pub(crate) fn cloud(&self) -> Option<&'a dyn Cloud> {
        self.controller.clouds.for_worker_type(&self.worker.spec.worker_type)
    }

    /// What is remembered of the Worker.
    pub(crate) fn memory<T>(&self, change: impl FnOnce(&mut WorkerMemory) -> T) -> T {
        self.controller.memory.of(&self.uid, change)
    }

    /// The Worker as it was after `Processing` was written by this reconcile.
    pub(crate) fn marked(&self) -> Option<Arc<Worker>> {
        self.marked.clone()
    }

    /// The Worker as it was written last by this reconcile.
    pub(crate) fn latest(&self) -> &Worker {
        self.marked.as_deref().unwrap_or(self.worker)
    }

    /// Something is to be done: from here on the status has to say that the operation goes on.
    ///
    /// # Errors
    /// [`ReconcileError::Overtaken`] where the Worker was changed concurrently, or when it can't be written.
    pub(crate) async fn work_found(&mut self) -> Result<(), ReconcileError> {
        self.state = self.state.next(ReconcileEvent::WorkFound);
        self.mark_processing().await
    }

    /// Writes that the operation begins, where that has to be written before anything else. Client.
    ///
    /// # Errors
    /// As [`work_found`](Self::work_found).
    pub(crate) async fn mark_processing(&mut self) -> Result<(), ReconcileError> {
        if !self.state.must_mark_processing() {
            return Ok(());
        }
        let marked = status_writes::mark_processing(self.worker, self.operation, self.controller).await?;
        let event = if marked.is_some() { ReconcileEvent::Marked } else { ReconcileEvent::Conflict };
        self.state = self.state.next(event);
        let Some(marked) = marked else { return Err(ReconcileError::Overtaken) };
        self.marked = Some(marked);
        info!(operation = self.operation.as_str(), "operation started");
        self.memory(|memory| memory.backoff.reset());
        Ok(())
    }
}
