//! What this process knows of a seed, and how much it may write at a time.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::api::gardener::Worker;
use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::cluster_cache::ClusterCache;
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::cluster::machine_objects::MachineObjectCache;
use crate::cluster::secret_cache::SecretCache;
use crate::cluster::store::{Read, Store};
use crate::provider::Providers;

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

impl SeedCache {
    /// An empty one. The providers read what is theirs of machine objects; of Clusters also what forecasts of versions need, where
    /// these are wanted.
    pub(crate) fn new(providers: Providers, version_forecast: bool) -> Self {
        let (workers, clusters, secrets): (_, ClusterCache, _) = Default::default();
        let clusters = if version_forecast { clusters.with_versions() } else { clusters };
        let machine_objects = MachineObjectCache::new(providers);
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

    /// The API server is about to be asked to write a Worker.
    pub(crate) fn write(&self) -> Read<'_, Guarded<Worker>> {
        self.0.read()
    }

    /// The answer to a write of this process.
    pub(crate) fn own_write(asked: Read<'_, Guarded<Worker>>, worker: Worker) -> Arc<Worker> {
        let worker = Arc::new(worker);
        let guarded = Guarded::decoded(Arc::clone(&worker));
        if let Some(identity) = Identity::of(&guarded) {
            asked.of_write(identity, || guarded);
        }
        worker
    }

    /// An answer says that the Worker is gone, whatever the watch has shown until now: it was let go, or is not there to be written.
    pub(crate) fn gone(&self, worker: &Identity) {
        self.0.own_deletion(&worker.namespace, &worker.name, &worker.uid, Instant::now());
    }
}
