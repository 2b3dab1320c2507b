//! Tables about the common parts of pools of every provider: zones, hashes, settings.

use gardener_extension_worker::api::gardener::{
    ClusterAutoscalerOptions, MachineControllerManagerSettings, Shoot, WorkerPool,
};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::pool::hash::{HashItems, ProviderItems, in_place_hash, pool_hash};
use gardener_extension_worker::pool::settings::{cluster_autoscaler_annotations, is_autoscaler_used, machine_settings};
use gardener_extension_worker::pool::zones::{ZonePosition, distribute, distribute_int_or_percentage};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Check, member};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(Check::Reply(match name {
        "cluster-autoscaler-annotations" => autoscaler_annotations,
        "cluster-autoscaler-required" => autoscaler_required,
        "distribute-int-or-percent" => int_or_percent,
        "distribute-over-zones" => over_zones,
        "distribute-percent-over-zones" => percent_over_zones,
        "machine-configuration" => machine_configuration,
        "worker-pool-hash" => worker_pool_hash,
        "worker-pool-hash-in-place" => hash_in_place,
        "worker-pool-hash-v2" => hash_with_node_agent_secret,
        _ => return None,
    }))
}

/// Decodes an object as received from the API server. Types with raw text can only be decoded from text.
pub(super) fn object<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    decode_lenient(&to_go_json(value)).map_err(|error| error.to_string())
}

/// A pool with the hashed bytes of its provider config.
pub(super) fn pool(value: &Value, provider_config: Option<&str>) -> Result<WorkerPool, String> {
    let mut pool: WorkerPool = object(value)?;
    let raw = provider_config.map(|text| RawValue::from_string(text.to_owned()));
    pool.provider_config = raw.transpose().map_err(|error| error.to_string())?;
    Ok(pool)
}

fn autoscaler_annotations(row: &Value) -> Result<Value, String> {
    let options: Option<ClusterAutoscalerOptions> = member(row, "clusterAutoscaler")?;
    Ok(json!(cluster_autoscaler_annotations(options.as_ref())))
}

fn autoscaler_required(row: &Value) -> Result<Value, String> {
    let pools: Vec<WorkerPool> = object(&row["pools"])?;
    Ok(is_autoscaler_used(&pools).into())
}

fn machine_configuration(row: &Value) -> Result<Value, String> {
    let settings: Option<MachineControllerManagerSettings> = member(row, "machineControllerManager")?;
    Ok(json!(machine_settings(settings.as_ref())))
}

fn zone(row: &Value) -> Result<ZonePosition, String> {
    Ok(ZonePosition { index: member(row, "zoneIndex")?, count: member(row, "zoneSize")? })
}

fn over_zones(row: &Value) -> Result<Value, String> {
    Ok(distribute(member(row, "size")?, zone(row)?).into())
}

fn int_or_percent(row: &Value) -> Result<Value, String> {
    share(member(row, "value")?, row)
}

fn percent_over_zones(row: &Value) -> Result<Value, String> {
    share(IntOrString::String(member(row, "percent")?), row)
}

fn share(value: IntOrString, row: &Value) -> Result<Value, String> {
    let share = distribute_int_or_percentage(&value, member(row, "total")?, zone(row)?);
    share.map(|share| json!(share)).map_err(|error| error.to_string())
}

fn items(row: &Value, name: &str) -> Result<HashItems, String> {
    let mut items = HashItems::default();
    for text in member::<Vec<String>>(row, name)? {
        items.push("additional", text);
    }
    Ok(items)
}

fn worker_pool_hash(row: &Value) -> Result<Value, String> {
    let pool = pool(&row["pool"], row["providerConfigRaw"].as_str())?;
    let provider = ProviderItems {
        without_node_agent_secret: items(row, "additionalDataV1")?,
        with_node_agent_secret: items(row, "additionalDataV2")?,
        in_place: items(row, "additionalDataInPlace")?,
    };
    let hashed = pool_hash(&pool, &object(&row["shoot"])?, &provider).map_err(|error| error.to_string())?;
    Ok(hashed.hash.0.into())
}

fn hash_with_node_agent_secret(row: &Value) -> Result<Value, String> {
    let pool = pool(&json!({"nodeAgentSecretName": row["nodeAgentSecretName"]}), None)?;
    let provider = ProviderItems { with_node_agent_secret: items(row, "additionalData")?, ..ProviderItems::default() };
    let hashed = pool_hash(&pool, &Shoot::default(), &provider).map_err(|error| error.to_string())?;
    Ok(hashed.hash.0.into())
}

fn hash_in_place(row: &Value) -> Result<Value, String> {
    let pool = pool(
        &json!({
            "name": row["poolName"],
            "kubernetesVersion": row["kubernetesVersion"],
            "machineImage": {"version": row["machineImageVersion"]},
            "kubeletConfig": row["kubeletConfig"],
        }),
        None,
    )?;
    let shoot = object(&json!({"status": {"credentials": row["credentials"]}}))?;
    Ok(in_place_hash(&pool, &shoot).map_err(|error| error.to_string())?.0.into())
}
