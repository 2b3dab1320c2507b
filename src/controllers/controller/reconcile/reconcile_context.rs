//! Context of one reconcile: its Worker, the state of its operation, and what the steps work with.

use std::sync::Arc;
use std::time::Duration;

use futures::join;
use serde_json::Value;
use tracing::info;

use crate::controller::reconcile::error::ReconcileError;
use crate::controller::report::status_writes::{WorkerWriter, Write};
use crate::controller::run::context::ControllerContext;
use crate::controller::run::memory::{Publication, WorkerMemory};
use decisions::provider::Provider;
use decisions::worker::plan::slots::SlotOwner;
use decisions::worker::request::reconcile_state::{ReconcileEvent, ReconcileState};
use decisions::worker::request::{Operation, Request, start_patch};
use decisions::worker::status::StatusReport;
use runtime::cloud::dependency::Cloud;
use runtime::cluster::error::ReadError;
use runtime::cluster::identity::Identity;
use runtime::cluster::shoot_namespace::ShootNamespace;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// A waiting Worker is reconciled again after this time even without an event, and then without the store: a
/// connection that has died silently reports no changes for as long.
pub(crate) const RESYNC_PERIOD: Duration = Duration::from_secs(10 * 60);

pub(crate) struct ReconcileContext<'a> {
    pub(crate) controller: &'a ControllerContext,
    /// Identity of the Worker, with the version that was read or that `Processing` was written with.
    pub(crate) identity: Identity,
    pub(crate) provider: &'static dyn Provider,
    pub(crate) shoot: ShootNamespace,
    /// The request of the Worker in the version of `identity`.
    pub(crate) request: Request,
    pub(crate) operation: Operation,
    pub(crate) state: ReconcileState,
    /// The Worker after `Processing` was written.
    pub(crate) marked: Option<Arc<Worker>>,
}

impl<'a> ReconcileContext<'a> {
    pub(crate) fn new(
        controller: &'a ControllerContext,
        identity: Identity,
        provider: &'static dyn Provider,
        request: Request,
        operation: Operation,
        state: ReconcileState,
    ) -> Self {
        let shoot = controller.shoot_namespace(&identity.namespace, provider);
        Self { controller, identity, provider, shoot, request, operation, state, marked: None }
    }

    /// The cloud that provides dependencies of pools; `None` if the provider has none.
    pub(crate) fn cloud(&self) -> Option<&'a dyn Cloud> {
        self.controller.clouds.for_worker_type(self.provider.provider_type())
    }

    /// Reads or changes the state kept for the Worker.
    pub(crate) fn memory<T>(&self, change: impl FnOnce(&mut WorkerMemory) -> T) -> T {
        self.controller.memory.of(&self.identity.uid, change)
    }

    /// The Worker as the owner of slots.
    pub(crate) fn slot_owner(&self) -> SlotOwner<'_> {
        SlotOwner { namespace: &self.identity.namespace, uid: &self.identity.uid }
    }

    pub(crate) fn writer(&self) -> WorkerWriter<'_> {
        WorkerWriter::new(self.controller, &self.identity)
    }

    /// Writes members of the provider status. Decisions stay valid for the written version unless its spec,
    /// annotations or deletion timestamp have changed since.
    ///
    /// # Errors
    /// If the Worker can't be written.
    pub(crate) async fn write_provider_status(
        &mut self,
        worker: &Worker,
        members: Value,
    ) -> Result<(), ReconcileError> {
        let written = self.writer().provider_status(members).await?;
        let before = &self.marked.as_deref().unwrap_or(worker).metadata;
        let now = &written.metadata;
        let is_as_before = before.generation == now.generation
            && before.annotations == now.annotations
            && before.deletion_timestamp == now.deletion_timestamp;
        if is_as_before && let Some(identity) = Identity::of(&*written) {
            self.identity = identity;
            self.request = Request::of(&written, self.controller.clock.now());
            self.marked = Some(written);
        }
        Ok(())
    }

    /// Called before machines are created, deleted or changed. While its watch is behind, a Worker that was not
    /// written in this reconcile may have been recreated or deleted.
    ///
    /// # Errors
    /// [`ReconcileError::WorkerChanged`] if it was changed, recreated or deleted. Also if it can't be read.
    pub(crate) async fn ensure_current(&self) -> Result<(), ReconcileError> {
        if self.marked.is_some() { Ok(()) } else { self.ensure_still_current().await }
    }

    /// Like [`Self::ensure_current`], but also checks a Worker that was written in this reconcile. Called after slow
    /// steps.
    ///
    /// # Errors
    /// [`ReconcileError::WorkerChanged`] if it was changed, recreated or deleted. Also if it can't be read.
    pub(crate) async fn ensure_still_current(&self) -> Result<(), ReconcileError> {
        if self.writer().is_current().await? { Ok(()) } else { Err(ReconcileError::WorkerChanged) }
    }

    /// Applies an event to the state. If the start of the operation has to be recorded before any other write, this
    /// writes `Processing`, removes the operation annotation and adds the finalizer.
    ///
    /// # Errors
    /// [`ReconcileError::WorkerChanged`] if the Worker was changed concurrently. Also if it can't be written.
    pub(crate) async fn advance(&mut self, worker: &Worker, event: ReconcileEvent) -> Result<(), ReconcileError> {
        self.state = self.state.next(event);
        if !self.state.must_mark_processing() {
            return Ok(());
        }
        let status = StatusReport::beginning(worker, &self.request, self.operation, self.controller.clock.now());
        // Set first, in case the answer is lost: the next try finds the annotation already removed.
        self.memory(|memory| memory.publication = Publication::Due);
        let written = self.writer().in_order(&status, start_patch(worker, self.operation)).await?;
        self.marked = match written {
            Write::Outdated => {
                self.state = self.state.next(ReconcileEvent::Conflict);
                return Err(ReconcileError::WorkerChanged);
            }
            Write::Unchanged => None,
            Write::Written(marked) => Some(marked),
        };
        if let Some(marked) = &self.marked {
            self.request = Request::of(marked, self.controller.clock.now());
            if let Some(identity) = Identity::of(&**marked) {
                self.identity = identity;
            }
        }
        self.state = self.state.next(ReconcileEvent::Marked);
        info!(operation = self.operation.as_str(), "operation started");
        self.memory(|memory| memory.backoff.reset());
        Ok(())
    }
}

/// Inputs that are read before it is known which steps will run. Errors are kept, because not every operation needs
/// both.
pub(crate) struct Inputs {
    /// The Cluster; `None` if it does not exist.
    pub(crate) cluster: Result<Option<Arc<Cluster>>, ReadError>,
    /// The Secrets that the Worker refers to.
    pub(crate) secrets: Result<Secrets, ReadError>,
}

impl Inputs {
    /// Reads both in parallel, bypassing the store if the operation begins.
    pub(crate) async fn read(context: &ReconcileContext<'_>, worker: &Worker) -> Self {
        let again = context.state.is_beginning();
        let secrets = async {
            match context.operation {
                Operation::Migrate => Ok(Secrets::default()),
                _ => context.shoot.secrets(worker, again).await,
            }
        };
        let (cluster, secrets) = join!(context.shoot.cluster(again), secrets);
        Self { cluster, secrets }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_support::{controller, lines, reconcile_of, refusal, worker};
    use decisions::provider::azure::Azure;

    /// Version of the next write after the provider status was written, if `changed` was merged into the Worker in
    /// between.
    async fn next_version(changed: Value) -> u64 {
        let before = worker(&json!({}), 7);
        let mut now = worker(&json!({}), 9);
        json_patch::merge(&mut now, &json!({ "metadata": changed }));
        let (controller, _) = controller(None, move |_, _| (200, now.clone()));
        let worker: Worker = serde_json::from_value(before).unwrap();
        let mut context = reconcile_of(&controller, &worker, &Azure, Operation::Reconcile);
        context.write_provider_status(&worker, json!({"a": 1})).await.unwrap();
        context.identity.version
    }

    #[tokio::test]
    async fn what_moves_away_needs_no_secrets() {
        for (operation, reads_secrets) in [(Operation::Migrate, false), (Operation::Reconcile, true)] {
            let (controller, requested) = controller(None, |_, _| refusal(404, "NotFound"));
            let worker: Worker = serde_json::from_value(worker(&json!({}), 7)).unwrap();
            let context = reconcile_of(&controller, &worker, &Azure, operation);
            Inputs::read(&context, &worker).await;
            assert_eq!(lines(&requested).contains(&"GET cloudprovider".to_owned()), reads_secrets, "{operation:?}");
        }
    }

    #[tokio::test]
    async fn handles_requests_made_while_status_is_written() {
        assert_eq!(next_version(json!({})).await, 9);
        assert_eq!(next_version(json!({"generation": 5})).await, 7);
        assert_eq!(next_version(json!({"annotations": {"gardener.cloud/timestamp": "later"}})).await, 7);
        assert_eq!(next_version(json!({"deletionTimestamp": "2026-11-21T10:00:00Z"})).await, 7);
    }
}
