//! Reports Workers that can't be decoded: as an event, as an error in the status, and in the metrics.

use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tracing::warn;

use crate::controller::queue::Requeue;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::report::events;
use crate::controller::report::reconcile_metrics::record_failure;
use crate::controller::run::context::ControllerContext;
use decisions::worker::request::Operation;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::identity::Identity;
use wire::api::bounded_text::shortened;
use wire::api::gardener::{ErrorCode, Worker};

/// Maximum size of the reason, which may repeat content of the Worker.
const MAX_REASON_BYTES: usize = 1024;

/// Writes an event and an error status for a Worker that can't be decoded, and counts it as failing. Nothing else can
/// be done for it.
pub(crate) async fn report_undecodable(
    guarded: &LazyObject<Worker>,
    reason: &str,
    controller: &ControllerContext,
) -> Result<Requeue, ReconcileError> {
    let Some(latest) = latest_if_served(guarded, controller).await? else { return Ok(Requeue::OnEvent) };
    let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
    let reason = &shortened(reason, MAX_REASON_BYTES);
    let description = format!("Error reconciling Worker: the Worker can't be decoded: {reason}");
    let codes = [ErrorCode::ConfigurationProblem];
    // Recorded only once the status has the error, because only then will a fixed Worker be reconciled, which resets
    // the metric.
    let fails = || record_failure(&controller.metrics, guarded.namespace(), failing_since(&latest), &codes.into());
    if text("/status/lastError/description") == Some(&description) {
        fails();
        return Ok(Requeue::OnEvent);
    }
    warn!(reason, "Worker can't be decoded");
    let now = controller.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({"status": {
        "observedGeneration": guarded.meta().generation,
        "lastOperation": {
            "description": description,
            "lastUpdateTime": now,
            "progress": 50,
            "state": "Error",
            "type": Operation::Reconcile.as_str(),
        },
        "lastError": {
            "description": description,
            "codes": codes,
            "lastUpdateTime": now,
        },
    }});
    if let Some(identity) = Identity::of(guarded) {
        controller.events.publish::<Worker>(&identity, events::undecodable(reason)).await;
    }
    let api = untyped(guarded, controller);
    let parameters = PatchParams::default();
    let written = api.patch_status(&guarded.name_any(), &parameters, &Patch::Merge(patch)).await;
    written.map_err(ReconcileError::of_worker)?;
    fails();
    Ok(Requeue::OnEvent)
}

/// Since when the status reports an error.
fn failing_since(worker: &DynamicObject) -> Option<Timestamp> {
    let last = worker.data.pointer("/status/lastOperation").filter(|last| last["state"] == "Error")?;
    last["lastUpdateTime"].as_str()?.parse().ok()
}

/// The current Worker, untyped; `None` if it was deleted or belongs to another extension or shard.
pub(crate) async fn latest_if_served(
    guarded: &LazyObject<Worker>,
    controller: &ControllerContext,
) -> Result<Option<DynamicObject>, ReconcileError> {
    let latest = untyped(guarded, controller).get_opt(&guarded.name_any()).await.map_err(ReconcileError::of_worker)?;
    Ok(latest.filter(|latest| {
        let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
        controller.owns(latest.metadata.labels.as_ref())
            && controller.served.includes(text("/spec/type").unwrap_or_default(), text("/spec/class"))
    }))
}

fn untyped(guarded: &LazyObject<Worker>, controller: &ControllerContext) -> Api<DynamicObject> {
    let namespace = guarded.namespace();
    Api::namespaced_with(controller.client.clone(), namespace, &kube::api::ApiResource::erase::<Worker>(&()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::controller::test_seed::{NAMESPACE, Seed, WORKER};
    use runtime::process::endpoints::MetricsText;

    /// A Worker with a finished operation that can no longer be decoded.
    async fn broken() -> (Seed, Arc<ControllerContext>) {
        let (seed, context) = Seed::settled().await;
        seed.merge(WORKER, json!({"spec": {"pools": "none"}}));
        (seed, context)
    }

    fn guarded(seed: &Seed) -> LazyObject<Worker> {
        serde_json::from_str(&seed.get(WORKER).unwrap().to_string()).unwrap()
    }

    async fn report(seed: &Seed, context: &ControllerContext) -> Result<Requeue, ReconcileError> {
        let worker = guarded(seed);
        let reason = worker.object().unwrap_err();
        report_undecodable(&worker, &reason, context).await
    }

    /// Since when the Worker fails according to the metrics.
    fn measured(context: &ControllerContext) -> Option<i64> {
        let series = format!("gardener_extension_worker_failing_since_timestamp{{namespace=\"{NAMESPACE}\"}} ");
        context.metrics.text().lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_can_not_be_decoded_fails_in_the_metrics_since_its_status_has_the_error() {
        let (seed, context) = broken().await;
        let before = Timestamp::now().as_second();
        report(&seed, &context).await.unwrap();
        assert_eq!(seed.state(), "Error");
        assert!(measured(&context).is_some_and(|since| since >= before), "{}", context.metrics.text());
        seed.merge(WORKER, json!({"status": {"lastOperation": {"lastUpdateTime": "2026-01-01T00:00:00Z"}}}));
        seed.requested();
        report(&seed, &context).await.unwrap();
        assert_eq!((measured(&context), seed.writes()), (Some(1_767_225_600), vec![]));
        let errors = r#"_errors_total{code="ERR_CONFIGURATION_PROBLEM"} 2"#;
        assert!(context.metrics.text().contains(errors), "{}", context.metrics.text());
    }

    #[tokio::test(start_paused = true)]
    async fn decodable_and_deleted_workers_leave_failure_metrics() {
        let (seed, context) = broken().await;
        let good = Seed::new().0.get(WORKER).unwrap()["spec"]["pools"].clone();
        report(&seed, &context).await.unwrap();
        assert!(measured(&context).is_some());
        seed.merge(WORKER, json!({"spec": {"pools": good}}));
        seed.reconcile(&context).await.unwrap();
        assert_eq!(measured(&context), None, "{}", seed.get(WORKER).unwrap()["status"]);
        seed.merge(WORKER, json!({"spec": {"pools": "none"}}));
        report(&seed, &context).await.unwrap();
        assert!(measured(&context).is_some());
        context.forget(&guarded(&seed));
        assert_eq!(measured(&context), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_whose_status_can_not_be_written_does_not_fail_in_the_metrics() {
        // Nothing would reset it if the fixed Worker needs no operation.
        let (seed, context) = broken().await;
        seed.refuse(|line, _| line.starts_with("PATCH ").then_some((403, "Forbidden")));
        assert!(report(&seed, &context).await.is_err());
        assert_eq!((measured(&context), seed.state().as_str()), (None, "Succeeded"));
    }
}
