//! The Worker that gardenlet writes for a stored Shoot, field by field, and the name of the node agent's Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::members::{name, pools, text};
use super::{ShootError, Surroundings};
use decisions::pool::hash::node_agent_secret_name;
use wire::api::gardener::{NODE_AGENT_SECRET_LABEL, ProfileMachineType, ProfileSpec, Shoot, WorkerPool};
use wire::api::gotext::json::{decode_lenient, decode_value, to_go_json};
use wire::api::gotext::quantity::Quantity;
use wire::capabilities::DEFAULT_ARCHITECTURE;

/// Fields of a pool that are copied to the Worker unchanged.
const TAKEN_OVER: [&str; 13] = [
    "name",
    "minimum",
    "maximum",
    "annotations",
    "taints",
    "zones",
    "priority",
    "updateStrategy",
    "kubeletDataVolumeName",
    "providerConfig",
    "machineControllerManager",
    "maxSurge",
    "maxUnavailable",
];

/// Fields of a volume that are copied to the Worker.
const OF_VOLUMES: [&str; 4] = ["name", "type", "size", "encrypted"];

/// The Worker of a stored Shoot, without status.
///
/// # Errors
/// When the Shoot has no Worker, or a field has the wrong type.
pub fn worker(shoot: &Value, profile: &ProfileSpec, surroundings: &Surroundings<'_>) -> Result<Value, ShootError> {
    let typed: Shoot = decode_lenient(&to_go_json(shoot)).map_err(ShootError::Malformed)?;
    let is_control_plane = |pool: &&Value| pool.get("controlPlane").is_some();
    let is_self_hosted = pools(shoot).iter().any(|pool| is_control_plane(&pool));
    let written = pools(shoot).iter().filter(|pool| !surroundings.is_bootstrapping || is_control_plane(pool));
    let written = written.map(|pool| worker_pool(pool, shoot, &typed, profile, surroundings));
    let written = written.collect::<Result<Vec<_>, _>>()?;
    if written.is_empty() {
        return Err(ShootError::NoPools);
    }
    let namespace =
        if is_self_hosted && !surroundings.is_bootstrapping { "kube-system" } else { &typed.status.technical_id };
    let mut spec = json!({
        "type": shoot["spec"]["provider"]["type"],
        "region": shoot["spec"]["region"],
        "secretRef": {"name": "cloudprovider", "namespace": namespace},
        "pools": written,
    });
    if let Some(status) = surroundings.infrastructure_status {
        spec["infrastructureProviderStatus"] = status.clone();
    }
    let has_ssh = shoot["spec"]["provider"]["workersSettings"]["sshAccess"]["enabled"] == true;
    if let Some(key) = surroundings.ssh_public_key
        && has_ssh
    {
        spec["sshPublicKey"] = STANDARD.encode(key).into();
    }
    Ok(json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Worker",
        "metadata": {"name": shoot["metadata"]["name"], "namespace": namespace},
        "spec": spec,
    }))
}

fn worker_pool(
    pool: &Value,
    shoot: &Value,
    typed: &Shoot,
    profile: &ProfileSpec,
    surroundings: &Surroundings<'_>,
) -> Result<Value, ShootError> {
    let kubernetes = &shoot["spec"]["kubernetes"];
    let own = |member: &str| pool["kubernetes"].get(member).unwrap_or(&kubernetes[member]);
    let machine = &pool["machine"];
    if machine["image"].is_null() {
        return Err(ShootError::ImageMissing { pool: name(pool).to_owned() });
    }
    let machine_type = profile.machine_types.iter().find(|known| known.name == text(&machine["type"]));
    // The Worker contains 0 for a pool without these settings.
    let mut written = json!({"maxSurge": 0, "maxUnavailable": 0});
    let mut set = |member: &str, value: &Value| {
        if !value.is_null() {
            written[member] = value.clone();
        }
    };
    for member in TAKEN_OVER {
        set(member, &pool[member]);
    }
    set("machineType", &machine["type"]);
    set("architecture", &machine["architecture"]);
    set("machineImage", &of_members(&machine["image"], &["name", "version"]));
    set("kubernetesVersion", own("version"));
    set("kubeletConfig", own("kubelet"));
    set("volume", &of_members(&pool["volume"], &OF_VOLUMES));
    if let Some(volumes) = pool["dataVolumes"].as_array() {
        set("dataVolumes", &volumes.iter().map(|volume| of_members(volume, &OF_VOLUMES)).collect());
    }
    set("clusterAutoscaler", &autoscaler_options(&pool["clusterAutoscaler"]));
    set("nodeTemplate", &node_template(pool, machine_type, surroundings));
    let timeout =
        machine_type.and_then(|known| known.machine_controller_manager.as_ref()?.get("machineCreationTimeout"));
    if let Some(timeout) = timeout
        && pool["machineControllerManager"]["machineCreationTimeout"].is_null()
    {
        written["machineControllerManager"]["machineCreationTimeout"] = timeout.clone();
    }
    let key = key(&written, typed)?;
    written["labels"] = labels(pool, typed, &key);
    written["userDataSecretRef"] = json!({"name": format!("osc-result-{key}-init"), "key": "cloud_config"});
    written["nodeAgentSecretName"] = key.into();
    Ok(written)
}

/// The name of the node agent's Secret.
fn key(pool: &Value, shoot: &Shoot) -> Result<String, ShootError> {
    let path = || format!("spec.provider.workers[{}]", name(pool));
    let typed: WorkerPool =
        decode_lenient(&to_go_json(pool)).map_err(|error| ShootError::Malformed(error.within(&path())))?;
    node_agent_secret_name(&typed, shoot).map_err(|source| ShootError::Hash { pool: typed.name.clone(), source })
}

/// Selected fields of an object; null if it is not an object.
fn of_members(object: &Value, members: &[&str]) -> Value {
    let Value::Object(object) = object else { return Value::Null };
    let found = members.iter().filter_map(|member| Some(((*member).to_owned(), object.get(*member)?.clone())));
    Value::Object(found.collect())
}

/// Converts thresholds to strings, as in a Worker.
fn autoscaler_options(options: &Value) -> Value {
    let mut options = options.clone();
    for member in ["scaleDownUtilizationThreshold", "scaleDownGpuUtilizationThreshold"] {
        if let Some(threshold) = options.get(member).and_then(Value::as_f64) {
            options[member] = shortest(threshold).into();
        }
    }
    options
}

/// Formats a number in Go's shortest form, with a two-digit exponent below 0.0001 and from 1e21 on.
fn shortest(number: f64) -> String {
    if number == 0.0 || (1e-4..1e21).contains(&number.abs()) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// The node template of the existing Worker if the machine type is unchanged, otherwise one from the CloudProfile.
fn node_template(pool: &Value, machine_type: Option<&ProfileMachineType>, surroundings: &Surroundings<'_>) -> Value {
    let existing = surroundings.existing_worker.and_then(|spec| spec["pools"].as_array()).into_iter().flatten();
    let mut existing = existing.filter(|existing| name(existing) == name(pool));
    let kept = existing.find(|existing| existing["machineType"] == pool["machine"]["type"]);
    if let Some(template) = kept.and_then(|existing| existing.get("nodeTemplate")).filter(|kept| !kept.is_null()) {
        return template.clone();
    }
    let Some(known) = machine_type else { return Value::Null };
    let amounts = [("cpu", &known.cpu), ("gpu", &known.gpu), ("memory", &known.memory)];
    let capacity = amounts.into_iter().map(|(resource, amount)| {
        let amount = decode_value::<Quantity>(amount).unwrap_or_default();
        (resource.to_owned(), amount.to_string().into())
    });
    json!({"capacity": capacity.collect::<Map<String, Value>>()})
}

/// The user's labels, overwritten by those that Gardener reserves.
fn labels(pool: &Value, shoot: &Shoot, key: &str) -> Value {
    let mut labels = pool["labels"].as_object().cloned().unwrap_or_default();
    let mut set = |label: &str, value: &str| drop(labels.insert(label.to_owned(), value.into()));
    let dns = shoot.spec.system_components.as_ref().and_then(|components| components.node_local_dns.as_ref());
    set("node.kubernetes.io/role", "node");
    set("kubernetes.io/arch", pool["machine"]["architecture"].as_str().unwrap_or(DEFAULT_ARCHITECTURE));
    set(
        "networking.gardener.cloud/node-local-dns-enabled",
        if dns.is_some_and(|dns| dns.enabled) { "true" } else { "false" },
    );
    if pool["systemComponents"]["allow"] == true {
        set("worker.gardener.cloud/system-components", "true");
    }
    set("worker.gardener.cloud/pool", name(pool));
    set("worker.garden.sapcloud.io/group", name(pool));
    set(NODE_AGENT_SECRET_LABEL, key);
    if let Some(cri) = pool["cri"].as_object() {
        set("worker.gardener.cloud/cri-name", cri.get("name").map(text).unwrap_or_default());
        for runtime in cri.get("containerRuntimes").and_then(Value::as_array).into_iter().flatten() {
            set(&format!("containerruntime.worker.gardener.cloud/{}", text(&runtime["type"])), "true");
        }
    }
    labels.into()
}
