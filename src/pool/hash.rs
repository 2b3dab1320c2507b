//! The five characters of a class name that decide whether nodes roll. `docs/development.md` says how a member is added.
//!
//! Every variant is a list of texts. Each text is hashed, the hexadecimal digests are written one behind the other, and
//! that is hashed again. The list is kept with names, so that `explain` and `why` can say what a hash is made of.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::api::gardener::{
    EvictionHard, KubeReserved, KubeletConfig, MachineImage, RotationTimes, Shoot, UpdateStrategy, Volume, WorkerPool,
};
use crate::api::gotext::quantity::Quantity;
use crate::api::gotext::time::go_time_text;
use crate::api::gotext::version::{Version, VersionError};

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

/// The hash of what in-place machines run with: sixteen hexadecimal characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct InPlaceHash(pub String);

/// One text that enters a hash, with the name of the field it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HashItem {
    /// Path of the field, such as `volume.size` of the pool.
    pub input: Cow<'static, str>,
    /// The text as it is hashed.
    pub value: String,
}

/// The texts that enter a hash, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct HashItems(Vec<HashItem>);

/// What a provider adds to the hash of a rolling pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderItems {
    /// Added to pools without a node-agent secret.
    pub without_node_agent_secret: HashItems,
    /// Added to pools with one: the same and the relevant parts of the provider config.
    pub with_node_agent_secret: HashItems,
    /// Added to in-place pools.
    pub in_place: HashItems,
}

/// A pool hash together with what it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedPool {
    /// For the class name.
    pub hash: PoolHash,
    /// What the hash is made of.
    pub items: HashItems,
    /// For `status.inPlaceUpdates`; only in-place pools.
    pub in_place: Option<InPlaceHash>,
}

/// Why a pool can't be hashed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// A Kubernetes version can't be read.
    #[error("{field}: {text:?}: {source} (a version such as 1.34.2 is expected)")]
    Version {
        /// Path of the version.
        field: &'static str,
        /// What stands there.
        text: String,
        /// Why.
        source: VersionError,
    },
    /// An in-place pool needs a version of its own.
    #[error("kubernetesVersion: required for a pool that is updated in place")]
    VersionMissing,
    /// The provider hashes no pools of the time before node-agent secrets.
    #[error("nodeAgentSecretName: required")]
    NodeAgentSecretMissing,
    /// The start of a rotation is no time.
    #[error("{field}: {value:?} is no RFC 3339 time")]
    Time {
        /// Path of the time.
        field: &'static str,
        /// The text that is no time.
        value: String,
    },
}

impl HashItems {
    /// Adds a text.
    pub fn push(&mut self, input: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.push(HashItem { input: input.into(), value: value.into() });
    }

    /// Adds a text if there is one.
    pub fn push_some(&mut self, input: impl Into<Cow<'static, str>>, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.push(input, value);
        }
    }

    /// Adds all texts of another list.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &HashItem> {
        self.0.iter()
    }

    /// The first `length` characters of the hash over all texts.
    fn digest(&self, length: usize) -> String {
        let mut outer = Sha256::new();
        for item in &self.0 {
            outer.update(hex::encode(Sha256::digest(item.value.as_bytes())));
        }
        let mut text = hex::encode(outer.finalize());
        text.truncate(length);
        text
    }

    /// Whether there are none.
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

/// The members of a pool that count in hashes, beside what its provider adds.
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
    /// Every member is named, so that a new one can't be forgotten.
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
            // Providers add what counts of them.
            data_volumes: _,
            zones: _,
            // Numbers of machines.
            minimum: _,
            maximum: _,
            max_surge: _,
            max_unavailable: _,
            priority: _,
            // What living nodes get, too.
            annotations: _,
            labels: _,
            taints: _,
            // It follows from what the name of the node-agent secret stands for.
            user_data_secret_ref: _,
            // What only machine-controller-manager and the cluster-autoscaler read.
            machine_controller_manager: _,
            node_template: _,
            cluster_autoscaler: _,
            // The machine type has one.
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

/// The hash of a pool. Which texts count depends on the update strategy and on the node-agent secret.
///
/// # Errors
/// When a Kubernetes version or a rotation time that counts can't be read.
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

/// The in-place hash is one text of the pool hash.
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

/// What the in-place hash of a pool is made of.
///
/// # Errors
/// When the pool's Kubernetes version is missing or can't be read, or a rotation time can't be read.
pub fn in_place_items(pool: &WorkerPool, shoot: &Shoot) -> Result<HashItems, HashError> {
    items_in_place(&HashedMembers::of(pool), shoot)
}

fn items_in_place(members: &HashedMembers<'_>, shoot: &Shoot) -> Result<HashItems, HashError> {
    let text = members.kubernetes_version.ok_or(HashError::VersionMissing)?;
    let version = parse_version("kubernetesVersion", text)?;
    let mut items = HashItems::default();
    items.push("kubernetesVersion", version.major_minor());
    // Another name is another image, which no update in place brings.
    let MachineImage { name: _, version } = members.machine_image;
    items.push("machineImage.version", version.as_str());
    push_rotations(&mut items, members, shoot)?;
    if let Some(kubelet) = members.kubelet_config {
        push_kubelet(&mut items, kubelet);
    }
    Ok(items)
}

/// The hash that `status.inPlaceUpdates` keeps for a pool.
///
/// # Errors
/// As [`in_place_items`].
pub fn in_place_hash(pool: &WorkerPool, shoot: &Shoot) -> Result<InPlaceHash, HashError> {
    Ok(InPlaceHash(in_place_items(pool, shoot)?.digest(IN_PLACE_HASH_LENGTH)))
}

/// Pools from before Gardener gave each pool a node-agent secret name.
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

/// What gardenlet makes the suffix of a node-agent secret name from. The name itself is all that enters
/// the pool hash; this says what a change of the name stands for. What an update in place can change is not in the name
/// of such a pool.
///
/// # Errors
/// When a Kubernetes version or a rotation time that counts can't be read.
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

/// The name that gardenlet gives the node-agent secret of a pool (gardener v1.146 and later). It is constant where machines
/// are updated in place.
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
    // Name and version without anything between them: `a1` + `2` equals `a` + `12`.
    let MachineImage { name, version } = members.machine_image;
    items.push("machineImage", format!("{name}{version}"));
    // Providers that can encrypt it add that.
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

/// node-local-dns changed the nodes only before Kubernetes 1.34, and ever since only with IPVS.
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

/// When the rotations that the pool runs with were started.
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

/// The pool's own time while its rollout is pending (even when that time is unset), else the shoot's.
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
