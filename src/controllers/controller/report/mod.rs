//! End of a reconcile: the status, then its metrics and events, and when to requeue.

pub(crate) mod events;
pub(crate) mod gauges;
pub mod metrics;
pub mod node_counts;
pub(crate) mod reconcile_metrics;
pub(crate) mod status_writes;
pub(crate) mod version_forecast;
pub(crate) mod version_metrics;

use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::controller::queue::Requeue;
use crate::controller::queue::rate_limit::RECONCILE_INTERVAL;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::{RESYNC_PERIOD, ReconcileContext};
use crate::controller::reconcile::result::ReconcileResult;
use crate::controller::report::events::publish;
use crate::controller::report::reconcile_metrics::{Ended, record};
use crate::controller::report::status_writes::{VersionCheck, Write};
use decisions::worker::request::Operation;
use decisions::worker::request::reconcile_state::ReconcileState;
use decisions::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};
use decisions::worker::status::{Findings, StatusReport, failing_since};
use wire::api::gardener::Worker;
use wire::api::secret::Secrets;

/// Delay until nodes are counted after an operation.
const NODE_COUNT_DELAY: Duration = Duration::from_secs(1);

/// Reports the result of a reconcile and returns when to requeue. `worker` is the Worker after the last write.
///
/// # Errors
/// [`ReconcileError::WorkerChanged`] if another client has changed the Worker in the meantime. Also if it can't be
/// written.
pub(crate) async fn report(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    secrets: Option<&Secrets>,
    result: ReconcileResult,
    took: Duration,
) -> Result<Requeue, ReconcileError> {
    let operation = context.operation;
    let now = context.controller.clock.now();
    if let (Some(secrets), false) = (secrets, operation == Operation::Delete || result.has_planned_everything()) {
        // One of the Secrets may be missing or wrong, so all are read again.
        context.shoot.forget_secrets(secrets);
    }
    // The machine objects have been written, so the next reconcile would not find these events again. Publish them even
    // if the status can't be updated.
    publish_events(context, &result, true).await;
    if result.is_outdated && context.memory(|memory| memory.backoff.is_conflict_repeated()) {
        return repeat_after_conflict(context, worker).await;
    }
    let status = StatusReport::of(worker, &context.request, result.findings(operation), now);
    if status.is_only_text
        && let Some(wait) = context.memory(|memory| memory.rate_limit.until_text(Instant::now()))
    {
        count(context, worker, &result, took);
        return Ok(Requeue::After(earliest(result.requeue_after, wait)));
    }
    match write(context, worker, secrets, &status, &result).await {
        Ok(()) => {
            count(context, worker, &result, took);
            Ok(requeue(context, &result))
        }
        Err(ReconcileError::WorkerChanged) => Err(ReconcileError::WorkerChanged),
        Err(error) if error.is_too_large() => report_too_large(context, worker, result, took, &error).await,
        Err(error) => {
            count(context, worker, &result.with_outcome(ReconcileOutcome::Failed(error.failure())), took);
            Err(error)
        }
    }
}

/// Writes the status, then publishes what it says, so that a conflict publishes nothing twice. Ends an operation that has
/// succeeded.
async fn write(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    secrets: Option<&Secrets>,
    status: &StatusReport,
    result: &ReconcileResult,
) -> Result<(), ReconcileError> {
    let operation = context.operation;
    let written = match context.state {
        ReconcileState::NoOp(_) => context.writer().complete_no_op(status, context.request.removal(worker)).await?,
        _ => context.writer().status(status, version_of(&result.outcome)).await?,
    };
    let latest = match &written {
        Write::Outdated => return Err(ReconcileError::WorkerChanged),
        Write::Unchanged => worker,
        Write::Written(written) => written,
    };
    publish_events(context, result, false).await;
    context.memory(|memory| memory.status_is_written(result.published.is_some()));
    if result.outcome == ReconcileOutcome::Succeeded {
        info!(operation = operation.as_str(), "operation succeeded");
        if let Some(secrets) = secrets {
            context.shoot.pack_secrets(secrets);
        }
        context.writer().remove_finalizer(latest, operation).await?;
    }
    Ok(())
}

/// Nothing is counted: the next reconcile does the same work again at once.
async fn repeat_after_conflict(context: &ReconcileContext<'_>, worker: &Worker) -> Result<Requeue, ReconcileError> {
    let status =
        StatusReport::keep_processing(worker, &context.request, context.operation, context.controller.clock.now());
    match context.writer().status(&status, VersionCheck::Any).await? {
        Write::Outdated => Err(ReconcileError::WorkerChanged),
        Write::Unchanged | Write::Written(_) => Ok(Requeue::After(RECONCILE_INTERVAL)),
    }
}

/// Publishes the events about actions, or the others.
async fn publish_events(context: &ReconcileContext<'_>, result: &ReconcileResult, of_actions: bool) {
    let events: Vec<_> = result.events.iter().filter(|event| event.is_of_action() == of_actions).collect();
    publish(context.controller, &context.identity, &events).await;
}

/// Records a reconcile whose result is in the status of the Worker. `worker` is as it was before that.
fn count(context: &ReconcileContext<'_>, worker: &Worker, result: &ReconcileResult, took: Duration) {
    let ended = Ended {
        namespace: &context.identity.namespace,
        worker_type: context.provider.provider_type(),
        operation: context.operation,
        begins: context.state.is_beginning(),
        failing_since: failing_since(worker),
    };
    record(&context.controller.metrics, ended, result, took);
}

/// An operation is only done in the version that was read: a new request may have arrived since, and another process
/// may have started on it.
fn version_of(outcome: &ReconcileOutcome) -> VersionCheck {
    if *outcome == ReconcileOutcome::Succeeded { VersionCheck::Read } else { VersionCheck::Any }
}

/// Reports only that the status does not fit into the Worker, and returns when to requeue.
async fn report_too_large(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    result: ReconcileResult,
    took: Duration,
    error: &ReconcileError,
) -> Result<Requeue, ReconcileError> {
    let failure = Failure::new(format!("the status does not fit into the Worker: {error}"));
    let result = result.with_outcome(ReconcileOutcome::Failed(failure));
    let findings = Findings::of(context.operation, &result.outcome);
    let status = StatusReport::of(worker, &context.request, findings, context.controller.clock.now());
    context.writer().status(&status, VersionCheck::Any).await?;
    count(context, worker, &result, took);
    let retry = context.memory(|memory| memory.backoff.failed(false, Instant::now()));
    Ok(Requeue::After(retry.delay))
}

/// Returns when to requeue.
fn requeue(context: &ReconcileContext<'_>, result: &ReconcileResult) -> Requeue {
    let ReconcileOutcome::Failed(failure) = &result.outcome else {
        context.memory(|memory| memory.backoff.reset());
        // No event reports the deletion of a node.
        let counted_after = context.controller.node_counts.is_some().then_some(NODE_COUNT_DELAY);
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

fn earliest(target: Option<Duration>, latest: Duration) -> Duration {
    target.map_or(latest, |target| target.min(latest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::controller::reconcile::reconcile;
    use crate::controller::run::context::ControllerContext;
    use crate::controller::test_seed::{CHANGED, Seed, WORKER};
    use crate::controller::test_support::{controller, reconcile_of, worker};
    use decisions::provider::azure::Azure;
    use runtime::cluster::identity::Identity;
    use runtime::process::endpoints::MetricsText;

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
            (0..3).for_each(|number| _ = memory.backoff.failed(false, Instant::now() + NODE_COUNT_DELAY * 100 * number))
        });
        assert!(after(failed(), None, 0).is_some_and(|after| after > 100.0), "it fails for long");
        assert_eq!(after(failed(), Some(3), 0), Some(3.0), "something is over sooner");
        assert_eq!(after(failed(), None, 1), Some(1.0), "it has got on");
        assert_eq!(after(ReconcileOutcome::Succeeded, None, 0), None);
        assert_eq!(after(failed(), None, 0), Some(1.0), "what was before a success is forgotten");
    }

    #[test]
    fn earliest_requeue_counts() {
        let [soon, late, later] = [5, 10, 20].map(Duration::from_secs);
        assert_eq!([None, Some(soon), Some(later)].map(|target| earliest(target, late)), [late, soon, late]);
    }

    /// Whether the next reconcile of an operation reads the user data again.
    async fn reads_again(seed: &Seed, controller: &ControllerContext) -> bool {
        seed.reconcile(controller).await.unwrap();
        seed.requested();
        seed.reconcile(controller).await.unwrap();
        seed.requested().iter().any(|(line, _)| line == "GET secrets/gardener-node-agent-web")
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

    /// A Worker whose pool gets another class, and afterwards its machines; its status was ready before.
    async fn rolling() -> (Seed, Arc<ControllerContext>) {
        let (seed, controller) = Seed::settled().await;
        seed.change_pool(|pool| pool["nodeAgentSecretName"] = json!("gardener-node-agent-web-next"));
        seed.request("reconcile");
        (seed, controller)
    }

    /// Reasons of the events that were published since the last time.
    fn published(seed: &Seed) -> Vec<String> {
        let events = seed.requested().into_iter().filter(|(line, _)| line.starts_with("POST events"));
        events.map(|(_, body)| body["reason"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The sum of the series that have this in their line.
    fn counted(controller: &ControllerContext, part: &str) -> f64 {
        let text = controller.metrics.text();
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(part));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    const SUCCEEDED: &str = r#"result="succeeded""#;

    #[tokio::test(start_paused = true)]
    async fn conflicts_of_the_status_count_nothing() {
        let (seed, controller) = rolling().await;
        seed.reconcile(&controller).await.unwrap();
        seed.machines_come();
        seed.requested();
        let before = counted(&controller, SUCCEEDED);
        seed.when("PATCH workers/mail/status", CHANGED);
        seed.reconcile(&controller).await.unwrap();
        assert_eq!(seed.state(), "Processing", "the write was refused");
        assert_eq!((counted(&controller, SUCCEEDED), published(&seed)), (before, Vec::new()));
        seed.reconcile(&controller).await.unwrap();
        assert_eq!(seed.state(), "Succeeded");
        assert_eq!((counted(&controller, SUCCEEDED), published(&seed)), (before + 1.0, vec!["PoolReady".to_owned()]));
    }

    #[tokio::test(start_paused = true)]
    async fn rolls_count_once_despite_a_conflict() {
        let (seed, controller) = rolling().await;
        // The first write of the status begins the operation.
        let mut writes = 0;
        seed.refuse(move |line, _| {
            writes += u8::from(line == "PATCH workers/mail/status");
            (line == "PATCH workers/mail/status" && writes == 2).then_some((409, "Conflict"))
        });
        for _ in 0..2 {
            seed.reconcile(&controller).await.unwrap();
            assert_eq!(counted(&controller, "rolls_total{"), 1.0);
        }
        assert_eq!(published(&seed), ["RollStarted"]);
    }

    #[tokio::test(start_paused = true)]
    async fn status_that_cannot_be_written_is_a_failure() {
        let (seed, controller) = rolling().await;
        seed.reconcile(&controller).await.unwrap();
        seed.machines_come();
        let before = counted(&controller, SUCCEEDED);
        seed.refuse(|line, _| (line == "PATCH workers/mail/status").then_some((500, "InternalError")));
        assert!(seed.reconcile(&controller).await.is_err());
        assert_eq!((counted(&controller, SUCCEEDED), counted(&controller, r#"result="failed""#)), (before, 1.0));
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
    async fn handles_requests_at_once_and_progress_later() {
        let (seed, controller) = Seed::settled().await;
        let at_once = async || {
            let worker = seed.worker();
            let identity = Identity::of(&worker).unwrap();
            reconcile(identity, &worker, &controller).await.unwrap()
        };
        for _ in 0..2 {
            seed.request("reconcile");
            seed.requested();
            assert_eq!(at_once().await, Requeue::OnEvent);
            assert!(!seed.writes().is_empty(), "it is answered");
        }
        seed.machines_fail();
        seed.merge(WORKER, json!({"status": {"lastOperation": {"state": "Processing", "progress": 50}}}));
        assert_eq!(at_once().await, Requeue::After(RECONCILE_INTERVAL));
        assert!(seed.requested().is_empty());
    }
}
