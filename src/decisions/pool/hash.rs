//! The five-character class hash that decides whether nodes roll. To add a field, see `docs/development.md`.
//!
//! Every hash has a list of input texts. Each text is hashed, the hexadecimal digests are concatenated, and the result
//! is hashed again. Inputs keep the names of their fields, so that `explain` and `why` can print them.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use wire::api::gardener::{
    EvictionHard, KubeReserved, KubeletConfig, MachineImage, RotationTimes, Shoot, UpdateStrategy, Volume, WorkerPool,
};
use wire::api::gotext::quantity::Quantity;
use wire::api::gotext::time::go_time_text;
use wire::api::gotext::version::{Version, VersionError};

/// Length of a pool hash in class names.
const POOL_HASH_LENGTH: usize = 5;
/// Length of the hash that `status.inPlaceUpdates` keeps.
const IN_PLACE_HASH_LENGTH: usize = 16;
/// Length of the hash in the name of a node-agent secret.
const NODE_AGENT_HASH_LENGTH: usize = 16;

/// The hash part of a class name: five hexadecimal characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct PoolHash(pub String);

/// The hash of the settings that in-place updates apply to machines: sixteen hexadecimal characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct InPlaceHash(pub String);

/// One hash input with the name of the field it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HashItem {
    /// Path of the field, such as `volume.size` of the pool.
    pub input: Cow<'static, str>,
    /// The text that is hashed.
    pub value: String,
}

/// Ordered inputs of a hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct HashItems(Vec<HashItem>);

/// Hash inputs that a provider adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderItems {
    /// For rolling pools without a node agent Secret.
    pub without_node_agent_secret: HashItems,
    /// For rolling pools with a node agent Secret: the inputs above and the relevant parts of the provider config.
    pub with_node_agent_secret: HashItems,
    /// For in-place pools.
    pub in_place: HashItems,
}

/// A pool hash with its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedPool {
    /// Hash for the class name.
    pub hash: PoolHash,
    /// Inputs of the hash.
    pub items: HashItems,
    /// Hash for `status.inPlaceUpdates`, only for in-place pools.
    pub in_place: Option<InPlaceHash>,
}

/// Reason why a pool can't be hashed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// A Kubernetes version can't be parsed.
    #[error("{field}: {text:?}: {source} (a version such as 1.34.2 is expected)")]
    Version {
        /// Path of the version.
        field: &'static str,
        /// Value of the field.
        text: String,
        /// Cause of the failure.
        source: VersionError,
    },
    /// An in-place pool has no Kubernetes version of its own.
    #[error("kubernetesVersion: required for a pool that is updated in place")]
    VersionMissing,
    /// The provider doesn't support pools without a node agent Secret.
    #[error("nodeAgentSecretName: required")]
    NodeAgentSecretMissing,
    /// The start time of a rotation can't be parsed.
    #[error("{field}: {value:?} is no RFC 3339 time")]
    Time {
        /// Path of the time.
        field: &'static str,
        /// Value of the field.
        value: String,
    },
}

impl HashItems {
    /// Adds an input.
    pub fn push(&mut self, input: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.push(HashItem { input: input.into(), value: value.into() });
    }

    /// Adds an input if it has a value.
    pub fn push_some(&mut self, input: impl Into<Cow<'static, str>>, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.push(input, value);
        }
    }

    /// Appends the inputs of another list.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Iterates over the inputs in hash order.
    pub fn iter(&self) -> impl Iterator<Item = &HashItem> {
        self.0.iter()
    }

    /// The first `length` characters of the hash over all inputs.
    fn digest(&self, length: usize) -> String {
        let mut outer = Sha256::new();
        for item in &self.0 {
            outer.update(hex::encode(Sha256::digest(item.value.as_bytes())));
        }
        let mut text = hex::encode(outer.finalize());
        text.truncate(length);
        text
    }

    /// Whether the list has no inputs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hash for a class name.
    #[must_use]
    pub fn pool_hash(&self) -> PoolHash {
        PoolHash(self.digest(POOL_HASH_LENGTH))
    }
}

impl fmt::Display for PoolHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Fields of a pool that are hash inputs, without the provider's.
struct HashedMembers<'a> {
    name: &'a str,
    machine_type: &'a str,
    machine_image: &'a MachineImage,
    node_agent_secret_name: Option<&'a str>,
    provider_config: Option<&'a RawValue>,
    volume: Option<&'a Volume>,
    kubernetes_version: Option<&'a str>,
    kubelet_config: Option<&'a KubeletConfig>,
    is_updated_in_place: bool,
}

impl<'a> HashedMembers<'a> {
    /// Lists every field of the pool, so that a new one can't be forgotten.
    fn of(pool: &'a WorkerPool) -> Self {
        let WorkerPool {
            name,
            machine_type,
            machine_image,
            node_agent_secret_name,
            provider_config,
            volume,
            kubernetes_version,
            kubelet_config,
            update_strategy,
            // Providers add the relevant parts of these.
            data_volumes: _,
            zones: _,
            // Machine counts don't change nodes.
            minimum: _,
            maximum: _,
            max_surge: _,
            max_unavailable: _,
            priority: _,
            // Applied to existing nodes as well.
            annotations: _,
            labels: _,
            taints: _,
            // Covered by the name of the node agent Secret.
            user_data_secret_ref: _,
            // Read only by machine-controller-manager and the cluster-autoscaler.
            machine_controller_manager: _,
            node_template: _,
            cluster_autoscaler: _,
            // Implied by the machine type.
            architecture: _,
        } = pool;
        Self {
            name,
            machine_type,
            machine_image,
            node_agent_secret_name: node_agent_secret_name.as_deref(),
            provider_config: provider_config.as_deref(),
            volume: volume.as_ref(),
            kubernetes_version: kubernetes_version.as_deref(),
            kubelet_config: kubelet_config.as_ref(),
            is_updated_in_place: update_strategy.is_some_and(UpdateStrategy::is_in_place),
        }
    }
}

/// Computes the hash of a pool. The inputs depend on the update strategy and on whether the pool has a node agent
/// Secret.
///
/// # Errors
/// If a Kubernetes version or rotation time among the inputs can't be parsed.
pub fn pool_hash(pool: &WorkerPool, shoot: &Shoot, provider: &ProviderItems) -> Result<HashedPool, HashError> {
    let members = HashedMembers::of(pool);
    let ProviderItems { without_node_agent_secret, with_node_agent_secret, in_place } = provider;
    if members.is_updated_in_place {
        return in_place_pool_hash(&members, shoot, in_place);
    }
    let mut items;
    if let Some(secret) = members.node_agent_secret_name {
        items = HashItems::default();
        items.push("nodeAgentSecretName", secret);
        items.extend(with_node_agent_secret);
    } else {
        items = items_without_node_agent_secret(&members, shoot, without_node_agent_secret)?;
    }
    Ok(HashedPool { hash: items.pool_hash(), items, in_place: None })
}

/// The in-place hash is an input of the pool hash.
fn in_place_pool_hash(
    members: &HashedMembers<'_>,
    shoot: &Shoot,
    provider: &HashItems,
) -> Result<HashedPool, HashError> {
    let in_place = items_in_place(members, shoot)?.digest(IN_PLACE_HASH_LENGTH);
    let mut items = HashItems::default();
    items.push_some("nodeAgentSecretName", members.node_agent_secret_name);
    items.push("inPlaceHash", in_place.as_str());
    items.extend(provider);
    Ok(HashedPool { hash: items.pool_hash(), items, in_place: Some(InPlaceHash(in_place)) })
}

/// Inputs of the in-place hash of a pool.
///
/// # Errors
/// If the pool's Kubernetes version is missing or can't be parsed, or a rotation time can't be parsed.
pub fn in_place_items(pool: &WorkerPool, shoot: &Shoot) -> Result<HashItems, HashError> {
    items_in_place(&HashedMembers::of(pool), shoot)
}

fn items_in_place(members: &HashedMembers<'_>, shoot: &Shoot) -> Result<HashItems, HashError> {
    let text = members.kubernetes_version.ok_or(HashError::VersionMissing)?;
    let version = parse_version("kubernetesVersion", text)?;
    let mut items = HashItems::default();
    items.push("kubernetesVersion", version.major_minor());
    // A different name is a different image, which an in-place update can't install.
    let MachineImage { name: _, version } = members.machine_image;
    items.push("machineImage.version", version.as_str());
    push_rotations(&mut items, members, shoot)?;
    if let Some(kubelet) = members.kubelet_config {
        push_kubelet(&mut items, kubelet);
    }
    Ok(items)
}

/// Computes the hash that `status.inPlaceUpdates` records for a pool.
///
/// # Errors
/// As [`in_place_items`].
pub fn in_place_hash(pool: &WorkerPool, shoot: &Shoot) -> Result<InPlaceHash, HashError> {
    Ok(InPlaceHash(in_place_items(pool, shoot)?.digest(IN_PLACE_HASH_LENGTH)))
}

/// For pools from before Gardener named a node agent Secret for each pool.
fn items_without_node_agent_secret(
    members: &HashedMembers<'_>,
    shoot: &Shoot,
    provider: &HashItems,
) -> Result<HashItems, HashError> {
    let version = kubelet_version(members, shoot)?;
    let mut items = machine_items(members, &version);
    items.push_some("providerConfig", members.provider_config.map(RawValue::get));
    items.extend(provider);
    push_node_system(&mut items, members, shoot, &version)?;
    Ok(items)
}

/// Inputs from which gardenlet computes the suffix of a node agent Secret name. Only the name is an input of the pool
/// hash; this list shows why the name changes. For in-place pools it omits what an in-place update can change.
///
/// # Errors
/// If a Kubernetes version or rotation time among the inputs can't be parsed.
pub fn node_agent_items(pool: &WorkerPool, shoot: &Shoot) -> Result<HashItems, HashError> {
    let members = HashedMembers::of(pool);
    let version = kubelet_version(&members, shoot)?;
    let mut items = machine_items(&members, &version);
    if members.is_updated_in_place {
        items.0.retain(|item| !["kubernetesVersion", "machineImage"].contains(&&*item.input));
        return Ok(items);
    }
    push_node_system(&mut items, &members, shoot, &version)?;
    if let Some(kubelet) = members.kubelet_config {
        push_kubelet(&mut items, kubelet);
    }
    Ok(items)
}

/// The name that gardenlet gives the node agent Secret of a pool (gardener v1.146 and later). It is constant for
/// in-place pools.
///
/// # Errors
/// As [`node_agent_items`].
pub fn node_agent_secret_name(pool: &WorkerPool, shoot: &Shoot) -> Result<String, HashError> {
    let items = node_agent_items(pool, shoot)?;
    let name = format!("gardener-node-agent-{}", pool.name);
    if pool.update_strategy.is_some_and(UpdateStrategy::is_in_place) {
        return Ok(name);
    }
    Ok(format!("{name}-{}", items.digest(NODE_AGENT_HASH_LENGTH)))
}

fn kubelet_version(members: &HashedMembers<'_>, shoot: &Shoot) -> Result<Version, HashError> {
    match members.kubernetes_version {
        Some(text) => parse_version("kubernetesVersion", text),
        None => parse_version("shoot.spec.kubernetes.version", &shoot.spec.kubernetes.version),
    }
}

fn machine_items(members: &HashedMembers<'_>, kubelet: &Version) -> HashItems {
    let mut items = HashItems::default();
    items.push("kubernetesVersion", kubelet.major_minor());
    items.push("machineType", members.machine_type);
    // Name and version without a separator, as in the Go extensions: `a1` + `2` equals `a` + `12`.
    let MachineImage { name, version } = members.machine_image;
    items.push("machineImage", format!("{name}{version}"));
    // Providers that support volume encryption add `encrypted` themselves.
    if let Some(Volume { volume_type, size, encrypted: _ }) = members.volume {
        items.push("volume.size", size.as_str());
        items.push_some("volume.type", volume_type.as_deref());
    }
    items
}

fn push_node_system(
    items: &mut HashItems,
    members: &HashedMembers<'_>,
    shoot: &Shoot,
    version: &Version,
) -> Result<(), HashError> {
    for worker in shoot.spec.provider.workers.iter().filter(|worker| worker.name == members.name) {
        items.push_some("shoot.spec.provider.workers[].cri.name", worker.cri.as_ref().map(|cri| cri.name.as_str()));
    }
    push_rotations(items, members, shoot)?;
    if node_local_dns_counts(version, shoot) {
        items.push("shoot.spec.systemComponents.nodeLocalDNS", "node-local-dns");
    }
    Ok(())
}

pub(super) fn parse_version(field: &'static str, text: &str) -> Result<Version, HashError> {
    Version::parse(text).map_err(|source| HashError::Version { field, text: text.to_owned(), source })
}

/// Enabling node-local-dns changes nodes only before Kubernetes 1.34, or with IPVS.
fn node_local_dns_counts(version: &Version, shoot: &Shoot) -> bool {
    let node_local_dns =
        shoot.spec.system_components.as_ref().and_then(|components| components.node_local_dns.as_ref());
    let uses_ipvs = shoot
        .spec
        .kubernetes
        .kube_proxy
        .as_ref()
        .is_some_and(|proxy| proxy.enabled == Some(true) && proxy.mode.as_deref() == Some("IPVS"));
    node_local_dns.is_some_and(|dns| dns.enabled) && (uses_ipvs || !version.at_least_including_prereleases(1, 34))
}

/// Adds the start times of the credential rotations that apply to the pool.
fn push_rotations(items: &mut HashItems, members: &HashedMembers<'_>, shoot: &Shoot) -> Result<(), HashError> {
    const AUTHORITIES: &str = "shoot.status.credentials.rotation.certificateAuthorities.lastInitiationTime";
    const KEY: &str = "shoot.status.credentials.rotation.serviceAccountKey.lastInitiationTime";
    let Some(rotation) = shoot.status.credentials.as_ref().and_then(|credentials| credentials.rotation.as_ref()) else {
        return Ok(());
    };
    for (field, times) in [(AUTHORITIES, &rotation.certificate_authorities), (KEY, &rotation.service_account_key)] {
        let Some(time) = times.as_ref().and_then(|times| rotation_time(times, members.name)) else { continue };
        let text = go_time_text(time).map_err(|_| HashError::Time { field, value: time.to_owned() })?;
        items.push(field, text);
    }
    Ok(())
}

/// The pool's own time while its rollout is pending (even if that time is unset), otherwise the shoot's.
fn rotation_time<'a>(times: &'a RotationTimes, pool: &str) -> Option<&'a str> {
    match times.pending_workers_rollouts.iter().find(|pending| pending.name == pool) {
        Some(pending) => pending.last_initiation_time.as_deref(),
        None => times.last_initiation_time.as_deref(),
    }
}

fn push_kubelet(items: &mut HashItems, kubelet: &KubeletConfig) {
    let KubeletConfig { kube_reserved, eviction_hard, cpu_manager_policy } = kubelet;
    if let Some(KubeReserved { cpu, memory, ephemeral_storage, pid }) = kube_reserved {
        let text = |quantity: &Option<Quantity>| quantity.as_ref().map_or("<nil>".to_owned(), Quantity::to_string);
        let parts = [cpu, memory, pid, ephemeral_storage].map(text);
        items.push("kubeletConfig.kubeReserved", parts.join("-"));
    }
    if let Some(eviction) = eviction_hard {
        let EvictionHard {
            image_fs_available,
            image_fs_inodes_free,
            memory_available,
            node_fs_available,
            node_fs_inodes_free,
        } = eviction;
        let parts =
            [image_fs_available, image_fs_inodes_free, memory_available, node_fs_available, node_fs_inodes_free]
                .map(|threshold| threshold.as_deref().unwrap_or_default());
        items.push("kubeletConfig.evictionHard", parts.join("-"));
    }
    items.push_some("kubeletConfig.cpuManagerPolicy", cpu_manager_policy.as_deref());
}
