//! Inputs that pools of every provider have, each with its origin.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use decisions::provider::WorkerContext;
use decisions::provider::explanation::{EffectiveInput, Origin, capabilities_text};
use wire::api::gardener::{CapabilityDefinition, DataVolume, MachineType, Shoot, WorkerPool};
use wire::capabilities::complete_machine_type;

/// The inputs of a pool in Worker, Shoot and CloudProfile.
pub(super) fn of_worker(context: WorkerContext<'_>, pool: &WorkerPool) -> Vec<EffectiveInput> {
    let of_pool = |path: &str, name, value: String| EffectiveInput::of(Origin::Worker, path, name, value);
    let mut inputs = vec![
        of_pool("machineType", "machine type", pool.machine_type.clone()),
        EffectiveInput::or_default(
            Origin::Worker,
            "architecture",
            "architecture",
            pool.architecture.as_deref(),
            "amd64",
        ),
        of_pool("machineImage", "machine image", format!("{} {}", pool.machine_image.name, pool.machine_image.version)),
    ];
    inputs.extend(machine_capabilities(context, pool));
    inputs.extend(kubernetes_version(context.shoot, pool));
    if let Some(volume) = &pool.volume {
        inputs.push(of_pool("volume", "root volume", volume_text(&volume.size, volume.volume_type.as_deref())));
    }
    inputs.extend(data_volumes(&pool.data_volumes));
    inputs.push(of_pool("zones", "zones", or_none(pool.zones.join(", "))));
    let numbers = [("minimum", pool.minimum), ("maximum", pool.maximum)];
    inputs.extend(numbers.map(|(name, number)| of_pool(name, name, number.to_string())));
    let bounds = [("maxSurge", "surge", &pool.max_surge), ("maxUnavailable", "unavailable", &pool.max_unavailable)];
    inputs.extend(bounds.map(|(path, name, bound)| of_pool(path, name, int_or_string(bound))));
    inputs.push(EffectiveInput::or_default(
        Origin::Worker,
        "updateStrategy",
        "update strategy",
        pool.update_strategy.map(|strategy| format!("{strategy:?}")),
        "AutoRollingUpdate",
    ));
    if let Some(priority) = pool.priority {
        inputs.push(of_pool("priority", "priority", priority.to_string()));
    }
    inputs.push(match &pool.node_agent_secret_name {
        Some(name) => of_pool("nodeAgentSecretName", "node agent", name.clone()),
        None => EffectiveInput::default_of("node agent", "no secret name: the hash lists every input"),
    });
    let user_data = &pool.user_data_secret_ref;
    inputs.push(of_pool("userDataSecretRef", "user data", format!("Secret {} key {}", user_data.name, user_data.key)));
    inputs.push(EffectiveInput::of(
        Origin::Shoot,
        "status.technicalID",
        "name prefix",
        context.shoot.status.technical_id.as_str(),
    ));
    if context.shoot.should_hibernate() {
        inputs.push(EffectiveInput::of(
            Origin::Shoot,
            "spec.hibernation.enabled",
            "hibernation",
            "wanted: no replicas",
        ));
    }
    inputs
}

/// The capabilities of the machine type. The explanation of the image has those that it lacks.
fn machine_capabilities(context: WorkerContext<'_>, pool: &WorkerPool) -> Option<EffectiveInput> {
    let profile = &context.cloud_profile.spec;
    let is_required = |machine_type: &&MachineType| machine_type.name == pool.machine_type;
    let machine_type = profile.machine_types.iter().find(is_required)?;
    let definitions: &[CapabilityDefinition] = &profile.machine_capabilities;
    let architecture = pool.architecture.as_deref().unwrap_or_default();
    let complete = complete_machine_type(machine_type.capabilities.as_ref(), architecture, definitions);
    Some(EffectiveInput::of(
        Origin::CloudProfile,
        format!("spec.machineTypes[{}].capabilities", pool.machine_type),
        "machine type can",
        capabilities_text(&complete),
    ))
}

fn kubernetes_version(shoot: &Shoot, pool: &WorkerPool) -> Option<EffectiveInput> {
    let of_shoot = || {
        let version = Some(shoot.spec.kubernetes.version.as_str()).filter(|version| !version.is_empty())?;
        Some(EffectiveInput::of(Origin::Shoot, "spec.kubernetes.version", "Kubernetes", version))
    };
    match &pool.kubernetes_version {
        Some(version) => Some(EffectiveInput::of(Origin::Worker, "kubernetesVersion", "Kubernetes", version.as_str())),
        None => of_shoot(),
    }
}

fn data_volumes(volumes: &[DataVolume]) -> Option<EffectiveInput> {
    /// Limits the length of the output.
    const NAMED: usize = 4;
    if volumes.is_empty() {
        return None;
    }
    let named = volumes.iter().take(NAMED);
    let text =
        |volume: &DataVolume| format!("{} {}", volume.name, volume_text(&volume.size, volume.volume_type.as_deref()));
    let mut value = named.map(text).collect::<Vec<_>>().join(", ");
    if volumes.len() > NAMED {
        value.push_str(&format!(" and {} more", volumes.len() - NAMED));
    }
    Some(EffectiveInput::of(Origin::Worker, "dataVolumes", "data volumes", value))
}

fn volume_text(size: &str, volume_type: Option<&str>) -> String {
    volume_type.map_or_else(|| size.to_owned(), |volume_type| format!("{size} {volume_type}"))
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

fn int_or_string(bound: &IntOrString) -> String {
    match bound {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}
