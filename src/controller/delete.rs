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

use crate::api::gardener::{Cluster, Worker};
use crate::cloud::dependency::CleanUp;
use crate::cluster::CREDENTIALS;
use crate::cluster::error::ReadError;
use crate::cluster::machine_objects::DeploymentText;
use crate::cluster::machine_writes::MachineApis;
use crate::controller::delete_objects::delete_all;
use crate::controller::dependencies::write_provider_status;
use crate::controller::error::ReconcileError;
use crate::controller::force_deletion::mark_machines;
use crate::controller::reconcile_context::ReconcileContext;
use crate::controller::repair::{Repaired, repair_classes};
use crate::controller::result::ReconcileResult;
use crate::worker::decode;
use crate::worker::machine_objects::{Digested, FailedMachine, MachineObjects};
use crate::worker::orphans::{MachineController, is_being_deleted};
use crate::worker::outcome::{failed_deletions, until};
use crate::worker::pending_deletion::{pending_deletion_text, percentage};
use crate::worker::request::requested_at;
use crate::worker::status::{Failure, ReconcileOutcome, deadline_from};
use crate::worker::status_text::MOST_OF_FAILURE;

/// Finalizers that machine-controller-manager puts on the credentials.
const MACHINE_CONTROLLER_FINALIZERS: [&str; 2] =
    ["machine.sapcloud.io/machine-controller-manager", "machine.sapcloud.io/machine-controller"];
/// How a failure begins.
const FAILED: &str = "failed while waiting for all machine resources to be deleted";
/// Another one is not watched, so it is looked at again after this time as long as it is held.
const LOOK_AT_OTHERS_AGAIN: Duration = Duration::from_secs(2);

/// One pass: delete what can be deleted now, and say what is left and who holds it.
///
/// # Errors
/// When something can't be read, marked or deleted.
pub(crate) async fn delete(
    context: &ReconcileContext<'_>,
    cluster: Option<Arc<Cluster>>,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let (shoot, worker) = (&context.shoot, context.latest());
    if cluster.as_deref().is_some_and(decode::is_deletion_forced) {
        return Ok(result(ReconcileOutcome::Succeeded, None));
    }
    let mut live = shoot.machine_objects().await?;
    let (mut missing, mut writes, mut look_again) = (None, 0, None);
    if live.uses_classes() {
        Repaired { live, missing, writes, look_again } = repair_classes(context, cluster.as_deref(), live).await?;
    }
    if !live.uses_classes() {
        // Neither classes nor the Worker may go while a machine is left that the watches have not shown.
        live = match live.is_empty() {
            true => shoot.read_machine_objects().await?,
            false => shoot.read_users_of_classes().await?,
        };
    }
    if live.is_empty() {
        return Ok(match credentials_holder(shoot.client(), worker).await? {
            None => remove_dependencies(context, cluster.as_deref(), now).await?,
            Some(text) => {
                let reference = &worker.spec.secret_ref;
                let is_watched = reference.name.as_deref() == Some(CREDENTIALS)
                    && reference.namespace.as_deref() == Some(shoot.name());
                waiting(worker, Failure::new(text), 90, now, (!is_watched).then_some(LOOK_AT_OTHERS_AGAIN))
            }
        });
    }
    mark_machines(shoot, &live.machines).await?;
    delete_next(&shoot.apis(), &live).await?;
    let mut failures: Vec<Failure> = failed_machines(&live).into_iter().collect();
    let is_late = until(deadline(worker, now), now).is_none();
    let has_failed = !failures.is_empty();
    if !has_failed {
        let mut text = pending_deletion_text(&live, is_late);
        if is_late && live.uses_classes() && shoot.machine_controller().await? == MachineController::Stopped {
            text.push_str("; machine-controller-manager does not run, so nobody deletes machines");
        }
        failures.push(Failure::new(text));
    }
    failures.extend(missing);
    let told = Failure::joined(failures).unwrap_or_default();
    let outcome = match has_failed {
        true => result(ReconcileOutcome::Failed(told), None),
        false => waiting(worker, told, percentage(&live), now, look_again.filter(|_| !is_late)),
    };
    Ok(ReconcileResult { writes, ..outcome })
}

/// What machines depended on goes after the last of them.
async fn remove_dependencies(
    context: &ReconcileContext<'_>,
    cluster: Option<&Cluster>,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let worker = context.latest();
    let Some(cloud) = context.cloud() else { return Ok(result(ReconcileOutcome::Succeeded, None)) };
    let secrets = context.shoot.credentials(worker).await?;
    Ok(match cloud.remove(worker, cluster, &secrets).await? {
        CleanUp::Done(records) => {
            if let Some(records) = records {
                write_provider_status(&context.shoot, worker, records).await?;
            }
            result(ReconcileOutcome::Succeeded, None)
        }
        CleanUp::Waiting(text) => waiting(worker, Failure::new(format!("waiting {text}")), 95, now, None),
        CleanUp::Failed(failure, again) => result(ReconcileOutcome::Failed(failure), Some(again)),
    })
}

fn result(outcome: ReconcileOutcome, look_again: Option<Duration>) -> ReconcileResult {
    ReconcileResult { requeue_after: look_again, ..ReconcileResult::of(outcome) }
}

/// Waiting, or an error once it has taken five minutes from the request.
fn waiting(
    worker: &Worker,
    left: Failure,
    progress: i32,
    now: Timestamp,
    look_again: Option<Duration>,
) -> ReconcileResult {
    match until(deadline(worker, now), now) {
        Some(patience) => {
            let again = look_again.map_or(patience, |again| again.min(patience));
            result(ReconcileOutcome::Waiting(left.message, progress), Some(again))
        }
        None => result(
            ReconcileOutcome::Failed(Failure { message: format!("{FAILED}: {}", left.message), ..left }),
            look_again,
        ),
    }
}

/// Five minutes after the deletion was asked for; gardenlet asks again with another time.
fn deadline(worker: &Worker, now: Timestamp) -> Timestamp {
    let asked = worker.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    deadline_from(asked.max(requested_at(worker)).unwrap_or(now))
}

/// Deletes deployments; when they, machine sets and machines are gone, classes and their Secrets, which
/// machine-controller-manager holds until their classes are gone.
async fn delete_next(apis: &MachineApis, live: &MachineObjects) -> Result<(), ReconcileError> {
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
fn failed_machines(live: &MachineObjects) -> Option<Failure> {
    let failed = live.deployments.values().flat_map(|deployment| &deployment.failed_machines);
    let failed: Vec<&FailedMachine> = failed.filter(|machine| !machine.is_creation).collect();
    // The other half is for what is missing to delete them.
    failed_deletions(FAILED, &failed, MOST_OF_FAILURE / 2)
}

/// Who still needs the credentials.
async fn credentials_holder(client: &Client, worker: &Worker) -> Result<Option<String>, ReconcileError> {
    let reference = &worker.spec.secret_ref;
    let (Some(namespace), Some(name)) = (&reference.namespace, &reference.name) else { return Ok(None) };
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("Secret {namespace}/{name}");
    let secret = api.get_opt(name).await.map_err(|source| ReadError::Api { what: what.clone(), source })?;
    let finalizers = secret.and_then(|secret| secret.metadata.finalizers).unwrap_or_default();
    let holder = finalizers.into_iter().find(|finalizer| MACHINE_CONTROLLER_FINALIZERS.contains(&finalizer.as_str()));
    Ok(holder.map(|finalizer| format!("waiting until the credentials {what} are released by {finalizer}")))
}
