//! Pure: status fields for gardenlet and the autoscaler in addition to the last operation, and the deadlines that start
//! with their publication.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::pool::names::pool_prefix;
use crate::worker::machines::machine_objects::MachineObjects;
use crate::worker::plan::Plan;
use crate::worker::plan::difference::is_same;
use crate::worker::request::Request;
use wire::api::gardener::{MachineDeploymentStatus, Worker, WorkerPool};

/// How long to wait for machines before an error is reported.
pub const WAIT_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// `lastOperation.progress` of an operation that has only started.
pub(crate) const PROGRESS_AT_START: i32 = 1;

/// Limit in bytes for fields that can't be shortened. etcd accepts 1.5 MiB for the whole Worker.
const MOST_OF_PUBLISHED: usize = 1 << 20;

/// Fields that gardenlet and the autoscaler need in full don't fit into a Worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status.machineDeployments and status.providerStatus have {bytes} bytes, at most {MOST_OF_PUBLISHED} can be written; the \
     Worker needs fewer pools or fewer zones"
)]
pub struct PublishedTooLarge {
    /// Size of both fields as JSON.
    bytes: usize,
}

/// Status fields for gardenlet and the autoscaler in addition to the last operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Bounds for the autoscaler.
    pub machine_deployments: Vec<MachineDeploymentStatus>,
    /// Whether to update the publication time for gardenlet, because an operation has started or the bounds differ.
    pub renew_time: bool,
    /// The provider's status.
    pub provider_status: ProviderStatus,
}

impl Published {
    /// Checks that all fields fit into a Worker.
    ///
    /// # Errors
    /// When it is too large for a Worker.
    pub fn check_size(&self) -> Result<(), PublishedTooLarge> {
        let bytes = json!([self.machine_deployments, self.provider_status.target]).to_string().len();
        if bytes <= MOST_OF_PUBLISHED { Ok(()) } else { Err(PublishedTooLarge { bytes }) }
    }
}

/// Recorded and target value of `status.providerStatus`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderStatus {
    /// The recorded document.
    pub recorded: Value,
    /// The target document.
    pub target: Value,
}

impl ProviderStatus {
    /// The merge patch to the target document; `None` if it is already recorded.
    #[must_use]
    pub fn patch(&self) -> Option<Value> {
        if is_same(&self.recorded, &self.target) {
            return None;
        }
        let mut document = self.target.clone();
        // A merge patch only removes fields that are set to null.
        if let (Value::Object(recorded), Value::Object(document)) = (&self.recorded, &mut document) {
            for member in recorded.keys() {
                document.entry(member.clone()).or_insert(Value::Null);
            }
        }
        Some(document)
    }
}

/// The autoscaler bounds to publish, in the order of the pools: computed for planned pools, unchanged for pools that
/// could not be planned. If that results in none, all published bounds stay, as in the Go extension, because nothing
/// reads them without pools.
#[must_use]
pub fn published_deployments(
    plan: &Plan,
    worker: &Worker,
    technical_id: &str,
    live: &MachineObjects,
) -> Vec<MachineDeploymentStatus> {
    let target = plan.target_deployments();
    let is_required = |name: &str| target.iter().any(|target| target.0 == name);
    let mut published = Vec::new();
    for (pool, result) in worker.spec.pools.iter().zip(&plan.pools) {
        match result {
            Ok(planned) => published.extend(planned.machines.iter().map(|machine| MachineDeploymentStatus {
                name: machine.deployment.name.0.clone(),
                minimum: machine.deployment.minimum,
                maximum: machine.deployment.maximum,
                priority: machine.deployment.priority,
            })),
            Err(_) => published.extend(
                worker
                    .status
                    .machine_deployments
                    .iter()
                    .filter(|kept| !is_required(&kept.name) && is_of_pool(&kept.name, pool, technical_id, live))
                    .cloned(),
            ),
        }
    }
    if published.is_empty() { worker.status.machine_deployments.clone() } else { published }
}

/// Whether a deployment belongs to the pool: by its label, or by its name if it does not exist.
fn is_of_pool(deployment: &str, pool: &WorkerPool, technical_id: &str, live: &MachineObjects) -> bool {
    if let Some(labelled) = live.deployments.get(deployment).and_then(|live| live.pool()) {
        return labelled == pool.name;
    }
    let rest = deployment.strip_prefix(&pool_prefix(technical_id, &pool.name));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-z"))
}

/// Whether gardenlet still waits for the bounds of the current operation: they were published before its request, or
/// the process ended before it published them. A reconcile that failed early leaves this to the next one.
#[must_use]
pub fn is_publication_due(worker: &Worker, request: &Request) -> bool {
    let requested = request.plausible_time().map(Timestamp::as_second);
    let published = published_at(worker).map(Timestamp::as_second);
    let only_begun = worker
        .status
        .last_operation
        .as_ref()
        .is_some_and(|last| last.state == "Processing" && last.progress == PROGRESS_AT_START);
    only_begun || requested.is_some_and(|requested| published.is_none_or(|published| published < requested))
}

/// Whether the last operation has failed, before or after its bounds were published. Times in the status don't show
/// which, because clocks may differ and two requests may arrive within one second.
#[must_use]
pub fn has_failed(worker: &Worker) -> bool {
    worker.status.last_operation.as_ref().is_some_and(|last| last.state == "Error")
}

/// Deadline for machines: five minutes after the bounds were published, as recorded in the status.
#[must_use]
pub fn deadline(worker: &Worker) -> Option<Timestamp> {
    published_at(worker).map(deadline_from)
}

/// When the bounds were last published, as recorded in the status.
#[must_use]
pub fn published_at(worker: &Worker) -> Option<Timestamp> {
    worker.status.machine_deployments_last_update_time.as_deref()?.parse().ok()
}

/// The deadline of a wait that starts at `begin`.
#[must_use]
pub fn deadline_from(begin: Timestamp) -> Timestamp {
    begin.checked_add(WAIT_TIMEOUT).unwrap_or(Timestamp::MAX)
}

/// gardenlet waits until this time increases. It has whole seconds, so a second request within one second gets the next
/// one. A recorded time more than a minute ahead is ignored.
pub(crate) fn publication_time(worker: &Worker, now: Timestamp) -> Timestamp {
    let next = published_at(worker).and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok());
    next.filter(|next| next.duration_since(now) <= SignedDuration::from_mins(1)).map_or(now, |next| next.max(now))
}

/// RFC 3339 in whole seconds, as Kubernetes writes times.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::test_support::machine_plan;
    use crate::provider::{PoolPlan, PoolProblem};
    use crate::worker::machines::machine_objects::LiveDeployment;
    use crate::worker::request::TIMESTAMP_ANNOTATION;

    const NOW: &str = "2026-11-21T10:00:00Z";

    #[test]
    fn publishes_bounds_after_early_failure() {
        let due = |requested: Option<&str>, status: Value| {
            let document = json!({"metadata": {}, "spec": {"type": "azure"}, "status": status});
            let mut worker: Worker = serde_json::from_str(&document.to_string()).unwrap();
            let annotation = requested.map(|time| (TIMESTAMP_ANNOTATION.to_owned(), time.to_owned()));
            worker.metadata.annotations = Some(annotation.into_iter().collect());
            is_publication_due(&worker, &Request::of(&worker, NOW.parse().unwrap()))
        };
        let request = Some("2026-11-21T10:00:00.734561Z");
        let published = |time: &str| json!({"machineDeploymentsLastUpdateTime": time});
        assert!(due(request, published("2026-11-21T09:59:59Z")), "gardenlet waits for a later time");
        assert!(due(request, json!({})));
        assert!(!due(request, published("2026-11-21T10:00:00Z")), "times have whole seconds");
        assert!(!due(None, published("2026-11-21T09:00:00Z")), "nobody waits");
        let ahead = Some("2027-01-01T00:00:00Z");
        assert!(!due(ahead, published("2026-11-21T10:00:00Z")), "else each reconcile would move the deadline");
        let begun =
            json!({"lastOperation": {"type": "Reconcile", "state": "Processing", "progress": PROGRESS_AT_START}});
        assert!(due(None, begun), "the process ended right after the beginning");
        let waiting = json!({"lastOperation": {"type": "Reconcile", "state": "Processing", "progress": 50}});
        assert!(!due(None, waiting), "they were published before anything was waited for");
    }

    #[test]
    fn rejects_bounds_that_do_not_fit() {
        let bound = |number: usize| MachineDeploymentStatus {
            name: format!("shoot--project--name-pool-{number}"),
            minimum: 1,
            maximum: 2,
            priority: None,
        };
        let published =
            |count: usize| Published { machine_deployments: (0..count).map(bound).collect(), ..Published::default() };
        assert_eq!(published(3000).check_size(), Ok(()));
        let error = published(20_000).check_size().unwrap_err().to_string();
        assert!(error.contains("status.machineDeployments") && error.contains("fewer pools"), "{error}");
    }

    #[test]
    fn unplanned_pool_keeps_published_bounds() {
        let bound = |name: &str| json!({"name": name, "minimum": 1, "maximum": 2});
        let pool =
            |name: &str| json!({"name": name, "machineType": "t", "machineImage": {"name": "i", "version": "1"}});
        let names = ["shoot--p--s-b", "shoot--p--s-b-z1", "shoot--p--s-bc-z1", "b-by-label", "shoot--p--s-b-of-c"];
        let worker: Worker = serde_json::from_value(json!({
            "metadata": {}, "spec": {"type": "azure", "pools": [pool("b")]},
            "status": {"machineDeployments": names.map(bound)},
        }))
        .unwrap();
        let labelled = |name: &str, pool: &str| {
            let document = json!({"metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": pool}}});
            (name.to_owned(), LiveDeployment::read_without_codes(document).unwrap())
        };
        let deployments = [labelled("b-by-label", "b"), labelled("shoot--p--s-b-z1", "b")].into();
        let live = MachineObjects { deployments, ..MachineObjects::default() };
        let plan = Plan {
            pools: vec![Err(PoolProblem::VolumeMissing.of_pool("b"))],
            provider_status: json!({}),
            ..Plan::default()
        };
        let published = published_deployments(&plan, &worker, "shoot--p--s", &live);
        let published: Vec<&str> = published.iter().map(|bound| bound.name.as_str()).collect();
        assert_eq!(published, ["shoot--p--s-b", "shoot--p--s-b-z1", "b-by-label"]);
    }

    #[test]
    fn publishes_each_bound_once() {
        let bound = |name: &str, maximum: i32| json!({"name": name, "minimum": 2, "maximum": maximum});
        let worker: Worker = serde_json::from_value(json!({
            "metadata": {}, "spec": {"type": "azure", "pools": [{"name": "a"}, {"name": "a-z1"}]},
            "status": {"machineDeployments": [bound("shoot--p--s-a-z1", 9), bound("shoot--p--s-a-z2", 9)]},
        }))
        .unwrap();
        let planned = PoolPlan {
            pool: "a-z1".to_owned(),
            machines: vec![machine_plan()],
            status_image: json!({}),
            in_place_hash: None,
        };
        let pools = vec![Err(PoolProblem::VolumeMissing.of_pool("a")), Ok(planned)];
        let plan = Plan { pools, provider_status: json!({}), ..Plan::default() };
        let published = published_deployments(&plan, &worker, "shoot--p--s", &MachineObjects::default());
        assert_eq!(json!(published), json!([bound("shoot--p--s-a-z2", 9), bound("shoot--p--s-a-z1", 5)]));
    }

    #[test]
    fn deadline_is_five_minutes_after_publication() {
        let deadline = |status: Value| {
            let document = json!({"metadata": {}, "spec": {"type": "azure"}, "status": status});
            deadline(&serde_json::from_str(&document.to_string()).unwrap()).map(|deadline| deadline.to_string())
        };
        let published = json!({"machineDeploymentsLastUpdateTime": "2026-11-21T10:00:00Z"});
        assert_eq!(deadline(published).as_deref(), Some("2026-11-21T10:05:00Z"));
        assert_eq!(deadline(json!({})), None, "they were never published");
    }
}
