//! I/O step: scales and restarts machine-controller-manager. gardenlet deploys it. It is stopped for a hibernated
//! shoot, started after a migration, and restarted if it is stuck (docs/contract.md#machine-controller-manager).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::api::{Api, DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, Preconditions, Request};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::worker::machines::progress::Stuck;
use decisions::worker::plan::orphans::MachineControllerManagerState;
use decisions::worker::status::outcome::until;
use runtime::cluster::error::ReadError;
use runtime::cluster::machine_reads::MACHINE_CONTROLLER_MANAGER;
use runtime::cluster::retry_layer::SentOnce;
use runtime::cluster::shoot_namespace::ShootNamespace;
use wire::api::deployment::Deployment;
use wire::api::gardener::Shoot;

/// Label selector of its pods.
const PODS: &str = "role=machine-controller-manager";
/// How long a new machine class may stay without a machine set.
pub(crate) const MACHINE_SET_DEADLINE: SignedDuration = SignedDuration::from_mins(2);

/// Stops it if its Deployment still has this version: another controller that started it in the meantime needs it.
/// The request is never retried, because the reasons for it may no longer hold.
///
/// # Errors
/// If its Deployment can't be scaled, including because its version has changed.
pub(crate) async fn stop(shoot: &ShootNamespace, version: &str) -> Result<(), ReconcileError> {
    scale(shoot, &of_version(version, 0), Tries::One).await
}

/// Starts it if it is stopped, provided that the Deployment does not change between read and write.
///
/// # Errors
/// If its Deployment can't be read or scaled. A version conflict is not an error.
pub(crate) async fn start_stopped(shoot: &ShootNamespace) -> Result<(), ReconcileError> {
    let deployment = shoot.machine_controller_deployment().await?.filter(|deployment| deployment.replicas() == 0);
    let Some(version) = deployment.and_then(|deployment| deployment.metadata.resource_version) else { return Ok(()) };
    match scale(shoot, &of_version(&version, 1), Tries::Some).await {
        Err(error) if error.is_outdated() => Ok(()),
        scaled => scaled,
    }
}

fn of_version(version: &str, replicas: u32) -> Value {
    json!({"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}})
}

/// Starts machine-controller-manager, which gardenlet leaves at zero replicas until the machines are restored. Does
/// nothing for a hibernated shoot or if it already runs.
///
/// # Errors
/// If its Deployment can't be read or scaled. [`ReconcileError::WorkerChanged`] if the Worker changed in the meantime.
pub(crate) async fn start_after_restore(context: &ReconcileContext<'_>, shoot: &Shoot) -> Result<(), ReconcileError> {
    let is_hibernated = shoot.should_hibernate() && shoot.status.is_hibernated;
    if is_hibernated || context.shoot.machine_controller().await? == MachineControllerManagerState::Running {
        return Ok(());
    }
    context.ensure_still_current().await?;
    scale(&context.shoot, &json!({"spec": {"replicas": 1}}), Tries::Some).await
}

/// How often an unanswered request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tries {
    One,
    Some,
}

async fn scale(shoot: &ShootNamespace, patch: &Value, tries: Tries) -> Result<(), ReconcileError> {
    let requests = Request::new(Deployment::url_path(&(), Some(shoot.name())));
    let patch = Patch::Merge(patch);
    let scaled = async {
        let mut request = requests
            .patch_subresource("scale", MACHINE_CONTROLLER_MANAGER, &PatchParams::default(), &patch)
            .map_err(kube::Error::BuildRequest)?;
        if tries == Tries::One {
            request.extensions_mut().insert(SentOnce);
        }
        shoot.client().request::<Scale>(request).await
    };
    match scaled.await {
        Ok(scaled) => {
            let replicas = scaled.spec.and_then(|spec| spec.replicas).unwrap_or_default();
            info!(replicas, "machine-controller-manager is scaled");
            Ok(())
        }
        // Without the Deployment there is nothing to scale.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(source) => {
            let what = format!("the scale of Deployment {MACHINE_CONTROLLER_MANAGER:?}");
            Err(ReconcileError::Write { what, source: source.into() })
        }
    }
}

/// Restarts it once for each change that it has ignored past the deadline. Returns the change that caused a restart,
/// and when the next deadline ends.
pub(crate) async fn restart_if_stuck(
    shoot: &ShootNamespace,
    untaken: &[Stuck],
    now: Timestamp,
) -> (Option<Stuck>, Option<Duration>) {
    let (over, waiting): (Vec<&Stuck>, Vec<&Stuck>) =
        untaken.iter().partition(|stuck| until_over(stuck, now).is_none());
    let requeue_after = waiting.into_iter().filter_map(|stuck| until_over(stuck, now)).min();
    // A pod that is too young for the newest change is also too young for the others.
    let Some(newest) = over.into_iter().max_by_key(|stuck| stuck.since) else { return (None, requeue_after) };
    // A failure here must not hide what the pools wait for.
    let restarted = restart(shoot, newest).await.unwrap_or_else(|error| {
        warn!(%error, "machine-controller-manager can't be restarted");
        false
    });
    (restarted.then(|| newest.clone()), requeue_after)
}

fn until_over(stuck: &Stuck, now: Timestamp) -> Option<Duration> {
    until(stuck.since.checked_add(MACHINE_SET_DEADLINE).unwrap_or(Timestamp::MAX), now)
}

/// Deletes the pods that already ran at the time of the change. Returns whether there was one.
async fn restart(shoot: &ShootNamespace, stuck: &Stuck) -> Result<bool, ReconcileError> {
    let api: Api<PartialObjectMeta<Pod>> = Api::namespaced(shoot.client().clone(), shoot.name());
    let pods = api
        .list(&ListParams::default().labels(PODS))
        .await
        .map_err(|source| ReadError::Api { what: "pods of machine-controller-manager".to_owned(), source })?;
    let mut restarted = false;
    for pod in pods {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        if pod.metadata.deletion_timestamp.is_some() || !created.is_some_and(|created| is_due(created, stuck)) {
            continue;
        }
        let Some(name) = pod.metadata.name else { continue };
        let of_uid = Preconditions { uid: pod.metadata.uid, resource_version: None };
        match api.delete(&name, &DeleteParams::default().preconditions(of_uid)).await {
            Ok(_) => {
                warn!(pod = name, deployment = stuck.deployment, "machine-controller-manager is stuck; pod deleted");
                restarted = true;
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => return Err(ReconcileError::Delete { kind: "Pod", name, source: source.into() }),
        }
    }
    Ok(restarted)
}

/// Whether a pod existed for half of the deadline. The other half allows for clock skew: the replacement pod must not
/// seem older than that.
fn is_due(created: Timestamp, stuck: &Stuck) -> bool {
    created.as_second() < stuck.since.as_second().saturating_add(MACHINE_SET_DEADLINE.as_secs() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_support::{controller, lines, reconcile_of, refusal, worker, worker_in};
    use decisions::provider::azure::Azure;
    use decisions::worker::request::Operation;

    const READ: &str = "GET machine-controller-manager";
    const READ_WORKER: &str = "GET w";
    const SCALED: &str = "PATCH scale";

    /// Requests after a restore, with that many replicas of machine-controller-manager.
    async fn requested(shoot: Value, replicas: u32) -> Vec<String> {
        let deployment = json!({"metadata": {}, "spec": {"replicas": replicas, "selector": {}, "template": {}}});
        let (controller, requested) = controller(None, move |line, _| match line {
            READ_WORKER => (200, worker(&json!({}), 7)),
            _ => (200, deployment.clone()),
        });
        let shoot: Shoot = serde_json::from_str(&shoot.to_string()).unwrap();
        let context = reconcile_of(&controller, &worker_in("ns"), &Azure, Operation::Restore);
        start_after_restore(&context, &shoot).await.unwrap();
        lines(&requested)
    }

    #[tokio::test]
    async fn starts_for_restored_machines_unless_running_or_hibernated() {
        let hibernated = json!({"hibernation": {"enabled": true}});
        assert_eq!(requested(json!({}), 0).await, [READ, READ_WORKER, SCALED]);
        assert_eq!(requested(json!({}), 1).await, [READ]);
        assert!(requested(json!({"spec": hibernated, "status": {"isHibernated": true}}), 0).await.is_empty());
        let becomes_hibernated = json!({"spec": hibernated});
        assert_eq!(
            requested(becomes_hibernated, 0).await,
            [READ, READ_WORKER, SCALED],
            "it has machines that are to go"
        );
        let wakes_up = json!({"status": {"isHibernated": true}});
        assert_eq!(requested(wakes_up, 0).await, [READ, READ_WORKER, SCALED]);
    }

    #[tokio::test]
    async fn only_what_is_not_there_need_not_be_scaled() {
        for (code, reason, is_fine) in [(404, "NotFound", true), (409, "Conflict", false), (403, "Forbidden", false)] {
            let (controller, requested) = controller(None, move |_, _| refusal(code, reason));
            let stopped = stop(&controller.shoot_namespace("ns", &Azure), "5").await;
            assert_eq!(stopped.is_ok(), is_fine, "{code}: {stopped:?}");
            let patch = json!({"metadata": {"resourceVersion": "5"}, "spec": {"replicas": 0}});
            assert_eq!(*requested.lock().unwrap(), [(SCALED.to_owned(), patch)], "of that version only");
        }
    }

    /// Requests of `start_stopped` for a Deployment with that many replicas, and whether it succeeded.
    async fn started(replicas: u32, refused: Option<(u16, &'static str)>) -> (Vec<(String, Value)>, bool) {
        let metadata = json!({"resourceVersion": "6"});
        let deployment = json!({"metadata": metadata, "spec": {"replicas": replicas, "selector": {}, "template": {}}});
        let (controller, requested) = controller(None, move |line, _| match (line, refused) {
            (SCALED, Some((code, reason))) => refusal(code, reason),
            _ => (200, deployment.clone()),
        });
        let started = start_stopped(&controller.shoot_namespace("ns", &Azure)).await;
        let requested = requested.lock().unwrap().clone();
        (requested, started.is_ok())
    }

    #[tokio::test]
    async fn what_was_stopped_is_started_in_the_version_that_was_read() {
        let (requested, is_fine) = started(0, None).await;
        let patch = json!({"metadata": {"resourceVersion": "6"}, "spec": {"replicas": 1}});
        assert!(is_fine);
        assert_eq!(requested[1..], [(SCALED.to_owned(), patch)]);
        let (requested, is_fine) = started(1, None).await;
        assert_eq!((requested.len(), is_fine), (1, true), "it runs: {requested:?}");
        for (code, reason, expected) in [(404, "NotFound", true), (409, "Conflict", true), (403, "Forbidden", false)] {
            assert_eq!(started(0, Some((code, reason))).await.1, expected, "{reason}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sends_stop_once_and_start_until_it_succeeds() {
        let tries = async |target: u32| {
            let (controller, requested) = controller(None, |line, _| match line {
                SCALED => refusal(503, "ServiceUnavailable"),
                _ => (200, json!({"metadata": {"resourceVersion": "6"}, "spec": {"replicas": 0}})),
            });
            let shoot = controller.shoot_namespace("ns", &Azure);
            let scaled = if target == 0 { stop(&shoot, "5").await } else { start_stopped(&shoot).await };
            assert!(scaled.is_err());
            lines(&requested).iter().filter(|line| *line == SCALED).count()
        };
        assert_eq!(tries(0).await, 1);
        assert!(tries(1).await > 1);
    }

    #[test]
    fn a_change_restarts_it_once() {
        let since: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let stuck = Stuck { deployment: "a-z1".to_owned(), since };
        assert!(is_due("2026-11-20T00:00:00Z".parse().unwrap(), &stuck), "it was there before the change");
        assert!(is_due("2026-11-21T10:00:59Z".parse().unwrap(), &stuck), "it came soon after");
        assert!(!is_due("2026-11-21T10:01:00Z".parse().unwrap(), &stuck), "half of the time is over");
        assert!(!is_due("2026-11-21T10:02:00Z".parse().unwrap(), &stuck), "this is the pod that followed");
        assert!(!is_due("2026-11-21T10:01:10Z".parse().unwrap(), &stuck), "by a clock that is late by 50 seconds");
    }

    const CHANGED: &str = "2026-11-21T10:00:00Z";

    fn pod(name: &str, created: &str) -> Value {
        json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "creationTimestamp": created}})
    }

    /// Result of `restart_if_stuck` for ignored changes of these ages in seconds, and the deleted pods.
    async fn restarted(
        ages: &[i64],
        pods: Vec<Value>,
        refused: Option<(u16, &'static str)>,
    ) -> (Option<String>, Option<u64>, Vec<(String, Value)>) {
        let (controller, requested) = controller(None, move |line, _| match (line, refused) {
            ("GET pods", _) => (200, json!({"kind": "PodList", "metadata": {}, "items": pods})),
            (_, Some((code, reason))) => refusal(code, reason),
            _ => (200, json!({"kind": "Status", "status": "Success"})),
        });
        let now: Timestamp = CHANGED.parse::<Timestamp>().unwrap();
        let changed =
            |age: &i64| Stuck { deployment: format!("since-{age}"), since: now - SignedDuration::from_secs(*age) };
        let untaken: Vec<Stuck> = ages.iter().map(changed).collect();
        let shoot = controller.shoot_namespace("ns", &Azure);
        let (stuck, again) = restart_if_stuck(&shoot, &untaken, now).await;
        let requested = requested.lock().unwrap();
        let deleted = requested.iter().filter(|(line, _)| line.starts_with("DELETE")).cloned().collect();
        (stuck.map(|stuck| stuck.deployment), again.map(|again| again.as_secs()), deleted)
    }

    #[tokio::test]
    async fn restarts_after_the_newest_change_exceeds_its_timeout() {
        let old = || pod("old", "2026-11-20T00:00:00Z");
        let mut going = old();
        going["metadata"]["deletionTimestamp"] = json!(CHANGED);
        assert_eq!(restarted(&[], vec![old()], None).await, (None, None, vec![]));
        assert_eq!(restarted(&[20, 50], vec![old()], None).await, (None, Some(70), vec![]), "they have some time left");
        let (stuck, again, deleted) = restarted(&[130, 200, 20], vec![old(), pod("new", CHANGED)], None).await;
        assert_eq!((stuck.as_deref(), again), (Some("since-130"), Some(100)));
        assert_eq!(deleted.len(), 1);
        assert_eq!((deleted[0].0.as_str(), &deleted[0].1["preconditions"]["uid"]), ("DELETE old", &json!("uid-old")));
        for (pods, why) in
            [(vec![], "there is none"), (vec![pod("new", CHANGED)], "it followed"), (vec![going], "it goes")]
        {
            assert_eq!(restarted(&[130], pods, None).await, (None, None, vec![]), "{why}");
        }
    }

    #[tokio::test]
    async fn reports_no_restart_for_missing_or_forbidden_pods() {
        let pods = || vec![pod("old", "2026-11-20T00:00:00Z"), pod("older", "2026-11-19T00:00:00Z")];
        let (stuck, _, deleted) = restarted(&[130], pods(), Some((404, "NotFound"))).await;
        assert_eq!((stuck, deleted.len()), (None, 2), "each is tried");
        let (stuck, _, deleted) = restarted(&[130], pods(), Some((403, "Forbidden"))).await;
        assert_eq!((stuck, deleted.len()), (None, 1), "the others would be refused, too");
    }
}
