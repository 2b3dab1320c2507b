//! One pass over a Worker that shall vanish: machines first, then classes, then their Secrets.
//!
//! It needs no image, no machine type and no user data. Classes stay until the last machine is gone, because
//! machine-controller-manager needs them (and the credentials) to delete machines at the cloud.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::apply::{MachineApis, PARALLEL_WRITES};
use super::cleanup::is_being_deleted;
use super::decode;
use super::live::MachineObjects;
use super::observe::{self, ObserveError};
use super::place::Place;
use super::reconcile::{Pass, PassError, ignore_gone};
use super::report::{Failure, Outcome, PATIENCE};
use crate::api::gardener::{Cluster, Worker};
use crate::api::machine::Machine;
use crate::provider::Provider;

/// Label by which machine-controller-manager skips draining.
const FORCE_DELETION: (&str, &str) = ("force-deletion", "True");
/// Finalizers that machine-controller-manager puts on the credentials.
const MACHINE_CONTROLLER_FINALIZERS: [&str; 2] =
    ["machine.sapcloud.io/machine-controller-manager", "machine.sapcloud.io/machine-controller"];
/// Secrets are not watched, so a held credentials Secret is looked at again after this time.
const LOOK_AT_SECRETS_AGAIN: Duration = Duration::from_secs(2);

/// One pass: delete what can be deleted now, and say what is left and who holds it.
///
/// # Errors
/// When something can't be read, marked or deleted.
pub async fn delete(
    place: &Place,
    provider: &dyn Provider,
    worker: &Worker,
    cluster: Result<Option<Arc<Cluster>>, ObserveError>,
    now: Timestamp,
) -> Result<Pass, PassError> {
    if cluster?.as_deref().is_some_and(decode::is_deletion_forced) {
        return Ok(pass(Outcome::Succeeded, None));
    }
    let mut live = place.machine_objects().await?;
    if live.is_empty() {
        live = place.machine_objects_anew().await?;
    }
    if live.is_empty() {
        return Ok(match credentials_holder(place.client(), worker).await? {
            None => pass(Outcome::Succeeded, None),
            Some(text) => waiting(worker, text, 90, now, Some(LOOK_AT_SECRETS_AGAIN)),
        });
    }
    mark_machines(place, &live.machines).await?;
    delete_next(&place.apis(), &live).await?;
    let failures = failed_machines(provider, &live);
    if let Some(failure) = Failure::joined(failures) {
        return Ok(pass(Outcome::Failed(failure), None));
    }
    // The last Secret may vanish without an event of a watched kind.
    let look_again = live.machines.is_empty().then_some(LOOK_AT_SECRETS_AGAIN);
    Ok(waiting(worker, left_text(&live), percentage(&live), now, look_again))
}

fn pass(outcome: Outcome, look_again: Option<Duration>) -> Pass {
    Pass { look_again, ..Pass::ended(outcome) }
}

/// Waiting, or an error once it has taken five minutes from the request.
fn waiting(worker: &Worker, text: String, progress: i32, now: Timestamp, look_again: Option<Duration>) -> Pass {
    let requested = worker.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let patience = requested.and_then(|time| time.checked_add(PATIENCE).ok()).map(|until| until.duration_since(now));
    match patience.and_then(|patience| Duration::try_from(patience).ok()) {
        Some(patience) if !patience.is_zero() => {
            pass(Outcome::Waiting(text, progress), Some(look_again.map_or(patience, |again| again.min(patience))))
        }
        _ => pass(
            Outcome::Failed(Failure::new(format!(
                "failed while waiting for all machine resources to be deleted: {text}"
            ))),
            look_again,
        ),
    }
}

/// Deletes deployments; when they, machine sets and machines are gone, classes; when those are gone, their Secrets.
async fn delete_next(apis: &MachineApis, live: &MachineObjects) -> Result<(), PassError> {
    let parameters = DeleteParams::default();
    for (name, deployment) in &live.deployments {
        if !is_being_deleted(&deployment.document) {
            ignore_gone(apis.deployments.delete(name, &parameters).await, "MachineDeployment", name)?;
        }
    }
    if !(live.deployments.is_empty() && live.machine_sets.is_empty() && live.machines.is_empty()) {
        return Ok(());
    }
    for (name, class) in &live.classes {
        if !class.is_being_deleted() {
            ignore_gone(apis.classes.delete(name, &parameters).await, "MachineClass", name)?;
        }
    }
    if !live.classes.is_empty() {
        return Ok(());
    }
    for (name, secret) in &live.class_secrets {
        if !secret.is_being_deleted() {
            ignore_gone(apis.secrets.delete(name, &parameters).await, "Secret", name)?;
        }
    }
    Ok(())
}

/// Labels machines so that they are deleted without draining.
async fn mark_machines(place: &Place, machines: &[Machine]) -> Result<(), PassError> {
    let api: Api<Machine> = Api::namespaced(place.client().clone(), place.namespace());
    let mut patches = Vec::new();
    for machine in machines {
        let labels = machine.metadata.labels.as_ref();
        if labels.and_then(|labels| labels.get(FORCE_DELETION.0)).is_none_or(|value| value != FORCE_DELETION.1) {
            patches.push(mark_machine(&api, machine.name_any()));
        }
    }
    let mut results = stream::iter(patches).buffer_unordered(PARALLEL_WRITES);
    while let Some(result) = results.next().await {
        result?;
    }
    Ok(())
}

async fn mark_machine(api: &Api<Machine>, name: String) -> Result<(), PassError> {
    let patch = json!({"metadata": {"labels": {FORCE_DELETION.0: FORCE_DELETION.1}}});
    match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(source) => Err(PassError::Write { what: format!("Machine {name:?}"), source }),
    }
}

fn failed_machines(provider: &dyn Provider, live: &MachineObjects) -> Vec<Failure> {
    let failed = live.deployments.values().flat_map(|deployment| &deployment.object.status.failed_machines);
    failed
        .map(|machine| {
            let operation = &machine.last_operation;
            Failure {
                message: format!("machine {} failed: {}", machine.name, operation.description),
                codes: provider.error_codes(operation.error_code.as_deref(), &operation.description),
            }
        })
        .collect()
}

/// How far it is, by the kind that goes next.
fn percentage(live: &MachineObjects) -> i32 {
    match live {
        _ if !(live.machines.is_empty() && live.machine_sets.is_empty() && live.deployments.is_empty()) => 30,
        _ if !live.classes.is_empty() => 60,
        _ => 80,
    }
}

/// What is left, and the finalizers that hold the first object of the kind that goes next.
fn left_text(live: &MachineObjects) -> String {
    let counts = [
        (live.machines.len(), "machine", "s"),
        (live.machine_sets.len(), "machine set", "s"),
        (live.deployments.len(), "machine deployment", "s"),
        (live.classes.len(), "machine class", "es"),
        (live.class_secrets.len(), "machine class secret", "s"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, kind, plural)| format!("{count} {kind}{}", if count == 1 { "" } else { plural }))
        .collect();
    let mut text = format!("waiting until the following machine resources have been deleted: {}", counts.join(", "));
    let held = live
        .machines
        .first()
        .map(|machine| ("Machine", &machine.metadata))
        .or_else(|| live.deployments.values().next().map(|live| ("MachineDeployment", &live.object.metadata)))
        .or_else(|| live.class_secrets.values().next().map(|secret| ("Secret", &secret.metadata)));
    if let Some((kind, metadata)) = held {
        let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
        if !finalizers.is_empty() {
            let name = metadata.name.as_deref().unwrap_or_default();
            text.push_str(&format!("; {kind} {name} is held by {}", finalizers.join(", ")));
        }
    }
    text
}

/// Who still needs the credentials.
async fn credentials_holder(client: &Client, worker: &Worker) -> Result<Option<String>, PassError> {
    let reference = &worker.spec.secret_ref;
    let (Some(namespace), Some(name)) = (&reference.namespace, &reference.name) else { return Ok(None) };
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("Secret {namespace}/{name}");
    let secret = api.get_opt(name).await.map_err(|source| observe::ObserveError::Api { what: what.clone(), source })?;
    let finalizers = secret.and_then(|secret| secret.metadata.finalizers).unwrap_or_default();
    let holder = finalizers.into_iter().find(|finalizer| MACHINE_CONTROLLER_FINALIZERS.contains(&finalizer.as_str()));
    Ok(holder.map(|finalizer| format!("waiting until the credentials {what} are released by {finalizer}")))
}
