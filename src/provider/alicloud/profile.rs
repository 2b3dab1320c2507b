//! AliCloud's half of CloudProfiles (spec/other-providers.md section 1).

use serde_json::Value;
use serde_json::value::RawValue;

use super::AliCloud;
use super::documents::{CloudProfileConfig, ImageRegion, ImageVersion};
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::provider::document::DocumentError;
use crate::provider::profile::{
    ImageDocument, ImageVersions, ProfileConfig, ProfileFormat, RegionImage, Repeated, SameVersion, merge_documents,
    open_config,
};

impl ProfileFormat for AliCloud {
    fn provider_type(&self) -> &'static str {
        "alicloud"
    }

    /// Without declared capabilities nothing is compared, not even architectures.
    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        Vec::new()
    }

    /// The pool's architecture fills no gap: a machine type that names none runs images of every architecture.
    fn machine_capabilities(
        &self,
        listed: Option<&Capabilities>,
        _architecture: &str,
        _definitions: &[CapabilityDefinition],
    ) -> Capabilities {
        listed.cloned().unwrap_or_default()
    }

    fn open(&self, raw: Option<&RawValue>) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        open_config::<CloudProfileConfig>(raw)
    }

    fn merge(&self, parent: &RawValue, namespaced: &RawValue) -> Result<Value, DocumentError> {
        merge_documents::<CloudProfileConfig>(parent, namespaced, SameVersion::Replaced, |_| {})
    }
}

impl ImageDocument for CloudProfileConfig {
    type Version = ImageVersion;

    fn machine_images(&self) -> &[ImageVersions<ImageVersion>] {
        &self.machine_images
    }
}

/// Of a version that is listed several times, the first entry with an image for the region counts.
impl RegionImage for ImageRegion {
    const MEMBER: &'static str = "id";
    const REPEATED_VERSIONS: Repeated = Repeated::First;
    const CANDIDATES: Repeated = Repeated::First;
    const TELLS_ARCHITECTURES: bool = false;

    fn region(&self) -> &str {
        &self.name
    }

    fn image(&self) -> &str {
        &self.id
    }
}
