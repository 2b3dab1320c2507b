//! Records a reconcile in the metrics and in its trace.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::controller::reconcile::result::ReconcileResult as Reconciled;
use crate::controller::report::metrics::{Metrics, PoolNumbers, ReconcileResult};
use decisions::worker::machines::progress::{Phase, Progress};
use decisions::worker::request::Operation;
use decisions::worker::status::reconcile_outcome::ReconcileOutcome;
use runtime::process::traces;
use wire::api::gardener::ErrorCode;

/// The reconcile that has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) worker_type: &'a str,
    pub(crate) operation: Operation,
    /// Whether the operation began with this reconcile.
    pub(crate) begins: bool,
    /// Since when the status of the Worker reports an error.
    pub(crate) failing_since: Option<Timestamp>,
}

/// Records a finished reconcile.
pub(crate) fn record(metrics: &Metrics, ended: Ended<'_>, reconciled: &Reconciled, took: Duration) {
    let Ended { namespace, worker_type, operation, begins, failing_since } = ended;
    let result = match &reconciled.outcome {
        ReconcileOutcome::Succeeded => ReconcileResult::Succeeded,
        ReconcileOutcome::Started | ReconcileOutcome::Waiting(..) => ReconcileResult::Waiting,
        ReconcileOutcome::Failed(_) => ReconcileResult::Failed,
    };
    traces::ended(result.as_str(), result == ReconcileResult::Failed);
    metrics.reconciled(worker_type, operation.as_str(), result, took);
    for (step, took) in &reconciled.steps {
        metrics.phase(step, *took);
    }
    match &reconciled.outcome {
        ReconcileOutcome::Failed(failure) => record_failure(metrics, namespace, failing_since, &failure.codes),
        outcome => {
            metrics.failing_since(namespace, None);
            if matches!(outcome, ReconcileOutcome::Waiting(..)) {
                metrics.waiting(waited_for(operation, reconciled.progress.as_ref()));
            }
        }
    }
    if begins && reconciled.outcome == ReconcileOutcome::Succeeded && reconciled.writes == 0 {
        metrics.noop(worker_type, operation.as_str());
    }
    if let Some(numbers) = pool_numbers(reconciled) {
        metrics.pools(namespace, numbers);
    }
    if let Some(plan) = &reconciled.plan {
        metrics.rolls_held(namespace, plan.held_pools());
    }
    // A Worker that was deleted or migrated no longer concerns this seed.
    let is_left = matches!(operation, Operation::Delete | Operation::Migrate);
    if is_left && reconciled.outcome == ReconcileOutcome::Succeeded {
        metrics.forget(namespace);
    }
}

/// Records that the Worker in a namespace fails, since the time in its status, or otherwise since now.
pub(crate) fn record_failure(
    metrics: &Metrics,
    namespace: &str,
    failing_since: Option<Timestamp>,
    codes: &BTreeSet<ErrorCode>,
) {
    let failing_since = failing_since.unwrap_or_else(Timestamp::now);
    metrics.failing_since(namespace, Some(failing_since.as_second()));
    if codes.is_empty() {
        metrics.error("none");
    }
    for code in codes {
        metrics.error(code.as_str());
    }
}

fn waited_for(operation: Operation, progress: Option<&Progress>) -> &'static str {
    if operation == Operation::Delete {
        return "deletion";
    }
    let Some(progress) = progress else { return "other" };
    let is_any = |phase: fn(&Phase) -> bool| progress.deployments.iter().any(|deployment| phase(&deployment.phase));
    if is_any(|phase| matches!(phase, Phase::Unobserved | Phase::WithoutMachineSet)) {
        "machine-controller-manager"
    } else if progress.is_ready() {
        "clean-up"
    } else if progress.hibernated {
        "hibernation"
    } else {
        "machines"
    }
}

/// A pool has the state of its worst deployment.
fn pool_numbers(reconciled: &Reconciled) -> Option<PoolNumbers> {
    let plan = reconciled.plan.as_ref()?;
    let progress = reconciled.progress.as_ref()?;
    let mut pools: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for deployment in &progress.deployments {
        let (waits, fails) = pools.entry(&deployment.pool).or_default();
        *waits |= deployment.phase != Phase::Ready;
        *fails |= matches!(deployment.phase, Phase::Failed(_));
    }
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let mut numbers = PoolNumbers {
        failed: number(plan.errors().count()),
        waiting: number(plan.awaited().count()),
        ..PoolNumbers::default()
    };
    for (waits, fails) in pools.into_values() {
        match (waits, fails) {
            (_, true) => numbers.failed += 1,
            (true, false) => numbers.waiting += 1,
            (false, false) => numbers.ready += 1,
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use decisions::provider::{DependencyFailure, PoolProblem};
    use decisions::worker::machines::progress::DeploymentProgress;
    use decisions::worker::plan::Plan;
    use decisions::worker::status::reconcile_outcome::Failure;
    use runtime::process::endpoints::MetricsText;

    fn of(phase: Phase, pool: &str) -> DeploymentProgress {
        DeploymentProgress { pool: pool.to_owned(), phase, ..DeploymentProgress::ready() }
    }

    /// The series after a reconcile, except durations.
    fn recorded(metrics: &Metrics, begins: bool, operation: Operation, reconciled: &Reconciled) -> Vec<String> {
        let ended = Ended { namespace: "ns", worker_type: "azure", operation, begins, failing_since: None };
        record(metrics, ended, reconciled, Duration::ZERO);
        let text = metrics.text();
        let target = ["_noop", "_errors_total", "_failing_since", "_waits_total", "_pools{"];
        let is_required = |line: &&str| !line.starts_with('#') && target.iter().any(|name| line.contains(name));
        text.lines().filter(is_required).map(str::to_owned).collect()
    }

    #[test]
    fn a_failure_is_counted_by_its_codes_and_over_with_the_next_success() {
        let metrics = Metrics::default();
        let has = |lines: &[String], part: &str| lines.iter().any(|line| line.contains(part));
        let codes = [ErrorCode::ConfigurationProblem, ErrorCode::InfraQuotaExceeded].into();
        let failed = Reconciled::of(ReconcileOutcome::Failed(Failure { codes, ..Failure::new("x") }));
        let lines = recorded(&metrics, true, Operation::Reconcile, &failed);
        assert!(has(&lines, "_failing_since") && !has(&lines, "noop"), "{lines:?}");
        assert!(has(&lines, "ERR_CONFIGURATION_PROBLEM") && has(&lines, "ERR_INFRA_QUOTA_EXCEEDED"), "{lines:?}");
        assert!(!has(&lines, r#""none""#), "{lines:?}");
        let without_code = Reconciled::of(ReconcileOutcome::Failed(Failure::new("x")));
        let lines = recorded(&metrics, true, Operation::Reconcile, &without_code);
        assert!(has(&lines, r#""none""#), "{lines:?}");
        let lines = recorded(&metrics, true, Operation::Reconcile, &Reconciled::of(ReconcileOutcome::Succeeded));
        assert!(!has(&lines, "_failing_since") && has(&lines, "noop"), "{lines:?}");
        assert!(!has(&lines, "_waits_total"), "{lines:?}");
        let waiting = Reconciled::of(ReconcileOutcome::Waiting("x".to_owned(), 50));
        let lines = recorded(&metrics, false, Operation::Delete, &waiting);
        assert!(has(&lines, r#"waits_total{on="deletion"} 1"#), "{lines:?}");
    }

    #[test]
    fn a_no_op_begins_and_ends_at_once_and_writes_nothing() {
        let noops = |begins: bool, reconciled: &Reconciled| {
            let lines = recorded(&Metrics::default(), begins, Operation::Reconcile, reconciled);
            lines.iter().filter(|line| line.contains("noop")).count()
        };
        let done = || Reconciled::of(ReconcileOutcome::Succeeded);
        assert_eq!(noops(true, &done()), 1);
        assert_eq!(noops(false, &done()), 0, "it was waited for");
        assert_eq!(noops(true, &Reconciled { writes: 1, ..done() }), 0);
        assert_eq!(noops(true, &Reconciled::of(ReconcileOutcome::Started)), 0);
    }

    #[test]
    fn a_worker_that_has_left_this_seed_leaves_no_pools() {
        let with_pools = || Reconciled {
            plan: Some(Plan { pools: Vec::new(), provider_status: serde_json::Value::Null, ..Plan::default() }),
            progress: Some(Progress { deployments: vec![of(Phase::Ready, "a")], ..Progress::default() }),
            ..Reconciled::of(ReconcileOutcome::Succeeded)
        };
        let failed = || Reconciled { outcome: ReconcileOutcome::Failed(Failure::new("x")), ..with_pools() };
        let cases = [
            (Operation::Reconcile, with_pools(), true),
            (Operation::Restore, with_pools(), true),
            (Operation::Delete, failed(), true),
            (Operation::Delete, with_pools(), false),
            (Operation::Migrate, with_pools(), false),
        ];
        for (operation, reconciled, stays) in cases {
            let lines = recorded(&Metrics::default(), true, operation, &reconciled);
            assert_eq!(lines.iter().any(|line| line.contains("_pools{")), stays, "{operation:?}: {lines:?}");
        }
    }

    #[test]
    fn a_pool_counts_once_as_its_worst_zone() {
        let waited_for = DependencyFailure::without_code("its scale set");
        let failed = PoolProblem::VolumeMissing;
        let awaited = PoolProblem::DependencyPending(waited_for);
        let pools = vec![Err(failed.of_pool("invalid")), Err(awaited.clone().of_pool("b")), Err(awaited.of_pool("c"))];
        let deployments = vec![
            of(Phase::Ready, "well"),
            of(Phase::Ready, "rolls"),
            of(Phase::Pending, "rolls"),
            of(Phase::Failed(vec![]), "broken"),
            of(Phase::Pending, "broken"),
        ];
        let reconciled = Reconciled {
            plan: Some(Plan { pools, provider_status: serde_json::Value::Null, ..Plan::default() }),
            progress: Some(Progress { deployments, ..Progress::default() }),
            ..Reconciled::of(ReconcileOutcome::Succeeded)
        };
        let PoolNumbers { ready, waiting, failed } = pool_numbers(&reconciled).unwrap();
        assert_eq!((ready, waiting, failed), (1, 3, 2));
    }

    #[test]
    fn what_is_waited_for_has_a_word() {
        let of_phase = |phase: Phase, hibernated: bool| {
            let progress = Progress { deployments: vec![of(phase, "a")], hibernated, ..Progress::default() };
            waited_for(Operation::Reconcile, Some(&progress))
        };
        assert_eq!(of_phase(Phase::Pending, false), "machines");
        assert_eq!(of_phase(Phase::Pending, true), "hibernation");
        assert_eq!(of_phase(Phase::Ready, false), "clean-up");
        assert_eq!(of_phase(Phase::Unobserved, false), "machine-controller-manager");
        assert_eq!(waited_for(Operation::Reconcile, None), "other");
        assert_eq!(waited_for(Operation::Delete, None), "deletion");
    }
}
