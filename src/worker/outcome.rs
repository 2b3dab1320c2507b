//! Pure step: how an operation stands at the end of a pass: errors first, then what is waited for, and for how long
//! (spec/azure-worker.md sections 11.1 and 13). All times are recorded ones, so a restart changes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::plan::Plan;
use super::progress::Progress;
use super::report::{Failure, Outcome, WAITING_FAILED, deadline_from, machine_failures};
use crate::api::gardener::ErrorCode;
use crate::api::machine::FailedMachine;
use crate::provider::PoolError;

/// `lastOperation.progress` when all machines are there and old objects are on their way out.
const PROGRESS_OF_CLEANING_UP: i32 = 90;
/// How a failure to get rid of old deployments begins.
const CLEANING_UP_FAILED: &str = "error while waiting for all undesired machine deployments to be deleted";

/// What is still there although nothing wants it.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Deployments that are being deleted.
    pub deployments: Vec<LeftDeployment>,
    /// Classes that old machine sets or machines still use.
    pub classes: Vec<String>,
}

/// A deployment that is being deleted.
#[derive(Clone, Debug)]
pub struct LeftDeployment {
    /// Its name.
    pub name: String,
    /// When its deletion was asked for.
    pub since: Timestamp,
    /// Its machines that can't be deleted.
    pub failed_machines: Vec<FailedMachine>,
}

impl Left {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deployments.is_empty() && self.classes.is_empty()
    }
}

/// What a pass has found.
pub struct Found<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Writes that failed, as texts.
    pub write_errors: &'a [String],
    /// How the machines stand.
    pub progress: &'a Progress,
    /// What is left although nothing wants it.
    pub left: &'a Left,
    /// When it becomes an error that machines are missing.
    pub deadline: Timestamp,
    /// Since when in this operation all machines have been there.
    pub ready_since: Timestamp,
}

impl Found<'_> {
    /// When it is over with the patience for what nobody needs any more.
    #[must_use]
    pub fn deadline_of_clean_up(&self) -> Timestamp {
        deadline_from(self.ready_since)
    }
}

/// How the operation stands, and when to look again even if nothing happens. `codes_of` finds the codes of a machine's
/// failure.
#[must_use]
pub fn outcome(
    found: &Found<'_>,
    codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
    now: Timestamp,
) -> (Outcome, Option<Duration>) {
    if let Some(failure) = Failure::joined(failures(found, codes_of)) {
        return (Outcome::Failed(failure), None);
    }
    let awaited = found.plan.awaited().map(of_pool);
    let machines = (!found.progress.is_ready()).then(|| Failure::new(found.progress.waiting_text()));
    if let Some(late) = Failure::joined(awaited.chain(machines).collect()) {
        let percentage = 10 + found.progress.percentage() * 8 / 10;
        return waiting(late, percentage, WAITING_FAILED, found.deadline, now);
    }
    if let Some(oldest) = found.left.deployments.iter().min_by_key(|deployment| deployment.since) {
        let text = format!("at least one unwanted machine deployment ({}) still exists", oldest.name);
        return waiting(
            Failure::new(text),
            PROGRESS_OF_CLEANING_UP,
            CLEANING_UP_FAILED,
            deadline_from(oldest.since),
            now,
        );
    }
    // Their machine sets go as soon as machine-controller-manager looks. Where they don't, nothing is wrong with the
    // machines that are wanted: the next operation cleans up.
    if let Some(class) = found.left.classes.first()
        && let Some(wait) = until(found.deadline_of_clean_up(), now)
    {
        let text = format!("Waiting until no machine uses the old machine class {class}");
        return (Outcome::Waiting(text, PROGRESS_OF_CLEANING_UP), Some(wait));
    }
    (Outcome::Succeeded, None)
}

fn failures(found: &Found<'_>, codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>) -> Vec<Failure> {
    let mut failures: Vec<Failure> = found.plan.errors().map(of_pool).collect();
    failures.extend(found.write_errors.iter().map(Failure::new));
    failures.extend(machine_failures(found.progress, &codes_of));
    for deployment in &found.left.deployments {
        failures.extend(deployment.failed_machines.iter().map(|machine| {
            let operation = &machine.last_operation;
            Failure {
                message: format!("{CLEANING_UP_FAILED}: machine {} failed: {}", machine.name, operation.description),
                codes: codes_of(operation.error_code.as_deref(), &operation.description),
            }
        }));
    }
    failures
}

fn of_pool(error: &PoolError) -> Failure {
    Failure { message: error.to_string(), codes: error.problem.code_when_late().into_iter().collect() }
}

/// Waiting until the deadline, then an error.
fn waiting(
    late: Failure,
    percentage: i32,
    error: &str,
    deadline: Timestamp,
    now: Timestamp,
) -> (Outcome, Option<Duration>) {
    match until(deadline, now) {
        Some(wait) => (Outcome::Waiting(late.message, percentage), Some(wait)),
        None => (Outcome::Failed(Failure { message: format!("{error}: {}", late.message), ..late }), None),
    }
}

/// The time until then; `None` when it is over.
#[must_use]
pub fn until(then: Timestamp, now: Timestamp) -> Option<Duration> {
    let wait: SignedDuration = then.duration_since(now);
    Duration::try_from(wait).ok().filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::PoolProblem;
    use crate::worker::progress::{DeploymentProgress, FailedMachineText, Phase};

    const NOW: &str = "2026-11-21T10:00:00Z";
    const PAST: &str = "2026-11-21T09:54:00Z";
    const FUTURE: &str = "2026-11-21T10:03:00Z";

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn progress(phases: &[Phase]) -> Progress {
        let deployment = |phase: &Phase| DeploymentProgress {
            pool: "a".to_owned(),
            deployment: "a-z1".to_owned(),
            phase: phase.clone(),
            is_healthy: true,
            rolls: false,
            desired: 1,
            present: 1,
            updated: 0,
            available: 0,
            unavailable: 1,
            preserved: 0,
            unselected: 0,
            selected: 0,
            untaken_since: None,
        };
        let deployments = phases.iter().map(deployment).collect();
        Progress { namespace: "ns".to_owned(), deployments, hibernated: false }
    }

    fn outcome_of(
        errors: &[PoolProblem],
        phases: &[Phase],
        left: &Left,
        [deadline, ready_since]: [&str; 2],
    ) -> Outcome {
        let pools = errors.iter().map(|problem| Err(problem.clone().of_pool("b"))).collect();
        let found = Found {
            plan: &Plan { pools, provider_status: json!({}) },
            write_errors: &[],
            progress: &progress(phases),
            left,
            deadline: time(deadline),
            ready_since: time(ready_since),
        };
        outcome(&found, |_, _| [ErrorCode::InfraQuotaExceeded].into(), time(NOW)).0
    }

    fn message(outcome: &Outcome) -> &str {
        match outcome {
            Outcome::Failed(failure) => &failure.message,
            Outcome::Waiting(text, _) => text,
            Outcome::Begun | Outcome::Succeeded => "",
        }
    }

    #[test]
    fn machines_that_are_missing_become_an_error_at_the_recorded_deadline() {
        let left = Left::default();
        let waiting = outcome_of(&[], &[Phase::Pending], &left, [FUTURE, NOW]);
        assert!(matches!(waiting, Outcome::Waiting(..)), "{waiting:?}");
        let failed = outcome_of(&[], &[Phase::Pending], &left, [PAST, NOW]);
        assert!(matches!(failed, Outcome::Failed(_)) && message(&failed).starts_with(WAITING_FAILED), "{failed:?}");
        assert_eq!(outcome_of(&[], &[Phase::Ready], &left, [PAST, PAST]), Outcome::Succeeded);
    }

    #[test]
    fn every_failure_is_told() {
        let failed = Phase::Failed(vec![FailedMachineText {
            machine: "m".to_owned(),
            description: "no quota".to_owned(),
            error_code: None,
        }]);
        let outcome =
            outcome_of(&[PoolProblem::VolumeMissing], &[failed, Phase::Pending], &Left::default(), [FUTURE, NOW]);
        let Outcome::Failed(failure) = &outcome else { panic!("{outcome:?}") };
        assert!(failure.message.contains("pool \"b\"") && failure.message.contains("\"m\": no quota (pool \"a\")"));
        let codes: Vec<_> = failure.codes.iter().copied().collect();
        assert_eq!(codes, [ErrorCode::ConfigurationProblem, ErrorCode::InfraQuotaExceeded]);
    }

    #[test]
    fn old_deployments_have_five_minutes_of_their_own() {
        let left = |since: &str, failed_machines: Vec<FailedMachine>| Left {
            deployments: vec![LeftDeployment { name: "old-z1".to_owned(), since: time(since), failed_machines }],
            classes: vec![],
        };
        let waiting = outcome_of(&[], &[Phase::Ready], &left("2026-11-21T09:59:00Z", vec![]), [PAST, PAST]);
        assert!(matches!(waiting, Outcome::Waiting(..)) && message(&waiting).contains("(old-z1) still exists"));
        let failed = outcome_of(&[], &[Phase::Ready], &left(PAST, vec![]), [PAST, PAST]);
        assert!(matches!(failed, Outcome::Failed(_)) && message(&failed).starts_with(CLEANING_UP_FAILED));
        let machine = FailedMachine { name: "m".to_owned(), ..FailedMachine::default() };
        let failed = outcome_of(&[], &[Phase::Ready], &left(NOW, vec![machine]), [PAST, PAST]);
        assert!(message(&failed).contains("machine m failed"), "{failed:?}");
    }

    #[test]
    fn an_old_class_that_stays_in_use_fails_nothing() {
        let left = Left { deployments: vec![], classes: vec!["old".to_owned()] };
        let waiting = outcome_of(&[], &[Phase::Ready], &left, [PAST, NOW]);
        assert!(message(&waiting).contains("class old"), "{waiting:?}");
        assert_eq!(outcome_of(&[], &[Phase::Ready], &left, [PAST, PAST]), Outcome::Succeeded);
    }
}
