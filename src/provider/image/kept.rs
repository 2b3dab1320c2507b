//! Images that are known beside the CloudProfile: what pools used before, or what the infrastructure controller has made.
//! The documents that keep them look alike at every cloud.

use std::marker::PhantomData;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::gardener::{Capabilities, MachineImage};
use crate::api::gotext::json::null_as_default;
use crate::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};
use crate::provider::document::Document;
use crate::provider::explanation::{ImageName, Origin};

/// Images that are known beside the CloudProfile.
#[derive(Clone, Debug)]
pub struct KeptImages {
    /// The object that keeps them.
    pub origin: Origin,
    /// Its path, for messages.
    pub path: &'static str,
    /// What their capabilities are compared with.
    pub compared_with: ComparedWith,
    /// The images, in the order in which they are kept.
    pub images: Vec<KeptImage>,
}

/// What the capabilities of kept images are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedWith {
    /// What the machine type of the pool can do.
    MachineType,
    /// The architecture of the pool alone, whatever its machine type can do.
    PoolArchitecture,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptImage {
    /// Name and version.
    pub image: MachineImage,
    /// How the cloud calls it.
    pub reference: Option<ImageName>,
    /// What it fits; a capability that is not named means every value.
    pub capabilities: Capabilities,
    /// What it is known to be made for. Of several that fit, one goes first that is made for the machine: others may fit
    /// only because nothing is known of them.
    pub made_for: Option<Capabilities>,
    /// Whether it is for encrypted root volumes; absent where that makes no difference.
    pub encrypted: Option<bool>,
}

impl KeptImages {
    /// Those of `status.providerStatus` of the Worker.
    #[must_use]
    pub fn of_worker(images: Vec<KeptImage>) -> Self {
        let (origin, path) = (Origin::ProviderStatus, "status.providerStatus");
        Self { origin, path, compared_with: ComparedWith::MachineType, images }
    }

    /// Those of `spec.infrastructureProviderStatus` of the Worker.
    #[must_use]
    pub fn of_infrastructure(images: Vec<KeptImage>) -> Self {
        let (origin, path) = (Origin::InfrastructureStatus, "spec.infrastructureProviderStatus");
        Self { origin, path, compared_with: ComparedWith::MachineType, images }
    }
}

impl KeptImage {
    /// The entry of a `WorkerStatus` for it, by capabilities.
    #[must_use]
    pub fn to_status(&self) -> Value {
        status_entry(&self.image, self.reference.as_ref(), &self.capabilities)
    }
}

/// An entry of a `WorkerStatus`, by capabilities.
pub(super) fn status_entry(image: &MachineImage, reference: Option<&ImageName>, capabilities: &Capabilities) -> Value {
    let MachineImage { name, version } = image;
    let mut entry = json!({"name": name, "version": version, "capabilities": capabilities});
    if let Some(ImageName { member, value }) = reference {
        entry[member] = value.as_str().into();
    }
    entry
}

/// A cloud, and the document of it that keeps images.
pub trait KeepsImages {
    /// Kind of the document, such as `WorkerStatus`.
    const KIND: &'static str;
    /// Its group and version.
    const API_VERSION: &'static str;
}

/// The document, as far as it keeps images. Lenient.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound = "")]
pub struct ImagesDocument<Cloud> {
    /// The images.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<ImageEntry>,
    #[serde(skip)]
    cloud: PhantomData<Cloud>,
}

impl<Cloud> Default for ImagesDocument<Cloud> {
    fn default() -> Self {
        Self { machine_images: Vec::new(), cloud: PhantomData }
    }
}

impl<Cloud: KeepsImages> Document for ImagesDocument<Cloud> {
    const KIND: &'static str = Cloud::KIND;
    const API_VERSION: &'static str = Cloud::API_VERSION;
    const STRICT: bool = false;
}

/// An image in such a document. Each cloud uses its own of these members.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ImageEntry {
    /// Name of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Version of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// The image by a name that counts in every region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image: String,
    /// The image in the region of the shoot.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
    /// What it is for, by architecture; absent means `amd64`.
    pub architecture: Option<String>,
    /// What it is for, by capabilities.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: Capabilities,
}

impl ImageEntry {
    /// The capability that its architecture stands for.
    #[must_use]
    pub fn by_architecture(&self) -> Capabilities {
        only_architecture(self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE))
    }

    /// The image with the reference that counts at the cloud, for machines with these capabilities.
    #[must_use]
    pub fn kept(&self, reference: Option<ImageName>, capabilities: Capabilities) -> KeptImage {
        let image = MachineImage { name: self.name.clone(), version: self.version.clone() };
        KeptImage { image, reference, capabilities, ..KeptImage::default() }
    }
}
