//! End of a reconcile: metrics, events, status, and when to requeue.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::api::gardener::Worker;
use crate::api::secret::Secrets;
use crate::controller::error::ReconcileError;
use crate::controller::events::publish;
use crate::controller::queue::Requeue;
use crate::controller::rate_limit::RECONCILES;
use crate::controller::reconcile_context::{RESYNC_PERIOD, ReconcileContext};
use crate::controller::reconcile_metrics::{Ended, record};
use crate::controller::result::ReconcileResult;
use crate::controller::status_writes::{OfVersion, Write};
use crate::worker::reconcile_outcome::{Failure, ReconcileOutcome};
use crate::worker::reconcile_state::ReconcileState;
use crate::worker::request::{Operation, request_removal};
use crate::worker::status::{Findings, StatusReport, failing_since};

/// Delay until nodes are counted after an operation.
const NODES: Duration = Duration::from_secs(1);

/// Reports the result of a reconcile and returns when to requeue. `worker` is the Worker after the last write.
///
/// # Errors
/// [`ReconcileError::Overtaken`] if another client has changed the Worker in the meantime. Also if it can't be
/// written.
pub(crate) async fn report(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    secrets: Option<&Secrets>,
    result: ReconcileResult,
    took: Duration,
) -> Result<Requeue, ReconcileError> {
    let (controller, operation, now) = (context.controller, context.operation, context.controller.clock.now());
    let is_published = result.published.is_some();
    let is_repeated = result.is_outdated && context.memory(|memory| memory.backoff.is_conflict_repeated());
    let status = match is_repeated {
        true => StatusReport::keep_processing(worker, operation, now),
        false => StatusReport::of(worker, result.findings(operation), now),
    };
    let ended = Ended {
        namespace: &context.identity.namespace,
        worker_type: context.provider.provider_type(),
        operation,
        begins: context.state.is_beginning(),
        failing_since: failing_since(worker),
    };
    record(&controller.metrics, ended, &result, took);
    publish(&controller.events, &controller.metrics, &context.identity, &result.events).await;
    if let (Some(secrets), false) = (secrets, operation == Operation::Delete || result.has_planned_everything()) {
        // One of the Secrets may be missing or wrong, so all are read again.
        context.shoot.forget_secrets(secrets);
    }
    if status.is_only_text
        && let Some(wait) = context.memory(|memory| memory.rate_limit.until_text(Instant::now()))
    {
        return Ok(Requeue::After(earliest(result.requeue_after, wait)));
    }
    let written = match context.state {
        ReconcileState::NoOp(_) => context.writer().answer_no_op(&status, request_removal(worker, now)).await,
        _ => context.writer().status(&status, version_of(&result.outcome)).await,
    };
    let written = match written {
        Err(error) if error.is_too_large() => return report_too_large(context, worker, &error).await,
        Ok(Write::Outdated) => return Err(ReconcileError::Overtaken),
        written => written?,
    };
    if is_repeated {
        return Ok(Requeue::After(RECONCILES));
    }
    context.memory(|memory| memory.status_is_written(is_published));
    if result.outcome == ReconcileOutcome::Succeeded {
        info!(operation = operation.as_str(), "operation succeeded");
        secrets.iter().for_each(|secrets| context.shoot.pack_secrets(secrets));
        let latest = if let Write::Written(written) = &written { written } else { worker };
        context.writer().let_go(latest, operation).await?;
    }
    Ok(requeue(context, &result))
}

/// An operation is only done in the version that was read: a new request may have arrived since, and another process
/// may have started on it.
fn version_of(outcome: &ReconcileOutcome) -> OfVersion {
    if *outcome == ReconcileOutcome::Succeeded { OfVersion::Read } else { OfVersion::Any }
}

/// Reports only that the status does not fit into the Worker, and returns when to requeue.
async fn report_too_large(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    error: &ReconcileError,
) -> Result<Requeue, ReconcileError> {
    let failed = ReconcileOutcome::Failed(Failure::new(format!("the status does not fit into the Worker: {error}")));
    let status = StatusReport::of(worker, Findings::of(context.operation, &failed), context.controller.clock.now());
    context.writer().status(&status, OfVersion::Any).await?;
    let retry = context.memory(|memory| memory.backoff.failed(false, Instant::now()));
    Ok(Requeue::After(retry.delay))
}

/// Returns when to requeue.
fn requeue(context: &ReconcileContext<'_>, result: &ReconcileResult) -> Requeue {
    let ReconcileOutcome::Failed(failure) = &result.outcome else {
        context.memory(|memory| memory.backoff.reset());
        // No event reports the deletion of a node.
        let counted_after = context.controller.node_counts.is_some().then_some(NODES);
        return match (&result.outcome, result.requeue_after.or(counted_after)) {
            (ReconcileOutcome::Succeeded, None) => Requeue::OnEvent,
            (ReconcileOutcome::Succeeded, Some(after)) => Requeue::After(after),
            (_, after) => Requeue::After(earliest(after, RESYNC_PERIOD)),
        };
    };
    let retry = context.memory(|memory| memory.backoff.failed(result.writes > 0, Instant::now()));
    let delay = earliest(result.requeue_after, retry.delay);
    if retry.was_due {
        warn!(operation = context.operation.as_str(), error = failure.message, ?delay, "operation failed");
    }
    Requeue::After(delay)
}

fn earliest(wanted: Option<Duration>, latest: Duration) -> Duration {
    wanted.map_or(latest, |wanted| wanted.min(latest))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::identity::Identity;
    use crate::controller::context::ControllerContext;
    use crate::controller::reconcile::reconcile;
    use crate::controller::test_seed::{CHANGED, Seed, WORKER};
    use crate::controller::test_support::{controller, reconcile_of, worker};
    use crate::provider::azure::Azure;

    #[tokio::test]
    async fn a_worker_is_reconciled_again_when_something_may_have_changed() {
        let (controller, _) = controller(None, |_, _| (200, json!({})));
        let worker: Worker = serde_json::from_value(worker(&json!({}), 7)).unwrap();
        let context = reconcile_of(&controller, &worker, &Azure, Operation::Reconcile);
        let after = |outcome: ReconcileOutcome, seconds: Option<u64>, writes| {
            let requeue_after = seconds.map(Duration::from_secs);
            let result = ReconcileResult { requeue_after, writes, ..ReconcileResult::of(outcome) };
            match requeue(&context, &result) {
                Requeue::OnEvent => None,
                Requeue::After(after) => Some(after.as_secs_f64().ceil()),
            }
        };
        let failed = || ReconcileOutcome::Failed(Failure::new("x"));
        assert_eq!(after(ReconcileOutcome::Succeeded, None, 0), None);
        assert_eq!(after(ReconcileOutcome::Succeeded, Some(5000), 0), Some(5000.0));
        assert_eq!(after(ReconcileOutcome::Started, None, 0), Some(600.0), "an event may be lost");
        assert_eq!(after(ReconcileOutcome::Started, Some(5000), 0), Some(600.0));
        assert_eq!(after(ReconcileOutcome::Started, Some(5), 0), Some(5.0));
        assert_eq!(after(failed(), None, 0), Some(1.0));
        assert_eq!(after(failed(), None, 0), Some(1.0), "it was not due yet");
        context.memory(|memory| {
            memory.backoff.reset();
            (0..3).for_each(|number| _ = memory.backoff.failed(false, Instant::now() + NODES * 100 * number))
        });
        assert!(after(failed(), None, 0).is_some_and(|after| after > 100.0), "it fails for long");
        assert_eq!(after(failed(), Some(3), 0), Some(3.0), "something is over sooner");
        assert_eq!(after(failed(), None, 1), Some(1.0), "it has got on");
        assert_eq!(after(ReconcileOutcome::Succeeded, None, 0), None);
        assert_eq!(after(failed(), None, 0), Some(1.0), "what was before a success is forgotten");
    }

    #[test]
    fn what_is_wanted_sooner_than_the_latest_counts() {
        let [soon, late, later] = [5, 10, 20].map(Duration::from_secs);
        assert_eq!([None, Some(soon), Some(later)].map(|wanted| earliest(wanted, late)), [late, soon, late]);
    }

    /// Whether the next reconcile of an operation reads the user data again.
    async fn reads_again(seed: &Seed, controller: &ControllerContext) -> bool {
        seed.reconcile(controller).await.unwrap();
        seed.asked();
        seed.reconcile(controller).await.unwrap();
        seed.asked().iter().any(|(line, _)| line == "GET secrets/gardener-node-agent-web")
    }

    #[tokio::test(start_paused = true)]
    async fn secrets_are_read_again_only_where_one_of_them_may_be_wrong() {
        let (seed, controller) = Seed::new();
        assert!(!reads_again(&seed, &controller).await, "everything is planned");
        let (seed, controller) = Seed::new();
        seed.change_pool(|pool| pool["machineType"] = json!("unknown"));
        assert!(reads_again(&seed, &controller).await, "{}", seed.last("/status/lastError/description"));
        let (seed, controller) = Seed::settled().await;
        seed.delete(controller.clock.now());
        assert!(!reads_again(&seed, &controller).await, "nothing is planned, and nothing is wrong");
    }

    #[tokio::test(start_paused = true)]
    async fn that_an_operation_is_done_is_true_only_of_the_version_that_was_read() {
        let (seed, controller) = Seed::new();
        seed.when("PATCH workers/mail/status", CHANGED);
        seed.reconcile(&controller).await.unwrap();
        assert_eq!(seed.state(), "Processing", "whatever somebody else has changed meanwhile");
        seed.merge(WORKER, json!({"metadata": {"annotations": {"somebody": null}}}));
        seed.machines_come();
        seed.when("PATCH workers/mail/status", CHANGED);
        seed.reconcile(&controller).await.unwrap();
        assert_eq!(seed.state(), "Processing", "more may be asked by now");
        seed.reconcile(&controller).await.unwrap();
        assert_eq!(seed.state(), "Succeeded");
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_is_too_large_is_an_error_in_a_status_that_fits() {
        let (seed, controller) = Seed::new();
        let is_large = |body: &Value| body["status"]["machineDeployments"].is_array();
        seed.refuse(move |line, body| {
            (line == "PATCH workers/mail/status" && is_large(body)).then_some((413, "RequestEntityTooLarge"))
        });
        let requeue = seed.reconcile(&controller).await.unwrap();
        assert_eq!(requeue, Requeue::After(Duration::from_secs(1)));
        let error = seed.last("/status/lastError/description");
        assert!(error.contains("the status does not fit into the Worker"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_taken_up_at_once_and_what_goes_on_after_a_pause() {
        let (seed, controller) = Seed::settled().await;
        let at_once = async || {
            let worker = seed.worker();
            let identity = Identity::of(&worker).unwrap();
            reconcile(identity, &worker, &controller).await.unwrap()
        };
        for _ in 0..2 {
            seed.request("reconcile");
            seed.asked();
            assert_eq!(at_once().await, Requeue::OnEvent);
            assert!(!seed.writes().is_empty(), "it is answered");
        }
        seed.machines_fail();
        seed.merge(WORKER, json!({"status": {"lastOperation": {"state": "Processing", "progress": 50}}}));
        assert_eq!(at_once().await, Requeue::After(RECONCILES));
        assert!(seed.asked().is_empty());
    }
}
