//! One reconcile of a Worker that is being deleted: machines first, then classes with their Secrets.
//!
//! Deletion needs no image, no machine type and no user data. Classes stay until the last machine is deleted, because
//! machine-controller-manager needs them and the credentials to delete machines at the cloud. Until then they are
//! repaired as far as they can be planned.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Secret, SecretReference};
use kube::Client;
use kube::api::Api;

use crate::controller::deletion::delete_objects::delete_objects;
use crate::controller::deletion::force_deletion::mark_machines;
use crate::controller::reconcile::dependencies::UNTIL_DELETED;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::{Inputs, ReconcileContext};
use crate::controller::reconcile::repair::{RepairResult, repair_classes};
use crate::controller::reconcile::result::ReconcileResult;
use decisions::worker::deletion::pending_deletion::{pending_deletion_text, percentage};
use decisions::worker::machines::machine_objects::{FailedMachine, MachineObjects};
use decisions::worker::plan::orphans::{Deletions, MachineControllerManagerState};
use decisions::worker::request::Request;
use decisions::worker::request::decode;
use decisions::worker::status::outcome::{failed_deletions, until};
use decisions::worker::status::published::deadline_from;
use decisions::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};
use decisions::worker::status::status_text::MAX_FAILURE_BYTES;
use runtime::cloud::dependency::CleanUp;
use runtime::cluster::CREDENTIALS;
use runtime::cluster::error::ReadError;
use runtime::cluster::shoot_namespace::ShootNamespace;
use wire::api::gardener::{Cluster, Worker};

/// Finalizers that machine-controller-manager puts on the credentials Secret.
const MACHINE_CONTROLLER_FINALIZERS: [&str; 2] =
    ["machine.sapcloud.io/machine-controller-manager", "machine.sapcloud.io/machine-controller"];
/// Start of a failure message.
const FAILED: &str = "failed while waiting for all machine resources to be deleted";
/// Only the Secret `cloudprovider` is watched. Credentials with another name are polled at this interval while they
/// have a finalizer.
const UNWATCHED_PERIOD: Duration = Duration::from_secs(2);

/// Deletes what can be deleted now, and reports what is left and what blocks it.
///
/// # Errors
/// If an object can't be read, marked or deleted.
pub(crate) async fn delete(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    inputs: Inputs,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let shoot = &context.shoot;
    let deadline = deadline(worker, &context.request, now);
    let cluster = inputs.cluster?;
    let cluster = cluster.as_deref();
    if cluster.is_some_and(decode::is_deletion_forced) {
        return Ok(result(ReconcileOutcome::Succeeded, None));
    }
    let live = shoot.machine_objects().await?;
    let mut repaired = RepairResult { live, missing: None, writes: 0, requeue_after: None };
    if repaired.live.uses_classes() {
        repaired = repair_classes(context, worker, cluster, &inputs.secrets, repaired.live).await?;
    }
    if !repaired.live.uses_classes() {
        repaired.live = read_remaining_objects(shoot, repaired.live).await?;
    }
    if repaired.live.is_empty() {
        return release_credentials(context, worker, cluster, deadline, now).await;
    }
    delete_machines(context, deadline, now, repaired).await
}

/// Removes what machines depended on once nothing holds the credentials any more. All machine objects are deleted.
async fn release_credentials(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    cluster: Option<&Cluster>,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let shoot = &context.shoot;
    let credentials = &worker.spec.secret_ref;
    // Machines of another Worker of the namespace need the credentials longer.
    let holder = match shoot.others().is_empty() {
        true => credentials_holder(shoot.client(), credentials).await?,
        false => None,
    };
    let Some(text) = holder else {
        return remove_dependencies(context, worker, cluster, deadline, now).await;
    };
    let is_watched =
        credentials.name.as_deref() == Some(CREDENTIALS) && credentials.namespace.as_deref() == Some(shoot.name());
    let poll = if is_watched { None } else { Some(UNWATCHED_PERIOD) };
    Ok(waiting(deadline, Failure::new(text), 90, now, poll))
}

/// Marks machines for deletion, deletes what nothing needs any more, and reports what is left.
async fn delete_machines(
    context: &mut ReconcileContext<'_>,
    deadline: Timestamp,
    now: Timestamp,
    repaired: RepairResult,
) -> Result<ReconcileResult, ReconcileError> {
    let RepairResult { live, missing, writes, requeue_after } = repaired;
    mark_machines(context, &live.machines).await?;
    let deletions = Deletions::of_all(&live);
    if !deletions.is_empty() {
        context.ensure_still_current().await?;
    }
    let shoot = &context.shoot;
    delete_objects(&shoot.apis(), deletions).await?;
    let is_late = until(deadline, now).is_none();
    if let Some(failed) = failed_machines(&live) {
        let failure = with_missing_prerequisites(failed, missing);
        return Ok(ReconcileResult { writes, ..result(ReconcileOutcome::Failed(failure), None) });
    }
    let mut text = pending_deletion_text(&live, is_late);
    if is_late && live.uses_classes() && shoot.machine_controller().await? == MachineControllerManagerState::Stopped {
        text.push_str("; machine-controller-manager does not run, so no machine is deleted");
    }
    let failure = with_missing_prerequisites(Failure::new(text), missing);
    let requeue_after = if is_late { None } else { requeue_after };
    Ok(ReconcileResult { writes, ..waiting(deadline, failure, percentage(&live), now, requeue_after) })
}

fn with_missing_prerequisites(failure: Failure, missing: Option<Failure>) -> Failure {
    let mut failures = vec![failure];
    failures.extend(missing);
    Failure::joined(failures).unwrap_or_default()
}

/// Rereads objects once no class seems to be in use. Watches may be behind, and an API server may confirm a deletion
/// that it did not make. Neither classes nor the Worker may be released while an unseen machine exists, nor the
/// Worker while any object is left.
async fn read_remaining_objects(shoot: &ShootNamespace, mut live: MachineObjects) -> Result<MachineObjects, ReadError> {
    if !live.is_empty() {
        live = shoot.read_users_of_classes(live.deployments).await?;
    }
    if live.is_empty() {
        live = shoot.read_machine_objects().await?;
    }
    Ok(live)
}

/// Removes what machines depended on, after the last of them is deleted.
async fn remove_dependencies(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    cluster: Option<&Cluster>,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let Some(cloud) = context.cloud() else { return Ok(result(ReconcileOutcome::Succeeded, None)) };
    let secrets = context.shoot.credentials(worker).await?;
    // A recreated Worker with the same name may need the dependencies.
    context.ensure_still_current().await?;
    Ok(match cloud.remove(worker, cluster, &secrets).await? {
        CleanUp::Done(records) => {
            if let Some(records) = records {
                context.write_provider_status(worker, records).await?;
            }
            result(ReconcileOutcome::Succeeded, None)
        }
        CleanUp::Unneeded => waiting(deadline, Failure::new(format!("waiting {UNTIL_DELETED}")), 95, now, None),
        CleanUp::Waiting(text) => waiting(deadline, Failure::new(format!("waiting {text}")), 95, now, None),
        CleanUp::Failed(failure, again) => result(ReconcileOutcome::Failed(failure), Some(again)),
    })
}

fn result(outcome: ReconcileOutcome, requeue_after: Option<Duration>) -> ReconcileResult {
    ReconcileResult { requeue_after, ..ReconcileResult::of(outcome) }
}

/// Waits until five minutes after the request. After that, what is left is reported as an error.
fn waiting(
    deadline: Timestamp,
    left: Failure,
    progress: i32,
    now: Timestamp,
    requeue_after: Option<Duration>,
) -> ReconcileResult {
    match until(deadline, now) {
        Some(wait) => {
            let after = requeue_after.map_or(wait, |after| after.min(wait));
            result(ReconcileOutcome::Waiting(left.message, progress), Some(after))
        }
        None => result(
            ReconcileOutcome::Failed(Failure { message: format!("{FAILED}: {}", left.message), ..left }),
            requeue_after,
        ),
    }
}

/// Five minutes after the latest deletion request. gardenlet repeats the request with a new timestamp.
fn deadline(worker: &Worker, request: &Request, now: Timestamp) -> Timestamp {
    let deleted_at = worker.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    deadline_from(deleted_at.max(request.time()).unwrap_or(now))
}

/// Machines that can't be deleted. Creation failures no longer matter.
fn failed_machines(live: &MachineObjects) -> Option<Failure> {
    let failed = live.deployments.values().flat_map(|deployment| &deployment.failed_machines);
    let failed: Vec<&FailedMachine> = failed.filter(|machine| !machine.is_creation).collect();
    // The other half of the message is for missing prerequisites.
    failed_deletions(FAILED, &failed, MAX_FAILURE_BYTES / 2)
}

/// Returns a text if a finalizer of machine-controller-manager still holds the credentials.
async fn credentials_holder(client: &Client, reference: &SecretReference) -> Result<Option<String>, ReconcileError> {
    let (Some(namespace), Some(name)) = (&reference.namespace, &reference.name) else { return Ok(None) };
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("Secret {namespace}/{name}");
    let secret = api.get_opt(name).await.map_err(|source| ReadError::Api { what: what.clone(), source })?;
    let finalizers = secret.and_then(|secret| secret.metadata.finalizers).unwrap_or_default();
    let holder = finalizers.into_iter().find(|finalizer| MACHINE_CONTROLLER_FINALIZERS.contains(&finalizer.as_str()));
    Ok(holder.map(|finalizer| format!("waiting until the credentials {what} are released by {finalizer}")))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::{Arc, Mutex};

    use axum::http::{self, Response};
    use futures::future;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;
    use crate::controller::queue::Requeue;
    use crate::controller::run::context::ControllerContext;
    use crate::controller::test_seed::{CONTROLLER, CREDENTIALS, DEPLOYMENT, NAMESPACE, Seed, WORKER};
    use crate::controller::test_support::watched;
    use decisions::provider::Providers;
    use decisions::provider::azure::Azure;
    use decisions::worker::machines::machine_objects::LiveDeployment;
    use runtime::cluster::cache::SeedCache;
    use runtime::cluster::decode_guard::LazyObject;
    use runtime::cluster::identity::Identity;

    /// A shoot whose API server has only the Secret of a class, and the requests it gets. If `lies` is set, it has
    /// already confirmed the deletion of that Secret.
    fn shoot(lies: Arc<Mutex<bool>>) -> (ShootNamespace, Arc<Mutex<Vec<String>>>) {
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
        let seen = Arc::clone(&requests);
        let cached = Arc::clone(&cache);
        let service = service_fn(move |request: http::Request<Body>| {
            let plural = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            if *lies.lock().unwrap() && plural == "machines" {
                cached.machine_objects.class_secrets.own_deletion("shoot--p--s", "web-z1", "u", Instant::now());
            }
            let labels = json!({"gardener.cloud/purpose": "machineclass"});
            let metadata = json!({"name": "web-z1", "namespace": "shoot--p--s", "uid": "u", "resourceVersion": "5", "labels": labels});
            let items: Vec<Value> = (plural == "secrets").then(|| json!({"metadata": metadata})).into_iter().collect();
            let list = json!({"metadata": {"resourceVersion": "7"}, "items": items});
            seen.lock().unwrap().push(plural);
            future::ok::<_, kube::Error>(Response::new(Body::from(list.to_string().into_bytes())))
        });
        (ShootNamespace::new(Client::new(service, "default"), cache, "shoot--p--s", &Azure), requests)
    }

    #[tokio::test]
    async fn keeps_worker_while_secret_still_exists() {
        let lies = Arc::<Mutex<bool>>::default();
        let (shoot, requests) = shoot(Arc::clone(&lies));
        let live = shoot.read_machine_objects().await.unwrap();
        assert_eq!(live.class_secrets.len(), 1);
        requests.lock().unwrap().clear();
        *lies.lock().unwrap() = true;
        let left = read_remaining_objects(&shoot, live).await.unwrap();
        assert_eq!(left.class_secrets.len(), 1, "it is still there");
        assert!(requests.lock().unwrap().iter().any(|plural| plural == "secrets"));
    }

    #[tokio::test]
    async fn lists_classes_again_only_when_cached_ones_are_deleted() {
        let (shoot, requests) = shoot(Arc::default());
        let live = shoot.read_machine_objects().await.unwrap();
        requests.lock().unwrap().clear();
        let left = read_remaining_objects(&shoot, live).await.unwrap();
        assert_eq!(left.class_secrets.len(), 1);
        assert_eq!(*requests.lock().unwrap(), ["machinedeployments", "machinesets", "machines"]);
    }

    #[test]
    fn reports_deletion_as_late_after_five_minutes() {
        let now = "2026-11-21T10:00:00Z";
        let deleted = "2026-11-21T09:00:00Z";
        let late_at = |deleted: Option<&str>, requested: Option<&str>| {
            let annotations = requested.map(|time| json!({"gardener.cloud/timestamp": time}));
            let metadata = json!({"deletionTimestamp": deleted, "annotations": annotations});
            let worker = json!({"metadata": metadata, "spec": {"type": "azure"}});
            let worker: Worker = serde_json::from_str(&worker.to_string()).unwrap();
            let now = now.parse().unwrap();
            deadline(&worker, &Request::of(&worker, now), now).to_string()
        };
        assert_eq!(late_at(Some(deleted), None), "2026-11-21T09:05:00Z");
        assert_eq!(late_at(Some(deleted), Some("2026-11-21T09:30:00Z")), "2026-11-21T09:35:00Z", "asked for again");
        assert_eq!(late_at(Some(deleted), Some("2026-11-21T08:00:00Z")), "2026-11-21T09:05:00Z");
        assert_eq!(late_at(None, None), "2026-11-21T10:05:00Z");
    }

    fn minutes_ago(minutes: i64) -> Timestamp {
        Timestamp::now() - jiff::SignedDuration::from_mins(minutes)
    }

    /// A Worker with all its machines, deleted that many minutes ago.
    async fn deleted(minutes: i64) -> (Seed, Arc<ControllerContext>) {
        let (seed, context) = Seed::settled().await;
        seed.delete(minutes_ago(minutes));
        (seed, context)
    }

    fn machine_controller_manager_is_done(seed: &Seed) {
        ["machinedeployments/", "machinesets/", "machines/"].into_iter().for_each(|plural| seed.remove(plural));
    }

    fn is_after(requeue: Requeue, seconds: Range<u64>) -> bool {
        matches!(requeue, Requeue::After(after) if seconds.contains(&after.as_secs()))
    }

    #[tokio::test(start_paused = true)]
    async fn machines_go_first_then_classes_with_their_secrets_then_the_worker() {
        let (seed, context) = deleted(0).await;
        seed.reconcile(&context).await.unwrap();
        let writes = seed.writes();
        assert_eq!(writes.iter().filter(|line| line.starts_with("PATCH machines/")).count(), 3, "{writes:?}");
        assert!(writes.contains(&format!("DELETE {DEPLOYMENT}")), "{writes:?}");
        assert!(!writes.iter().any(|line| line.starts_with("DELETE machineclasses")), "{writes:?}");
        let machines = seed.all("machines/");
        assert!(machines.iter().all(|(_, machine)| machine["metadata"]["labels"]["force-deletion"] == "True"));
        assert_eq!(seed.state(), "Processing");
        let requeue = seed.reconcile(&context).await.unwrap();
        assert!(is_after(requeue, 200..301), "nothing is missing: {requeue:?}");
        let writes = seed.writes();
        assert!(!writes.iter().any(|line| line.starts_with("PATCH machines/")), "they are marked: {writes:?}");
        machine_controller_manager_is_done(&seed);
        seed.reconcile(&context).await.unwrap();
        let writes = seed.writes();
        assert!(
            writes[0].starts_with("DELETE machineclasses/") && writes[1].starts_with("DELETE secrets/"),
            "{writes:?}"
        );
        assert_eq!(seed.reconcile(&context).await.unwrap(), Requeue::OnEvent);
        assert_eq!(seed.get(WORKER), None);
    }

    /// The watch of a kind without objects never catches up with the lists of a deletion.
    #[tokio::test(start_paused = true)]
    async fn lists_are_forgotten_with_the_last_worker_of_a_namespace() {
        let (seed, context) = deleted(0).await;
        let worker: LazyObject<Worker> = serde_json::from_value(seed.get(WORKER).unwrap()).unwrap();
        machine_controller_manager_is_done(&seed);
        while seed.get(WORKER).is_some() {
            seed.reconcile(&context).await.unwrap();
        }
        let machine_objects = &context.cache.machine_objects;
        let is_remembered = || {
            let late = |uid: &str| Identity {
                namespace: NAMESPACE.to_owned(),
                name: "late".to_owned(),
                uid: uid.to_owned(),
                version: 1,
            };
            let unreadable = || "of a test".to_owned();
            let accepted = [
                machine_objects.deployments.event(late("a"), || Err(unreadable())),
                machine_objects.classes.event(late("b"), || Err(unreadable())),
                machine_objects.class_secrets.event(late("c"), || Err(unreadable())),
                machine_objects.machine_sets.event(late("d"), || Err(unreadable())),
                machine_objects.machines.event(late("e"), || Err(unreadable())),
            ];
            accepted.map(|is_accepted| !is_accepted)
        };
        assert_eq!(is_remembered(), [true; 5], "a late event does not restore what the lists did not have");
        let other = Identity { name: "other".to_owned(), uid: "other".to_owned(), ..Identity::of(&worker).unwrap() };
        context.cache.workers.0.event(other.clone(), || worker.clone());
        context.forget(&worker);
        assert_eq!(is_remembered(), [true; 5], "another Worker is in the namespace");
        context.cache.workers.0.event_deleted(&other);
        context.forget(&worker);
        assert_eq!(is_remembered(), [false; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_worker_for_machines_missing_from_cache() {
        let (seed, _) = deleted(0).await;
        let context = seed.controller();
        watched(&context);
        for _ in 0..2 {
            seed.reconcile(&context).await.unwrap();
        }
        assert_eq!(seed.state(), "Processing");
        assert!(seed.last("/status/lastOperation/description").contains("3 machines"));
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_that_machine_controller_manager_holds_hold_the_worker() {
        let held = json!({"metadata": {"finalizers": ["of.somebody/else", MACHINE_CONTROLLER_FINALIZERS[1]]}});
        for (name, namespace, seconds) in
            [("cloudprovider", NAMESPACE, 200..301), ("another", NAMESPACE, 2..3), ("cloudprovider", "elsewhere", 2..3)]
        {
            let (seed, context) = deleted(0).await;
            machine_controller_manager_is_done(&seed);
            seed.remove("machineclasses/");
            seed.all("secrets/shoot").iter().for_each(|(name, _)| seed.remove(name));
            seed.merge(WORKER, json!({"spec": {"secretRef": {"name": name, "namespace": namespace}}}));
            seed.put(&format!("secrets/{name}"), held.clone());
            seed.reconcile(&context).await.unwrap();
            let requeue = seed.reconcile(&context).await.unwrap();
            assert!(is_after(requeue, seconds), "{namespace}/{name}: {requeue:?}");
            let text = seed.last("/status/lastOperation/description");
            let expected =
                format!("credentials Secret {namespace}/{name} are released by {}", MACHINE_CONTROLLER_FINALIZERS[1]);
            assert!(text.contains(&expected), "{text}");
            seed.put(&format!("secrets/{name}"), json!({"metadata": {"finalizers": ["of.somebody/else"]}}));
            seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.get(WORKER), None, "{namespace}/{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_deletion_is_an_error_that_names_a_machine_controller_manager_that_does_not_run() {
        const STOPPED: &str = "machine-controller-manager does not run";
        for (minutes, replicas, state, is_named) in
            [(6, 0, "Error", true), (6, 1, "Error", false), (0, 0, "Processing", false)]
        {
            let (seed, context) = deleted(minutes).await;
            seed.merge(CONTROLLER, json!({"spec": {"replicas": replicas}}));
            for _ in 0..2 {
                seed.reconcile(&context).await.unwrap();
            }
            assert_eq!(seed.state(), state, "{minutes} {replicas}");
            let text = seed.last("/status/lastError/description") + &seed.last("/status/lastOperation/description");
            assert_eq!(text.contains(STOPPED), is_named, "{minutes} {replicas}: {text}");
            let late = "failed while waiting for all machine resources to be deleted: waiting until the following";
            assert_eq!(text.contains(late), minutes > 5, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_can_not_be_deleted_is_an_error_and_one_that_could_not_be_made_is_none() {
        for (operation, state) in [("Delete", "Error"), ("Create", "Processing")] {
            let (seed, context) = deleted(0).await;
            let last = json!({"description": "the disk is locked", "type": operation});
            let failed = json!([{"name": "m", "lastOperation": last}]);
            seed.merge(DEPLOYMENT, json!({"status": {"failedMachines": failed}}));
            seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.state(), state, "{operation}");
            let text = seed.last("/status/lastError/description");
            assert_eq!(text.contains("the disk is locked"), operation == "Delete", "{text}");
        }
    }

    #[test]
    fn machines_that_can_not_be_deleted_leave_room_for_what_is_missing() {
        let failed = |number: usize| FailedMachine {
            name: format!("machine-{number}"),
            description: format!("disk {number} is locked. {}", "x".repeat(200)),
            ..FailedMachine::default()
        };
        let document = json!({"metadata": {"name": "a"}, "spec": {}});
        let mut deployment = LiveDeployment::read_without_codes(document).unwrap();
        deployment.failed_machines = (0..2000).map(failed).collect();
        let live = MachineObjects { deployments: [("a".to_owned(), deployment)].into(), ..MachineObjects::default() };
        let text = failed_machines(&live).unwrap().message;
        assert!(text.contains("disk 0 is locked") && text.len() <= MAX_FAILURE_BYTES / 2, "{}", text.len());
    }

    #[tokio::test(start_paused = true)]
    async fn missing_credentials_are_named_and_read_again_soon() {
        let (seed, _) = deleted(0).await;
        let context = seed.controller();
        seed.remove(CREDENTIALS);
        seed.reconcile(&context).await.unwrap();
        let requeue = seed.reconcile(&context).await.unwrap();
        assert_eq!(requeue, Requeue::After(Duration::from_secs(10)));
        let text = seed.last("/status/lastOperation/description");
        assert!(text.contains("with the cloud credentials is missing"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_that_has_made_a_class_again_is_tried_again_soon() {
        let (seed, context) = deleted(6).await;
        let mut delay = Duration::ZERO;
        for _ in 0..5 {
            tokio::time::advance(delay).await;
            let Requeue::After(after) = seed.reconcile(&context).await.unwrap() else { panic!("no retry") };
            delay = after;
        }
        assert!(delay > Duration::from_secs(3), "it fails for long: {delay:?}");
        tokio::time::advance(delay).await;
        seed.remove("machineclasses/");
        seed.requested();
        assert_eq!(seed.reconcile(&context).await.unwrap(), Requeue::After(Duration::from_secs(1)));
        assert!(seed.writes().contains(&"POST machineclasses".to_owned()));
        assert_eq!(seed.all("machineclasses/").len(), 1);
    }
}
