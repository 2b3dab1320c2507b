//! The seam to clouds, between decode and plan: what pools depend on there is brought to what they need, and removed when
//! nothing needs it. Whoever knows a cloud implements [`Cloud`]; a provider whose pools depend on nothing has none.
//!
//! ```text
//!  WorkerContext ── provide ──► Dependencies ──► plan · apply · progress · cleanup ── clean_up ──► done
//! ```
//!
//! No call waits for a cloud longer than a moment: what takes longer goes on behind the scenes, and the Worker is looked at
//! again when it has come to an end.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::live::MachineObjects;
use super::outcome::until;
use super::place::Place;
use super::plan::Plan;
use super::reconcile::PassError;
use super::report::{Failure, Outcome, Published, provider_status_patch};
use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::provider::{Dependencies, WorkerContext, WorkerError};

/// A cloud on which pools of one provider depend.
pub trait Cloud: Send + Sync {
    /// Brings what the pools depend on to what they need, as far as that goes in a moment.
    ///
    /// # Errors
    /// When a document of the whole Worker is missing or wrong. What fails for single pools is part of the answer.
    fn provide<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<Provided, WorkerError>>;

    /// Removes what no pool needs any more, once machines are as they shall be. Nothing goes whose id is among `used`: those
    /// that machine classes refer to.
    ///
    /// # Errors
    /// As [`provide`](Self::provide).
    fn clean_up<'a>(
        &'a self,
        context: &'a WorkerContext<'a>,
        used: Vec<String>,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>>;

    /// Removes all that a Worker without machines has left. It needs no pool that can be planned.
    ///
    /// # Errors
    /// When credentials or infrastructure can't be read.
    fn remove<'a>(
        &'a self,
        worker: &'a Worker,
        cluster: Option<&'a Cluster>,
        secrets: &'a Secrets,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>>;

    /// Nobody asks for that Worker (by uid) any more.
    fn forget(&self, uid: &str);
}

/// What a Worker asks of a cloud.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The Worker and what it is planned from.
    pub context: &'a WorkerContext<'a>,
    /// Its machine objects.
    pub live: &'a MachineObjects,
    /// Whether an operation begins: then the cloud is asked again for all that it was asked before.
    pub begins: bool,
    /// Whether records may be missing of what is there, because the Worker has moved from another seed.
    pub has_moved: bool,
}

/// What pools depend on, as far as it is known.
#[derive(Debug, Default)]
pub struct Provided {
    /// `None` when they depend on nothing.
    pub dependencies: Option<Dependencies>,
    /// Whether anything is or may be there that has to be cleaned up in the end.
    pub has_something: bool,
    /// Whether records are new. They are written down before anything is made that refers to them.
    pub records_changed: bool,
    /// When to look again even if nothing happens.
    pub look_again: Option<Duration>,
}

/// How far the removal of unneeded things is.
#[derive(Debug)]
pub enum CleanUp {
    /// Nothing unneeded is left. What that changes in the provider status, as a merge patch of its members.
    Done(Option<Value>),
    /// It goes on behind the scenes: what is waited for.
    Waiting(String),
    /// Something can't be removed; when it is tried again.
    Failed(Failure, Duration),
}

/// Writes down what pools depend on, before anything is made that refers to it: whoever comes after a crash, also another
/// extension, has to find it.
pub(super) async fn keep_records(place: &Place, worker: &Worker, plan: &Plan) -> Result<(), PassError> {
    let Some(document) = provider_status_patch(worker, &plan.provider_status) else { return Ok(()) };
    write_provider_status(place, worker, document).await
}

/// Writes members of the provider status.
pub(super) async fn write_provider_status(place: &Place, worker: &Worker, members: Value) -> Result<(), PassError> {
    let api: Api<Worker> = Api::namespaced(place.client().clone(), place.namespace());
    let patch = Patch::Merge(json!({"status": {"providerStatus": members}}));
    let written = api.patch_status(&worker.name_any(), &PatchParams::default(), &patch).await;
    written
        .map(drop)
        .map_err(|source| PassError::Write { what: "what pools depend on".to_owned(), source: source.into() })
}

/// How the failure begins that something does not go from the cloud.
const CLEANING_UP_FAILED: &str = "error while cleaning up what pools depended on";

/// The end of a pass that has succeeded: what nobody needs goes from the cloud. How the operation stands then, and when to
/// look again. After the deadline it is an error that it has not gone.
pub(super) async fn clean_up_cloud(
    cloud: &dyn Cloud,
    place: &Place,
    context: &WorkerContext<'_>,
    published: &mut Published,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<(Outcome, Option<Duration>), PassError> {
    // What goes does not come back, so it has to be known what classes refer to now.
    let classes = place.machine_objects_anew().await?.classes.into_values();
    let used = classes.filter(|class| !class.is_being_deleted()).filter_map(|class| class.placed_in).collect();
    Ok(match cloud.clean_up(context, used).await? {
        CleanUp::Done(records) => {
            merge(&mut published.provider_status, records);
            (Outcome::Succeeded, None)
        }
        CleanUp::Waiting(text) => match until(deadline, now) {
            Some(wait) => (Outcome::Waiting(format!("waiting {text}"), 95), Some(wait)),
            None => (Outcome::Failed(Failure::new(format!("{CLEANING_UP_FAILED}: waiting {text}"))), None),
        },
        CleanUp::Failed(failure, again) => (Outcome::Failed(failure), Some(again)),
    })
}

/// Puts the members of a patch into a document; null removes.
fn merge(document: &mut Value, patch: Option<Value>) {
    let (Value::Object(document), Some(Value::Object(patch))) = (document, patch) else { return };
    for (name, member) in patch {
        match member {
            Value::Null => drop(document.remove(&name)),
            member => drop(document.insert(name, member)),
        }
    }
}
