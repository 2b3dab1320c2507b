//! One reconcile of a Worker: the list of its steps. It never waits; events and requeues bring the next one.
//!
//! ```text
//!  steady?  pure, store   nothing asked: only the machines are followed        steady
//!  Cluster  client        what shoot it is; nothing is done for a failed one
//!  mark     client        Processing, where that has to be said first           status_writes
//!  perform  client        deploy, restore, delete; nothing for a migration      deploy, delete
//!  report   client        metrics, events, status, the end of the request       report
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::join;
use jiff::Timestamp;
use tracing::Instrument;

use crate::api::gardener::{Cluster, Worker};
use crate::cluster::error::ReadError;
use crate::cluster::shoot_namespace::ShootNamespace;
use crate::controller::context::ControllerContext;
use crate::controller::delete::delete;
use crate::controller::deploy::deploy;
use crate::controller::error::ReconcileError;
use crate::controller::queue::Requeue;
use crate::controller::reconcile_context::{RESYNC_PERIOD, ReconcileContext};
use crate::controller::report::report;
use crate::controller::result::ReconcileResult;
use crate::controller::steady::{Steady, follow};
use crate::process::traces;
use crate::worker::decode::is_shoot_failed;
use crate::worker::reconcile_state::{ReconcileEvent, ReconcileState};
use crate::worker::request::Operation;
use crate::worker::status::ReconcileOutcome;

/// When a Worker was changed while its operation began, the watch shows it; this is for a watch that has failed.
const AFTER_A_CONFLICT: Duration = Duration::from_millis(500);

/// Reconciles a Worker, and tells when to do it again.
///
/// # Errors
/// When the status can't be written, or what a steady Worker depends on can't be read.
pub(crate) async fn reconcile(worker: &Worker, controller: &ControllerContext) -> Result<Requeue, ReconcileError> {
    let Some(provider) = controller.served.provider_of(worker) else { return Ok(Requeue::OnEvent) };
    let mut state = ReconcileState::of(worker, Timestamp::now());
    if state == ReconcileState::Steady {
        match follow(worker, provider, controller).await? {
            Steady::Lasts(requeue) => return Ok(requeue),
            Steady::Ends => state = ReconcileState::beginning(worker, Operation::Reconcile),
        }
    }
    let Some(operation) = state.operation() else { return Ok(Requeue::OnEvent) };
    let context = ReconcileContext::new(controller, worker, provider, operation, state);
    // A request is answered at once.
    let wait = context.memory(|memory| memory.rate_limit.until_reconcile(Instant::now()));
    if let Some(wait) = wait.filter(|_| !state.is_beginning()) {
        return Ok(Requeue::After(wait));
    }
    let span = traces::of_reconcile(worker, operation, state.is_beginning());
    run(context).instrument(span).await
}

/// Reconciles a Worker of which something is asked.
async fn run(mut context: ReconcileContext<'_>) -> Result<Requeue, ReconcileError> {
    let began = Instant::now();
    let since_last = context.memory(|memory| memory.rate_limit.since_reconcile(began));
    if since_last.is_some_and(|since| since >= RESYNC_PERIOD) {
        context.shoot = context.shoot.without_store();
    }
    let cluster = read_inputs(&context).await;
    // Nothing may be done for a shoot that Gardener has given up, not even a request taken off.
    if cluster.as_ref().ok().and_then(Option::as_ref).is_some_and(|cluster| is_shoot_failed(cluster)) {
        context.memory(|memory| memory.rate_limit.reconciled(Instant::now()));
        return Ok(Requeue::OnEvent);
    }
    if context.state.must_mark_processing() {
        let (secrets_shoot, worker, operation) = (context.shoot.clone(), context.worker, context.operation);
        let (marked, ()) = join!(context.mark_processing(), read_secrets(&secrets_shoot, worker, operation));
        if let Err(error) = marked {
            return unless_overtaken(error);
        }
    }
    let (span, perform_began) = (traces::of_perform(), SystemTime::now());
    let performed = perform(&mut context, cluster).instrument(span.clone()).await;
    context.memory(|memory| memory.rate_limit.reconciled(Instant::now()));
    if let Err(ReconcileError::Overtaken) = performed {
        return Ok(Requeue::After(AFTER_A_CONFLICT));
    }
    let result = performed.unwrap_or_else(|error| ReconcileResult::failed(context.operation, &error));
    let is_done = result.outcome == ReconcileOutcome::Succeeded;
    context.state = context.state.next(if is_done { ReconcileEvent::NothingToDo } else { ReconcileEvent::WorkFound });
    if let Err(error) = context.mark_processing().await {
        return unless_overtaken(error);
    }
    traces::passed(&span, perform_began, &result.steps);
    drop(span);
    let requeue = report(&context, result, began.elapsed()).await?;
    Ok(requeue.unwrap_or(Requeue::After(AFTER_A_CONFLICT)))
}

fn unless_overtaken(error: ReconcileError) -> Result<Requeue, ReconcileError> {
    match error {
        ReconcileError::Overtaken => Ok(Requeue::After(AFTER_A_CONFLICT)),
        error => Err(error),
    }
}

/// Reads the Cluster, beside it what else a reconcile begins with that finds out first whether there is anything to do.
async fn read_inputs(context: &ReconcileContext<'_>) -> Result<Option<Arc<Cluster>>, ReadError> {
    let (cluster, ()) = join!(context.shoot.cluster(context.state.is_beginning()), async {
        if let ReconcileState::Checking(operation) = context.state {
            read_secrets(&context.shoot, context.worker, operation).await;
        }
    });
    cluster
}

/// Reads the Secrets that an operation begins with, beside another request.
async fn read_secrets(shoot: &ShootNamespace, worker: &Worker, operation: Operation) {
    if operation != Operation::Migrate && shoot.secrets(worker, true).await.is_err() {
        // They are read again where they are used, and there the error is reported.
        shoot.forget_secrets(worker);
    }
}

/// Does what the operation is for.
async fn perform(
    context: &mut ReconcileContext<'_>,
    cluster: Result<Option<Arc<Cluster>>, ReadError>,
) -> Result<ReconcileResult, ReconcileError> {
    let now = Timestamp::now();
    match context.operation {
        Operation::Create | Operation::Reconcile | Operation::Restore => deploy(context, cluster?, now).await,
        Operation::Delete => delete(context, cluster?, now).await,
        // gardenlet has kept the machines and takes their objects away.
        Operation::Migrate => Ok(ReconcileResult::of(ReconcileOutcome::Succeeded)),
    }
}
