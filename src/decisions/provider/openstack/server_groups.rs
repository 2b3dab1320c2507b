//! Server groups (docs/openstack-server-groups.md): the groups that pools need, their reconciliation, and unneeded
//! groups. Pure; requests are answered by the client in `cloud/openstack` or from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_with::apply;
use sha2::{Digest as _, Sha256};

use super::credentials::{Credentials, credentials};
use super::documents::{CloudProfileConfig, WorkerConfig, WorkerStatus};
use crate::provider::documents::{PROVIDER_STATUS, decode, pool_config};
use crate::provider::{DependencyFailure, DependencyRecord, WorkerContext, WorkerError, dependencies};
use wire::api::gardener::{Cluster, Shoot, Worker, WorkerPool};
use wire::api::gotext::json::null_as_default;
use wire::api::gotext::version::Version;
use wire::api::secret::Secrets;

/// Length of the prefix of the shoot's uid in server group names.
const UID_CHARACTERS: usize = 18;

/// A server group as returned by Nova.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServerGroup {
    /// Id of the group.
    pub id: String,
    /// Name of the group.
    pub name: String,
    /// Policies of the group; only the first one is used.
    pub policies: Vec<String>,
}

/// Location and names of a Worker's server groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGroupScope {
    /// Credentials for OpenStack.
    pub credentials: Credentials,
    /// Keystone URL.
    pub identity_url: String,
    /// Name of the region.
    pub region: String,
    /// Name prefix since Kubernetes 1.35; `None` for a shoot without a valid uid.
    uid: Option<String>,
    /// Name prefix before Kubernetes 1.35.
    technical_id: String,
}

/// The groups that the pools of a Worker need. Each pool has at most one record, and records are in pool order.
pub type Needs = crate::provider::Needs<ServerGroupScope, TargetGroup>;
/// The group that a pool needs.
pub type PoolNeed = crate::provider::PoolNeed<TargetGroup>;

/// The target group of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetGroup {
    /// Policy of the group.
    pub policy: String,
    /// Name of a new group.
    pub name: String,
    /// Alternative name prefix; `None` since Kubernetes 1.35.
    old_prefix: Option<String>,
}

impl PoolNeed {
    /// Whether the recorded group, as returned by Nova, meets the needs of the pool.
    #[must_use]
    pub fn is_met_by(&self, recorded: &DependencyRecord, displayed: &ServerGroup) -> bool {
        let TargetGroup { name, old_prefix, .. } = &self.target;
        displayed.name == recorded.name
            && self.has_policy(displayed)
            && (old_prefix.is_some() || displayed.name == *name)
    }

    /// The group to adopt for a pool without one: the first with the policy and a name of the pool.
    #[must_use]
    pub fn adopted<'a>(&self, listed: &'a [ServerGroup]) -> Option<&'a ServerGroup> {
        let TargetGroup { name, old_prefix, .. } = &self.target;
        let is_old = |known: &str| old_prefix.as_ref().is_some_and(|prefix| known.starts_with(prefix.as_str()));
        listed.iter().find(|group| self.has_policy(group) && (group.name == *name || is_old(&group.name)))
    }

    /// The record of a group.
    #[must_use]
    pub fn record(&self, group: &ServerGroup) -> DependencyRecord {
        DependencyRecord { pool_name: self.pool.clone(), id: group.id.clone(), name: group.name.clone() }
    }

    fn has_policy(&self, group: &ServerGroup) -> bool {
        group.policies.first() == Some(&self.target.policy)
    }
}

impl Needs {
    /// Records of pools that may still be in use.
    fn kept(&self) -> impl Iterator<Item = &DependencyRecord> {
        let needed: BTreeSet<&String> = self.pools.iter().map(|need| &need.pool).chain(self.refused.keys()).collect();
        self.records.iter().filter(move |record| needed.contains(&record.pool_name))
    }

    /// Ids of unneeded groups in Nova's list: first those without a record, then those of pools that need none. Groups
    /// in `used`, the ids in machine classes, are never deleted.
    #[must_use]
    pub fn unneeded(&self, listed: &[ServerGroup], used: &[String]) -> Vec<String> {
        let is_in_use = |id: &String| used.contains(id) || self.kept().any(|record| record.id == *id);
        let is_recorded = |group: &&ServerGroup| self.records.iter().any(|record| record.id == group.id);
        let orphans = listed.iter().filter(|group| self.is_own(&group.name) && !is_recorded(group));
        let recorded = self.records.iter().map(|record| &record.id);
        let mut unneeded: Vec<String> = Vec::new();
        for id in orphans.map(|group| &group.id).chain(recorded).filter(|id| !is_in_use(id)) {
            if !unneeded.contains(id) {
                unneeded.push(id.clone());
            }
        }
        unneeded
    }

    /// Whether a group was created for this shoot. The technical id of this shoot may be a prefix of another shoot's,
    /// so names of old groups must match completely: a known pool and a random suffix without `-`.
    fn is_own(&self, name: &str) -> bool {
        let ServerGroupScope { uid, technical_id, .. } = &self.scope;
        let begins = |uid: &String| name.strip_prefix(uid.as_str()).is_some_and(|rest| rest.starts_with('-'));
        let is_of = |pool: &String| {
            let chance = name.strip_prefix(&format!("{technical_id}-{pool}-"));
            chance.is_some_and(|chance| !chance.contains('-'))
        };
        uid.as_ref().is_some_and(begins) || self.cached_pools.iter().any(is_of)
    }

    /// The remaining records after the deletion of these ids.
    #[must_use]
    pub fn records_without(&self, deleted: &[String]) -> Vec<DependencyRecord> {
        self.records.iter().filter(|record| !deleted.contains(&record.id)).cloned().collect()
    }
}

impl ServerGroupScope {
    fn of_worker(
        worker: &Worker,
        shoot: &Shoot,
        secrets: &Secrets,
        config: &CloudProfileConfig,
        config_path: &str,
    ) -> Result<Self, WorkerError> {
        let credentials = credentials(worker, secrets)?;
        let of_profile = identity_url(config, &worker.spec.region, config_path)?;
        let identity_url = credentials.identity_url.clone().unwrap_or_else(|| of_profile.to_owned());
        let uid = shoot.metadata.uid.as_ref().and_then(|uid| uid.get(..UID_CHARACTERS));
        Ok(Self {
            credentials,
            identity_url,
            region: worker.spec.region.clone(),
            uid: uid.map(str::to_owned),
            technical_id: shoot.status.technical_id.clone(),
        })
    }
}

/// The requested policy of a provider config.
pub(super) fn policy(config: &WorkerConfig) -> Option<&str> {
    config.server_group.as_ref().map(|group| group.policy.as_str()).filter(|policy| !policy.is_empty())
}

/// Decodes the provider config of the CloudProfile, which has the Keystone URL.
pub(super) fn profile_config(context: &WorkerContext<'_>) -> Result<Arc<CloudProfileConfig>, WorkerError> {
    let missing = || WorkerError::DocumentMissing { path: context.profile_config_path(), kind: "CloudProfileConfig" };
    context.profile_config()?.ok_or_else(missing)
}

/// The Keystone URL of a region in the CloudProfile.
///
/// # Errors
/// If the CloudProfile has none.
pub(super) fn identity_url<'a>(
    config: &'a CloudProfileConfig,
    region: &str,
    config_path: &str,
) -> Result<&'a str, WorkerError> {
    let of_region = config.keystone_urls.iter().find(|keystone| keystone.region == region);
    let url = of_region.map(|keystone| keystone.url.as_str()).or(Some(config.keystone_url.as_str()));
    let missing = || WorkerError::IdentityUrlMissing { path: config_path.to_owned(), region: region.to_owned() };
    url.filter(|url| !url.is_empty()).ok_or_else(missing)
}

/// The recorded server groups.
///
/// # Errors
/// As [`dependencies::records`].
pub(super) fn records(
    context: &WorkerContext<'_>,
    status: &WorkerStatus,
) -> Result<Vec<DependencyRecord>, WorkerError> {
    dependencies::records(context, "server groups", &status.server_group_dependencies)
}

/// The server groups that the pools of a Worker need; `None` if they need none and none are recorded.
///
/// # Errors
/// If a required document is missing or invalid.
pub fn needs(context: &WorkerContext<'_>) -> Result<Option<Needs>, WorkerError> {
    let status: WorkerStatus = context.provider_status()?.unwrap_or_default();
    let records = records(context, &status)?;
    let WorkerContext { worker, shoot, secrets, .. } = context;
    let scope = || {
        let config = profile_config(context)?;
        ServerGroupScope::of_worker(worker, shoot, secrets, &config, &context.profile_config_path())
    };
    needs_of(&worker.spec.pools, shoot, records, scope)
}

/// The server groups to delete with a Worker; `None` if it never had any. If the CloudProfile lists policies, an
/// unrecorded group may exist: a pool may have requested one and dropped the request before the record was written.
///
/// # Errors
/// If the CloudProfile or the credentials can't be decoded.
pub fn needs_of_deletion(
    worker: &Worker,
    cluster: Option<&Cluster>,
    secrets: &Secrets,
) -> Result<Option<Needs>, WorkerError> {
    let status: Option<WorkerStatus> = decode(PROVIDER_STATUS, worker.status.provider_status.as_deref())?;
    let records = status.unwrap_or_default().server_group_dependencies;
    let missing = |member| WorkerError::ClusterIncomplete { cluster: String::new(), member };
    let spec = cluster.map(|cluster| &cluster.spec);
    let shoot = spec.and_then(|spec| spec.shoot.as_ref());
    let path = "CloudProfile spec.providerConfig";
    let config = || -> Result<CloudProfileConfig, WorkerError> {
        let profile = spec.and_then(|spec| spec.cloud_profile.as_ref()).ok_or(missing("cloudProfile"))?;
        decode(path, profile.spec.provider_config.as_deref())?
            .ok_or_else(|| WorkerError::DocumentMissing { path: path.to_owned(), kind: "CloudProfileConfig" })
    };
    let scope = || ServerGroupScope::of_worker(worker, shoot.ok_or(missing("shoot"))?, secrets, &config()?, path);
    let pools = &worker.spec.pools;
    let needs = match needs_of(pools, shoot.unwrap_or(&Shoot::default()), records, scope)? {
        None if config().is_ok_and(|config| !config.server_group_policies.is_empty()) => {
            let cached_pools = pools.iter().map(|pool| pool.name.clone()).collect();
            Some(Needs { cached_pools, ..Needs::of_records(scope()?, Vec::new()) })
        }
        needs => needs,
    };
    // All machines are deleted, so pools need no groups. A requested group may exist without a record.
    Ok(needs.map(|needs| Needs { pools: Vec::new(), refused: BTreeMap::new(), ..needs }))
}

fn needs_of(
    pools: &[WorkerPool],
    shoot: &Shoot,
    records: Vec<DependencyRecord>,
    scope: impl FnOnce() -> Result<ServerGroupScope, WorkerError>,
) -> Result<Option<Needs>, WorkerError> {
    let requests = |pool: &&WorkerPool| {
        pool_config::<WorkerConfig>(pool).map_or(pool.provider_config.is_some(), |config| policy(&config).is_some())
    };
    let asking: Vec<&WorkerPool> = pools.iter().filter(requests).collect();
    if asking.is_empty() && records.is_empty() {
        return Ok(None);
    }
    // If a pool has several records, the last one wins.
    let mut records: BTreeMap<String, DependencyRecord> =
        records.into_iter().map(|record| (record.pool_name.clone(), record)).collect();
    let mut needs = Needs::of_records(scope()?, records.values().cloned().collect());
    needs.cached_pools = pools.iter().map(|pool| &pool.name).chain(records.keys()).cloned().collect();
    for pool in asking {
        let recorded = records.remove(&pool.name);
        let target = target_group(pool, shoot, &needs.scope);
        needs.add(&pool.name, target.map(|target| PoolNeed { pool: pool.name.clone(), recorded, target }));
    }
    Ok(Some(needs))
}

fn target_group(pool: &WorkerPool, shoot: &Shoot, scope: &ServerGroupScope) -> Result<TargetGroup, DependencyFailure> {
    let of_configuration = |text: String| DependencyFailure::of_configuration(text);
    let config: WorkerConfig = pool_config(pool).map_err(|error| of_configuration(error.to_string()))?;
    let policy = policy(&config).unwrap_or_default();
    let version = pool.kubernetes_version.as_deref().unwrap_or(&shoot.spec.kubernetes.version);
    let version = Version::parse(version)
        .map_err(|error| of_configuration(format!("the Kubernetes version of the pool: {error}")))?;
    let uid = scope.uid.as_ref().ok_or_else(|| {
        of_configuration(format!("metadata.uid of the Shoot has less than {UID_CHARACTERS} characters"))
    })?;
    let digest = hex::encode(Sha256::digest(format!("pool={},policy={policy}", pool.name)));
    let old_prefix = || format!("{}-{}-", scope.technical_id, pool.name);
    Ok(TargetGroup {
        policy: policy.to_owned(),
        name: format!("{uid}-{}", &digest[..8]),
        old_prefix: (!version.at_least_including_prereleases(1, 35)).then(old_prefix),
    })
}
