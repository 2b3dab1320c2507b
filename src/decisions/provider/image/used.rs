//! Provider status images with an architecture or with capabilities, depending on the format of the CloudProfile.

use serde_json::{Value, json};

use super::selection::{ImageSource, SelectedImage};
use super::status::{each_once, is_image_of};
use crate::provider::document::Document;
use crate::provider::explanation::ImageName;
use crate::provider::{PoolPlan, WorkerError};
use wire::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, WorkerPool};
use wire::api::gotext::json::{DecodeError, decode_value};
use wire::capabilities::{DEFAULT_ARCHITECTURE, mean_the_same, only_architecture};

/// An image that pools use: with an architecture if the CloudProfile declares no capabilities, otherwise with
/// capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::provider) struct UsedImage {
    pub(in crate::provider) image: MachineImage,
    /// Reference to the image in the cloud.
    pub(in crate::provider) reference: String,
    pub(in crate::provider) architecture: Option<String>,
    /// Capabilities of the flavor.
    pub(in crate::provider) capabilities: Option<Capabilities>,
}

/// Declares the `WorkerStatus` of a cloud whose entries refer to an image by one member. Strict.
macro_rules! used_images_status {
    ($(#[$of_member:meta])* $member:ident, $api_version:path) => {
        $crate::provider::document::documents! { strict
            /// Images that pools use.
            pub struct WorkerStatus {
                _api_version: Option<String>,
                _kind: Option<String>,
                /// Resolved images, which stay in use after their removal from the CloudProfile.
                pub machine_images: Vec<StatusImage>,
            }

            /// A resolved image: with an architecture if the CloudProfile declares no capabilities, otherwise with
            /// capabilities.
            pub struct StatusImage {
                /// Name of the image.
                pub name: String,
                /// Version of the image.
                pub version: String,
                $(#[$of_member])*
                pub $member: String,
                /// CPU architecture.
                pub architecture: Option<String>,
                /// Capabilities of the flavor.
                pub capabilities: Option<wire::api::gardener::Capabilities>,
            }
        }

        $crate::provider::document::kinds! { WorkerStatus of $api_version: strict true; }

        impl WorkerStatus {
            /// The recorded images.
            pub(in crate::provider) fn into_used(self) -> Vec<$crate::provider::image::UsedImage> {
                let used = |image: StatusImage| $crate::provider::image::UsedImage {
                    image: wire::api::gardener::MachineImage { name: image.name, version: image.version },
                    reference: image.$member,
                    architecture: image.architecture,
                    capabilities: image.capabilities,
                };
                self.machine_images.into_iter().map(used).collect()
            }
        }
    };
}
pub(in crate::provider) use used_images_status;

/// The member of an entry that holds the reference, such as `ami`.
#[derive(Clone, Copy, Debug)]
pub(in crate::provider) struct ReferenceMember(pub(in crate::provider) &'static str);

impl UsedImage {
    /// The image selected for a pool. `architecture` is used for an image of the CloudProfile. A previously used image
    /// keeps its own, or gets `without` if none is recorded.
    pub(in crate::provider) fn of(
        image: &MachineImage,
        selected: &SelectedImage<'_>,
        before: &[Self],
        architecture: &str,
        without: Option<&str>,
    ) -> Self {
        let kept = match selected.source {
            ImageSource::CloudProfile(_) => None,
            ImageSource::Kept(position) => before.get(position),
        };
        let (capabilities, architecture) = match kept {
            None => (Some(selected.capabilities.clone().into_owned()), Some(architecture)),
            Some(kept) => {
                (kept.capabilities.clone().filter(|kept| !kept.is_empty()), kept.architecture.as_deref().or(without))
            }
        };
        Self {
            image: image.clone(),
            reference: selected.reference.value.clone(),
            architecture: architecture.map(str::to_owned),
            capabilities,
        }
    }

    /// The reference as recorded in the provider status.
    pub(in crate::provider) fn name(&self, ReferenceMember(member): ReferenceMember) -> Option<ImageName> {
        ImageName::of(member, &self.reference)
    }

    /// The provider status entry.
    pub(in crate::provider) fn to_entry(&self, ReferenceMember(member): ReferenceMember) -> Value {
        let Self { image: MachineImage { name, version }, reference, architecture, capabilities } = self;
        let mut entry = json!({"name": name, "version": version, member: reference});
        if let Some(architecture) = architecture {
            entry["architecture"] = architecture.as_str().into();
        }
        if let Some(capabilities) = capabilities {
            entry["capabilities"] = json!(capabilities);
        }
        entry
    }

    fn of_plan(plan: &PoolPlan, ReferenceMember(member): ReferenceMember) -> Result<Self, WorkerError> {
        let entry = &plan.status_image;
        let text = |member: &str| entry[member].as_str().map(str::to_owned);
        let unreadable = |source: DecodeError| WorkerError::Document {
            path: format!("image of pool {:?}", plan.pool),
            source: source.into(),
        };
        let listed = entry.get("capabilities").map(decode_value).transpose().map_err(unreadable)?;
        Ok(Self {
            image: decode_value(&json!({"name": entry["name"], "version": entry["version"]})).map_err(unreadable)?,
            reference: text(member).unwrap_or_default(),
            architecture: text("architecture"),
            capabilities: listed,
        })
    }

    /// Adapts the image to the format of the CloudProfile. If capabilities are declared, an image without any gets its
    /// architecture as a capability. The last planned image does not, as in the Go extensions.
    fn in_form(mut self, declared: &[CapabilityDefinition], is_last_planned: bool) -> Self {
        if declared.is_empty() {
            return Self { capabilities: None, ..self };
        }
        let architecture = self.architecture.take().unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned());
        if self.capabilities.is_none() && !is_last_planned {
            self.capabilities = Some(only_architecture(&architecture));
        }
        self
    }

    fn is_same(&self, other: &Self, declared: &[CapabilityDefinition]) -> bool {
        let capabilities = |image: &Self| image.capabilities.clone().unwrap_or_default();
        let architecture = |image: &Self| image.architecture.clone().unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned());
        self.image == other.image
            && architecture(self) == architecture(other)
            && mean_the_same(&capabilities(self), &capabilities(other), declared)
    }
}

/// The provider status after `planned`, with images in the format of the CloudProfile. Images of pools that could not
/// be planned stay unchanged.
///
/// # Errors
/// If a planned image is not a valid entry.
pub(in crate::provider) fn used_images_document<Status: Document>(
    before: &[UsedImage],
    declared: &[CapabilityDefinition],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
    member: ReferenceMember,
) -> Result<Value, WorkerError> {
    let planned = planned.iter().map(|plan| UsedImage::of_plan(plan, member)).collect::<Result<Vec<_>, _>>()?;
    let last = planned.len().saturating_sub(1);
    let planned = planned.into_iter().enumerate().map(|(index, image)| image.in_form(declared, index == last));
    let is_of_failed = |kept: &&UsedImage| {
        let MachineImage { name, version } = &kept.image;
        failed.iter().any(|pool| is_image_of(pool, Some(name), Some(version)))
    };
    let kept = before.iter().filter(is_of_failed).map(|kept| kept.clone().in_form(declared, false));
    let images = each_once(planned.chain(kept), |listed, image| listed.is_same(image, declared));
    Ok(images_document::<Status>(images.iter().map(|image| image.to_entry(member)).collect()))
}

/// The `WorkerStatus` document with these images.
pub(in crate::provider) fn images_document<Status: Document>(images: Vec<Value>) -> Value {
    let mut document = json!({ "apiVersion": Status::API_VERSION, "kind": Status::KIND });
    if !images.is_empty() {
        document["machineImages"] = images.into();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::aws::documents::WorkerStatus;
    use wire::capabilities::architecture_definition;

    fn images(declared: &[CapabilityDefinition], planned: &[Value]) -> Value {
        let plan = |image: &Value| PoolPlan {
            pool: "a".to_owned(),
            machines: vec![],
            status_image: image.clone(),
            in_place_hash: None,
        };
        let plans: Vec<PoolPlan> = planned.iter().map(plan).collect();
        let plans: Vec<&PoolPlan> = plans.iter().collect();
        let status = used_images_document::<WorkerStatus>(&[], declared, &plans, &[], ReferenceMember("ami")).unwrap();
        status["machineImages"].clone()
    }

    #[test]
    fn images_take_the_form_of_the_cloud_profile() {
        let arm = json!({"name": "l", "version": "1", "ami": "ami-arm", "architecture": "arm64"});
        let amd = json!({"name": "l", "version": "1", "ami": "ami-amd", "architecture": "amd64"});
        assert_eq!(images(&[], &[arm.clone(), amd.clone(), arm.clone()]), json!([arm, amd]));
        let declared = vec![architecture_definition()];
        assert_eq!(
            images(&declared, &[arm, amd]),
            json!([
                {"name": "l", "version": "1", "ami": "ami-arm", "capabilities": {"architecture": ["arm64"]}},
                {"name": "l", "version": "1", "ami": "ami-amd"},
            ])
        );
    }

    #[test]
    fn the_same_capabilities_are_listed_once() {
        let image = |capabilities: Value| json!({"name": "l", "version": "1", "ami": "ami", "architecture": "amd64", "capabilities": capabilities});
        let declared = vec![architecture_definition()];
        let both = image(json!({"architecture": ["arm64", "amd64"]}));
        let listed = images(&declared, &[both, image(json!({}))]);
        assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    }
}
