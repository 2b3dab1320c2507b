//! One shoot in its own namespace: gardenlet's objects, and queries for tests.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::cluster::{ADMIN, ControlPlane, FAKER, Faker, MachineControllerManager, eventually};

/// Time limit for steps that take a few seconds, sufficient for a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

const TEMPLATE: &str = include_str!("shoot.yaml");
const MACHINES: &str = "machine.sapcloud.io/v1alpha1";

/// Kinds of objects in a shoot namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Cluster,
    /// The Deployment of machine-controller-manager.
    Deployment,
    Event,
    MachineClass,
    MachineDeployment,
    MachineSet,
    Machine,
    /// Only Secrets with user data for a class.
    ClassSecret,
    Secret,
    Worker,
}

impl Kind {
    /// Kinds that the extension and machine-controller-manager create for a Worker.
    pub const OF_MACHINES: [Self; 5] =
        [Self::MachineDeployment, Self::MachineSet, Self::Machine, Self::MachineClass, Self::ClassSecret];

    pub fn resource(self) -> ApiResource {
        let (group_version, kind) = match self {
            Self::Cluster => ("extensions.gardener.cloud/v1alpha1", "Cluster"),
            Self::Worker => ("extensions.gardener.cloud/v1alpha1", "Worker"),
            Self::Deployment => ("apps/v1", "Deployment"),
            Self::Event => ("events.k8s.io/v1", "Event"),
            Self::MachineClass => (MACHINES, "MachineClass"),
            Self::MachineDeployment => (MACHINES, "MachineDeployment"),
            Self::MachineSet => (MACHINES, "MachineSet"),
            Self::Machine => (MACHINES, "Machine"),
            Self::ClassSecret | Self::Secret => ("v1", "Secret"),
        };
        resource(group_version, kind)
    }
}

fn resource(group_version: &str, kind: &str) -> ApiResource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// The documents of a shoot before creation.
pub struct Documents(Vec<Value>);

impl Documents {
    fn of(text: &str) -> Result<Self> {
        Ok(Self(gardener_extension_worker::api::gotext::yaml::documents(text)?))
    }

    pub fn all(&mut self) -> &mut [Value] {
        &mut self.0
    }

    /// The first document of a kind.
    pub fn of_kind(&mut self, kind: &str) -> &mut Value {
        let found = self.0.iter_mut().find(|document| document["kind"] == kind);
        found.unwrap_or_else(|| panic!("the shoot has no {kind}"))
    }

    /// Removes and returns the first document of a kind, for another component to create.
    pub fn take(&mut self, kind: &str) -> Value {
        let taken = self.of_kind(kind).clone();
        self.0.retain(|document| *document != taken);
        taken
    }
}

pub fn pool<'a>(worker: &'a mut Value, name: &str) -> &'a mut Value {
    let pools = worker["spec"]["pools"].as_array_mut().into_iter().flatten();
    pools.into_iter().find(|pool| pool["name"] == name).unwrap_or_else(|| panic!("no pool {name}"))
}

/// Changes a pool's image as gardenlet does: it also renames the node agent Secret, which rolls the nodes.
pub fn set_image(worker: &mut Value, name: &str, version: &str) {
    let pool = pool(worker, name);
    pool["machineImage"]["version"] = json!(version);
    pool["nodeAgentSecretName"] = json!(format!("gardener-node-agent-{name}-for-{version}"));
}

pub struct Shoot {
    pub client: Client,
    pub namespace: String,
    /// Resource version of the Worker with the last operation annotation, until the controller starts the operation.
    requested: Mutex<Option<String>>,
    /// The control plane's folder, with the logs of its processes.
    logs: PathBuf,
}

impl Shoot {
    /// Creates an empty namespace.
    pub async fn new(control_plane: &ControlPlane, prefix: &str) -> Result<Self> {
        let namespace = control_plane.namespace(prefix).await?;
        Ok(Self {
            client: control_plane.client(ADMIN).await?,
            namespace,
            requested: Mutex::default(),
            logs: control_plane.folder().to_owned(),
        })
    }

    /// Creates the objects of shoot.yaml after `change`. The Worker is last, as with gardenlet.
    pub async fn create(&self, change: impl FnOnce(&mut Documents)) -> Result<()> {
        let mut documents = Documents::of(&TEMPLATE.replace("NAMESPACE", &self.namespace))?;
        change(&mut documents);
        self.create_all(documents).await
    }

    /// Creates the objects of another cloud's example instead, with a Worker of the same name.
    pub async fn create_example(&self, cloud: &str) -> Result<()> {
        self.create_example_with(cloud, |_| {}).await
    }

    /// Same as [`Self::create_example`], after `change`.
    pub async fn create_example_with(&self, cloud: &str, change: impl FnOnce(&mut Documents)) -> Result<()> {
        let mut documents = self.example(cloud)?;
        change(&mut documents);
        self.create_all(documents).await
    }

    /// Creates the example without Worker and Cluster, and returns these for another component to create.
    pub async fn create_example_without_worker(&self, cloud: &str) -> Result<[Value; 2]> {
        let mut documents = self.example(cloud)?;
        let kept = ["Worker", "Cluster"].map(|kind| documents.of_kind(kind).clone());
        documents.0.retain(|document| !kept.contains(document));
        self.create_all(documents).await?;
        Ok(kept)
    }

    /// The documents of an example, moved to this namespace.
    fn example(&self, cloud: &str) -> Result<Documents> {
        let file = crate::repository().join(format!("example/{cloud}.yaml"));
        let mut documents = Documents::of(&std::fs::read_to_string(file)?)?;
        let namespace = documents.of_kind("Worker")["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let text = serde_json::to_string(&documents.0)?.replace(&namespace, &self.namespace);
        documents.0 = serde_json::from_str(&text)?;
        documents.0.retain(|document| document["kind"] != "Namespace");
        documents.of_kind("Worker")["metadata"]["name"] = json!("fleet");
        let mut of_gardenlet = Documents::of(&TEMPLATE.replace("NAMESPACE", &self.namespace))?;
        documents.0.insert(0, of_gardenlet.of_kind("Deployment").clone());
        documents.0.sort_by_key(|document| document["kind"] == "Worker");
        Ok(documents)
    }

    /// Creates these objects instead.
    pub async fn create_these(&self, documents: Vec<Value>) -> Result<()> {
        self.create_all(Documents(documents)).await
    }

    async fn create_all(&self, documents: Documents) -> Result<()> {
        for document in documents.0 {
            let kind = document["kind"].as_str().unwrap_or_default().to_owned();
            let resource = resource(document["apiVersion"].as_str().unwrap_or_default(), &kind);
            let api: Api<DynamicObject> = match kind.as_str() {
                "Cluster" => Api::all_with(self.client.clone(), &resource),
                _ => Api::namespaced_with(self.client.clone(), &self.namespace, &resource),
            };
            let object = serde_json::from_value(document)?;
            api.create(&PostParams::default(), &object).await.with_context(|| format!("creating {kind}"))?;
        }
        Ok(())
    }

    /// Starts a fake machine-controller-manager in this namespace. Deployments become healthy after this time.
    pub async fn fake_machines(&self, control_plane: &ControlPlane, after: Duration) -> Result<Faker> {
        Ok(Faker::start(control_plane.client(FAKER).await?, Some(&self.namespace), after))
    }

    pub fn api(&self, kind: Kind) -> Api<DynamicObject> {
        match kind {
            Kind::Cluster => Api::all_with(self.client.clone(), &kind.resource()),
            _ => Api::namespaced_with(self.client.clone(), &self.namespace, &kind.resource()),
        }
    }

    /// All objects of a kind in the namespace.
    pub async fn list(&self, kind: Kind) -> Result<Vec<Value>> {
        let parameters = match kind {
            Kind::ClassSecret => ListParams::default().labels("gardener.cloud/purpose=machineclass"),
            _ => ListParams::default(),
        };
        let objects = self.api(kind).list(&parameters).await.with_context(|| format!("listing {kind:?}"))?;
        objects.items.into_iter().map(|object| Ok(serde_json::to_value(object)?)).collect()
    }

    /// Names of all objects of a kind, without the namespace prefix.
    pub async fn names(&self, kind: Kind) -> Result<BTreeSet<String>> {
        let prefix = format!("{}-", self.namespace);
        let short = |object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            name.strip_prefix(&prefix).unwrap_or(name).to_owned()
        };
        Ok(self.list(kind).await?.iter().map(short).collect())
    }

    /// Names of a pool's objects of a kind.
    pub async fn names_of_pool(&self, kind: Kind, pool: &str) -> Result<BTreeSet<String>> {
        let mut names = self.names(kind).await?;
        names.retain(|name| name.starts_with(&format!("{pool}-")));
        Ok(names)
    }

    /// Name, UID and resource version of all objects of a kind. Equal versions mean that no object was changed.
    pub async fn versions(&self, kind: Kind) -> Result<BTreeSet<[String; 3]>> {
        let objects = self.list(kind).await?;
        let text = |object: &Value, member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
        Ok(objects.iter().map(|object| ["name", "uid", "resourceVersion"].map(|member| text(object, member))).collect())
    }

    pub async fn get(&self, kind: Kind, name: &str) -> Result<Option<Value>> {
        let object = self.api(kind).get_opt(name).await.with_context(|| format!("reading {kind:?} {name}"))?;
        Ok(object.map(serde_json::to_value).transpose()?)
    }

    /// The current Worker.
    pub async fn worker(&self) -> Result<Value> {
        self.get(Kind::Worker, "fleet").await?.context("the Worker is gone")
    }

    /// Ready nodes of this namespace's machines.
    pub async fn ready_nodes(&self) -> Result<BTreeSet<String>> {
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client.clone());
        let mut nodes = api.list(&ListParams::default()).await?.items;
        let own = format!("memory:///{}/", self.namespace);
        nodes.retain(|node| {
            let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
            let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut ready = conditions.filter(|condition| condition.type_ == "Ready" && condition.status == "True");
            id.is_some_and(|id| id.starts_with(&own)) && ready.next().is_some()
        });
        Ok(nodes.iter().map(|node| node.name_any()).collect())
    }

    /// Changes the Worker as gardenlet does, with the operation annotation.
    pub async fn change_worker(&self, change: impl Fn(&mut Value)) -> Result<()> {
        let now = Timestamp::now().to_string();
        self.request(|worker| {
            worker["metadata"]["annotations"]["gardener.cloud/timestamp"] = json!(now);
            change(worker);
        })
        .await
    }

    /// Requests a reconcile as users do, without a timestamp.
    pub async fn annotate_worker(&self) -> Result<()> {
        self.request(|worker| {
            let annotations = worker["metadata"]["annotations"].as_object_mut();
            annotations.and_then(|annotations| annotations.remove("gardener.cloud/timestamp"));
        })
        .await
    }

    async fn request(&self, change: impl Fn(&mut Value)) -> Result<()> {
        let requests = |worker: &mut Value| {
            worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!("reconcile");
            change(worker);
        };
        let version = self.change(Kind::Worker, "fleet", requests).await?;
        *self.requested.lock().await = Some(version);
        Ok(())
    }

    /// Changes an object and retries on conflicts. Returns its resource version.
    pub async fn change(&self, kind: Kind, name: &str, change: impl Fn(&mut Value)) -> Result<String> {
        let api = self.api(kind);
        loop {
            let mut object = self.get(kind, name).await?.with_context(|| format!("no {kind:?} {name}"))?;
            change(&mut object);
            match api.replace(name, &PostParams::default(), &serde_json::from_value(object)?).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                outcome => {
                    let changed = outcome.with_context(|| format!("changing {kind:?} {name}"))?;
                    return changed.resource_version().context("an object has a version");
                }
            }
        }
    }

    /// Waits until gardenlet would consider the Worker ready, and returns it.
    pub async fn succeeded(&self) -> Result<Value> {
        self.ends("Succeeded", |_| Ok(())).await
    }

    /// Waits until the Worker is in Error and `check` succeeds, and returns it.
    pub async fn fails(&self, check: impl Fn(&Value) -> Result<()>) -> Result<Value> {
        self.ends("Error", check).await
    }

    async fn ends(&self, state: &str, check: impl Fn(&Value) -> Result<()>) -> Result<Value> {
        self.begins().await?;
        let what = format!("the Worker in {} is {state}", self.namespace);
        let ended = eventually(SOON, &what, async || {
            let worker = self.worker().await?;
            let status = &worker["status"];
            let last = &status["lastOperation"];
            ensure!(
                worker["metadata"]["annotations"]["gardener.cloud/operation"].is_null(),
                "the request has not been taken off"
            );
            ensure!(last["state"] == state, "it is {last}, {}", status["lastError"]);
            ensure!(
                status["observedGeneration"] == worker["metadata"]["generation"],
                "generation {} is observed of {}",
                status["observedGeneration"],
                worker["metadata"]["generation"]
            );
            match state {
                "Succeeded" => ensure!(status["lastError"].is_null(), "it has an error: {}", status["lastError"]),
                _ => ensure!(!status["lastError"].is_null(), "it has no error"),
            }
            check(&worker)?;
            Ok(worker)
        });
        match ended.await {
            Ok(worker) => Ok(worker),
            Err(error) => {
                let state = self.state_of_machines().await.unwrap_or_else(|unknown| format!("{unknown:#}"));
                Err(anyhow!("{error:#}\n{state}"))
            }
        }
    }

    /// State of the Worker and its machine objects, and what machine-controller-manager logged last, for error messages.
    pub async fn state_of_machines(&self) -> Result<String> {
        let mut text = String::new();
        for kind in [Kind::Worker, Kind::Deployment, Kind::MachineDeployment, Kind::MachineSet, Kind::Machine] {
            for object in self.list(kind).await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                text += &format!("{kind:?} {name}: {} {}\n", object["spec"]["replicas"], object["status"]);
            }
        }
        Ok(text + &MachineControllerManager::last_lines(&self.logs, &self.namespace, 30))
    }

    /// Waits until the last operation annotation was removed and the operation started, so that the result of an
    /// earlier operation is not mistaken for this one's.
    async fn begins(&self) -> Result<()> {
        let mut requested = self.requested.lock().await;
        let Some(version) = requested.as_deref() else { return Ok(()) };
        let mut versions = self.api(Kind::Worker).watch(&WatchParams::default(), version).await?.boxed();
        let begins = async {
            while let Some(event) = versions.try_next().await? {
                let WatchEvent::Modified(worker) = event else { continue };
                let (annotations, last) = (worker.annotations(), &worker.data["status"]["lastOperation"]);
                let is_taken_off = !annotations.contains_key("gardener.cloud/operation");
                let is_completed = annotations.get("gardener.cloud/timestamp").is_none_or(|requested| {
                    let reported = last["lastUpdateTime"].as_str().unwrap_or_default();
                    reported.trim_end_matches('Z') >= requested.split(['.', 'Z']).next().unwrap_or_default()
                });
                if last["state"] == "Processing" || is_taken_off && is_completed {
                    return Ok(());
                }
            }
            bail!("the watch has ended")
        };
        let in_time = tokio::time::timeout(SOON, begins).await;
        in_time.with_context(|| format!("the operation asked for in {} does not begin", self.namespace))??;
        *requested = None;
        Ok(())
    }

    /// Waits until the Worker and all of its objects are deleted.
    pub async fn deleted(&self) -> Result<()> {
        eventually(SOON, &format!("the Worker in {} is gone", self.namespace), async || {
            if let Some(worker) = self.get(Kind::Worker, "fleet").await? {
                bail!("it is there: {}", worker["status"]["lastOperation"]);
            }
            Ok(())
        })
        .await?;
        for kind in Kind::OF_MACHINES {
            let left = self.names(kind).await?;
            ensure!(left.is_empty(), "the Worker is gone, but {kind:?} {left:?} are not");
        }
        Ok(())
    }
}

/// Whether a text contains all of these words.
pub fn ensure_reports(text: &Value, words: &[&str]) -> Result<()> {
    let text = text.as_str().unwrap_or_default();
    for word in words {
        ensure!(text.contains(word), "{word:?} is missing in {text:?}");
    }
    Ok(())
}
