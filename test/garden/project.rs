//! A project of a real garden with everything that its Shoots need, and the responses to a user who writes Shoots.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};
use test_support::cluster::eventually;
use test_support::garden::{Garden, api};

use crate::stage::Stage;

const AZURE: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";
/// Size limit of a response.
const LONGEST: usize = 8 << 20;

/// A project; its CloudProfile has the same name.
pub(crate) struct Project {
    name: &'static str,
    client: Client,
    pub(crate) garden: Garden,
}

/// A response as a user sees it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In the form that `kubectl` prints after `Warning: `.
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Reply {
    /// The reason of a refusal.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn taken(self) -> Result<Self> {
        ensure!(self.status < 300, "{} {}", self.status, self.message());
        Ok(self)
    }
}

impl Project {
    /// Creates the project, with the CloudProfile of the example for Azure after `change`.
    pub(crate) async fn new(stage: &Stage, name: &'static str, change: impl FnOnce(&mut Value)) -> Result<Self> {
        Self::with_registrations(stage, name, change, registrations()?).await
    }

    /// Like [`Self::new`], with other registrations of extensions.
    pub(crate) async fn with_registrations(
        stage: &Stage,
        name: &'static str,
        change: impl FnOnce(&mut Value),
        registrations: Vec<Value>,
    ) -> Result<Self> {
        let project = Self { name, client: stage.client().await?, garden: Garden::new(&stage.control_plane).await? };
        let mut profile = documents(&std::fs::read_to_string("example/cloudprofiles/azure.yaml")?)?.remove(0);
        profile["metadata"]["name"] = name.into();
        change(&mut profile);
        project.garden.create(&profile).await?;
        let namespace = project.namespace();
        let labels = json!({"gardener.cloud/role": "project", "project.gardener.cloud/name": name});
        for (path, object) in [
            ("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": namespace, "labels": labels}})),
            (
                format!("/api/v1/namespaces/{namespace}/secrets"),
                json!({"metadata": {"name": "cloud", "namespace": namespace}}),
            ),
            (
                "/apis/core.gardener.cloud/v1beta1/projects".to_owned(),
                json!({"metadata": {"name": name}, "spec": {"namespace": namespace, "owner": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "owner"}}}),
            ),
            (
                format!("/apis/security.gardener.cloud/v1alpha1/namespaces/{namespace}/credentialsbindings"),
                json!({"metadata": {"name": "cloud", "namespace": namespace}, "provider": {"type": "azure"},
                    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "cloud", "namespace": namespace}}),
            ),
        ] {
            project.post(&path, &object).await?.taken().with_context(|| path)?;
        }
        for object in registrations {
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            let path = format!("/apis/{}/{kind}s", object["apiVersion"].as_str().unwrap_or_default());
            let response = project.post(&path, &object).await?;
            // Another project of the garden may have created the object first.
            ensure!(response.status < 300 || response.status == 409, "{path}: {}", response.message());
        }
        Ok(project)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn namespace(&self) -> String {
        format!("garden-{}", self.name)
    }

    /// A Shoot with two pools.
    pub(crate) fn shoot(&self, name: &str) -> Value {
        let pool = |name: &str| {
            json!({
                "name": name, "minimum": 2, "maximum": 6, "maxSurge": 1, "maxUnavailable": 0, "zones": ["1", "2"],
                "machine": {"type": "Standard_D4s_v5", "image": {"name": "gardenlinux", "version": "1592.9.0"}},
                "volume": {"type": "Premium_LRS", "size": "50Gi"}, "cri": {"name": "containerd"},
            })
        };
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": name, "namespace": self.namespace()},
            "spec": {
                "cloudProfile": {"kind": "CloudProfile", "name": self.name}, "region": "westeurope",
                "credentialsBindingName": "cloud", "kubernetes": {"version": "1.33.6"},
                "networking": {"type": "calico", "nodes": "10.250.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
                "maintenance": {"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}},
                "provider": {
                    "type": "azure",
                    "infrastructureConfig": {"apiVersion": AZURE, "kind": "InfrastructureConfig", "zoned": true,
                        "networks": {"vnet": {"cidr": "10.250.0.0/16"}, "workers": "10.250.0.0/19"}},
                    "controlPlaneConfig": {"apiVersion": AZURE, "kind": "ControlPlaneConfig"},
                    "workers": [pool("web"), pool("batch")],
                },
            },
        })
    }

    fn shoots(&self) -> String {
        format!("/apis/core.gardener.cloud/v1beta1/namespaces/{}/shoots", self.namespace())
    }

    /// Creates a Shoot as `kubectl create` does, once the API server has cached the project and its profile.
    pub(crate) async fn create(&self, shoot: &Value) -> Result<Reply> {
        eventually(Duration::from_secs(30), "the project is known", async || {
            let response = self.post(&self.shoots(), shoot).await?;
            let unknown = ["not found", "could not find", "non-registered"];
            let is_known = response.status < 300 || !unknown.iter().any(|words| response.message().contains(words));
            ensure!(is_known, "{}", response.message());
            Ok(response)
        })
        .await
    }

    /// Updates a Shoot as `kubectl apply` does. `dry_run` corresponds to `--dry-run=server`.
    pub(crate) async fn edit(&self, name: &str, dry_run: bool, change: impl Fn(&mut Value)) -> Result<Reply> {
        let dry_run = if dry_run { "?dryRun=All" } else { "" };
        let path = format!("{}/{name}{dry_run}", self.shoots());
        loop {
            let mut shoot = self.stored(name).await?;
            change(&mut shoot);
            let response = self.request("PUT", &path, &shoot).await?;
            // Gardener's controllers write to the Shoot, too.
            if response.status != 409 {
                return Ok(response);
            }
        }
    }

    pub(crate) async fn stored(&self, name: &str) -> Result<Value> {
        let shoots: Api<DynamicObject> = api(&self.client, "Shoot", Some(&self.namespace()));
        Ok(serde_json::to_value(shoots.get(name).await?)?)
    }

    pub(crate) async fn profile(&self) -> Result<Value> {
        let profiles: Api<DynamicObject> = api(&self.client, "CloudProfile", None);
        Ok(serde_json::to_value(profiles.get(self.name).await?)?)
    }

    async fn post(&self, path: &str, object: &Value) -> Result<Reply> {
        self.request("POST", path, object).await
    }

    /// Sends an object, as `kubectl` does.
    pub(crate) async fn request(&self, method: &str, path: &str, object: &Value) -> Result<Reply> {
        let mut request = kube::core::Request::new(path).create(&PostParams::default(), serde_json::to_vec(object)?)?;
        *request.method_mut() = method.parse()?;
        *request.uri_mut() = path.parse()?;
        let response = self.client.send(request.map(kube::client::Body::from)).await?;
        let warnings = response.headers().get_all("warning").iter().filter_map(|warning| warning.to_str().ok());
        let warnings = warnings.map(text_of_warning).collect();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(axum::body::Body::new(response.into_body()), LONGEST).await?;
        Ok(Reply { status, warnings, body: serde_json::from_slice(&body)? })
    }
}

/// Registrations for everything that a Shoot needs. Workers use this project, as in `example/landscape`.
fn registrations() -> Result<Vec<Value>> {
    let mut objects = documents(&std::fs::read_to_string("example/landscape/controller-registration.yaml")?)?;
    let others = [
        ("Infrastructure", "azure"),
        ("ControlPlane", "azure"),
        ("Network", "calico"),
        ("OperatingSystemConfig", "gardenlinux"),
        ("ContainerRuntime", "containerd"),
        ("DNSRecord", "azure-dns"),
    ]
    .map(|(kind, of_type)| json!({"kind": kind, "type": of_type}));
    objects.push(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration",
        "metadata": {"name": "others"}, "spec": {"resources": others},
    }));
    Ok(objects)
}

/// The text of `299 - "text"`.
fn text_of_warning(header: &str) -> String {
    let text = header.split_once('"').map_or(header, |(_, text)| text.strip_suffix('"').unwrap_or(text));
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}
