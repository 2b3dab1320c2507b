//! The documents that a Worker is planned from. They stay documents, so that single fields can be replaced.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cloud_profile::{CloudProfiles, SharedCloudProfile};
use decisions::provider::Providers;
use decisions::worker::plan::class_images::ImagePolicy;
use profiles::shoot::Reservation;
use wire::api::gardener::{Shoot, Worker};
use wire::api::gotext::json::{DecodeError, decode_lenient, to_go_json};
use wire::api::secret::Secrets;

/// The inputs of one Worker.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The Worker.
    pub worker: Arc<Document<Worker>>,
    /// The Shoot of its Cluster.
    pub shoot: Option<Arc<Document<Shoot>>>,
    /// The CloudProfile of its Cluster.
    pub cloud_profile: Option<Arc<SharedCloudProfile>>,
    /// Secrets that the Worker may refer to.
    pub secrets: Arc<Secrets>,
    /// Providers that may plan the Worker.
    pub providers: Providers,
    /// The controller's policy for changed images of existing classes.
    pub image_policy: ImagePolicy,
    /// How to derive the Worker from its Shoot; `None` for a Worker that was given. Until the comparison, the Shoot is
    /// as the user wrote it and the Worker has only its name and type.
    pub made_from_shoot: Option<Arc<ShootSource>>,
}

/// What deriving a Worker needs in addition to the Shoot and its CloudProfile.
#[derive(Clone, Debug)]
pub struct ShootSource {
    /// When the Shoot is written. Versions that have expired by then are not chosen.
    pub now: Timestamp,
    /// `status.providerStatus` of the Infrastructure, if known.
    pub infrastructure_status: Option<Value>,
    /// The SSH public key for nodes, if known.
    pub ssh_public_key: Option<String>,
    /// How the landscape reserves resources. If `None`, the old Shoot decides, or else static reservation is assumed.
    pub reservation: Option<Reservation>,
    /// Whether new Shoots get node-local DNS.
    pub node_local_dns: bool,
    /// The Worker in the Shoot's seed, if known.
    pub existing: Option<ExistingWorker>,
    /// Whether maintenance writes the Shoot, not a person.
    pub is_maintenance: bool,
}

/// The Worker in a Shoot's seed. Other programs than gardenlet may have changed its spec, and its status records the
/// images in use, so an edit of the Shoot changes only the fields that depend on it.
#[derive(Clone, Debug)]
pub struct ExistingWorker {
    /// The Worker.
    pub(super) worker: Arc<Document<Worker>>,
    /// The Worker that gardenlet derives from the Shoot before the edit.
    pub(super) made: Arc<Value>,
    /// The Secrets that the Worker refers to.
    pub(super) secrets: Arc<Secrets>,
}

impl ShootSource {
    /// A source in which everything but the time is assumed.
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

/// A document that is decoded on first use.
#[derive(Debug)]
pub struct Document<T> {
    /// The document.
    pub value: Value,
    decoded: OnceLock<Result<T, DecodeError>>,
}

impl<T: DeserializeOwned> Document<T> {
    /// A document that has not been decoded yet.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self { value, decoded: OnceLock::new() }
    }

    /// Decodes the text that an API server would send for the document, because hashes are computed over that text.
    ///
    /// # Errors
    /// If a field has the wrong type.
    pub fn decoded(&self) -> Result<&T, DecodeError> {
        self.decoded.get_or_init(|| decode_lenient(&to_go_json(&self.value))).as_ref().map_err(Clone::clone)
    }
}

impl Inputs {
    /// Splits the Cluster into its Shoot and CloudProfile.
    ///
    /// # Errors
    /// If the CloudProfile in the Cluster can't be decoded.
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

    /// Fills in a missing Shoot, CloudProfile or Secret from `present`: whatever a file omits stays as it is in the
    /// cluster.
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

    /// Whether both sides have the same Worker, Shoot, CloudProfile and Secrets.
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

    /// The Secrets that either Worker refers to and whose content differs.
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
