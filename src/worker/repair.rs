//! I/O step of a deletion: keeps the classes usable that machines still need, as far as it can be planned how. Whatever
//! can't, stops nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::apply::{Applied, apply};
use super::decode;
use super::live::MachineObjects;
use super::needed_classes::{Makers, repairs};
use super::observe::ObserveError;
use super::plan::{Plan, plan};
use super::reconcile::Hands;
use super::report::Failure;
use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::provider::{Provider, WorkerError};

/// Nobody watches user data, and somebody was faster when a write was refused as outdated.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What came of it.
pub(super) struct Repaired {
    /// The machine objects as they are now.
    pub(super) live: MachineObjects,
    /// What machines need and can't be made.
    pub(super) lack: Option<Failure>,
    /// Writes that were done.
    pub(super) writes: usize,
    /// When to look again even if nothing happens.
    pub(super) look_again: Option<Duration>,
}

/// Writes class Secrets and classes that are used or there, where they are missing or differ. Clouds are not asked: what
/// pools depend on is what the provider status records.
///
/// # Errors
/// When machine objects can't be read.
pub(super) async fn repair_classes(
    hands: Hands<'_>,
    worker: &Worker,
    cluster: Option<&Cluster>,
    mut live: MachineObjects,
) -> Result<Repaired, ObserveError> {
    let Hands { place, provider, .. } = hands;
    let namespace = place.namespace();
    let secrets = place.secrets(worker, false).await;
    let planned = match &secrets {
        Ok(secrets) => plan_of(provider, worker, cluster, secrets)
            .map_err(|error| Failure { message: error.to_string(), codes: error.code().into_iter().collect() }),
        Err(error) => Err(Failure::new(error.to_string())),
    };
    let (mut writes, mut errors) = (0, Vec::new());
    if let Ok(plan) = &planned
        && !repairs(plan, namespace, &live).is_empty()
    {
        // Once the machines are gone nothing may be made any more: that is judged by what is there now.
        live = place.machine_objects_anew().await?;
        let repairs = repairs(plan, namespace, &live);
        Applied { errors, writes, .. } = apply(&place.apis(), repairs, live).await;
        live = place.machine_objects().await?;
    }
    let is_outrun = errors.iter().any(|error| error.source.is_outdated());
    let refused: BTreeMap<String, String> = errors
        .iter()
        .filter(|error| !error.source.is_outdated())
        .map(|error| (error.name.clone(), error.to_string()))
        .collect();
    let shoot = cluster.and_then(|cluster| cluster.spec.shoot.as_ref());
    let makers = Makers {
        worker,
        technical_id: shoot.map_or("", |shoot| &shoot.status.technical_id),
        plan: planned.as_ref(),
        refused: &refused,
        without_credentials: secrets.is_ok_and(|secrets| !has_credentials(worker, &secrets)),
    };
    let lack = makers.lack(&live);
    if lack.is_some() {
        // It may be a Secret that is missing or wrong.
        place.forget_secrets(worker);
    }
    let look_again = (is_outrun || lack.is_some()).then_some(LOOK_AGAIN);
    Ok(Repaired { live, lack, writes, look_again })
}

fn plan_of(
    provider: &dyn Provider,
    worker: &Worker,
    cluster: Option<&Cluster>,
    secrets: &Secrets,
) -> Result<Plan, WorkerError> {
    let missing = || WorkerError::ClusterMissing { cluster: worker.metadata.namespace.clone().unwrap_or_default() };
    plan(provider, decode::context(worker, cluster.ok_or_else(missing)?, secrets)?)
}

/// Whether the Secret that the Worker names is there; also where it names none.
fn has_credentials(worker: &Worker, secrets: &Secrets) -> bool {
    let reference = &worker.spec.secret_ref;
    match (&reference.namespace, &reference.name) {
        (Some(namespace), Some(name)) => secrets.get(namespace, name).is_some(),
        _ => true,
    }
}
