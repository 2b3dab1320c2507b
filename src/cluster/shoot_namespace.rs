//! Where a reconcile reads and writes: the namespace of one shoot in the seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;

use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::cluster::cache::SeedCache;
use crate::cluster::error::ReadError;
use crate::cluster::machine_reads;
use crate::cluster::machine_writes::MachineApis;
use crate::provider::Provider;
use crate::worker::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::orphans::MachineController;

/// The namespace of one shoot.
#[derive(Clone)]
pub(crate) struct ShootNamespace {
    client: Client,
    namespace: String,
    cache: Arc<SeedCache>,
    provider: &'static dyn Provider,
    uses_store: bool,
}

impl ShootNamespace {
    /// The namespace of that name. The provider of its Worker decides which codes the failures of machines have.
    #[must_use]
    pub(crate) fn new(
        client: Client,
        cache: Arc<SeedCache>,
        namespace: impl Into<String>,
        provider: &'static dyn Provider,
    ) -> Self {
        Self { client, namespace: namespace.into(), cache, provider, uses_store: true }
    }

    /// The same, where machine objects are always read anew.
    #[must_use]
    pub(crate) fn without_store(self) -> Self {
        Self { uses_store: false, ..self }
    }

    /// A client of the seed, for what has no method here.
    #[must_use]
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Name of the namespace.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.namespace
    }

    /// The Cluster of the shoot, `None` when there is none: read `anew`, or as far as a watch shows that it has not changed.
    ///
    /// # Errors
    /// When it can't be read or decoded.
    pub(crate) async fn cluster(&self, anew: bool) -> Result<Option<Arc<Cluster>>, ReadError> {
        let clusters = &self.cache.clusters;
        match anew {
            true => clusters.read(&self.client, &self.namespace).await,
            false => clusters.read_if_newer(&self.client, &self.namespace).await,
        }
    }

    /// The Secrets that a Worker refers to, as they are now when asked `anew`, else as they were read before.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) async fn secrets(&self, worker: &Worker, anew: bool) -> Result<Secrets, ReadError> {
        match anew {
            true => self.cache.secrets.read(&self.client, worker).await,
            false => self.cache.secrets.read_unknown(&self.client, worker).await,
        }
    }

    /// The credentials of a Worker as they are now; nothing when they are missing.
    ///
    /// # Errors
    /// When they can't be read.
    pub(crate) async fn credentials(&self, worker: &Worker) -> Result<Secrets, ReadError> {
        self.cache.secrets.read_credentials(&self.client, worker).await
    }

    /// An operation that needed these Secrets has ended.
    pub(crate) fn pack_secrets(&self, secrets: &Secrets) {
        self.cache.secrets.pack(secrets);
    }

    /// These Secrets are read again when they are needed next.
    pub(crate) fn forget_secrets(&self, secrets: &Secrets) {
        self.cache.secrets.forget(secrets);
    }

    /// All machine objects, perhaps as they were a moment ago: enough for writes that say what they were computed from,
    /// and for waiting.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub(crate) async fn machine_objects(&self) -> Result<MachineObjects, ReadError> {
        if self.uses_store && self.cache.machine_objects.is_fresh() {
            return self.cache.machine_objects.of_namespace(&self.namespace, self.provider);
        }
        self.read_machine_objects().await
    }

    /// Whether the watches are believed to show everything.
    #[must_use]
    pub(crate) fn store_is_fresh(&self) -> bool {
        self.cache.machine_objects.is_fresh()
    }

    /// The machine deployments as the watches show them.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) fn stored_deployments(&self) -> Result<BTreeMap<String, LiveDeployment>, ReadError> {
        self.cache.machine_objects.deployments_of(&self.namespace, self.provider)
    }

    /// All machine objects as they are now, for decisions that can't be taken back.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub(crate) async fn read_machine_objects(&self) -> Result<MachineObjects, ReadError> {
        machine_reads::renew(&self.client, &self.namespace, &self.cache.machine_objects).await?;
        self.cache.machine_objects.of_namespace(&self.namespace, self.provider)
    }

    /// All machine objects; deployments, machine sets and machines, which use classes, as they are now.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub(crate) async fn read_users_of_classes(&self) -> Result<MachineObjects, ReadError> {
        machine_reads::renew_users_of_classes(&self.client, &self.namespace, &self.cache.machine_objects).await?;
        self.cache.machine_objects.of_namespace(&self.namespace, self.provider)
    }

    /// Whether machine-controller-manager is meant to run.
    ///
    /// # Errors
    /// When its Deployment can't be read.
    pub(crate) async fn machine_controller(&self) -> Result<MachineController, ReadError> {
        machine_reads::machine_controller(&self.client, &self.namespace).await
    }

    /// The APIs that machine objects are written through.
    #[must_use]
    pub(crate) fn apis(&self) -> MachineApis {
        MachineApis::new(self.client.clone(), self.namespace.clone(), Arc::clone(&self.cache), self.provider)
    }
}
