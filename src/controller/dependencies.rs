//! What a reconcile writes of dependencies: their records before anything refers to them, and what is left at the end.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::gardener::Worker;
use crate::cloud::dependency::CleanUp;
use crate::controller::error::ReconcileError;
use crate::controller::reconcile_context::ReconcileContext;
use crate::provider::WorkerContext;
use crate::worker::outcome::until;
use crate::worker::published::{ProviderStatus, Published};
use crate::worker::reconcile_outcome::{Failure, ReconcileOutcome};
use crate::worker::reconcile_state::ReconcileEvent;

/// Writes down what pools depend on, before anything is made that refers to it: whoever comes after a crash, also another
/// extension, has to find it.
pub(crate) async fn keep_records(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    provider_status: &ProviderStatus,
) -> Result<(), ReconcileError> {
    let Some(document) = provider_status.patch() else { return Ok(()) };
    context.write_provider_status(worker, document).await
}

/// How the failure begins that something does not go from the cloud.
const CLEANING_UP_FAILED: &str = "error while cleaning up what pools depended on";
/// What is waited for where a cloud does not say it.
pub(crate) const UNTIL_GONE: &str = "until what pools depended on is gone";

/// The end of a reconcile that has succeeded: what nobody needs goes from the cloud, and the operation begins where something
/// can go. How the operation stands then, and when to requeue. After the deadline it is an error that it has not gone.
pub(crate) async fn clean_up_cloud(
    context: &mut ReconcileContext<'_>,
    inputs: &WorkerContext<'_>,
    published: &mut Published,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<(ReconcileOutcome, Option<Duration>), ReconcileError> {
    let Some(cloud) = context.cloud() else { return Ok((ReconcileOutcome::Succeeded, None)) };
    let mut state = cloud.clean_up(inputs, None).await?;
    if matches!(state, CleanUp::Unneeded) {
        context.advance(inputs.worker, ReconcileEvent::WorkFound).await?;
        // What goes does not come back, so it has to be known what classes refer to now.
        let classes = context.shoot.read_machine_objects().await?.classes.into_values();
        let used = classes
            .filter(|class| !class.is_being_deleted)
            .filter_map(|class| class.placed_in.map(String::from))
            .collect();
        state = cloud.clean_up(inputs, Some(used)).await?;
    }
    let waiting = |text: String| match until(deadline, now) {
        Some(wait) => (ReconcileOutcome::Waiting(format!("waiting {text}"), 95), Some(wait)),
        None => (ReconcileOutcome::Failed(Failure::new(format!("{CLEANING_UP_FAILED}: waiting {text}"))), None),
    };
    Ok(match state {
        CleanUp::Done(records) => {
            merge(&mut published.provider_status.wanted, records);
            (ReconcileOutcome::Succeeded, None)
        }
        CleanUp::Unneeded => waiting(UNTIL_GONE.to_owned()),
        CleanUp::Waiting(text) => waiting(text),
        CleanUp::Failed(failure, again) => (ReconcileOutcome::Failed(failure), Some(again)),
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
