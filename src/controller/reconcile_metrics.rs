//! What a reconcile records in the metrics, and its trace.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::controller::metrics::{Metrics, PoolNumbers, ReconcileResult};
use crate::controller::result::ReconcileResult as Reconciled;
use crate::process::traces;
use crate::worker::progress::{Phase, Progress};
use crate::worker::reconcile_outcome::ReconcileOutcome;
use crate::worker::request::Operation;

/// Which reconcile has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    /// Namespace of the Worker.
    pub(crate) namespace: &'a str,
    /// Its type.
    pub(crate) worker_type: &'a str,
    /// Its operation.
    pub(crate) operation: Operation,
    /// Whether the operation began with this reconcile.
    pub(crate) begins: bool,
    /// Since when the Worker says that it fails.
    pub(crate) failing_since: Option<Timestamp>,
}

/// Records a reconcile that has ended.
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
        ReconcileOutcome::Failed(failure) => {
            let failing_since = failing_since.unwrap_or_else(Timestamp::now);
            metrics.failing_since(namespace, Some(failing_since.as_second()));
            if failure.codes.is_empty() {
                metrics.error("none");
            }
            for code in &failure.codes {
                metrics.error(code.as_str());
            }
        }
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
    // A Worker that is deleted or has moved away is no concern of this seed any more.
    let is_left = matches!(operation, Operation::Delete | Operation::Migrate);
    if is_left && reconciled.outcome == ReconcileOutcome::Succeeded {
        metrics.forget(namespace);
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

/// A pool is as its worst deployment.
fn pool_numbers(reconciled: &Reconciled) -> Option<PoolNumbers> {
    let (plan, progress) = (reconciled.plan.as_ref()?, reconciled.progress.as_ref()?);
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
