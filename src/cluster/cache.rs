//! What this process knows of a seed, and how much it may write at a time.

use std::sync::Arc;
use std::time::Instant;

use kube::{Resource, ResourceExt};
use tokio::sync::Semaphore;

use crate::api::gardener::Worker;
use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::cluster_cache::ClusterCache;
use crate::cluster::decode_guard::Guarded;
use crate::cluster::machine_objects::MachineObjectCache;
use crate::cluster::secret_cache::SecretCache;
use crate::cluster::store::{Identity, Store};

/// What this process knows of a seed.
pub(crate) struct SeedCache {
    /// The Workers.
    pub(crate) workers: WorkerStore,
    /// The machine objects, if watches feed it.
    pub(crate) machine_objects: MachineObjectCache,
    /// The Clusters.
    pub(crate) clusters: ClusterCache,
    /// The Secrets that Workers refer to.
    pub(crate) secrets: SecretCache,
    /// Writes that may be under way at a time, for all Workers together.
    pub(crate) writes: Semaphore,
}

impl Default for SeedCache {
    fn default() -> Self {
        let (workers, machine_objects, clusters, secrets) = Default::default();
        Self { workers, machine_objects, clusters, secrets, writes: Semaphore::new(PARALLEL_REQUESTS) }
    }
}

/// The Workers of the seed in their newest versions, be it that a watch has shown them or that this process has written them.
#[derive(Default)]
pub(crate) struct WorkerStore(pub(crate) Store<Guarded<Worker>>);

impl WorkerStore {
    /// A Worker in its newest version.
    #[must_use]
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Guarded<Worker>>> {
        self.0.get(namespace, name)
    }

    /// The answer to a write of this process.
    pub(crate) fn own_write(&self, worker: Worker) -> Arc<Worker> {
        let worker = Arc::new(worker);
        let guarded = Guarded::decoded(Arc::clone(&worker));
        if let Some(identity) = identity(&guarded) {
            self.0.own_write(identity, guarded);
        }
        worker
    }

    /// This process has let a Worker go, and nothing else held it.
    pub(crate) fn own_deletion(&self, worker: &Worker) {
        let (namespace, uid) = (worker.namespace().unwrap_or_default(), worker.uid().unwrap_or_default());
        self.0.own_deletion(&namespace, &worker.name_any(), &uid, Instant::now());
    }
}

/// Who an object is; `None` for what no API server has sent.
#[must_use]
pub(crate) fn identity(object: &impl Resource) -> Option<Identity> {
    let metadata = object.meta();
    Some(Identity {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone()?,
        uid: metadata.uid.clone()?,
        // Versions of one kind are numbers that grow (documented since Kubernetes 1.35, true since ever).
        version: metadata.resource_version.as_deref()?.parse().ok()?,
    })
}
