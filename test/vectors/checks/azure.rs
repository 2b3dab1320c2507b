//! Tables about Azure: images, disks, tags, hash data.

use gardener_extension_worker::api::gardener::{CapabilityDefinition, CloudProfile, Shoot, Worker};
use gardener_extension_worker::api::secret::Secrets;
use gardener_extension_worker::pool::hash::HashItem;
use gardener_extension_worker::pool::volumes::size_in_gib;
use gardener_extension_worker::provider::WorkerContext;
use gardener_extension_worker::provider::azure::Azure;
use gardener_extension_worker::provider::azure::documents::{API_VERSION, ImageReferences, StatusImage, WorkerConfig};
use gardener_extension_worker::provider::azure::hash_data::config_items;
use gardener_extension_worker::provider::azure::image::AzureImage;
use gardener_extension_worker::provider::azure::tags::sanitize_tag_key;
use gardener_extension_worker::provider::document::decode_document;
use gardener_extension_worker::provider::image::WorkerImages;
use gardener_extension_worker::provider::profile::ProfileFormat;
use serde_json::{Value, json};

use super::{Check, member, pool};

pub(super) fn for_table(name: &str) -> Option<Check> {
    if name == "find-image-in-worker-status" {
        return Some(Check::RespondToSome {
            applies: |row| !row["capabilityDefinitions"].is_null(),
            result: in_worker_status,
        });
    }
    Some(Check::Reply(match name {
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
    size_in_gib(&size).map(Value::from).ok_or_else(|| "no number".to_owned())
}

fn tag(row: &Value) -> Result<Value, String> {
    let label: String = member(row, "label")?;
    Ok(sanitize_tag_key(&label).into())
}

fn definitions_with_old_format(row: &Value) -> Result<Value, String> {
    let declared: Vec<CapabilityDefinition> = member(row, "capabilityDefinitions")?;
    Ok(json!(Azure.definitions(&declared)))
}

/// Go returns null if there is nothing to hash.
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

/// The image selected for machines with these capabilities, in the form recorded in the provider status.
fn selected(row: &Value, machine: &str, listed: &Value, kept: &Value) -> Result<(StatusImage, bool), String> {
    let document =
        |kind: &str, images: &Value| json!({"apiVersion": API_VERSION, "kind": kind, "machineImages": images});
    let (config, status) = (document("CloudProfileConfig", listed), document("WorkerStatus", kept));
    let image = json!({"name": row["name"], "version": row["version"]});
    let worker: Worker = pool::object(&json!({
        "spec": {"type": "azure", "pools": [{"name": "p", "machineImage": image}]},
        "status": {"providerStatus": status},
    }))?;
    let profile: CloudProfile = pool::object(&json!({
        "spec": {"machineCapabilities": row["capabilityDefinitions"], "providerConfig": config},
    }))?;
    let context = WorkerContext {
        worker: &worker,
        cloud_profile: &profile,
        shoot: &Shoot::default(),
        secrets: &Secrets::default(),
        dependencies: None,
    };
    let images = WorkerImages::open(&Azure, context).map_err(|error| error.to_string())?;
    let pool = &worker.spec.pools[0];
    let selected = images.select_for(pool, member(row, machine)?).selected.map_err(|error| error.to_string())?;
    let (config, status) = (pool::object(&config)?, pool::object(&status)?);
    let image = AzureImage::new(selected, Some(&config), Some(&status));
    let has_capabilities = image.capabilities().is_some_and(|capabilities| !capabilities.is_empty());
    Ok((image.to_status(&pool.machine_image, "none"), has_capabilities))
}

fn in_cloud_profile(row: &Value) -> Result<Value, String> {
    let (image, has_capabilities) = selected(row, "machineTypeCapabilities", &row["machineImages"], &json!([]))?;
    let mut result = references(image.references());
    result["capabilities"] = if has_capabilities { json!(image.capabilities) } else { Value::Null };
    if let Some(skip) = image.skip_marketplace_agreement {
        result["skipMarketplaceAgreement"] = skip.into();
    }
    Ok(result)
}

/// Rows without definitions are not compared. They lead to a branch of the Go function that its caller never takes,
/// because a profile always has definitions.
fn in_worker_status(row: &Value) -> Result<Value, String> {
    let (image, _) = selected(row, "machineCapabilities", &json!([]), &row["machineImages"])?;
    Ok(references(image.references()))
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
