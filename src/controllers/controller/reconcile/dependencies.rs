//! Records dependencies before any object refers to them, and cleans them up at the end of a reconcile.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::provider::WorkerContext;
use decisions::worker::request::reconcile_state::ReconcileEvent;
use decisions::worker::status::outcome::until;
use decisions::worker::status::published::{ProviderStatus, Published};
use decisions::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};
use runtime::cloud::dependency::{CleanUp, UsedByClasses};
use wire::api::gardener::Worker;

/// Records what pools depend on before any object refers to it. After a crash, the next process, even of another
/// extension, has to find the record.
pub(crate) async fn record_dependencies(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    provider_status: &ProviderStatus,
) -> Result<(), ReconcileError> {
    let Some(document) = provider_status.patch() else { return Ok(()) };
    context.write_provider_status(worker, document).await
}

/// Start of the failure message when clean-up at the cloud does not finish.
const CLEANING_UP_FAILED: &str = "error while cleaning up what pools depended on";
/// What to wait for if the cloud reports no text of its own.
pub(crate) const UNTIL_DELETED: &str = "until resources that pools depended on are deleted";
/// Requeue delay if the classes changed since they were last read.
const CLASSES_CHANGED: Duration = Duration::from_secs(1);

/// End of a successful reconcile: removes unneeded dependencies from the cloud and starts the operation if there is
/// something to remove. Returns the outcome and when to requeue. Waiting past the deadline is an error. `seen` is
/// what classes referred to when the operation was found to be done.
pub(crate) async fn clean_up_cloud(
    context: &mut ReconcileContext<'_>,
    inputs: &WorkerContext<'_>,
    published: &mut Published,
    seen: Vec<String>,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<(ReconcileOutcome, Option<Duration>), ReconcileError> {
    let Some(cloud) = context.cloud() else { return Ok((ReconcileOutcome::Succeeded, None)) };
    let waiting = |text: String| match until(deadline, now) {
        Some(wait) => (ReconcileOutcome::Waiting(format!("waiting {text}"), 95), Some(wait)),
        None => (ReconcileOutcome::Failed(Failure::new(format!("{CLEANING_UP_FAILED}: waiting {text}"))), None),
    };
    let mut state = cloud.clean_up(inputs, UsedByClasses::Seen(seen.clone())).await?;
    if matches!(state, CleanUp::Unneeded) {
        context.advance(inputs.worker, ReconcileEvent::WorkFound).await?;
        // Removal is irreversible, so it needs a fresh read of what classes refer to.
        let used = context.shoot.read_machine_objects().await?.dependencies_of_classes();
        if used != seen {
            // Unknown classes are deleted first, unless they are in use.
            let (outcome, again) = waiting(UNTIL_DELETED.to_owned());
            return Ok((outcome, again.map(|again| again.min(CLASSES_CHANGED))));
        }
        context.ensure_still_current().await?;
        state = cloud.clean_up(inputs, UsedByClasses::Read(used)).await?;
    }
    Ok(match state {
        CleanUp::Done(records) => {
            merge(&mut published.provider_status.target, records);
            (ReconcileOutcome::Succeeded, None)
        }
        CleanUp::Unneeded => waiting(UNTIL_DELETED.to_owned()),
        CleanUp::Waiting(text) => waiting(text),
        CleanUp::Failed(failure, again) => (ReconcileOutcome::Failed(failure), Some(again)),
    })
}

/// Merges the members of a patch into a document. Null removes a member.
fn merge(document: &mut Value, patch: Option<Value>) {
    let (Value::Object(document), Some(Value::Object(patch))) = (document, patch) else { return };
    for (name, member) in patch {
        match member {
            Value::Null => drop(document.remove(&name)),
            member => drop(document.insert(name, member)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::controller::queue::Requeue;
    use crate::controller::run::context::ControllerContext;
    use crate::controller::test_seed::{CHANGED, NAMESPACE, Seed, WORKER};
    use crate::controller::test_support::reconcile_of;
    use decisions::provider::WorkerError;
    use decisions::provider::gcp::Gcp;
    use decisions::worker::request::Operation;
    use decisions::worker::request::decode::context_of;
    use runtime::cloud::Clouds;
    use runtime::cloud::dependency::{Cloud, DependencyRequest, DependencyState};
    use wire::api::gardener::Cluster;
    use wire::api::secret::Secrets;

    /// A cloud with dependencies. Records which dependencies it was told to keep; `removal` is the result of a
    /// removal.
    struct Dependent {
        used: Arc<Mutex<Vec<Vec<String>>>>,
        removal: fn() -> CleanUp,
        records_changed: bool,
    }

    impl Cloud for Dependent {
        fn ensure<'a>(&'a self, _: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>> {
            let state = DependencyState {
                has_something: true,
                records_changed: self.records_changed,
                ..DependencyState::default()
            };
            async { Ok(state) }.boxed()
        }

        fn clean_up<'a>(
            &'a self,
            _: &'a WorkerContext<'a>,
            used: UsedByClasses,
        ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
            let UsedByClasses::Read(used) = used else { return async { Ok(CleanUp::Unneeded) }.boxed() };
            self.used.lock().unwrap().push(used);
            async { Ok((self.removal)()) }.boxed()
        }

        fn remove<'a>(
            &'a self,
            _: &'a Worker,
            _: Option<&'a Cluster>,
            _: &'a Secrets,
        ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
            self.used.lock().unwrap().push(Vec::new());
            async { Ok((self.removal)()) }.boxed()
        }

        fn is_busy(&self, _: &str) -> bool {
            false
        }

        fn forget(&self, _: &str) {}
    }

    /// A controller whose Workers depend on that cloud, and the dependencies that the cloud was told to keep.
    fn dependent(
        seed: &Seed,
        records_changed: bool,
        removal: fn() -> CleanUp,
    ) -> (ControllerContext, Arc<Mutex<Vec<Vec<String>>>>) {
        let used = Arc::<Mutex<Vec<Vec<String>>>>::default();
        let cloud = Dependent { used: Arc::clone(&used), removal, records_changed };
        let mut context = Arc::into_inner(seed.controller()).unwrap();
        context.clouds = Clouds::of_one("gcp", Arc::new(cloud));
        (context, used)
    }

    #[tokio::test(start_paused = true)]
    async fn records_are_written_before_anything_that_refers_to_them() {
        let (seed, _) = Seed::new();
        let (context, used) = dependent(&seed, true, || CleanUp::Done(None));
        seed.reconcile(&context).await.unwrap();
        assert!(used.lock().unwrap().is_empty() && seed.state() == "Processing", "machines are missing yet");
        let requested = seed.requested();
        let at = |line: &str| requested.iter().position(|(requested, _)| requested == line).unwrap();
        let recorded =
            requested.iter().position(|(_, body)| body.pointer("/status/providerStatus/kind").is_some()).unwrap();
        assert!(recorded < at("POST machineclasses"), "{requested:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn changed_records_are_work_also_where_nothing_else_is() {
        let (seed, _) = Seed::settled().await;
        let (context, _) = dependent(&seed, true, || CleanUp::Done(None));
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        let requested = seed.requested();
        let (_, first) = requested.iter().find(|(line, _)| line.starts_with("PATCH")).unwrap();
        assert_eq!(first["status"]["lastOperation"]["state"], "Processing");
    }

    #[tokio::test(start_paused = true)]
    async fn deletes_unused_cloud_resources_but_not_referenced_ones() {
        let (seed, _) = Seed::settled().await;
        let class = |id: &str| {
            json!({"metadata": {"name": id, "finalizers": ["f"], "labels": {"gardener.cloud/purpose": "machineclass"}},
            "providerSpec": {"properties": {"machineSet": {"id": id}}}})
        };
        seed.put("machineclasses/used", class("used"));
        let mut going = class("going");
        going["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:00Z");
        seed.put("machineclasses/going", going);
        let (context, used) = dependent(&seed, false, || CleanUp::Done(None));
        let worker = seed.worker();
        let shoot = context.shoot_namespace(NAMESPACE, &Gcp);
        let cluster = shoot.cluster(true).await.unwrap();
        let secrets = shoot.secrets(&worker, true).await.unwrap();
        let inputs = context_of(&worker, cluster.as_deref(), &secrets).unwrap();
        let mut reconcile = reconcile_of(&context, &worker, &Gcp, Operation::Reconcile);
        let mut published = Published::default();
        let deadline = Timestamp::UNIX_EPOCH + Duration::from_secs(60);
        let mut clean_up = async |seen: &[&str], now: Timestamp| {
            let seen = seen.iter().map(|id| (*id).to_owned()).collect();
            clean_up_cloud(&mut reconcile, &inputs, &mut published, seen, deadline, now).await
        };
        let (outcome, again) = clean_up(&["unneeded"], Timestamp::UNIX_EPOCH).await.unwrap();
        assert!(matches!(outcome, ReconcileOutcome::Waiting(..)), "{outcome:?}");
        assert_eq!(again, Some(CLASSES_CHANGED));
        let (outcome, again) = clean_up(&["unneeded"], deadline).await.unwrap();
        assert!(matches!(outcome, ReconcileOutcome::Failed(_)) && again.is_none(), "the wait ends: {outcome:?}");
        assert!(used.lock().unwrap().is_empty(), "classes are others than the reconcile has seen");
        assert_eq!(clean_up(&["used"], deadline).await.unwrap(), (ReconcileOutcome::Succeeded, None));
        assert_eq!(*used.lock().unwrap(), [["used"]]);
        seed.when("GET machines", CHANGED);
        assert!(matches!(clean_up(&["used"], deadline).await, Err(ReconcileError::WorkerChanged)));
        assert_eq!(used.lock().unwrap().len(), 1, "the Worker has become another one");
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_cloud_resources_of_a_recreated_worker() {
        for (happens, deleted) in [(None, 1), (Some(CHANGED), 0)] {
            let (seed, _) = Seed::settled().await;
            let (context, used) = dependent(&seed, false, || CleanUp::Done(None));
            seed.delete(context.clock.now());
            ["machine", "secrets/shoot"].into_iter().for_each(|prefix| seed.remove(prefix));
            if let Some(happens) = happens {
                seed.when("GET machines", happens);
            }
            let requeue = seed.reconcile(&context).await.unwrap();
            assert_eq!(
                (used.lock().unwrap().len(), seed.get(WORKER).is_some()),
                (deleted, deleted == 0),
                "{requeue:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn operation_waits_until_unused_resources_are_deleted() {
        let (seed, _) = Seed::settled().await;
        let (context, _) = dependent(&seed, false, || CleanUp::Waiting("until the set is gone".to_owned()));
        seed.request("reconcile");
        let requeue = seed.reconcile(&context).await.unwrap();
        assert!(matches!(requeue, Requeue::After(_)), "{requeue:?}");
        let text = seed.last("/status/lastOperation/description");
        assert_eq!(
            (seed.state().as_str(), text.contains("aiting until the set is gone")),
            ("Processing", true),
            "{text}"
        );
        seed.delete(context.clock.now());
        ["machine", "secrets/shoot"].into_iter().for_each(|prefix| seed.remove(prefix));
        seed.reconcile(&context).await.unwrap();
        assert!(seed.get(WORKER).is_some() && seed.state() == "Processing", "the Worker is not let go either");
    }

    #[test]
    fn what_a_removal_changes_is_put_into_what_is_published() {
        let mut document = json!({"kind": "WorkerStatus", "gone": [1], "stays": 2});
        merge(&mut document, Some(json!({"gone": null, "new": [3]})));
        assert_eq!(document, json!({"kind": "WorkerStatus", "stays": 2, "new": [3]}));
        merge(&mut document, None);
        assert_eq!(document["stays"], 2);
    }
}
