//! The cache of a seed, and the limit of concurrent writes.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::cluster_cache::ClusterCache;
use crate::cluster::decode_guard::LazyObject;
use crate::cluster::identity::Identity;
use crate::cluster::machine_objects::MachineObjectCache;
use crate::cluster::secret_cache::SecretCache;
use crate::cluster::store::{Read, Store};
use decisions::provider::Providers;
use wire::api::gardener::Worker;

/// The cache of a seed.
pub struct SeedCache {
    pub workers: WorkerStore,
    /// Machine objects, filled by watches.
    pub machine_objects: MachineObjectCache,
    pub clusters: ClusterCache,
    pub secrets: SecretCache,
    /// Limits concurrent writes of all Workers together.
    pub(crate) writes: Semaphore,
}

impl SeedCache {
    /// Creates an empty cache. `version_forecast` also keeps the fields of Clusters that version forecasts need.
    pub fn new(providers: Providers, version_forecast: bool) -> Self {
        let clusters = ClusterCache::default();
        Self {
            workers: WorkerStore::default(),
            machine_objects: MachineObjectCache::new(providers),
            clusters: if version_forecast { clusters.with_versions() } else { clusters },
            secrets: SecretCache::default(),
            writes: Semaphore::new(PARALLEL_REQUESTS),
        }
    }
}

/// The newest known version of each Worker, from watches and own writes.
#[derive(Default)]
pub struct WorkerStore(pub Store<LazyObject<Worker>>);

impl WorkerStore {
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<LazyObject<Worker>>> {
        self.0.get(namespace, name)
    }

    /// Begins a write. Call it before the request is sent.
    pub fn write(&self) -> Read<'_, LazyObject<Worker>> {
        self.0.read()
    }

    /// Stores the response to a write.
    pub fn own_write(requested: Read<'_, LazyObject<Worker>>, worker: Worker) -> Arc<Worker> {
        let worker = Arc::new(worker);
        let guarded = LazyObject::decoded(Arc::clone(&worker));
        if let Some(identity) = Identity::of(&guarded) {
            requested.of_write(identity, || guarded);
        }
        worker
    }

    /// Removes a Worker after a response that it is deleted, before the watch reports it.
    pub fn deleted(&self, worker: &Identity) {
        self.0.own_deletion(&worker.namespace, &worker.name, &worker.uid, Instant::now());
    }
}
