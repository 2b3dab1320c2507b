//! Tables about Azure: images, disks, tags, hash data.

use std::borrow::Cow;

use gardener_extension_worker::api::gardener::{Capabilities, CapabilityDefinition, MachineImage};
use gardener_extension_worker::pool::hash::HashItem;
use gardener_extension_worker::provider::azure::disks::disk_size;
use gardener_extension_worker::provider::azure::documents::{
    CloudProfileConfig, ImageReferences, WorkerConfig, WorkerStatus,
};
use gardener_extension_worker::provider::azure::hash_data::config_items;
use gardener_extension_worker::provider::azure::image::{image_in_profile, image_in_status, profile_definitions};
use gardener_extension_worker::provider::azure::tags::sanitize_tag_key;
use gardener_extension_worker::provider::document::decode_document;
use serde_json::{Value, json};

use super::{Check, member, pool};

pub(super) fn for_table(name: &str) -> Option<Check> {
    if name == "find-image-in-worker-status" {
        return Some(Check::AnswerSome {
            applies: |row| !row["capabilityDefinitions"].is_null(),
            answer: in_worker_status,
        });
    }
    Some(Check::Answer(match name {
        "azure-hash-data-v2" => hash_data,
        "disk-size" => size,
        "find-image-in-cloud-profile" => in_cloud_profile,
        "normalize-capability-definitions" => definitions_with_old_format,
        "sanitize-vm-tag" => tag,
        _ => return None,
    }))
}

fn size(row: &Value) -> Result<Value, String> {
    let size: String = member(row, "size")?;
    disk_size(&size).map(Value::from).map_err(|error| error.to_string())
}

fn tag(row: &Value) -> Result<Value, String> {
    let label: String = member(row, "label")?;
    Ok(sanitize_tag_key(&label).into())
}

fn definitions_with_old_format(row: &Value) -> Result<Value, String> {
    let declared: Vec<CapabilityDefinition> = member(row, "capabilityDefinitions")?;
    Ok(json!(profile_definitions(&declared)))
}

/// Go answers null for nothing to hash.
fn hash_data(row: &Value) -> Result<Value, String> {
    let raw = row["providerConfigRaw"].as_str();
    let pool = pool::pool(&json!({"kubernetesVersion": row["kubernetesVersion"]}), raw)?;
    let config: Option<WorkerConfig> =
        pool.provider_config.as_deref().map(decode_document).transpose().map_err(|error| error.to_string())?;
    let items = config_items(&pool, &config.unwrap_or_default()).map_err(|error| error.to_string())?;
    let values: Vec<&HashItem> = items.iter().collect();
    if values.is_empty() {
        return Ok(Value::Null);
    }
    Ok(values.into_iter().map(|item| item.value.as_str()).collect())
}

fn image(row: &Value) -> Result<MachineImage, String> {
    Ok(MachineImage { name: member(row, "name")?, version: member(row, "version")? })
}

fn in_cloud_profile(row: &Value) -> Result<Value, String> {
    let config: CloudProfileConfig = pool::object(&json!({"machineImages": row["machineImages"]}))?;
    let machine: Capabilities = member(row, "machineTypeCapabilities")?;
    let declared: Vec<CapabilityDefinition> = member(row, "capabilityDefinitions")?;
    let definitions = profile_definitions(&declared);
    let selected =
        image_in_profile(Some(&config), &image(row)?, &machine, &definitions).map_err(|error| error.to_string())?;
    let mut answer = references(selected.references);
    answer["capabilities"] = json!(selected.capabilities.as_deref().filter(|capabilities| !capabilities.0.is_empty()));
    if let Some(skip) = selected.skip_marketplace_agreement {
        answer["skipMarketplaceAgreement"] = skip.into();
    }
    Ok(answer)
}

/// Rows without definitions are not asked: they lead to a branch of the Go function that its caller never takes, because
/// a profile always has definitions.
fn in_worker_status(row: &Value) -> Result<Value, String> {
    let status: WorkerStatus = pool::object(&json!({"machineImages": row["machineImages"]}))?;
    let machine: Capabilities = member(row, "machineCapabilities")?;
    let declared: Vec<CapabilityDefinition> = member(row, "capabilityDefinitions")?;
    let definitions: Cow<'_, [CapabilityDefinition]> = profile_definitions(&declared);
    let selected =
        image_in_status(Some(&status), &image(row)?, &machine, &definitions).map_err(|error| error.to_string())?;
    Ok(references(selected.references))
}

fn references(references: ImageReferences<'_>) -> Value {
    let mut members = json!({});
    let named = [
        ("urn", references.urn),
        ("id", references.id),
        ("communityGalleryImageID", references.community_gallery),
        ("sharedGalleryImageID", references.shared_gallery),
    ];
    for (member, reference) in named {
        if let Some(reference) = reference {
            members[member] = reference.into();
        }
    }
    members
}
