//! AWS's half of CloudProfiles (gardener-core sections 2 and 2.8).
//!
//! * `images`: versions of images, and what core's half has to list for them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::Aws;
use super::documents::{CloudProfileConfig, ImageVersion};
use super::image::old_format_definitions;
use crate::api::gardener::{CapabilityDefinition, NamespacedProfileSpec, ProfileSpec};
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::api::gotext::json::decode_lenient;
use crate::provider::document::{DocumentError, decode_document};
use crate::provider::profile::{
    ImageDocument, ImageVersions, ProfileConfig, ProfileFormat, SameVersion, merge_configs,
};

mod images;

impl ProfileFormat for Aws {
    fn provider_type(&self) -> &'static str {
        "aws"
    }

    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        old_format_definitions()
    }

    fn open(&self, raw: Option<&RawValue>) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        let config: Option<CloudProfileConfig> = raw.map(decode_document).transpose()?;
        Ok(Box::new(config.unwrap_or_default()))
    }

    fn merge(&self, parent: &RawValue, namespaced: &RawValue) -> Result<Value, DocumentError> {
        let [parent, namespaced] = [parent, namespaced].map(|raw| {
            decode_document::<CloudProfileConfig>(raw)?;
            Ok::<Value, DocumentError>(decode_lenient(raw.get())?)
        });
        Ok(merge_configs(parent?, namespaced?, SameVersion::Replaced))
    }
}

impl ImageDocument for CloudProfileConfig {
    type Version = ImageVersion;

    const MAPPING_AFTER_ERRORS: bool = true;
    const SKIPS_VERSIONS_OF_PARENT: bool = true;
    const UNMAPPED_VERSIONS_OF_PARENT: bool = false;

    fn machine_images(&self) -> &[ImageVersions<ImageVersion>] {
        &self.machine_images
    }

    fn validate_settings(&self, _path: FieldPath<'_>, _errors: &mut FieldErrors) {}

    fn validate_namespaced_settings(
        &self,
        _namespaced: &NamespacedProfileSpec,
        _parent: &ProfileSpec,
        _path: FieldPath<'_>,
        _errors: &mut FieldErrors,
    ) {
    }
}
