//! One pass over a Worker that shall vanish: machines first, then classes with their Secrets.
//!
//! It needs no image, no machine type and no user data. Classes stay until the last machine is gone, because
//! machine-controller-manager needs them (and the credentials) to delete machines at the cloud. Until then they are repaired
//! as far as that can be planned.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::cleanup::{MachineController, is_being_deleted};
use super::decode;
use super::deletion::delete_all;
use super::dependencies::{CleanUp, write_provider_status};
use super::force_deletion::mark_machines;
use super::live::{Digested, MachineObjects};
use super::machine_apis::MachineApis;
use super::mirror::DeploymentText;
use super::observe::{self, ObserveError};
use super::operation::requested_at;
use super::outcome::until;
use super::reconcile::{Hands, Pass, PassError};
use super::remaining::{percentage, remaining_text};
use super::repair::{Repaired, repair_classes};
use super::report::{Failure, Outcome, deadline_from};
use crate::api::gardener::{Cluster, Worker};
use crate::provider::Provider;

/// Finalizers that machine-controller-manager puts on the credentials.
const MACHINE_CONTROLLER_FINALIZERS: [&str; 2] =
    ["machine.sapcloud.io/machine-controller-manager", "machine.sapcloud.io/machine-controller"];
/// How a failure begins.
const FAILED: &str = "failed while waiting for all machine resources to be deleted";
/// What gardenlet calls the Secret with the credentials of each shoot. It is watched by this name, for the Workers of its
/// namespace.
pub const CREDENTIALS: &str = "cloudprovider";
/// Another one is not watched, so it is looked at again after this time as long as it is held.
const LOOK_AT_OTHERS_AGAIN: Duration = Duration::from_secs(2);

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
    let (mut lack, mut writes, mut look_again) = (None, 0, None);
    if live.uses_classes() {
        Repaired { live, lack, writes, look_again } = repair_classes(hands, worker, cluster.as_deref(), live).await?;
    }
    if !live.uses_classes() {
        // Neither classes nor the Worker may go while a machine is left that the watches have not shown.
        live = match live.is_empty() {
            true => place.machine_objects_anew().await?,
            false => place.users_of_classes_anew().await?,
        };
    }
    if live.is_empty() {
        return Ok(match credentials_holder(place.client(), worker).await? {
            None => remove_dependencies(hands, worker, cluster.as_deref(), now).await?,
            Some(text) => {
                let reference = &worker.spec.secret_ref;
                let is_watched = reference.name.as_deref() == Some(CREDENTIALS)
                    && reference.namespace.as_deref() == Some(place.namespace());
                waiting(worker, Failure::new(text), 90, now, (!is_watched).then_some(LOOK_AT_OTHERS_AGAIN))
            }
        });
    }
    mark_machines(place, &live.machines).await?;
    delete_next(&place.apis(), &live).await?;
    let mut failures = failed_machines(provider, &live);
    let is_late = until(deadline(worker, now), now).is_none();
    let has_failed = !failures.is_empty();
    if !has_failed {
        let mut text = remaining_text(&live, is_late);
        if is_late && live.uses_classes() && place.machine_controller().await? == MachineController::Stopped {
            text.push_str("; machine-controller-manager does not run, so nobody deletes machines");
        }
        failures.push(Failure::new(text));
    }
    failures.extend(lack);
    let told = Failure::joined(failures).unwrap_or_default();
    let outcome = match has_failed {
        true => pass(Outcome::Failed(told), None),
        false => waiting(worker, told, percentage(&live), now, look_again.filter(|_| !is_late)),
    };
    Ok(Pass { writes, ..outcome })
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
        CleanUp::Waiting(text) => waiting(worker, Failure::new(format!("waiting {text}")), 95, now, None),
        CleanUp::Failed(failure, again) => pass(Outcome::Failed(failure), Some(again)),
    })
}

fn pass(outcome: Outcome, look_again: Option<Duration>) -> Pass {
    Pass { look_again, ..Pass::ended(outcome) }
}

/// Waiting, or an error once it has taken five minutes from the request.
fn waiting(worker: &Worker, left: Failure, progress: i32, now: Timestamp, look_again: Option<Duration>) -> Pass {
    match until(deadline(worker, now), now) {
        Some(patience) => {
            let again = look_again.map_or(patience, |again| again.min(patience));
            pass(Outcome::Waiting(left.message, progress), Some(again))
        }
        None => pass(Outcome::Failed(Failure { message: format!("{FAILED}: {}", left.message), ..left }), look_again),
    }
}

/// Five minutes after the deletion was asked for; gardenlet asks again with another time.
fn deadline(worker: &Worker, now: Timestamp) -> Timestamp {
    let asked = worker.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    deadline_from(asked.max(requested_at(worker)).unwrap_or(now))
}

/// Deletes deployments; when they, machine sets and machines are gone, classes and their Secrets, which
/// machine-controller-manager holds until their classes are gone.
async fn delete_next(apis: &MachineApis, live: &MachineObjects) -> Result<(), PassError> {
    let deployments = live.deployments.iter().filter(|(_, deployment)| !is_being_deleted(&deployment.document));
    let doomed = deployments.map(|(name, live)| (name.as_str(), live.object.metadata.uid.as_deref()));
    delete_all::<DeploymentText>(apis, doomed.collect()).await?;
    if live.uses_classes() {
        return Ok(());
    }
    delete_all::<Digested<Value>>(apis, Digested::still_to_delete(&live.classes, |_| true)).await?;
    delete_all::<Digested<Secret>>(apis, Digested::still_to_delete(&live.class_secrets, |_| true)).await
}

/// Machines that can't be deleted. That others could not be made is of no interest any more.
fn failed_machines(provider: &dyn Provider, live: &MachineObjects) -> Vec<Failure> {
    let failed = live.deployments.values().flat_map(|deployment| &deployment.object.status.failed_machines);
    let failed = failed.filter(|machine| machine.last_operation.operation_type != "Create");
    failed
        .map(|machine| {
            let operation = &machine.last_operation;
            Failure {
                message: format!("{FAILED}: machine {} failed: {}", machine.name, operation.description),
                codes: provider.error_codes(operation.error_code.as_deref(), &operation.description),
            }
        })
        .collect()
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
