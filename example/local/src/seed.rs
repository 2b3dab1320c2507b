//! The objects that gardenlet would write into the seed: those of an example in the parent folder, and later another
//! image.

use anyhow::{Context as _, Result, bail};
use gardener_extension_worker::api::gardener::NODE_AGENT_SECRET_LABEL;
use gardener_extension_worker::api::gotext::yaml;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use test_support::openstack::{Project, enable_groups};

/// A cloud with an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Cloud {
    /// `../azure.yaml`
    Azure,
    /// `../aws.yaml`
    Aws,
    /// `../gcp.yaml`
    Gcp,
    /// `../alicloud.yaml`
    Alicloud,
    /// `../openstack.yaml`
    Openstack,
    /// `../tiny/worker.yaml`
    Pebble,
}

impl Cloud {
    /// Path of its example in this project.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Azure => "example/azure.yaml",
            Self::Aws => "example/aws.yaml",
            Self::Gcp => "example/gcp.yaml",
            Self::Alicloud => "example/alicloud.yaml",
            Self::Openstack => "example/openstack.yaml",
            Self::Pebble => "example/tiny/worker.yaml",
        }
    }
}

/// Name of the pool whose machines can't be created.
pub(crate) const POOL_WITHOUT_QUOTA: &str = "over-quota";

/// The identity of a Worker's machines. Its name is part of class names, but not of the name of the node agent Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The identity in the example.
    Own,
    /// Another identity.
    Other,
    /// Another identity, with which no machine can be created.
    OtherWhoseMachinesFail,
}

/// The objects of an example.
#[derive(Clone)]
pub(crate) struct Example {
    /// All objects except the Worker.
    surroundings: Vec<Value>,
    worker: Value,
    /// The namespace of the Worker.
    pub(crate) namespace: String,
    /// The name of the Worker.
    pub(crate) name: String,
}

impl Example {
    /// Reads the file. On OpenStack, one pool requests a server group.
    pub(crate) fn read(cloud: Cloud, openstack: &Project) -> Result<Self> {
        let file = cloud.file();
        let path = test_support::repository().join(file);
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {file}"))?;
        let mut documents = yaml::documents(&text).context(file)?;
        if cloud == Cloud::Openstack {
            enable_groups(&mut documents, openstack, &[("search", "soft-anti-affinity")]);
        }
        let location = documents.iter().position(|document| document["kind"] == "Worker");
        let worker = documents.remove(location.with_context(|| format!("{file} has no Worker"))?);
        let text = |member: &str| worker["metadata"][member].as_str().unwrap_or_default().to_owned();
        Ok(Self { namespace: text("namespace"), name: text("name"), surroundings: documents, worker })
    }

    /// The first pool of the Azure example, for a shoot with this name. Its six nodes are in three zones and have a
    /// label with the name of their node agent Secret, as set by gardenlet.
    pub(crate) fn of_one_pool(shoot: &str) -> Result<Self> {
        let file = Cloud::Azure.file();
        let text = std::fs::read_to_string(test_support::repository().join(file)).context(file)?;
        let mut documents = yaml::documents(&text.replace("riverside", shoot)).context(file)?;
        let location = documents.iter().position(|document| document["kind"] == "Worker").context("no Worker")?;
        let mut worker = documents.remove(location);
        let pools = worker["spec"]["pools"].as_array_mut().context("the Worker has no pools")?;
        pools.truncate(1);
        for pool in pools {
            pool["minimum"] = json!(6);
            pool["maxSurge"] = json!(1);
            pool["labels"][NODE_AGENT_SECRET_LABEL] = pool["nodeAgentSecretName"].clone();
        }
        let text = |member: &str| worker["metadata"][member].as_str().unwrap_or_default().to_owned();
        Ok(Self { namespace: text("namespace"), name: text("name"), surroundings: documents, worker })
    }

    /// Requests another image, with the annotation for rolling zones one after the other.
    pub(crate) async fn roll_zone_by_zone(&self, client: &Client, version: &str) -> Result<()> {
        self.change(client, &|worker| {
            worker.annotations_mut().insert("gardener-extension-worker/zone-by-zone".to_owned(), "*".to_owned());
            for pool in worker.data["spec"]["pools"].as_array_mut().into_iter().flatten() {
                change_pool(pool, version);
                pool["labels"][NODE_AGENT_SECRET_LABEL] = pool["nodeAgentSecretName"].clone();
            }
        })
        .await
    }

    /// Requests another identity.
    pub(crate) async fn change_identity(&self, client: &Client, identity: Identity) -> Result<()> {
        let own = self.worker["spec"]["infrastructureProviderStatus"]["identity"]["id"].as_str().unwrap_or_default();
        let id = if identity == Identity::Own { own.to_owned() } else { format!("{own}-2") };
        self.change(client, &|worker| {
            worker.data["spec"]["infrastructureProviderStatus"]["identity"]["id"] = json!(id);
            for pool in worker.data["spec"]["pools"].as_array_mut().into_iter().flatten() {
                let Some(labels) = pool["labels"].as_object_mut() else { continue };
                match identity {
                    Identity::OtherWhoseMachinesFail => labels.insert("demo.fail".to_owned(), json!("InvalidArgument")),
                    Identity::Own | Identity::Other => labels.remove("demo.fail"),
                };
            }
        })
        .await
    }

    /// Writes all objects that the Worker needs.
    pub(crate) async fn apply_surroundings(&self, client: &Client) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        apply(client, &namespace).await?;
        for document in &self.surroundings {
            apply(client, document).await?;
        }
        let manager = self.machine_controller_manager();
        apply(client, &manager).await?;
        // No deployment controller runs here, so the demo itself reports the two processes as available.
        let status = json!({"status": {
            "replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
        }});
        let deployments: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &self.namespace, &resource("apps/v1", "Deployment"));
        let name = manager["metadata"]["name"].as_str().unwrap_or_default();
        let patched = deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
        patched.map(|_| ()).context("reporting machine-controller-manager as available")
    }

    /// Reports that machine-controller-manager runs, as the Deployment's controller would.
    pub(crate) async fn report_machine_controller_manager(&self, client: &Client) -> Result<()> {
        let deployments = Api::<Deployment>::namespaced(client.clone(), &self.namespace);
        let counts = json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1});
        let mut status = json!({"status": counts});
        status["status"]["observedGeneration"] = json!(1);
        let parameters = PatchParams::default();
        deployments.patch_status("machine-controller-manager", &parameters, &Patch::Merge(&status)).await?;
        Ok(())
    }

    /// The file with the next image version.
    pub(crate) fn changed_file(&self, cloud: Cloud) -> Result<NamedTempFile> {
        let text = std::fs::read_to_string(test_support::repository().join(cloud.file()))?;
        let mut documents = yaml::documents(&text)?;
        let worker = documents.iter_mut().find(|document| document["kind"] == "Worker").context("no Worker")?;
        for pool in worker["spec"]["pools"].as_array_mut().context("the Worker has no pools")? {
            change_pool(pool, self.next_version()?);
        }
        let changed = NamedTempFile::with_suffix(".json")?;
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
        std::fs::write(changed.path(), list.to_string())?;
        Ok(changed)
    }

    /// Name of the first machine deployment of the first pool.
    pub(crate) fn first_deployment(&self) -> String {
        let pool = &self.worker["spec"]["pools"][0];
        format!("{}-{}-z1", self.namespace, pool["name"].as_str().unwrap_or_default())
    }

    pub(crate) async fn apply_worker(&self, client: &Client) -> Result<()> {
        apply(client, &self.worker).await
    }

    /// Number of pools.
    pub(crate) fn pools(&self) -> usize {
        self.worker["spec"]["pools"].as_array().map_or(0, Vec::len)
    }

    /// The pools' initial image version.
    pub(crate) fn first_version(&self) -> Result<&str> {
        self.worker["spec"]["pools"][0]["machineImage"]["version"].as_str().context("the first pool has no image")
    }

    /// The next version that the cloud's half of the CloudProfile lists for the same image.
    pub(crate) fn next_version(&self) -> Result<&str> {
        let image = &self.worker["spec"]["pools"][0]["machineImage"];
        let cluster = self.surroundings.iter().find(|document| document["kind"] == "Cluster");
        let config = &cluster.context("no Cluster")?["spec"]["cloudProfile"]["spec"]["providerConfig"];
        let of_image =
            config["machineImages"].as_array().into_iter().flatten().filter(|of| of["name"] == image["name"]);
        let mut versions = of_image.flat_map(|of| of["versions"].as_array().into_iter().flatten());
        let next = versions.find(|version| version["version"] != image["version"]);
        next.and_then(|version| version["version"].as_str()).context("the CloudProfile has no other version")
    }

    /// Initial number of machines of all pools.
    pub(crate) fn machines(&self) -> usize {
        let pools = self.worker["spec"]["pools"].as_array().into_iter().flatten();
        let minimum: u64 = pools.filter_map(|pool| pool["minimum"].as_u64()).sum();
        usize::try_from(minimum).unwrap_or(usize::MAX)
    }

    /// Requests another image as gardenlet does: with a new name of the nodes' configuration, which rolls the nodes.
    pub(crate) async fn change_image(&self, client: &Client, version: &str) -> Result<()> {
        self.change_worker(client, &|pools| {
            for pool in pools {
                change_pool(pool, version);
            }
        })
        .await
    }

    /// Adds a pool whose machines exceed the cloud's quota.
    pub(crate) async fn add_pool_without_quota(&self, client: &Client) -> Result<()> {
        self.change_worker(client, &|pools| {
            let mut pool = pools.first().cloned().unwrap_or_default();
            pool["name"] = json!(POOL_WITHOUT_QUOTA);
            pool["labels"] = json!({"demo.fail": "QuotaExceeded"});
            pool["minimum"] = json!(1);
            pool["maximum"] = json!(1);
            pools.push(pool);
        })
        .await
    }

    /// Changes the pools of the Worker and requests a reconcile, as gardenlet does.
    async fn change_worker(&self, client: &Client, change: &dyn Fn(&mut Vec<Value>)) -> Result<()> {
        self.change(client, &|worker| {
            if let Some(pools) = worker.data["spec"]["pools"].as_array_mut() {
                change(pools);
            }
        })
        .await
    }

    /// Changes the Worker and requests a reconcile.
    async fn change(&self, client: &Client, change: &dyn Fn(&mut DynamicObject)) -> Result<()> {
        let api = workers(client, &self.namespace);
        loop {
            let mut worker = api.get(&self.name).await?;
            worker.annotations_mut().insert("gardener.cloud/operation".to_owned(), "reconcile".to_owned());
            change(&mut worker);
            match api.replace(&self.name, &PostParams::default(), &worker).await {
                // The controller has written the status in the meantime, so retry.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                outcome => return outcome.map(|_| ()).context("changing the Worker"),
            }
        }
    }

    /// gardenlet's Deployment. It has no pods, because two local processes run instead.
    fn machine_controller_manager(&self) -> Value {
        let name = "machine-controller-manager";
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"role": name}},
                "template": {
                    "metadata": {"labels": {"role": name}},
                    "spec": {"containers": [{"name": name, "image": "two-processes-run-instead"}]},
                },
            },
        })
    }
}

/// Changes the image, and the name of the nodes' configuration, which gardenlet derives from the image.
fn change_pool(pool: &mut Value, version: &str) {
    let name = pool["name"].as_str().unwrap_or_default();
    pool["nodeAgentSecretName"] = json!(format!("gardener-node-agent-{name}-e41c8d07b2a95f63"));
    pool["machineImage"]["version"] = json!(version);
}

/// The Workers of a namespace.
pub(crate) fn workers(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource("extensions.gardener.cloud/v1alpha1", "Worker"))
}

/// A kind by its group, version and name.
pub(crate) fn resource(group_version: &str, kind: &str) -> ApiResource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

async fn apply(client: &Client, document: &Value) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&document["kind"]), text(&document["metadata"]["name"]));
    if kind.is_empty() || name.is_empty() {
        bail!("a document without kind or name: {document}");
    }
    let resource = resource(&text(&document["apiVersion"]), &kind);
    let api: Api<DynamicObject> = match document["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("demo-in-place-of-gardenlet").force();
    api.patch(&name, &parameters, &Patch::Apply(document)).await.with_context(|| format!("writing {kind} {name}"))?;
    Ok(())
}
