//! Merges a NamespacedCloudProfile with its parent CloudProfile into one document, as Gardener and the provider's
//! webhook do (docs/contract.md#namespacedcloudprofiles).

use serde_json::{Value, json};

use super::profile::{ProfileError, spec_of};
use crate::cloud_profile::architecture_fields::apply_defaults;
use crate::cloud_profile::namespaced::merge;
use decisions::provider::Providers;
use decisions::provider::document::DocumentError;
use decisions::provider::profile::ProfileFormat;
use wire::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use wire::api::gotext::json::{decode_lenient, to_go_json};

/// Merges a NamespacedCloudProfile with its parent. The result has the metadata of the NamespacedCloudProfile.
///
/// # Errors
/// If one of them can't be read, or no provider has the type of the parent.
pub fn merged(namespaced: &Value, parent: &Value, providers: Providers) -> Result<Value, ProfileError> {
    let mut parent = spec_of(parent)?;
    apply_defaults(&mut parent);
    let format = providers
        .profile_format(&parent.provider_type)
        .ok_or_else(|| ProfileError::Type { provider_type: parent.provider_type.clone() })?;
    let spec = decode_lenient(&to_go_json(&namespaced["spec"]))?;
    Ok(merged_document(namespaced, spec, parent, format)?)
}

/// The same as [`merged`], for decoded profiles.
pub(super) fn merged_document(
    namespaced: &Value,
    spec: NamespacedProfileSpec,
    parent: ProfileSpec,
    format: &dyn ProfileFormat,
) -> Result<Value, DocumentError> {
    let config = match (parent.provider_config.as_deref(), spec.provider_config.as_deref()) {
        (Some(parent), Some(namespaced)) => Some(format.merge(parent, namespaced)?),
        _ => None,
    };
    let mut merged = json!(merge(parent, spec));
    if let Some(config) = config {
        merged["providerConfig"] = config;
    }
    let metadata = &namespaced["metadata"];
    Ok(
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": metadata, "spec": merged}),
    )
}
