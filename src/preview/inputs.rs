//! What a Worker is planned from, as documents, so that single members can be put in place of others.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cloud_profile::{CloudProfiles, SharedCloudProfile};
use crate::api::gardener::{Shoot, Worker};
use crate::api::gotext::json::{DecodeError, decode_lenient, to_go_json};
use crate::api::secret::Secrets;
use crate::provider::Providers;
use crate::shoot::Reservation;
use crate::worker::class_images::ImagePolicy;

/// The inputs of one Worker.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The Worker.
    pub worker: Arc<Document<Worker>>,
    /// The Shoot of its Cluster.
    pub shoot: Option<Arc<Document<Shoot>>>,
    /// The CloudProfile of its Cluster.
    pub cloud_profile: Option<Arc<SharedCloudProfile>>,
    /// Secrets that it may refer to.
    pub secrets: Arc<Secrets>,
    /// Who may plan it.
    pub providers: Providers,
    /// What the controller does where the image of a class changes.
    pub image_policy: ImagePolicy,
    /// Where the Worker is made from its Shoot: how. Until it is compared, the Shoot is as it was written then, and the Worker has
    /// only its name and type.
    pub made_from_shoot: Option<Arc<ShootSource>>,
}

/// What making a Worker needs beside the Shoot and its CloudProfile.
#[derive(Clone, Debug)]
pub struct ShootSource {
    /// When the Shoot is written: expired versions are not chosen.
    pub now: Timestamp,
    /// `status.providerStatus` of the Infrastructure, where it is known.
    pub infrastructure_status: Option<Value>,
    /// The public key for nodes, where it is known.
    pub ssh_public_key: Option<String>,
    /// How the landscape reserves resources; `None` where the old Shoot says it, else statically.
    pub reservation: Option<Reservation>,
    /// Whether new Shoots get node-local DNS.
    pub node_local_dns: bool,
    /// The Worker that the Shoot has on its seed, where that is known.
    pub existing: Option<ExistingWorker>,
    /// Whether maintenance writes the Shoot, not a person.
    pub is_maintenance: bool,
}

/// The Worker that a Shoot has on its seed. Others than gardenlet may have written to it, and its status names images that it keeps:
/// only what an edit of the Shoot changes is changed in it.
#[derive(Clone, Debug)]
pub struct ExistingWorker {
    /// The Worker.
    pub(super) worker: Arc<Document<Worker>>,
    /// What gardenlet makes of the Shoot before the edit.
    pub(super) made: Arc<Value>,
    /// The Secrets that it refers to.
    pub(super) secrets: Arc<Secrets>,
}

impl ShootSource {
    /// Everything but the time as it is presumed.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            infrastructure_status: None,
            ssh_public_key: None,
            reservation: None,
            node_local_dns: false,
            existing: None,
            is_maintenance: false,
        }
    }
}

impl ShootSource {
    /// The same for a Shoot that maintenance writes.
    #[must_use]
    pub(super) fn by_maintenance(&self) -> Self {
        Self { is_maintenance: true, ..self.clone() }
    }
}

/// A document, and what is read of it once somebody asks.
#[derive(Debug)]
pub struct Document<T> {
    /// The document.
    pub value: Value,
    decoded: OnceLock<Result<T, DecodeError>>,
}

impl<T: DeserializeOwned> Document<T> {
    /// A document that nobody has asked for yet.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self { value, decoded: OnceLock::new() }
    }

    /// Decodes it from the text that an API server would send for it, because hashes run over that.
    ///
    /// # Errors
    /// When a member has the wrong type.
    pub fn decoded(&self) -> Result<&T, DecodeError> {
        self.decoded.get_or_init(|| decode_lenient(&to_go_json(&self.value))).as_ref().map_err(Clone::clone)
    }
}

impl Inputs {
    /// Takes the documents apart.
    ///
    /// # Errors
    /// When the CloudProfile in the Cluster can't be decoded.
    pub fn new(
        worker: Value,
        cluster: Option<Value>,
        secrets: Secrets,
        profiles: &CloudProfiles,
    ) -> Result<Self, DecodeError> {
        let mut spec = cluster.and_then(|mut cluster| cluster.get_mut("spec").map(Value::take)).unwrap_or_default();
        let mut member = |name: &str| spec.get_mut(name).map(Value::take).filter(|value| !value.is_null());
        Ok(Self {
            worker: Arc::new(Document::new(worker)),
            shoot: member("shoot").map(|shoot| Arc::new(Document::new(shoot))),
            cloud_profile: member("cloudProfile").map(|profile| profiles.share(profile)).transpose()?,
            secrets: Arc::new(secrets),
            providers: profiles.providers(),
            image_policy: profiles.image_policy(),
            made_from_shoot: None,
        })
    }

    /// Takes what is missing around the Worker from another one: what a file leaves out stays as it is in the cluster.
    #[must_use]
    pub fn completed_by(mut self, present: &Self) -> Self {
        self.shoot = self.shoot.or_else(|| present.shoot.clone());
        self.cloud_profile = self.cloud_profile.or_else(|| present.cloud_profile.clone());
        self.secrets = Arc::new(self.secrets.completed_by(&present.secrets));
        self
    }

    /// Namespace of the Worker.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// Name of the Worker.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    fn metadata(&self, member: &str) -> &str {
        self.worker.value["metadata"][member].as_str().unwrap_or_default()
    }

    /// Whether both are planned from the same.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same_profile = match (&self.cloud_profile, &other.cloud_profile) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (None, None) => true,
            _ => false,
        };
        same_profile
            && (Arc::ptr_eq(&self.worker, &other.worker) || self.worker.value == other.worker.value)
            && match (&self.shoot, &other.shoot) {
                (Some(left), Some(right)) => Arc::ptr_eq(left, right) || left.value == right.value,
                (None, None) => true,
                _ => false,
            }
            && (Arc::ptr_eq(&self.secrets, &other.secrets) || self.changed_secrets(other).is_empty())
    }

    /// The Secrets that one of both Workers refers to and whose content is not the same.
    #[must_use]
    pub fn changed_secrets(&self, other: &Self) -> BTreeSet<(String, String)> {
        let mut references = self.secret_references();
        references.extend(other.secret_references());
        references.retain(|(namespace, name)| self.secrets.get(namespace, name) != other.secrets.get(namespace, name));
        references
    }

    /// Namespace and name of every Secret that the Worker refers to.
    #[must_use]
    pub fn secret_references(&self) -> BTreeSet<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &self.worker.value["spec"];
        let mut references =
            BTreeSet::from([(text(&spec["secretRef"]["namespace"]), text(&spec["secretRef"]["name"]))]);
        for pool in spec["pools"].as_array().into_iter().flatten() {
            references.insert((self.namespace().to_owned(), text(&pool["userDataSecretRef"]["name"])));
        }
        references
    }
}
