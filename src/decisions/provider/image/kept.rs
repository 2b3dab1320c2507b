//! Fallback images outside of the CloudProfile, which pools used before or the infrastructure controller copied. The
//! documents that keep them are similar for all clouds.

use std::marker::PhantomData;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::provider::document::Document;
use crate::provider::explanation::{ImageName, Origin};
use wire::api::gardener::{Capabilities, MachineImage};
use wire::api::gotext::json::null_as_default;
use wire::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};

/// Fallback images outside of the CloudProfile.
#[derive(Clone, Debug)]
pub struct FallbackImages {
    /// Object that keeps the images.
    pub origin: Origin,
    /// Path in the object, for messages.
    pub path: &'static str,
    /// Capabilities that those of the images are compared with.
    pub compared_with: ComparedWith,
    /// The images in document order.
    pub images: Vec<KeptImage>,
}

/// The capabilities that those of kept images are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedWith {
    /// The capabilities of the pool's machine type.
    MachineType,
    /// Only the architecture of the pool, regardless of its machine type.
    PoolArchitecture,
}

/// A fallback image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptImage {
    /// Name and version of the image.
    pub image: MachineImage,
    /// Reference to the image in the cloud.
    pub reference: Option<ImageName>,
    /// Capabilities that a machine must support; an absent capability allows every value.
    pub capabilities: Capabilities,
    /// Capabilities for which the image was recorded. An image recorded for the machine takes precedence, because
    /// others may fit only for lack of recorded capabilities.
    pub made_for: Option<Capabilities>,
    /// Whether the image is for encrypted root volumes; `None` if that makes no difference.
    pub encrypted: Option<bool>,
}

impl FallbackImages {
    /// Images in `status.providerStatus` of the Worker.
    #[must_use]
    pub fn of_worker(images: Vec<KeptImage>) -> Self {
        let origin = Origin::ProviderStatus;
        let path = "status.providerStatus";
        Self { origin, path, compared_with: ComparedWith::MachineType, images }
    }

    /// Images in `spec.infrastructureProviderStatus` of the Worker.
    #[must_use]
    pub fn of_infrastructure(images: Vec<KeptImage>) -> Self {
        let origin = Origin::InfrastructureStatus;
        let path = "spec.infrastructureProviderStatus";
        Self { origin, path, compared_with: ComparedWith::MachineType, images }
    }
}

impl KeptImage {
    /// The `WorkerStatus` entry of the image, with capabilities.
    #[must_use]
    pub fn to_status(&self) -> Value {
        status_entry(&self.image, self.reference.as_ref(), &self.capabilities)
    }
}

/// A `WorkerStatus` entry with capabilities.
pub(super) fn status_entry(image: &MachineImage, reference: Option<&ImageName>, capabilities: &Capabilities) -> Value {
    let MachineImage { name, version } = image;
    let mut entry = json!({"name": name, "version": version, "capabilities": capabilities});
    if let Some(ImageName { member, value }) = reference {
        entry[member] = value.as_str().into();
    }
    entry
}

/// Identifies the document of a cloud that keeps images.
pub trait ImagesDocumentKind {
    /// Kind of the document, such as `WorkerStatus`.
    const KIND: &'static str;
    /// API version of the document.
    const API_VERSION: &'static str;
}

/// The image part of such a document. Lenient.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound = "")]
pub struct ImagesDocument<Cloud> {
    /// The kept images.
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

impl<Cloud: ImagesDocumentKind> Document for ImagesDocument<Cloud> {
    const KIND: &'static str = Cloud::KIND;
    const API_VERSION: &'static str = Cloud::API_VERSION;
    const STRICT: bool = false;
}

/// An image in such a document. Each cloud uses a subset of these members.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ImageEntry {
    /// Name of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Version of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Reference for all regions.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image: String,
    /// Reference for the region of the shoot.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
    /// CPU architecture; `None` means `amd64`.
    pub architecture: Option<String>,
    /// Capabilities that a machine must support.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: Capabilities,
}

impl ImageEntry {
    /// The architecture as a capability.
    #[must_use]
    pub fn by_architecture(&self) -> Capabilities {
        only_architecture(self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE))
    }

    /// The image with this reference, for machines with these capabilities.
    #[must_use]
    pub fn kept(&self, reference: Option<ImageName>, capabilities: Capabilities) -> KeptImage {
        let image = MachineImage { name: self.name.clone(), version: self.version.clone() };
        KeptImage { image, reference, capabilities, ..KeptImage::default() }
    }
}
