//! Workers that nobody asks for by an annotation (`--ignore-operation-annotation`): a new generation begins an operation, and
//! so does a Cluster after whose change something would be written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::controller::Shared;
use crate::api::gardener::Worker;
use crate::provider::Provider;
use crate::worker::differs::differs;
use crate::worker::observe::ObserveError;
use crate::worker::operation::{Notice, notice};

/// The versions of Clusters in which Workers have been found as they shall be, by uid of the Worker.
#[derive(Default)]
pub(super) struct Compared(Mutex<HashMap<String, u64>>);

impl Compared {
    /// The Worker is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.versions().remove(uid);
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an operation begins although nobody has asked for one.
///
/// # Errors
/// When what the Worker depends on can't be read.
pub(super) async fn begins(worker: &Worker, provider: &dyn Provider, shared: &Shared) -> Result<bool, ObserveError> {
    match notice(worker) {
        Notice::Nothing => Ok(false),
        Notice::Specification => Ok(true),
        Notice::Surroundings => surroundings_differ(worker, provider, shared).await,
    }
}

async fn surroundings_differ(worker: &Worker, provider: &dyn Provider, shared: &Shared) -> Result<bool, ObserveError> {
    let namespace = worker.namespace().unwrap_or_default();
    let Some(version) = shared.knowledge.clusters.versions.version("", &namespace) else { return Ok(false) };
    let uid = worker.meta().uid.clone().unwrap_or_default();
    if shared.compared.versions().get(&uid) == Some(&version) {
        return Ok(false);
    }
    let place = shared.place(worker);
    let differs = match place.cluster(false).await {
        Ok(Some(cluster)) => differs(&place, provider, worker, &cluster, Timestamp::now()).await?,
        Ok(None) => false,
        // Somebody has to be told.
        Err(ObserveError::Cluster { .. }) => true,
        Err(error) => return Err(error),
    };
    place.rest(worker);
    if !differs {
        shared.compared.versions().insert(uid, version);
    }
    Ok(differs)
}
