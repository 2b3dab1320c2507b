//! The end of a reconcile: metrics, events, the status, and when to reconcile again.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{info, warn};

use crate::api::gardener::Worker;
use crate::controller::error::ReconcileError;
use crate::controller::events::publish;
use crate::controller::queue::Requeue;
use crate::controller::rate_limit::RECONCILES;
use crate::controller::reconcile_context::{RESYNC_PERIOD, ReconcileContext};
use crate::controller::reconcile_metrics::record;
use crate::controller::result::ReconcileResult;
use crate::controller::status_writes::{answer_no_op, let_go, patch_status};
use crate::worker::reconcile_state::ReconcileState;
use crate::worker::request::{Operation, request_removal};
use crate::worker::status::ReconcileOutcome;
use crate::worker::status_report::{Findings, keep_processing_patch, status_report, too_large_patch};
use crate::worker::status_text::TextSize;

/// Reports what a reconcile has come to, and tells when to do it again; `None` when somebody else has changed the Worker
/// meanwhile.
///
/// # Errors
/// When the Worker can't be written.
pub(crate) async fn report(
    context: &ReconcileContext<'_>,
    result: ReconcileResult,
    took: Duration,
) -> Result<Option<Requeue>, ReconcileError> {
    let (worker, controller, operation) = (context.latest(), context.controller, context.operation);
    record(&controller.metrics, worker, operation, context.state.is_beginning(), &result, took);
    publish(&controller.events, &controller.metrics, worker, &result.transitions).await;
    if operation != Operation::Delete && !result.has_planned_everything() {
        // It may be a Secret that is missing or wrong.
        context.shoot.forget_secrets(worker);
    }
    if result.is_outdated && context.memory(|memory| memory.backoff.is_conflict_repeated()) {
        let now = Timestamp::now();
        patch_status(worker, |texts| keep_processing_patch(worker, operation, now, texts), controller).await?;
        return Ok(Some(Requeue::After(RECONCILES)));
    }
    let findings = Findings {
        operation,
        outcome: &result.outcome,
        published: result.published.as_ref(),
        deployed: result.plan.as_ref().zip(result.progress.as_ref()),
        conditions: &result.conditions,
        has_events: !result.transitions.is_empty(),
    };
    let now = Timestamp::now();
    if status_report(worker, findings, now, TextSize::Full).is_only_text
        && let Some(wait) = context.memory(|memory| memory.rate_limit.until_text(Instant::now()))
    {
        return Ok(Some(Requeue::After(earliest(result.requeue_after, wait))));
    }
    let patch = |texts: TextSize| status_report(worker, findings, now, texts).patch;
    let is_no_op = matches!(context.state, ReconcileState::NoOp(_));
    let written = match is_no_op {
        true => answer_no_op(worker, patch, request_removal(worker, now), controller).await,
        false => patch_status(worker, patch, controller).await,
    };
    let written = match written {
        Err(error) if error.is_too_large() => return report_too_large(context, &error).await.map(Some),
        Ok(None) if is_no_op => return Ok(None),
        written => written?,
    };
    context.memory(|memory| memory.rate_limit.text_written());
    requeue_after(context, &result, written.as_deref().unwrap_or(worker)).await.map(Some)
}

/// Reports that the status does not fit into the Worker, with nothing else, and tells when to reconcile again.
async fn report_too_large(context: &ReconcileContext<'_>, error: &ReconcileError) -> Result<Requeue, ReconcileError> {
    let (worker, now, refusal) = (context.latest(), Timestamp::now(), error.to_string());
    let patch = |texts: TextSize| too_large_patch(worker, context.operation, &refusal, now, texts);
    patch_status(worker, patch, context.controller).await?;
    let retry = context.memory(|memory| memory.backoff.failed(false, Instant::now()));
    Ok(Requeue::After(retry.delay))
}

/// Ends an operation that has succeeded, and tells when to reconcile again. `written` is the Worker with its status.
async fn requeue_after(
    context: &ReconcileContext<'_>,
    result: &ReconcileResult,
    written: &Worker,
) -> Result<Requeue, ReconcileError> {
    let operation = context.operation;
    Ok(match &result.outcome {
        ReconcileOutcome::Failed(failure) => {
            let retry = context.memory(|memory| memory.backoff.failed(result.writes > 0, Instant::now()));
            let delay = earliest(result.requeue_after, retry.delay);
            if retry.was_due {
                warn!(operation = operation.as_str(), error = failure.message, ?delay, "operation failed");
            }
            Requeue::After(delay)
        }
        ReconcileOutcome::Succeeded => {
            context.memory(|memory| memory.backoff.reset());
            info!(operation = operation.as_str(), "operation succeeded");
            context.shoot.pack_secrets(written);
            let_go(written, operation, context.controller).await?;
            result.requeue_after.map_or(Requeue::OnEvent, Requeue::After)
        }
        ReconcileOutcome::Started | ReconcileOutcome::Waiting(..) => {
            context.memory(|memory| memory.backoff.reset());
            Requeue::After(earliest(result.requeue_after, RESYNC_PERIOD))
        }
    })
}

fn earliest(asked: Option<Duration>, latest: Duration) -> Duration {
    asked.map_or(latest, |asked| asked.min(latest))
}
