//! What a look at a Worker tells the metrics, and its trace.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use super::metrics::{Metrics, PoolNumbers, ReconcileResult};
use super::traces;
use crate::api::gardener::Worker;
use crate::worker::operation::Operation;
use crate::worker::progress::{Phase, Progress};
use crate::worker::reconcile::Pass;
use crate::worker::report::Outcome;

/// A look has ended.
pub(super) fn measure(
    metrics: &Metrics,
    worker: &Worker,
    operation: Operation,
    begins: bool,
    pass: &Pass,
    took: Duration,
) {
    let namespace = worker.namespace().unwrap_or_default();
    let worker_type = &worker.spec.worker_type;
    let result = match &pass.outcome {
        Outcome::Succeeded => ReconcileResult::Succeeded,
        Outcome::Begun | Outcome::Waiting(..) => ReconcileResult::Waiting,
        Outcome::Failed(_) => ReconcileResult::Failed,
    };
    traces::ended(result);
    metrics.reconciled(worker_type, operation.as_str(), result, took);
    for (step, took) in &pass.steps {
        metrics.phase(step, *took);
    }
    match &pass.outcome {
        Outcome::Failed(failure) => {
            let failing_since = failing_since(worker).unwrap_or_else(Timestamp::now);
            metrics.failing_since(&namespace, Some(failing_since.as_second()));
            if failure.codes.is_empty() {
                metrics.error("none");
            }
            for code in &failure.codes {
                metrics.error(code.as_str());
            }
        }
        outcome => {
            metrics.failing_since(&namespace, None);
            if matches!(outcome, Outcome::Waiting(..)) {
                metrics.waiting(waited_for(operation, pass.progress.as_ref()));
            }
        }
    }
    if begins && pass.outcome == Outcome::Succeeded && pass.writes == 0 {
        metrics.noop(worker_type, operation.as_str());
    }
    if let Some(numbers) = pool_numbers(pass) {
        metrics.pools(&namespace, numbers);
    }
    if operation == Operation::Delete && pass.outcome == Outcome::Succeeded {
        metrics.forget(&namespace);
    }
}

/// Since when the Worker says that it fails.
fn failing_since(worker: &Worker) -> Option<Timestamp> {
    let last = worker.status.last_operation.as_ref().filter(|last| last.state == "Error")?;
    last.last_update_time.parse().ok()
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
fn pool_numbers(pass: &Pass) -> Option<PoolNumbers> {
    let (plan, progress) = (pass.plan.as_ref()?, pass.progress.as_ref()?);
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
