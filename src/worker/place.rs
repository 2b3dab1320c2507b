//! Where a pass reads and writes: the namespace of one shoot in the seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use tokio::sync::Semaphore;

use super::apply::PARALLEL_REQUESTS;
use super::cleanup::MachineController;
use super::known_clusters::KnownClusters;
use super::known_secrets::KnownSecrets;
use super::live::{Live, MachineObjects};
use super::machine_apis::MachineApis;
use super::mirror::Mirror;
use super::observe::{self, ObserveError};
use crate::api::gardener::{Cluster, Worker};
use crate::api::machine::MachineDeployment;
use crate::api::secret::Secrets;

/// What this process knows of a seed, and how much it may ask at a time.
pub struct Knowledge {
    /// The machine objects, if watches feed it.
    pub mirror: Mirror,
    /// The Clusters.
    pub clusters: KnownClusters,
    /// The Secrets that Workers refer to.
    pub secrets: KnownSecrets,
    /// Writes that may be under way at a time, for all Workers together.
    pub writes: Semaphore,
}

impl Default for Knowledge {
    fn default() -> Self {
        let (mirror, clusters, secrets) = Default::default();
        Self { mirror, clusters, secrets, writes: Semaphore::new(PARALLEL_REQUESTS) }
    }
}

/// The namespace of one shoot.
#[derive(Clone)]
pub struct Place {
    client: Client,
    namespace: String,
    knowledge: Arc<Knowledge>,
    believes_watches: bool,
}

impl Place {
    /// The namespace of that name.
    #[must_use]
    pub fn new(client: Client, knowledge: Arc<Knowledge>, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into(), knowledge, believes_watches: true }
    }

    /// The same, where machine objects are always read anew.
    #[must_use]
    pub fn without_watches(self) -> Self {
        Self { believes_watches: false, ..self }
    }

    /// A client of the seed, for what has no method here.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Name of the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Cluster of the shoot, `None` when there is none: read `anew`, or as far as a watch shows that it has not changed.
    ///
    /// # Errors
    /// When it can't be read or decoded.
    pub async fn cluster(&self, anew: bool) -> Result<Option<Arc<Cluster>>, ObserveError> {
        let clusters = &self.knowledge.clusters;
        match anew {
            true => clusters.read(&self.client, &self.namespace).await,
            false => clusters.read_if_newer(&self.client, &self.namespace).await,
        }
    }

    /// The Secrets that a Worker refers to, as they are now when asked `anew`, else as they were read before.
    ///
    /// # Errors
    /// When one can't be read.
    pub async fn secrets(&self, worker: &Worker, anew: bool) -> Result<Secrets, ObserveError> {
        match anew {
            true => self.knowledge.secrets.read(&self.client, worker).await,
            false => self.knowledge.secrets.read_unknown(&self.client, worker).await,
        }
    }

    /// The credentials of a Worker as they are now; nothing when they are missing.
    ///
    /// # Errors
    /// When they can't be read.
    pub async fn credentials(&self, worker: &Worker) -> Result<Secrets, ObserveError> {
        self.knowledge.secrets.read_credentials(&self.client, worker).await
    }

    /// The operation of a Worker has ended.
    pub fn rest(&self, worker: &Worker) {
        self.knowledge.secrets.rest(worker);
    }

    /// The Secrets of a Worker are read again when they are needed next.
    pub fn forget_secrets(&self, worker: &Worker) {
        self.knowledge.secrets.forget_all(worker);
    }

    /// All machine objects, perhaps as they were a moment ago: enough for writes that say what they were computed from,
    /// and for waiting.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn machine_objects(&self) -> Result<MachineObjects, ObserveError> {
        if self.believes_watches && self.knowledge.mirror.is_trusted() {
            return self.knowledge.mirror.of_namespace(&self.namespace);
        }
        self.machine_objects_anew().await
    }

    /// Whether the watches are believed to show everything.
    #[must_use]
    pub fn watches_are_trusted(&self) -> bool {
        self.knowledge.mirror.is_trusted()
    }

    /// The machine deployments as the watches show them.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn shown_deployments(&self) -> Result<BTreeMap<String, Live<MachineDeployment>>, ObserveError> {
        self.knowledge.mirror.deployments_of(&self.namespace)
    }

    /// All machine objects as they are now, for decisions that can't be taken back.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn machine_objects_anew(&self) -> Result<MachineObjects, ObserveError> {
        observe::renew(&self.client, &self.namespace, &self.knowledge.mirror).await?;
        self.knowledge.mirror.of_namespace(&self.namespace)
    }

    /// All machine objects; deployments, machine sets and machines, which use classes, as they are now.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn users_of_classes_anew(&self) -> Result<MachineObjects, ObserveError> {
        observe::renew_users_of_classes(&self.client, &self.namespace, &self.knowledge.mirror).await?;
        self.knowledge.mirror.of_namespace(&self.namespace)
    }

    /// Whether machine-controller-manager is meant to run.
    ///
    /// # Errors
    /// When its Deployment can't be read.
    pub async fn machine_controller(&self) -> Result<MachineController, ObserveError> {
        observe::machine_controller(&self.client, &self.namespace).await
    }

    /// The APIs that machine objects are written through.
    #[must_use]
    pub fn apis(&self) -> MachineApis {
        MachineApis::new(self.client.clone(), self.namespace.clone(), Arc::clone(&self.knowledge))
    }
}
