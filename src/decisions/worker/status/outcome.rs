//! Pure step: the result of a reconcile: errors first, then what is waited for and how long (docs/status.md). It only
//! depends on recorded times, so a restart does not change it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::provider::PoolError;
use crate::worker::machines::machine_objects::FailedMachine;
use crate::worker::machines::progress::{DeploymentProgress, Progress, failed_deletions_text};
use crate::worker::plan::Plan;
use crate::worker::status::published::deadline_from;
use crate::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};
use crate::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::{Bound, joined, size};

/// `lastOperation.progress` when all machines are ready and old objects are being deleted.
const PROGRESS_WHILE_CLEANING_UP: i32 = 90;
/// Prefix of failures to get machines ready.
const WAITING_FAILED: &str = "failed while waiting for all machine deployments to be ready";
/// Prefix of failures to delete old deployments.
const CLEANING_UP_FAILED: &str = "error while waiting for all undesired machine deployments to be deleted";

/// Orphans that still exist.
#[derive(Clone, Debug, Default)]
pub struct PendingDeletion {
    /// Deployments that are being deleted.
    pub deployments: Vec<PendingDeployment>,
    /// Classes that old machine sets or machines still use.
    pub classes: Vec<String>,
}

/// A deployment that is being deleted.
#[derive(Clone, Debug)]
pub struct PendingDeployment {
    /// Name of the deployment.
    pub name: String,
    /// When its deletion was requested.
    pub since: Timestamp,
    /// Its machines whose deletion failed.
    pub failed_machines: Vec<FailedMachine>,
}

impl PendingDeletion {
    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deployments.is_empty() && self.classes.is_empty()
    }
}

/// Findings of a reconcile.
pub struct Found<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Messages of failed writes.
    pub write_errors: &'a [String],
    /// Progress of the machines.
    pub progress: &'a Progress,
    /// Orphans that still exist.
    pub pending_deletion: &'a PendingDeletion,
    /// When missing machines become an error.
    pub deadline: Timestamp,
    /// Since when all machines have been ready in this operation.
    pub ready_since: Timestamp,
}

impl Found<'_> {
    /// Until when the operation waits for old classes to become unused.
    #[must_use]
    pub fn deadline_of_clean_up(&self) -> Timestamp {
        deadline_from(self.ready_since)
    }
}

/// The result of the operation, and the delay until a requeue without events.
#[must_use]
pub fn outcome(found: &Found<'_>, now: Timestamp) -> (ReconcileOutcome, Option<Duration>) {
    let stopped = found.plan.stops.pools.iter().map(|pool| Failure::new(pool.text()));
    let zones = stopped.chain(found.plan.waits.pools.iter().map(|pool| Failure::new(pool.text())));
    if let Some(failure) = failures(found) {
        let on_hold = found.plan.budget.held.iter().map(|pool| Failure::new(pool.text()));
        let failure = Failure::joined([failure].into_iter().chain(zones).chain(on_hold).collect()).unwrap_or_default();
        return (ReconcileOutcome::Failed(failure), None);
    }
    let awaited = found.plan.awaited().map(of_pool);
    let machines = (!found.progress.is_ready()).then(|| Failure::new(found.progress.waiting_text()));
    if let Some(late) = Failure::joined(awaited.chain(zones).chain(machines).collect()) {
        let percentage = 10 + found.progress.percentage() * 8 / 10;
        return waiting(late, percentage, WAITING_FAILED, found.deadline, now);
    }
    if let Some(oldest) = found.pending_deletion.deployments.iter().min_by_key(|deployment| deployment.since) {
        let text = format!("at least one unwanted machine deployment ({}) still exists", oldest.name);
        return waiting(
            Failure::new(text),
            PROGRESS_WHILE_CLEANING_UP,
            CLEANING_UP_FAILED,
            deadline_from(oldest.since),
            now,
        );
    }
    // machine-controller-manager deletes their machine sets when it observes them. If it does not, the target machines
    // are still ready, so the operation succeeds and the next one cleans up.
    if let Some(class) = found.pending_deletion.classes.first()
        && let Some(wait) = until(found.deadline_of_clean_up(), now)
    {
        let text = format!("Waiting until no machine uses the old machine class {class}");
        return (ReconcileOutcome::Waiting(text, PROGRESS_WHILE_CLEANING_UP), Some(wait));
    }
    (ReconcileOutcome::Succeeded, None)
}

/// Kinds of failures, each with a share of the text.
const KINDS: usize = 4;

/// All failures: in full if they fit, otherwise each kind in its share, so that each counts its omitted failures.
fn failures(found: &Found<'_>) -> Option<Failure> {
    let whole = failures_within(found, MAX_FAILURE_BYTES);
    let bytes: usize = whole.iter().map(|failure| size(&failure.message) + SEPARATOR).sum();
    let fits = bytes <= MAX_FAILURE_BYTES;
    let all = if fits { whole } else { failures_within(found, MAX_FAILURE_BYTES / KINDS - SEPARATOR) };
    Failure::joined(all)
}

/// Length of the separator between two failures.
const SEPARATOR: usize = 2;

/// The failures of each kind in at most `bytes`.
fn failures_within(found: &Found<'_>, bytes: usize) -> Vec<Failure> {
    let machines: Vec<&FailedMachine> =
        found.pending_deletion.deployments.iter().flat_map(|deployment| &deployment.failed_machines).collect();
    let kinds: [Option<Failure>; KINDS] = [
        Failure::joined_within(found.plan.errors().map(of_pool).collect(), bytes),
        Failure::joined_within(found.write_errors.iter().map(Failure::new).collect(), bytes),
        machine_failures(found.progress, bytes),
        failed_deletions(CLEANING_UP_FAILED, &machines, bytes),
    ];
    kinds.into_iter().flatten().collect()
}

/// Failed machines of all deployments with their pools, as one failure in at most `bytes`.
fn machine_failures(progress: &Progress, bytes: usize) -> Option<Failure> {
    type Failed<'a> = (&'a DeploymentProgress, &'a [FailedMachine]);
    let failed: Vec<Failed<'_>> = progress.failed().collect();
    if failed.is_empty() {
        return None;
    }
    let machines = failed.iter().flat_map(|(_, machines)| *machines);
    let codes = machines.flat_map(|machine| machine.codes.iter().copied()).collect();
    let begin = format!("{WAITING_FAILED}: ");
    let text_of = |(deployment, machines): &Failed<'_>, bytes| deployment.failure_text(machines, bytes);
    let rest = |rest: &[Failed<'_>]| {
        let machines: usize = rest.iter().map(|(_, machines)| machines.len()).sum();
        format!("; and {} more machine deployments with {machines} failed machines", rest.len())
    };
    let left = Bound::bytes(bytes.saturating_sub(size(&begin)));
    Some(Failure { message: format!("{begin}{}", joined(&failed, "; ", left, text_of, rest)), codes })
}

/// Machines whose deletion failed, as one failure in at most `bytes`. Each text starts with `what`, the attempted
/// action.
pub fn failed_deletions(what: &str, machines: &[&FailedMachine], bytes: usize) -> Option<Failure> {
    let codes = machines.iter().flat_map(|machine| machine.codes.iter().copied()).collect();
    (!machines.is_empty()).then(|| Failure { message: failed_deletions_text(what, machines, bytes), codes })
}

fn of_pool(error: &PoolError) -> Failure {
    Failure { message: error.to_string(), codes: error.problem.code_when_late().into_iter().collect() }
}

/// Waits until the deadline, then fails.
fn waiting(
    late: Failure,
    percentage: i32,
    error: &str,
    deadline: Timestamp,
    now: Timestamp,
) -> (ReconcileOutcome, Option<Duration>) {
    match until(deadline, now) {
        Some(wait) => (ReconcileOutcome::Waiting(late.message, percentage), Some(wait)),
        None => (ReconcileOutcome::Failed(Failure { message: format!("{error}: {}", late.message), ..late }), None),
    }
}

/// The time left until `then`; `None` if it has passed.
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
    use crate::worker::machines::progress::{DeploymentProgress, Phase};
    use crate::worker::plan::stops::Stops;
    use crate::worker::plan::stops::test_support::stopped_pool;
    use crate::worker::plan::zone_waits::ZoneWaits;
    use crate::worker::plan::zone_waits::test_support::waiting_pool;
    use wire::api::gardener::ErrorCode;

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
        left: &PendingDeletion,
        [deadline, ready_since]: [&str; 2],
    ) -> ReconcileOutcome {
        let pools = errors.iter().map(|problem| Err(problem.clone().of_pool("b"))).collect();
        let found = Found {
            plan: &Plan { pools, provider_status: json!({}), ..Plan::default() },
            write_errors: &[],
            progress: &progress(phases),
            pending_deletion: left,
            deadline: time(deadline),
            ready_since: time(ready_since),
        };
        outcome(&found, time(NOW)).0
    }

    fn message(outcome: &ReconcileOutcome) -> &str {
        match outcome {
            ReconcileOutcome::Failed(failure) => &failure.message,
            ReconcileOutcome::Waiting(text, _) => text,
            ReconcileOutcome::Started | ReconcileOutcome::Succeeded => "",
        }
    }

    #[test]
    fn fails_at_recorded_deadline() {
        let left = PendingDeletion::default();
        let waiting = outcome_of(&[], &[Phase::Pending], &left, [FUTURE, NOW]);
        assert!(matches!(waiting, ReconcileOutcome::Waiting(..)), "{waiting:?}");
        let failed = outcome_of(&[], &[Phase::Pending], &left, [PAST, NOW]);
        assert!(
            matches!(failed, ReconcileOutcome::Failed(_)) && message(&failed).starts_with(WAITING_FAILED),
            "{failed:?}"
        );
        assert_eq!(outcome_of(&[], &[Phase::Ready], &left, [PAST, PAST]), ReconcileOutcome::Succeeded);
    }

    #[test]
    fn progress_follows_machines() {
        let far = |updated: i32| {
            let deployment = DeploymentProgress { phase: Phase::Pending, ..DeploymentProgress::ready() };
            let deployment = DeploymentProgress { desired: 4, present: 4, updated, available: updated, ..deployment };
            let found = Found {
                plan: &Plan { pools: vec![], provider_status: json!({}), ..Plan::default() },
                write_errors: &[],
                progress: &Progress { deployments: vec![deployment], ..Progress::default() },
                pending_deletion: &PendingDeletion::default(),
                deadline: time(FUTURE),
                ready_since: time(NOW),
            };
            let (outcome, wait) = outcome(&found, time(NOW));
            assert_eq!(wait, Some(Duration::from_secs(180)), "until the deadline");
            let ReconcileOutcome::Waiting(_, progress) = outcome else { panic!("{outcome:?}") };
            progress
        };
        assert_eq!([0, 2, 4].map(far), [10, 50, 90], "between its beginning and the clean-up");
    }

    #[test]
    fn waiting_zones_are_reported_with_failures() {
        let plan = || {
            let waits = ZoneWaits { pools: vec![waiting_pool(time(NOW))], ..ZoneWaits::default() };
            Plan { waits, ..Plan::default() }
        };
        let failed =
            Phase::Failed(vec![FailedMachine { description: "no quota".to_owned(), ..FailedMachine::default() }]);
        for (phase, failure) in [(Phase::Waiting, None), (failed, Some("no quota"))] {
            let found = Found {
                plan: &plan(),
                write_errors: &[],
                progress: &progress(&[phase]),
                pending_deletion: &PendingDeletion::default(),
                deadline: time(FUTURE),
                ready_since: time(NOW),
            };
            let (outcome, _) = outcome(&found, time(NOW));
            let text = message(&outcome);
            assert!(text.contains(r#"pool "web": zones 2, 3 wait for zone 1, until 2026-11-21T16:00:00Z"#), "{text}");
            assert_eq!(matches!(outcome, ReconcileOutcome::Failed(_)), failure.is_some());
            assert!(failure.is_none_or(|failure| text.contains(failure)), "{text}");
        }
    }

    #[test]
    fn stopped_rolls_never_succeed() {
        let stops = Stops { pools: vec![stopped_pool(time(NOW))], ..Stops::default() };
        for phase in [Phase::Waiting, Phase::Ready] {
            let found = Found {
                plan: &Plan { stops: stops.clone(), ..Plan::default() },
                write_errors: &[],
                progress: &progress(&[phase]),
                pending_deletion: &PendingDeletion::default(),
                deadline: time(FUTURE),
                ready_since: time(NOW),
            };
            let (outcome, _) = outcome(&found, time(NOW));
            let text = message(&outcome);
            assert!(text.starts_with(r#"pool "web": rolls are stopped by the annotation stop-rolls"#), "{text}");
            assert!(matches!(outcome, ReconcileOutcome::Waiting(..)), "{outcome:?}");
        }
    }

    #[test]
    fn reports_every_failure() {
        let failed = Phase::Failed(vec![FailedMachine {
            name: "m".to_owned(),
            description: "no quota".to_owned(),
            codes: [ErrorCode::InfraQuotaExceeded].into(),
            is_creation: true,
        }]);
        let outcome = outcome_of(
            &[PoolProblem::VolumeMissing],
            &[failed, Phase::Pending],
            &PendingDeletion::default(),
            [FUTURE, NOW],
        );
        let ReconcileOutcome::Failed(failure) = &outcome else { panic!("{outcome:?}") };
        assert!(failure.message.contains("pool \"b\"") && failure.message.contains("\"m\": no quota (pool \"a\")"));
        let codes: Vec<_> = failure.codes.iter().copied().collect();
        assert_eq!(codes, [ErrorCode::ConfigurationProblem, ErrorCode::InfraQuotaExceeded]);
    }

    #[test]
    fn old_deployments_have_own_deadline() {
        let left = |since: &str, failed_machines: Vec<FailedMachine>| PendingDeletion {
            deployments: vec![PendingDeployment { name: "old-z1".to_owned(), since: time(since), failed_machines }],
            classes: vec![],
        };
        let waiting = outcome_of(&[], &[Phase::Ready], &left("2026-11-21T09:59:00Z", vec![]), [PAST, PAST]);
        assert!(
            matches!(waiting, ReconcileOutcome::Waiting(..)) && message(&waiting).contains("(old-z1) still exists")
        );
        let failed = outcome_of(&[], &[Phase::Ready], &left(PAST, vec![]), [PAST, PAST]);
        assert!(matches!(failed, ReconcileOutcome::Failed(_)) && message(&failed).starts_with(CLEANING_UP_FAILED));
        let machine = FailedMachine { name: "m".to_owned(), ..FailedMachine::default() };
        let failed = outcome_of(&[], &[Phase::Ready], &left(NOW, vec![machine]), [PAST, PAST]);
        assert!(message(&failed).contains("machine m failed"), "{failed:?}");
        let machine = |number: usize| FailedMachine { name: format!("m{number}"), ..FailedMachine::default() };
        let failed = outcome_of(&[], &[Phase::Ready], &left(NOW, (0..1200).map(machine).collect()), [PAST, PAST]);
        assert!(
            message(&failed).contains("machines m0, m1, ") && message(&failed).contains("m19 and 1180 more failed: ")
        );
    }

    #[test]
    fn old_class_in_use_does_not_fail() {
        let left = PendingDeletion { deployments: vec![], classes: vec!["old".to_owned()] };
        let waiting = outcome_of(&[], &[Phase::Ready], &left, [PAST, NOW]);
        assert!(message(&waiting).contains("class old"), "{waiting:?}");
        assert_eq!(outcome_of(&[], &[Phase::Ready], &left, [PAST, PAST]), ReconcileOutcome::Succeeded);
    }

    #[test]
    fn shares_text_among_failure_kinds() {
        let reported = |write_errors: &[String], failed: &[FailedMachine]| {
            let left = PendingDeletion {
                deployments: vec![PendingDeployment {
                    name: "old-z1".to_owned(),
                    since: time(NOW),
                    failed_machines: failed.to_vec(),
                }],
                classes: vec![],
            };
            let found = Found {
                plan: &Plan {
                    pools: vec![Err(PoolProblem::VolumeMissing.of_pool("b"))],
                    provider_status: json!({}),
                    ..Plan::default()
                },
                write_errors,
                progress: &progress(&[]),
                pending_deletion: &left,
                deadline: time(FUTURE),
                ready_since: time(NOW),
            };
            message(&outcome(&found, time(NOW)).0).to_owned()
        };
        let half = "w".repeat(MAX_FAILURE_BYTES / 2);
        assert!(reported(std::slice::from_ref(&half), &[]).contains(&half), "it fits");
        let machine = |number: usize| FailedMachine {
            name: format!("m{number}"),
            description: format!("{number} {}", "x".repeat(1000)),
            ..FailedMachine::default()
        };
        let failed: Vec<FailedMachine> = (0..100).map(machine).collect();
        let write_errors: Vec<String> = (0..2000).map(|number| format!("write {number}")).collect();
        let text = reported(&write_errors, &failed);
        assert!(text.len() <= MAX_FAILURE_BYTES, "{} bytes", text.len());
        let named = text.matches("write ").count();
        assert!(named > 300 && text.contains(&format!("; and {} more; ", 2000 - named)), "{named} writes are named");
        assert!(text.contains("pool \"b\"") && text.contains("machine m0 failed"), "{}", &text[..300]);
        assert!(text.contains(" more errors of "), "what is not named is counted: {}", &text[text.len() - 300..]);
    }

    #[test]
    fn is_empty_checks_all_kinds() {
        let deployment = PendingDeployment { name: "old-z1".to_owned(), since: time(NOW), failed_machines: vec![] };
        let is_empty = |deployments: &[PendingDeployment], classes: &[&str]| {
            let classes = classes.iter().map(|class| (*class).to_owned()).collect();
            PendingDeletion { deployments: deployments.to_vec(), classes }.is_empty()
        };
        assert!(is_empty(&[], &[]));
        assert!(!is_empty(std::slice::from_ref(&deployment), &[]) && !is_empty(&[], &["old"]));
    }
}
