//! A Worker, its related objects, and the client of Azure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use gardener_extension_worker::api::gardener::{Cluster, ErrorCode, Worker};
use gardener_extension_worker::api::secret::{SecretContent, Secrets};
use gardener_extension_worker::cloud::azure::{Addresses, Azure};
use gardener_extension_worker::cloud::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState, UsedByClasses};
use gardener_extension_worker::cloud::{WorkerName, WriteAccess};
use gardener_extension_worker::provider::{Dependencies, Providers, WorkerError};
use gardener_extension_worker::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use gardener_extension_worker::worker::request::decode;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use test_support::arm::{Arm, Group};
use test_support::cluster::eventually;

pub(crate) const NAMESPACE: &str = "shoot--demo--az";
/// Longer than any of these tests takes.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) arm: Arc<Arm>,
    pub(crate) group: Group,
    pub(crate) azure: Azure,
    pub(crate) rings: Arc<Mutex<Vec<WorkerName>>>,
    pub(crate) worker: Value,
    /// `countFaultDomains` of the CloudProfile.
    pub(crate) fault_domains: Value,
    pub(crate) cloud: Option<&'static str>,
    pub(crate) secret: Value,
    pub(crate) live: MachineObjects,
}

impl World {
    /// A Worker with these pools, in an empty resource group.
    pub(crate) fn new(pools: &[&str]) -> Self {
        Self::beside(Arc::new(Arm::start().unwrap()), pools, NAMESPACE)
    }

    /// Another Worker with the same Azure.
    pub(crate) fn beside(arm: Arc<Arm>, pools: &[&str], namespace: &str) -> Self {
        let (azure, rings) = callers(&arm, WriteAccess::Allowed);
        let pools: Vec<Value> = pools.iter().map(|pool| self::pool(pool)).collect();
        let worker = json!({
            "metadata": {"name": "az", "namespace": namespace, "uid": format!("uid of {namespace}")},
            "spec": {
                "type": "azure",
                "region": "westeurope",
                "secretRef": {"name": "cloudprovider", "namespace": namespace},
                "infrastructureProviderStatus": {
                    "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
                    "kind": "InfrastructureStatus",
                    "resourceGroup": {"name": namespace},
                    "networks": {"subnets": [{"name": "nodes", "purpose": "nodes"}]},
                },
                "pools": pools,
            },
        });
        let secret = json!({
            "subscriptionID": "sub", "tenantID": "tenant", "clientID": "client", "clientSecret": "clients-s3cret",
        });
        Self {
            group: arm.group("sub", namespace),
            arm,
            azure,
            rings,
            worker,
            fault_domains: json!([{"region": "westeurope", "count": 3}]),
            cloud: None,
            secret: json!({"data": secret}),
            live: MachineObjects::default(),
        }
    }

    /// Restarts the process. Its running tasks are lost.
    pub(crate) fn restart(&mut self) {
        (self.azure, self.rings) = callers(&self.arm, WriteAccess::Allowed);
    }

    /// Restarts the process with or without permission to change anything at Azure.
    pub(crate) fn restart_with(&mut self, writes: WriteAccess) {
        (self.azure, self.rings) = callers(&self.arm, writes);
    }

    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let data: serde_json::Map<String, Value> = self.secret["data"].as_object().cloned().unwrap_or_default();
        let text = |value: Value| value.as_str().map(str::to_owned);
        let secret = Secret {
            metadata: serde_json::from_value(json!({"labels": self.secret["labels"]})).unwrap(),
            string_data: None,
            data: Some(
                data.into_iter()
                    .map(|(key, value)| (key, k8s_openapi::ByteString(text(value).unwrap().into_bytes())))
                    .collect(),
            ),
            ..Secret::default()
        };
        let namespace = self.worker["spec"]["secretRef"]["namespace"].as_str().unwrap();
        secrets.insert(namespace, "cloudprovider", SecretContent::from(secret));
        secrets
    }

    fn cluster(&self) -> Cluster {
        let mut config = json!({
            "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "CloudProfileConfig",
            "countFaultDomains": self.fault_domains,
        });
        if let Some(cloud) = self.cloud {
            config["cloudConfiguration"] = json!({ "name": cloud });
        }
        let cluster = json!({
            "metadata": {"name": NAMESPACE},
            "spec": {
                "cloudProfile": {"metadata": {"name": "az"}, "spec": {"providerConfig": config}},
                "shoot": {"spec": {"region": self.worker["spec"]["region"]}, "status": {"technicalID": NAMESPACE}},
            },
        });
        serde_json::from_str(&cluster.to_string()).unwrap()
    }

    fn decoded(&self) -> Worker {
        serde_json::from_str(&self.worker.to_string()).unwrap()
    }

    /// Ensures the scale sets once, as in one reconcile.
    pub(crate) async fn ensure_once(&self, begins: bool, has_moved: bool) -> Result<DependencyState, WorkerError> {
        let (worker, cluster, secrets) = (self.decoded(), self.cluster(), self.secrets());
        let context = decode::context(&worker, &cluster, &secrets)?;
        self.azure.ensure(DependencyRequest { context: &context, live: &self.live, begins, has_moved }).await
    }

    /// Reconciles until no pool waits, as the controller does. The first reconcile begins an operation.
    pub(crate) async fn ensure(&self) -> Dependencies {
        self.ensure_once(true, false).await.unwrap();
        self.settled().await
    }

    /// Reconciles until no pool waits.
    pub(crate) async fn settled(&self) -> Dependencies {
        self.settled_as(|dependencies| dependencies.waiting.is_empty()).await
    }

    /// Reconciles until `is_it` is true.
    pub(crate) async fn settled_as(&self, is_it: impl Fn(&Dependencies) -> bool) -> Dependencies {
        eventually(DEADLINE, "scale sets", async || {
            let provided = self.ensure_once(false, false).await?;
            let dependencies = provided.dependencies.ok_or_else(|| anyhow!("pools depend on nothing"))?;
            ensure!(is_it(&dependencies), "{dependencies:?}");
            Ok(dependencies)
        })
        .await
        .unwrap()
    }

    /// Writes the records to the status, as the controller does.
    pub(crate) fn keep(&mut self, dependencies: &Dependencies) {
        self.record(dependencies.records.clone());
    }

    /// Sets the records in the status.
    pub(crate) fn record(&mut self, records: Value) {
        self.worker["status"]["providerStatus"] = json!({
            "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "WorkerStatus",
            "vmoDependencies": records,
        });
    }

    /// Cleans up until nothing is left to do.
    pub(crate) async fn clean_up(&self, used: &[&str]) -> CleanUp {
        self.end_of_clean_up(UsedByClasses::Read(used.iter().map(|id| (*id).to_owned()).collect())).await
    }

    pub(crate) async fn end_of_clean_up(&self, used: UsedByClasses) -> CleanUp {
        eventually(DEADLINE, "clean-up", async || match self.clean_up_with(used.clone()).await {
            CleanUp::Waiting(text) => Err(anyhow!(text)),
            end => Ok(end),
        })
        .await
        .unwrap()
    }

    pub(crate) async fn clean_up_once(&self, used: Vec<String>) -> CleanUp {
        self.clean_up_with(UsedByClasses::Read(used)).await
    }

    async fn clean_up_with(&self, used: UsedByClasses) -> CleanUp {
        let (worker, cluster, secrets) = (self.decoded(), self.cluster(), self.secrets());
        let context = decode::context(&worker, &cluster, &secrets).unwrap();
        self.azure.clean_up(&context, used).await.unwrap()
    }

    /// Deletes everything at Azure that belongs to the Worker.
    pub(crate) async fn remove(&self) -> Result<CleanUp, WorkerError> {
        let (worker, secrets) = (self.decoded(), self.secrets());
        loop {
            match self.azure.remove(&worker, None, &secrets).await {
                Ok(CleanUp::Waiting(_)) => tokio::task::yield_now().await,
                end => return end,
            }
        }
    }

    /// Adds a machine deployment of the pool, with machines in the scale set with that id.
    pub(crate) fn has_machines(&mut self, pool: &str, id: &str) {
        let deployment = json!({
            "metadata": {"name": format!("{NAMESPACE}-{pool}"), "labels": {"worker.gardener.cloud/pool": pool}},
            "spec": {"template": {"spec": {"class": {"name": pool}}}},
        });
        let class = json!({"metadata": {"name": pool}, "providerSpec": {"properties": {"machineSet": {"id": id, "kind": "vmo"}}}});
        self.live.deployments.insert(pool.to_owned(), LiveDeployment::read_without_codes(deployment).unwrap());
        self.live.classes.insert(
            pool.to_owned(),
            DigestedObject::class(class).unwrap().with_dependency(Providers::SHIPPED).digest_only(),
        );
    }

    pub(crate) fn calls(&self) -> Value {
        json!(self.group.calls())
    }

    /// The calls to Azure, one word each.
    pub(crate) fn verbs(&self) -> Vec<String> {
        self.calls().as_array().unwrap().iter().map(|call| call[0].as_str().unwrap().to_owned()).collect()
    }
}

fn callers(arm: &Arm, writes: WriteAccess) -> (Azure, Arc<Mutex<Vec<WorkerName>>>) {
    let origin = Some(arm.url().parse().unwrap());
    let addresses = Addresses { resource_manager: origin.clone(), authority: origin };
    let ended: Arc<Mutex<Vec<WorkerName>>> = Arc::default();
    let reported = Arc::clone(&ended);
    let task_ended = Arc::new(move |worker| reported.lock().unwrap().push(worker));
    (Azure::new(addresses, Arc::new(move || writes), task_ended), ended)
}

pub(crate) fn pool(name: &str) -> Value {
    json!({
        "name": name,
        "machineType": "Standard_D4s_v5",
        "machineImage": {"name": "gardenlinux", "version": "1"},
        "minimum": 1,
        "maximum": 1,
        "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
    })
}

/// The `name` in a pool's record.
pub(crate) fn name_of(dependencies: &Dependencies, pool: &str) -> String {
    let records = dependencies.records.as_array().unwrap();
    let record = records.iter().find(|record| record["poolName"] == pool);
    record.unwrap_or_else(|| panic!("{dependencies:?}"))["name"].as_str().unwrap().to_owned()
}

pub(crate) fn id_of(name: &str) -> String {
    format!("/subscriptions/sub/resourceGroups/{NAMESPACE}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}")
}

pub(crate) fn record(pool: &str, name: &str) -> Value {
    json!({"poolName": pool, "id": id_of(name), "name": name})
}

/// Text and code of a pool's failure.
pub(crate) fn failure_of(dependencies: &Dependencies, pool: &str) -> (String, Option<ErrorCode>) {
    let failure = dependencies.failures.get(pool).unwrap_or_else(|| panic!("{dependencies:?}"));
    (failure.message.clone(), failure.code)
}
