//! Writes to the Worker itself: the start of an operation, the status, and the removal of the finalizer.
//!
//! All of them are bound to the UID or version of the Worker, so that none reaches a recreated Worker with the same
//! name. A status that the API server rejects as too large is written with shorter texts, so that the error always
//! becomes visible.

use std::sync::Arc;

use futures::join;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tracing::warn;

use crate::controller::reconcile::error::ReconcileError;
use crate::controller::report::events::status_too_large;
use crate::controller::run::context::ControllerContext;
use decisions::worker::request::{Operation, RequestRemoval, completion_patch};
use decisions::worker::status::StatusReport;
use decisions::worker::status::status_text::TextSize;
use runtime::cluster::cache::WorkerStore;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::identity::Identity;
use runtime::cluster::store::Read;
use runtime::cluster::too_large::is_too_large;
use runtime::process::failure_reason::reason;
use wire::api::gardener::Worker;

/// Result of a write to a Worker.
pub(crate) enum Write {
    Unchanged,
    /// The Worker after the write.
    Written(Arc<Worker>),
    /// Another client has changed or deleted the Worker in the meantime.
    Outdated,
}

/// Version of the Worker to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionCheck {
    /// Only the one that was read.
    Read,
    /// The current one: after a conflict, the write is retried with the version of a fresh read.
    Any,
}

/// Maximum number of tries to write a status in any version, in case another client writes the Worker each time.
const MAX_TRIES: usize = 4;

/// Writes one Worker, and reads what these writes depend on.
pub(crate) struct WorkerWriter<'a> {
    controller: &'a ControllerContext,
    worker: &'a Identity,
    api: Api<Worker>,
}

impl<'a> WorkerWriter<'a> {
    pub(crate) fn new(controller: &'a ControllerContext, worker: &'a Identity) -> Self {
        Self { controller, worker, api: Api::namespaced(controller.client.clone(), &worker.namespace) }
    }

    /// Whether the Worker still exists in the version that was read.
    pub(crate) async fn is_current(&self) -> Result<bool, ReconcileError> {
        let version = self.version().await.map_err(ReconcileError::of_worker)?;
        Ok(version.as_deref() == Some(&*self.worker.version.to_string()))
    }

    /// The current version of the Worker; `None` if it was deleted.
    async fn version(&self) -> kube::Result<Option<String>> {
        let read = self.api.get_metadata_opt(&self.worker.name).await?.map(|read| read.metadata);
        let meant = read.filter(|metadata| metadata.uid.as_deref() == Some(&self.worker.uid));
        if meant.is_none() {
            self.controller.cache.workers.deleted(self.worker);
        }
        Ok(meant.and_then(|metadata| metadata.resource_version))
    }

    /// Reads the Worker; `None` if it was deleted.
    pub(crate) async fn read(&self) -> Result<Option<Worker>, ReconcileError> {
        let read = self.api.get_opt(&self.worker.name).await.map_err(ReconcileError::of_worker)?;
        Ok(read.filter(|worker| worker.metadata.uid.as_deref() == Some(&self.worker.uid)))
    }

    /// Completes a no-op operation: writes `Succeeded` and removes the annotation.
    pub(crate) async fn complete_no_op(
        &self,
        status: &StatusReport,
        removal: RequestRemoval,
    ) -> Result<Write, ReconcileError> {
        match removal {
            RequestRemoval::Beside(removal) => {
                let (responded, is_removed) = join!(self.response(status), self.remove_request(removal));
                let is_removed = is_removed?;
                Ok(if is_removed { responded? } else { responded.map(|_| Write::Outdated)? })
            }
            RequestRemoval::After(metadata) => self.in_order(status, metadata).await,
        }
    }

    /// Patches the status, then the metadata, each bound to the version before. In this order a request is never
    /// lost: after a crash between the two, the operation starts again.
    pub(crate) async fn in_order(
        &self,
        status: &StatusReport,
        metadata: Option<Value>,
    ) -> Result<Write, ReconcileError> {
        let written = self.status(status, VersionCheck::Read).await?;
        let Some(patch) = metadata else { return Ok(written) };
        let version = match &written {
            Write::Outdated => return Ok(Write::Outdated),
            Write::Unchanged => Some(self.worker.version.to_string()),
            Write::Written(worker) => worker.metadata.resource_version.clone(),
        };
        let requests = self.begin_write();
        let patch = Patch::Merge(of_version(patch, version));
        let response = self.api.patch(&self.worker.name, &PatchParams::default(), &patch).await;
        self.result(requests, response).map_err(ReconcileError::of_worker)
    }

    /// Removes the operation annotation. Returns false if it holds another request.
    async fn remove_request(&self, removal: json_patch::Patch) -> Result<bool, ReconcileError> {
        let requests = self.begin_write();
        let patch = Patch::<()>::Json(removal);
        match self.api.patch(&self.worker.name, &PatchParams::default(), &patch).await {
            // A `test` operation of the patch has failed.
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(false),
            response => {
                let written = self.result(requests, response).map_err(ReconcileError::of_worker)?;
                Ok(matches!(written, Write::Written(_)))
            }
        }
    }

    /// Patches the status while the metadata are written in parallel, so it can't be bound to a version.
    async fn response(&self, report: &StatusReport) -> Result<Write, ReconcileError> {
        let Some(patch) = report.patch_of_one(&self.worker.uid) else {
            return self.status(report, VersionCheck::Any).await;
        };
        let requests = self.begin_write();
        let patch = Patch::<()>::Json(patch);
        match self.api.patch_status(&self.worker.name, &PatchParams::default(), &patch).await {
            // The Worker was recreated, the texts are too long, or the content is invalid. A regular write finds out
            // which.
            Err(error) if matches!(&error, kube::Error::Api(status) if status.code == 422) || is_too_large(&error) => {
                self.status(report, VersionCheck::Any).await
            }
            response => self.result(requests, response).map_err(ReconcileError::of_worker),
        }
    }

    /// Patches the status with the longest texts that the API server accepts. If it accepts none, publishes an event.
    pub(crate) async fn status(&self, report: &StatusReport, version: VersionCheck) -> Result<Write, ReconcileError> {
        let mut refusal = None;
        for texts in TextSize::ALL {
            let Some(patch) = report.patch(texts) else { return Ok(Write::Unchanged) };
            match self.merge_status(patch, version).await {
                Err(error) if is_too_large(&error) => {
                    warn!(error = reason(&error), ?texts, "the status is too large");
                    refusal = Some(error);
                }
                written => return written.map_err(ReconcileError::of_worker),
            }
        }
        let Some(error) = refusal else { return Ok(Write::Unchanged) };
        self.controller.events.publish::<Worker>(self.worker, status_too_large(&reason(&error))).await;
        Err(ReconcileError::of_worker(error))
    }

    /// Writes members of the provider status into any version, because a record of what was done must not be lost.
    pub(crate) async fn provider_status(&self, members: Value) -> Result<Arc<Worker>, ReconcileError> {
        let patch = json!({"status": {"providerStatus": members}});
        let failed = |source: kube::Error| ReconcileError::Write {
            what: "what pools depend on".to_owned(),
            source: source.into(),
        };
        match self.merge_status(patch, VersionCheck::Any).await.map_err(failed)? {
            Write::Written(worker) => Ok(worker),
            Write::Unchanged | Write::Outdated => Err(ReconcileError::WorkerChanged),
        }
    }

    /// Patches the status. API servers ignore a UID in a status patch, but a version is unique to one Worker.
    async fn merge_status(&self, mut patch: Value, of: VersionCheck) -> kube::Result<Write> {
        let mut version = Some(self.worker.version.to_string());
        for _ in 0..MAX_TRIES {
            patch = of_version(patch, version);
            let requests = self.begin_write();
            let merge = Patch::Merge(&patch);
            let response = self.api.patch_status(&self.worker.name, &PatchParams::default(), &merge).await;
            let written = self.result(requests, response)?;
            if of == VersionCheck::Read || !matches!(written, Write::Outdated) {
                return Ok(written);
            }
            version = self.version().await?;
            if version.is_none() {
                break;
            }
        }
        Ok(Write::Outdated)
    }

    /// Removes the finalizer of a deleted or migrated Worker, and the operation annotation if it was kept until the
    /// end. `worker` is the Worker after the last write.
    pub(crate) async fn remove_finalizer(&self, worker: &Worker, operation: Operation) -> Result<(), ReconcileError> {
        let name = &self.worker.name;
        let mut patch = completion_patch(worker, operation);
        while let Some(end) = patch {
            let requests = self.begin_write();
            match self.api.patch(name, &PatchParams::default(), &Patch::Merge(end)).await {
                Ok(written) => {
                    let is_held = written.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
                    if is_held || written.metadata.deletion_timestamp.is_none() {
                        WorkerStore::own_write(requests, written);
                    } else {
                        self.controller.cache.workers.deleted(self.worker);
                    }
                    return Ok(());
                }
                // Another client has written the Worker. Its request takes precedence.
                Err(kube::Error::Api(status)) if status.is_conflict() => {
                    let read = self.api.get_opt(name).await.map_err(ReconcileError::of_worker)?;
                    let ours = read.filter(|read| self.controller.owns(read.metadata.labels.as_ref()));
                    patch = ours.and_then(|read| restarted_end(&read, self.worker, operation));
                }
                Err(kube::Error::Api(status)) if status.is_not_found() => {
                    self.controller.cache.workers.deleted(self.worker);
                    return Ok(());
                }
                Err(error) => return Err(ReconcileError::of_worker(error)),
            }
        }
        Ok(())
    }

    fn result(&self, requests: Read<'_, LazyObject<Worker>>, response: kube::Result<Worker>) -> kube::Result<Write> {
        match response {
            Ok(written) => Ok(Write::Written(WorkerStore::own_write(requests, written))),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(Write::Outdated),
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.controller.cache.workers.deleted(self.worker);
                Ok(Write::Outdated)
            }
            Err(error) => Err(error),
        }
    }

    /// Registers a write of the Worker with the store before it is sent.
    fn begin_write(&self) -> Read<'a, LazyObject<Worker>> {
        self.controller.cache.workers.write()
    }
}

/// The remaining final patch after a fresh read; `None` for a recreated Worker. The watch then reports that the old
/// one was deleted.
fn restarted_end(read: &Worker, meant: &Identity, operation: Operation) -> Option<Value> {
    let is_meant = read.metadata.uid.as_deref() == Some(&meant.uid);
    is_meant.then(|| completion_patch(read, operation)).flatten()
}

/// Binds a patch to that version.
fn of_version(mut patch: Value, version: Option<String>) -> Value {
    patch["metadata"]["resourceVersion"] = json!(version);
    patch
}

#[cfg(test)]
mod tests {
    use std::mem::take;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::controller::queue::Requeue;
    use crate::controller::test_seed::{Seed, WORKER};
    use crate::controller::test_support::{controller, refusal, worker};
    use crate::controller::test_support::{lines, observed};
    use decisions::worker::request::{FINALIZER, Request};

    fn unanswered(worker: &Worker) -> StatusReport {
        let now = jiff::Timestamp::UNIX_EPOCH;
        StatusReport::keep_processing(worker, &Request::of(worker, now), Operation::Reconcile, now)
    }

    #[test]
    fn recreated_worker_keeps_its_finalizer() {
        let worker = |uid: &str| {
            let metadata = json!({"namespace": "ns", "name": "w", "uid": uid, "resourceVersion": "7",
                "finalizers": [FINALIZER], "annotations": {"gardener.cloud/operation": "restore"}});
            serde_json::from_value::<Worker>(json!({"metadata": metadata, "spec": {"type": "azure"}})).unwrap()
        };
        let meant = Identity::of(&worker("moved")).unwrap();
        for operation in [Operation::Migrate, Operation::Delete] {
            let patch = restarted_end(&worker("moved"), &meant, operation).unwrap();
            assert_eq!(patch["metadata"]["finalizers"], json!([]), "{operation:?}");
            assert_eq!(restarted_end(&worker("restored"), &meant, operation), None, "{operation:?}");
        }
        assert_eq!(restarted_end(&worker("restored"), &meant, Operation::Restore), None, "its request is another one");
    }

    #[tokio::test]
    async fn what_somebody_else_has_written_first_is_no_error_and_a_refusal_is_one() {
        let document = worker(&json!({}), 7);
        let worker: Worker = serde_json::from_value(document.clone()).unwrap();
        let identity = Identity::of(&worker).unwrap();
        let status = unanswered(&worker);
        for (code, reason, is_outdated) in
            [(409, "Conflict", true), (404, "NotFound", true), (403, "Forbidden", false), (422, "Invalid", false)]
        {
            let (context, _) = controller(None, move |_, _| refusal(code, reason));
            observed(document.clone(), &context);
            let written = WorkerWriter::new(&context, &identity).status(&status, VersionCheck::Read).await;
            assert_eq!(matches!(written, Ok(Write::Outdated)), is_outdated, "{reason}");
            assert_eq!(written.is_err(), !is_outdated, "{reason}");
            let is_cached = context.cache.workers.get("ns", "w").is_some();
            assert_eq!(
                is_cached,
                code != 404,
                "nothing is written for a Worker that has gone, whatever the watch shows"
            );
        }
    }

    /// A no-op request of gardenlet, with an old timestamp in the status.
    async fn requested() -> (Seed, Arc<ControllerContext>) {
        let (seed, context) = Seed::settled().await;
        seed.request("reconcile");
        let responded = json!({"status": {"lastOperation": {"lastUpdateTime": "2026-01-01T00:00:00Z"}}});
        seed.merge(WORKER, responded);
        let now = jiff::Timestamp::now().to_string();
        seed.merge(WORKER, json!({"metadata": {"annotations": {"gardener.cloud/timestamp": now}}}));
        (seed, context)
    }

    const REQUEST: &str = "/metadata/annotations/gardener.cloud~1operation";

    #[tokio::test(start_paused = true)]
    async fn removes_only_the_completed_request() {
        let (seed, context) = requested().await;
        assert_eq!(seed.reconcile(&context).await.unwrap(), Requeue::OnEvent);
        assert_eq!(seed.last(REQUEST), "");
        let (seed, context) = requested().await;
        seed.when("PATCH workers/mail", |objects| {
            let metadata = &mut objects.get_mut(WORKER).unwrap()["metadata"];
            metadata["annotations"]["gardener.cloud/timestamp"] = json!("2026-01-02T00:00:00Z");
        });
        let requeue = seed.reconcile(&context).await.unwrap();
        assert_eq!(requeue, Requeue::After(Duration::from_millis(500)), "there is another request");
        assert_eq!(seed.last(REQUEST), "reconcile");
        let (seed, context) = requested().await;
        seed.refuse(|line, _| (line == "PATCH workers/mail").then_some((403, "Forbidden")));
        assert!(seed.reconcile(&context).await.is_err());
    }

    #[tokio::test]
    async fn a_status_is_of_the_version_that_was_read_and_shorter_where_it_is_too_large() {
        let document = worker(&json!({}), 7);
        let worker: Worker = serde_json::from_value(document.clone()).unwrap();
        let identity = Identity::of(&worker).unwrap();
        let status = unanswered(&worker);
        for (version, too_large) in [(VersionCheck::Read, 0), (VersionCheck::Any, 2), (VersionCheck::Any, 3)] {
            let document = document.clone();
            let tries = Arc::<AtomicUsize>::default();
            let (context, requests) = controller(None, move |line, _| match line {
                "PATCH status" if tries.fetch_add(1, Ordering::Relaxed) < too_large => {
                    refusal(413, "RequestEntityTooLarge")
                }
                _ => (200, document.clone()),
            });
            let written = WorkerWriter::new(&context, &identity).status(&status, version).await;
            assert_eq!(matches!(written, Ok(Write::Written(_))), too_large < 3, "{too_large}");
            let written: Vec<_> = requests.lock().unwrap().clone();
            let statuses: Vec<_> = written.iter().filter(|(line, _)| line == "PATCH status").collect();
            assert_eq!(statuses.len(), (too_large + 1).min(3));
            for (_, body) in statuses {
                assert_eq!(body["metadata"]["resourceVersion"], "7");
                assert_eq!(body["status"]["lastOperation"]["state"], "Processing");
            }
            assert_eq!(
                lines(&requests).contains(&"POST events".to_owned()),
                too_large == 3,
                "somebody has to learn of it"
            );
        }
    }

    /// The status of a Worker that is recreated with the same name just before a reconcile writes its status.
    async fn written_for_another((seed, context): (Seed, Arc<ControllerContext>)) -> Value {
        seed.when("PATCH workers/mail/status", |objects| {
            let worker = objects.get_mut(WORKER).unwrap();
            let metadata = &mut worker["metadata"];
            (metadata["uid"], metadata["resourceVersion"]) = (json!("another"), json!("1000"));
            worker["status"] = json!({});
        });
        assert_eq!(seed.reconcile(&context).await.unwrap(), Requeue::After(Duration::from_millis(500)));
        seed.get(WORKER).unwrap()["status"].take()
    }

    #[tokio::test(start_paused = true)]
    async fn recreated_worker_gets_no_previous_status() {
        let begins = Seed::new();
        assert_eq!(written_for_another(begins).await, json!({}), "that it waits for its machines");
        let fails = Seed::new();
        fails.0.change_pool(|pool| pool["machineType"] = json!("unknown"));
        assert_eq!(written_for_another(fails).await, json!({}), "that it fails");
        let deleted = Seed::settled().await;
        deleted.0.delete(deleted.1.clock.now());
        // Progress of a deletion is written with a delay.
        deleted.0.reconcile(&deleted.1).await.unwrap();
        assert_eq!(written_for_another(deleted).await, json!({}), "that its machines go");
        assert_eq!(written_for_another(requested().await).await, json!({}), "that all is well");
    }

    #[tokio::test(start_paused = true)]
    async fn nor_a_status_that_is_shortened_or_what_its_pools_depended_on() {
        let (seed, context) = Seed::new();
        let mut is_first = true;
        seed.refuse(move |line, _| {
            (line == "PATCH workers/mail/status" && take(&mut is_first)).then_some((413, "RequestEntityTooLarge"))
        });
        assert_eq!(written_for_another((seed, context)).await, json!({}));
        let (seed, context) = Seed::settled().await;
        let worker = seed.worker();
        let before = seed.get(WORKER).unwrap();
        seed.merge(WORKER, json!({"metadata": {"uid": "another"}}));
        let identity = Identity::of(&worker).unwrap();
        let written = WorkerWriter::new(&context, &identity).provider_status(json!({"serverGroups": []})).await;
        assert!(matches!(written, Err(ReconcileError::WorkerChanged)));
        assert_eq!(seed.get(WORKER).unwrap()["status"], before["status"]);
    }

    #[tokio::test(start_paused = true)]
    async fn how_it_stands_is_written_whoever_else_writes_the_worker_but_not_for_ever() {
        for (conflicts, is_written) in [(1, true), (3, true), (100, false)] {
            let (seed, context) = Seed::new();
            let mut left = conflicts;
            seed.refuse(move |line, _| {
                let is_refused = line == "PATCH workers/mail/status" && left > 0;
                left -= usize::from(is_refused);
                is_refused.then_some((409, "Conflict"))
            });
            seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.state() == "Processing", is_written, "{conflicts}");
            let tries = seed.requested().iter().filter(|(line, _)| line == "PATCH workers/mail/status").count();
            assert_eq!(tries, (conflicts + 1).min(4));
        }
    }

    /// Whether the cache still has a released Worker, and the requests. `first` is the answer to the first patch.
    async fn remove_finalizer(
        deleted: bool,
        others: &[&str],
        first: Option<(u16, &'static str)>,
    ) -> (bool, Vec<String>, bool) {
        let mut held = worker(&json!({}), 7);
        held["metadata"]["annotations"] = json!({});
        if deleted {
            held["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:00Z");
        }
        let mut written = held.clone();
        held["metadata"]["finalizers"] = json!([FINALIZER]);
        written["metadata"]["finalizers"] = json!(others);
        written["metadata"]["resourceVersion"] = json!("8");
        let now = held.clone();
        let first = Arc::new(Mutex::new(first));
        let (context, requests) = controller(None, move |line, _| match (line, first.lock().unwrap().take()) {
            ("PATCH w", Some((code, reason))) => refusal(code, reason),
            ("GET w", _) => (200, now.clone()),
            _ => (200, written.clone()),
        });
        observed(held.clone(), &context);
        let worker: Worker = serde_json::from_value(held).unwrap();
        let identity = Identity::of(&worker).unwrap();
        let operation = if deleted { Operation::Delete } else { Operation::Migrate };
        let result = WorkerWriter::new(&context, &identity).remove_finalizer(&worker, operation).await;
        (context.cache.workers.get("ns", "w").is_some(), lines(&requests), result.is_ok())
    }

    #[tokio::test]
    async fn worker_without_other_finalizers_is_deleted() {
        let requests = || vec!["PATCH w".to_owned()];
        assert_eq!(remove_finalizer(true, &[], None).await, (false, requests(), true));
        assert_eq!(remove_finalizer(true, &["of.somebody/else"], None).await, (true, requests(), true));
        assert_eq!(
            remove_finalizer(false, &[], None).await,
            (true, requests(), true),
            "it has moved and is deleted later"
        );
    }

    #[tokio::test]
    async fn who_writes_a_worker_that_is_let_go_is_heard_and_who_has_deleted_it_is_no_error() {
        let (_, requests, is_fine) = remove_finalizer(true, &[], Some((409, "Conflict"))).await;
        assert_eq!((requests, is_fine), (vec!["PATCH w".to_owned(), "GET w".to_owned(), "PATCH w".to_owned()], true));
        for (code, reason, expected) in [(404, "NotFound", true), (403, "Forbidden", false)] {
            let (is_cached, requests, is_fine) = remove_finalizer(true, &[], Some((code, reason))).await;
            assert_eq!((requests, is_fine), (vec!["PATCH w".to_owned()], expected), "{reason}");
            assert_eq!(is_cached, !expected, "{reason}");
        }
    }
}
