//! The flows of a Worker's life: how gardenlet starts each, and when it is complete.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::life::LONG;
use crate::observer::{Seen, Version};
use test_support::cluster::eventually;
use test_support::migration::{kept_machines, restored_worker, take_away};
use test_support::openstack::{Project, enable_groups};
use test_support::shoot::{Documents, Kind, Shoot, pool, set_image};

/// Annotation of a Worker with the pools whose zones roll one after the other.
pub(crate) const ZONE_BY_ZONE: &str = "gardener-extension-worker/zone-by-zone";
/// Label of nodes with the name of their node agent Secret.
pub(crate) const NODE_AGENT_SECRET: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
/// The pools, each in three zones.
pub(crate) const POOLS: [&str; 3] = ["bow", "hull", "stern"];
const ZONES: [&str; 3] = ["1", "2", "3"];
/// The pool to remove.
pub(crate) const REMOVED: &str = "stern";
/// The deployment with two machines while the control plane moves; the others have one.
pub(crate) const GROWN: &str = "bow-z1";
/// That deployment for the other clouds' pools, as named on AliCloud.
const GROWN_OF_ALICLOUD: &str = "bow-eu-central-1a";
/// Minimum and maximum of a pool: at least one machine per zone, at most two.
const BOUNDS: [i32; 2] = [3, 6];

/// The cloud of the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fleet {
    /// Azure, with three zones per pool.
    Azure,
    /// The same, and the zones of each pool roll one after the other.
    AzureByZone,
    /// An example of another cloud, with one zone per pool. On OpenStack, each pool has a server group.
    Example(&'static str),
}

impl Fleet {
    /// The clouds with an example.
    pub(crate) const EXAMPLES: [Self; 4] =
        [Self::Example("aws"), Self::Example("gcp"), Self::Example("alicloud"), Self::Example("openstack")];

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Azure => "azure",
            Self::AzureByZone => "azure, zone by zone",
            Self::Example(cloud) => cloud,
        }
    }

    /// Its flows, in the order of a life. Zones that roll one after the other differ only in a roll.
    pub(crate) fn flows(self) -> &'static [Flow] {
        match self {
            Self::AzureByZone => &[Flow::Create, Flow::Roll],
            Self::Azure | Self::Example(_) => &Flow::ALL,
        }
    }

    async fn create(self, shoot: &Shoot, openstack: &Project) -> Result<()> {
        let cloud = match self {
            Self::Azure => return shoot.create(three_pools_in_three_zones).await,
            Self::AzureByZone => {
                let by_zone = |documents: &mut Documents| {
                    three_pools_in_three_zones(documents);
                    let worker = documents.of_kind("Worker");
                    worker["metadata"]["annotations"][ZONE_BY_ZONE] = json!("*");
                    POOLS.iter().for_each(|name| set_secret(worker, name, "1111111111111111"));
                };
                return shoot.create(by_zone).await;
            }
            Self::Example(cloud) => cloud,
        };
        let documents = |documents: &mut Documents| {
            three_pools(documents.of_kind("Worker"), "web", |pool| pool["zones"] = json!([pool["zones"][0]]));
            if cloud == "openstack" {
                let policies = POOLS.map(|name| (name, "soft-anti-affinity"));
                enable_groups(documents.all(), openstack, &policies);
            }
        };
        shoot.create_example_with(cloud, documents).await
    }

    fn next_image(self) -> &'static str {
        match self {
            Self::Azure | Self::AzureByZone => "12.2.0",
            Self::Example(_) => "1877.9.0",
        }
    }

    /// Gives all pools another image. Where zones roll one after the other, one of the pools gets another node agent Secret, as
    /// gardenlet does with each image.
    fn roll(self, worker: &mut Value) {
        POOLS.iter().for_each(|name| set_image(worker, name, self.next_image()));
        if self == Self::AzureByZone {
            let [name, ..] = POOLS;
            set_secret(worker, name, "2222222222222222");
        }
    }

    fn grown(self) -> &'static str {
        match self {
            Self::Example("alicloud") => GROWN_OF_ALICLOUD,
            _ => GROWN,
        }
    }
}

/// Whether it is the deployment with two machines while the control plane moves.
pub(crate) fn is_grown(deployment: &str) -> bool {
    deployment.ends_with(GROWN) || deployment.ends_with(GROWN_OF_ALICLOUD)
}

/// A flow. The order is that of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    Create,
    /// A no-op request.
    Confirm,
    /// Another image for all pools.
    Roll,
    PoolRemoval,
    Hibernate,
    Wake,
    /// The control plane leaves the seed.
    Migrate,
    /// The control plane arrives on its new seed.
    Restore,
    Delete,
}

impl Flow {
    pub(crate) const ALL: [Self; 9] = [
        Self::Create,
        Self::Confirm,
        Self::Roll,
        Self::PoolRemoval,
        Self::Hibernate,
        Self::Wake,
        Self::Migrate,
        Self::Restore,
        Self::Delete,
    ];

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Confirm => "nothing to be done",
            Self::Roll => "roll of all pools",
            Self::PoolRemoval => "removal of a pool",
            Self::Hibernate => "hibernation",
            Self::Wake => "waking up",
            Self::Migrate => "migration",
            Self::Restore => "restoration",
            Self::Delete => "deletion",
        }
    }

    /// Starts the flow. Returns the revision after which it can complete.
    pub(crate) async fn begin(self, shoot: &Shoot, fleet: Fleet, openstack: &Project) -> Result<u64> {
        match self {
            Self::Create => {
                fleet.create(shoot, openstack).await?;
                Ok(0)
            }
            Self::Confirm => confirm(shoot).await,
            Self::Roll => request(shoot, |worker| fleet.roll(worker)).await,
            Self::PoolRemoval => request(shoot, remove_pool).await,
            Self::Hibernate | Self::Wake => {
                let hibernates = self == Self::Hibernate;
                let hibernate = |cluster: &mut Value| {
                    cluster["spec"]["shoot"]["spec"]["hibernation"] = json!({ "enabled": hibernates });
                };
                shoot.change(Kind::Cluster, &shoot.namespace, hibernate).await?;
                if self == Self::Wake {
                    set_machine_controller(shoot, 1).await?;
                }
                request(shoot, |_| {}).await
            }
            Self::Migrate => {
                // Scale up as the autoscaler would. The move must preserve the replicas.
                let grown = format!("{}-{}", shoot.namespace, fleet.grown());
                shoot
                    .change(Kind::MachineDeployment, &grown, |deployment| deployment["spec"]["replicas"] = json!(2))
                    .await?;
                request_operation(shoot, "migrate", |_| {}).await
            }
            Self::Restore => {
                set_machine_controller(shoot, 0).await?;
                let moved = shoot.worker().await?;
                let kept = kept_machines(shoot).await?;
                take_away(shoot).await?;
                restored_worker(shoot, &moved, &kept).await?;
                request_operation(shoot, "restore", |_| {}).await
            }
            Self::Delete => {
                let revision = request(shoot, |_| {}).await?;
                shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
                Ok(revision)
            }
        }
    }

    /// Fails with what is missing. `since` is the result of [`Flow::begin`].
    pub(crate) fn ensure_over(self, seen: &Seen, since: u64) -> Result<()> {
        let worker = seen.now.get(&(Kind::Worker, "fleet".to_owned()));
        if self == Self::Delete {
            let Some(worker) = worker else { return Ok(()) };
            bail!("the Worker is there: {}", worker["status"]["lastOperation"]);
        }
        ensure_succeeded(worker.context("there is no Worker")?)?;
        ensure!(has_begun(&seen.versions, since), "the operation has not begun");
        Ok(())
    }
}

/// Whether the Worker's status refers to the request: after that revision the operation was processing or answered, or
/// there was no status yet.
fn has_begun(versions: &[Version], since: u64) -> bool {
    let mut later = versions.iter().filter(|version| version.kind == Kind::Worker && version.revision > since);
    later.any(|version| {
        version.object.as_ref().is_some_and(|worker| {
            let last = &worker["status"]["lastOperation"];
            last.is_null() || last["state"] == "Processing" || is_completed(worker)
        })
    })
}

/// Whether the operation annotation was removed and the status is not older than the request. If there is work to do,
/// the annotation is removed after the status is set to Processing. Within the second of an earlier answer, it is
/// removed only after the answer.
fn is_completed(worker: &Value) -> bool {
    let annotations = &worker["metadata"]["annotations"];
    let requested = seconds(&annotations["gardener.cloud/timestamp"]);
    let responded = seconds(&worker["status"]["lastOperation"]["lastUpdateTime"]);
    annotations["gardener.cloud/operation"].is_null() && requested.is_some() && responded >= requested
}

fn seconds(time: &Value) -> Option<i64> {
    time.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// gardenlet's criterion for success.
pub(crate) fn ensure_succeeded(worker: &Value) -> Result<()> {
    let (metadata, status) = (&worker["metadata"], &worker["status"]);
    ensure!(metadata["annotations"]["gardener.cloud/operation"].is_null(), "the request has not been taken off");
    let last = &status["lastOperation"];
    ensure!(last["state"] == "Succeeded", "it is {last}, {}", status["lastError"]);
    ensure!(status["observedGeneration"] == metadata["generation"], "its last generation is not observed: {status}");
    ensure!(status["lastError"].is_null(), "it has an error: {}", status["lastError"]);
    Ok(())
}

/// Changes the Worker as gardenlet does. Returns the revision.
pub(crate) async fn request(shoot: &Shoot, change: impl Fn(&mut Value)) -> Result<u64> {
    request_operation(shoot, "reconcile", change).await
}

/// Requests a no-op, in a later second than the earlier answer, because the request's timestamp has a resolution of
/// seconds.
pub(crate) async fn confirm(shoot: &Shoot) -> Result<u64> {
    let responded = seconds(&shoot.worker().await?["status"]["lastOperation"]["lastUpdateTime"]);
    eventually(LONG, "the next second", async || {
        let now = Timestamp::now().as_second();
        ensure!(Some(now) > responded, "it is {now}, and the answer has {responded:?}");
        Ok(())
    })
    .await?;
    request(shoot, |_| {}).await
}

/// gardenlet decides whether machine-controller-manager runs.
async fn set_machine_controller(shoot: &Shoot, replicas: u32) -> Result<()> {
    let scale = |deployment: &mut Value| deployment["spec"]["replicas"] = json!(replicas);
    shoot.change(Kind::Deployment, "machine-controller-manager", scale).await.map(|_| ())
}

async fn request_operation(shoot: &Shoot, operation: &str, change: impl Fn(&mut Value)) -> Result<u64> {
    let now = Timestamp::now().to_string();
    let version = shoot.change(Kind::Worker, "fleet", |worker| {
        let annotations = &mut worker["metadata"]["annotations"];
        annotations["gardener.cloud/operation"] = json!(operation);
        annotations["gardener.cloud/timestamp"] = json!(now);
        change(worker);
    });
    version.await?.parse().context("a version is a number")
}

/// The shoot for fault tests: three equal pools in three zones each.
pub(crate) fn three_pools_in_three_zones(documents: &mut Documents) {
    three_pools(documents.of_kind("Worker"), REMOVED, |pool| {
        pool["zones"] = json!(ZONES);
        [pool["minimum"], pool["maximum"]] = BOUNDS.map(Value::from);
    });
}

/// Replaces the pools by three copies of one, each with one machine per zone.
fn three_pools(worker: &mut Value, model: &str, change: impl Fn(&mut Value)) {
    let model = pool(worker, model).clone();
    let pools = POOLS.map(|name| {
        let mut pool = model.clone();
        pool["name"] = json!(name);
        [pool["minimum"], pool["maximum"]] = [1, 2].map(Value::from);
        pool["nodeAgentSecretName"] = json!(format!("gardener-node-agent-{name}-1111111111111111"));
        pool["labels"] = json!({ "live.example/pool": name });
        change(&mut pool);
        pool
    });
    worker["spec"]["pools"] = json!(pools);
}

/// Names the node agent Secret of a pool, as gardenlet does.
fn set_secret(worker: &mut Value, name: &str, hash: &str) {
    let secret = format!("gardener-node-agent-{name}-{hash}");
    let pool = pool(worker, name);
    pool["labels"][NODE_AGENT_SECRET] = json!(secret);
    pool["nodeAgentSecretName"] = json!(secret);
}

fn remove_pool(worker: &mut Value) {
    if let Some(pools) = worker["spec"]["pools"].as_array_mut() {
        pools.retain(|pool| pool["name"] != REMOVED);
    }
}
