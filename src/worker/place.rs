//! Where a pass reads and writes: the namespace of one shoot in the seed.

use kube::Client;

use super::apply::MachineApis;
use super::cleanup::MachineController;
use super::live::MachineObjects;
use super::observe::{self, ObserveError};

/// The namespace of one shoot.
#[derive(Clone)]
pub struct Place {
    client: Client,
    namespace: String,
}

impl Place {
    /// The namespace of that name.
    #[must_use]
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
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

    /// All machine objects, perhaps as they were a moment ago: enough for writes that say what they were computed from,
    /// and for waiting.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn machine_objects(&self) -> Result<MachineObjects, ObserveError> {
        self.machine_objects_anew().await
    }

    /// All machine objects as they are now, for decisions that can't be taken back.
    ///
    /// # Errors
    /// When they can't be read or decoded.
    pub async fn machine_objects_anew(&self) -> Result<MachineObjects, ObserveError> {
        observe::machine_objects(&self.client, &self.namespace).await
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
        MachineApis::new(&self.client, &self.namespace)
    }
}
