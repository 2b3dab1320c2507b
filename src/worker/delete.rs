//! One pass over a Worker that shall vanish: machines first, then classes, then their Secrets.
//!
//! It needs no image, no machine type and no user data. Classes stay until the last machine is gone, because
//! machine-controller-manager needs them (and the credentials) to delete machines at the cloud.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::cleanup::is_being_deleted;
use super::decode;
use super::deletion::delete_all;
use super::dependencies::{CleanUp, write_provider_status};
use super::force_deletion::mark_machines;
use super::live::{Digested, MachineObjects};
use super::machine_apis::MachineApis;
use super::mirror::DeploymentText;
use super::observe::{self, ObserveError};
use super::reconcile::{Hands, Pass, PassError};
use super::report::{Failure, Outcome, PATIENCE};
use crate::api::gardener::{Cluster, Worker};
use crate::provider::Provider;

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
    hands: Hands<'_>,
    worker: &Worker,
    cluster: Result<Option<Arc<Cluster>>, ObserveError>,
    now: Timestamp,
) -> Result<Pass, PassError> {
    let Hands { place, provider, .. } = hands;
    let cluster = cluster?;
    if cluster.as_deref().is_some_and(decode::is_deletion_forced) {
        return Ok(pass(Outcome::Succeeded, None));
    }
    let mut live = place.machine_objects().await?;
    if !live.uses_classes() {
        // Neither classes nor the Worker may go while a machine is left that the watches have not shown.
        live = place.machine_objects_anew().await?;
    }
    if live.is_empty() {
        return Ok(match credentials_holder(place.client(), worker).await? {
            None => remove_dependencies(hands, worker, cluster.as_deref(), now).await?,
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

/// What machines depended on goes after the last of them.
async fn remove_dependencies(
    hands: Hands<'_>,
    worker: &Worker,
    cluster: Option<&Cluster>,
    now: Timestamp,
) -> Result<Pass, PassError> {
    let Some(cloud) = hands.cloud else { return Ok(pass(Outcome::Succeeded, None)) };
    let secrets = hands.place.credentials(worker).await?;
    Ok(match cloud.remove(worker, cluster, &secrets).await? {
        CleanUp::Done(records) => {
            if let Some(records) = records {
                write_provider_status(hands.place, worker, records).await?;
            }
            pass(Outcome::Succeeded, None)
        }
        CleanUp::Waiting(text) => waiting(worker, format!("waiting {text}"), 95, now, None),
        CleanUp::Failed(failure, again) => pass(Outcome::Failed(failure), Some(again)),
    })
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
    let deployments = live.deployments.iter().filter(|(_, deployment)| !is_being_deleted(&deployment.document));
    let doomed = deployments.map(|(name, live)| (name.as_str(), live.object.metadata.uid.as_deref()));
    delete_all::<DeploymentText>(apis, doomed.collect()).await?;
    if live.uses_classes() {
        return Ok(());
    }
    delete_all::<Digested<Value>>(apis, Digested::still_to_delete(&live.classes, |_| true)).await?;
    if !live.classes.is_empty() {
        return Ok(());
    }
    delete_all::<Digested<Secret>>(apis, Digested::still_to_delete(&live.class_secrets, |_| true)).await
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
