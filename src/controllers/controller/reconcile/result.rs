//! Result of one reconcile of a Worker.

use std::time::Duration;

use tokio::time::Instant;

use crate::controller::reconcile::error::ReconcileError;
use decisions::worker::machines::progress::Progress;
use decisions::worker::plan::Plan;
use decisions::worker::request::Operation;
use decisions::worker::status::Findings;
use decisions::worker::status::conditions::{Condition, nothing_deployed};
use decisions::worker::status::events::WorkerEvent;
use decisions::worker::status::published::Published;
use decisions::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};
use wire::api::gardener::ErrorCode;

pub(crate) struct ReconcileResult {
    /// Outcome of the operation.
    pub(crate) outcome: ReconcileOutcome,
    /// Further fields to publish in the status; `None` if nothing could be planned.
    pub(crate) published: Option<Published>,
    /// The plan; `None` if nothing could be planned.
    pub(crate) plan: Option<Plan>,
    /// When to reconcile again even without an event.
    pub(crate) requeue_after: Option<Duration>,
    /// Progress of the machines; `None` if it was not read.
    pub(crate) progress: Option<Progress>,
    /// Conditions, without those that could not be determined.
    pub(crate) conditions: Vec<Condition>,
    /// Events to publish.
    pub(crate) events: Vec<WorkerEvent>,
    /// All failures are write conflicts, so the next reconcile starts from current data.
    pub(crate) is_outdated: bool,
    /// Number of machine objects written.
    pub(crate) writes: usize,
    /// Duration of each step.
    pub(crate) steps: Vec<(&'static str, Duration)>,
}

impl ReconcileResult {
    /// A result with only an outcome.
    #[must_use]
    pub(crate) fn of(outcome: ReconcileOutcome) -> Self {
        Self {
            outcome,
            published: None,
            plan: None,
            requeue_after: None,
            progress: None,
            conditions: Vec::new(),
            events: Vec::new(),
            is_outdated: false,
            writes: 0,
            steps: Vec::new(),
        }
    }

    /// The result of a reconcile that ended with an error.
    #[must_use]
    pub(crate) fn failed(operation: Operation, error: &ReconcileError) -> Self {
        let failure = error.failure();
        // No deployment is expected for a Worker that is being deleted or migrated.
        let deploys = matches!(operation, Operation::Create | Operation::Reconcile | Operation::Restore);
        let condition = deploys.then(|| nothing_deployed(&failure.message, failure.codes.clone()));
        let conditions = condition.into_iter().collect();
        let is_outdated = error.is_outdated();
        Self { conditions, is_outdated, ..Self::of(ReconcileOutcome::Failed(failure)) }
    }

    /// The same with another outcome.
    #[must_use]
    pub(crate) fn with_outcome(self, outcome: ReconcileOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// If the fields for gardenlet and the autoscaler do not fit into the Worker, keeps the published ones and fails
    /// the operation.
    #[must_use]
    pub(crate) fn publishing_what_fits(self) -> Self {
        match self.published.as_ref().map(Published::check_size) {
            Some(Err(error)) => {
                let failure = Failure { message: error.to_string(), codes: [ErrorCode::ConfigurationProblem].into() };
                Self { outcome: ReconcileOutcome::Failed(failure), published: None, ..self }
            }
            None | Some(Ok(())) => self,
        }
    }

    /// The parts that the status reports.
    pub(crate) fn findings(&self, operation: Operation) -> Findings<'_> {
        Findings {
            operation,
            outcome: &self.outcome,
            published: self.published.as_ref(),
            deployed: self.plan.as_ref().zip(self.progress.as_ref()),
            conditions: &self.conditions,
            has_events: !self.events.is_empty(),
        }
    }

    #[must_use]
    pub(crate) fn has_planned_everything(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.errors().next().is_none())
    }
}

/// Measures the duration of each step.
pub(crate) struct StepTimer {
    taken: Vec<(&'static str, Duration)>,
    since: Instant,
}

impl StepTimer {
    pub(crate) fn start() -> Self {
        Self { taken: Vec::new(), since: Instant::now() }
    }

    /// Called when a step has ended.
    pub(crate) fn done(&mut self, step: &'static str) {
        let now = Instant::now();
        self.taken.push((step, now.duration_since(self.since)));
        self.since = now;
    }

    /// All steps in order.
    pub(crate) fn taken(self) -> Vec<(&'static str, Duration)> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use decisions::provider::PoolProblem;
    use decisions::worker::machines::progress::Stuck;
    use wire::api::gardener::MachineDeploymentStatus;

    #[tokio::test(start_paused = true)]
    async fn each_step_has_the_time_that_it_took() {
        let [two, three] = [2, 3].map(Duration::from_secs);
        let mut timer = StepTimer::start();
        for (step, time) in [("read", two), ("write", three)] {
            advance(time).await;
            timer.done(step);
        }
        assert_eq!(timer.taken(), [("read", two), ("write", three)]);
    }

    #[test]
    fn reports_statuses_that_exceed_the_size_limit() {
        let publishing = |count: usize| {
            let bound = MachineDeploymentStatus { name: "n".repeat(100), minimum: 1, maximum: 2, priority: None };
            let published = Published { machine_deployments: vec![bound; count], ..Published::default() };
            let result = ReconcileResult::of(ReconcileOutcome::Succeeded);
            ReconcileResult { published: Some(published), ..result }.publishing_what_fits()
        };
        let fits = publishing(1);
        assert!(matches!(fits.outcome, ReconcileOutcome::Succeeded) && fits.published.is_some());
        let too_large = publishing(20_000);
        assert!(too_large.published.is_none());
        let ReconcileOutcome::Failed(failure) = too_large.outcome else { panic!("it has to be told") };
        assert!(failure.message.contains("status.machineDeployments"), "{}", failure.message);
        assert_eq!(failure.codes, [ErrorCode::ConfigurationProblem].into());
    }

    #[test]
    fn what_events_were_published_about_is_written_at_once() {
        let mut result = ReconcileResult::of(ReconcileOutcome::Succeeded);
        assert!(!result.findings(Operation::Reconcile).has_events);
        let stuck = Stuck { deployment: "a-z1".to_owned(), since: jiff::Timestamp::UNIX_EPOCH };
        result.events.push(WorkerEvent::MachineControllerRestarted(stuck));
        assert!(result.findings(Operation::Reconcile).has_events);
    }

    #[test]
    fn everything_is_planned_when_no_pool_has_a_problem() {
        let planned = |problem: Option<PoolProblem>| {
            let pools = problem.into_iter().map(|problem| Err(problem.of_pool("a"))).collect();
            let plan = Plan { pools, provider_status: serde_json::Value::Null, ..Plan::default() };
            ReconcileResult { plan: Some(plan), ..ReconcileResult::of(ReconcileOutcome::Succeeded) }
        };
        assert!(planned(None).has_planned_everything());
        assert!(!planned(Some(PoolProblem::VolumeMissing)).has_planned_everything());
        assert!(!ReconcileResult::of(ReconcileOutcome::Succeeded).has_planned_everything(), "there is no plan");
    }
}
