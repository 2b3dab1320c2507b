//! Forecast of how maintenance will change the versions of a shoot, as a condition and metrics of its Worker. It is
//! computed from the Cluster that the operation has read and written with the operation's result, so it costs no
//! request of its own.

use jiff::Timestamp;

use crate::controller::reconcile::reconcile_context::ReconcileContext;
use crate::controller::reconcile::result::ReconcileResult;
use decisions::worker::request::Operation;
use profiles::versions::current::{versions_current, versions_forecast_disabled, versions_unknown};
use profiles::versions::notices::notices_and_pools;
use wire::api::gardener::Worker;

/// Adds the condition to the result of an operation that deploys machines, and sets the metrics.
pub(crate) fn add_forecast(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    result: &mut ReconcileResult,
    now: Timestamp,
) {
    let deploys = matches!(context.operation, Operation::Create | Operation::Reconcile | Operation::Restore);
    if !deploys || !result.outcome.is_end() {
        return;
    }
    let controller = context.controller;
    let namespace = context.identity.namespace.as_str();
    let Some(read) = controller.cache.clusters.shoot_versions(namespace) else {
        result.conditions.extend(versions_forecast_disabled(&worker.status.conditions));
        return;
    };
    let forecast = read.and_then(|versions| {
        notices_and_pools(&versions.shoot, &versions.profile.spec, now).map_err(|error| error.to_string().into())
    });
    let (condition, pools) = match forecast {
        Ok((notices, pools)) => (versions_current(&notices, &pools), pools),
        Err(error) => (versions_unknown(&error), Vec::new()),
    };
    controller.metrics.versions.set(namespace, &pools);
    result.conditions.push(condition);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_support::{controller, reconcile_of, refusal, worker};
    use decisions::provider::azure::Azure;
    use decisions::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};

    #[tokio::test]
    async fn an_operation_that_deploys_machines_and_ends_has_the_condition() {
        let (controller, _) = controller(None, |_, _| refusal(404, "NotFound"));
        let mut document = worker(&json!({}), 7);
        let recorded = json!({"type": "VersionsCurrent", "status": "True", "reason": "NothingExpires", "message": ""});
        document["status"] = json!({"conditions": [recorded]});
        let worker: Worker = serde_json::from_value(document).unwrap();
        let failed = || ReconcileOutcome::Failed(Failure::new("x"));
        for (operation, outcome, has_condition) in [
            (Operation::Create, ReconcileOutcome::Succeeded, true),
            (Operation::Reconcile, failed(), true),
            (Operation::Reconcile, ReconcileOutcome::Waiting("x".to_owned(), 50), false),
            (Operation::Delete, ReconcileOutcome::Succeeded, false),
            (Operation::Migrate, failed(), false),
        ] {
            let context = reconcile_of(&controller, &worker, &Azure, operation);
            let mut result = ReconcileResult::of(outcome);
            add_forecast(&context, &worker, &mut result, Timestamp::UNIX_EPOCH);
            let reasons: Vec<&str> = result.conditions.iter().map(|condition| condition.reason).collect();
            let expected = if has_condition { vec!["NoForecast"] } else { vec![] };
            assert_eq!(reasons, expected, "{operation:?} {:?}", result.outcome);
        }
    }
}
