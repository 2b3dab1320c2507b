//! A garden: an API server with Gardener's resources, and requests of a user.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::Value;

use crate::cluster::{ADMIN, ControlPlane, eventually};

/// Installs Gardener's resources, and waits until they are served.
pub async fn install(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.client(ADMIN).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for document in include_str!("garden.yaml").split("\n---\n") {
        let definition: CustomResourceDefinition = serde_saphyr::from_str(document).context("reading garden.yaml")?;
        definitions.create(&PostParams::default(), &definition).await?;
        let kind = definition.spec.names.kind;
        eventually(Duration::from_secs(60), &format!("{kind} is served"), async || {
            api(&client, &kind, None).list(&ListParams::default()).await?;
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Objects of a kind, in a namespace or cluster-scoped.
pub fn api(client: &Client, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "core.gardener.cloud".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "core.gardener.cloud/v1beta1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// A user's view of the garden with `kubectl`.
pub struct Garden {
    client: Client,
}

impl Garden {
    pub async fn new(control_plane: &ControlPlane) -> Result<Self> {
        Ok(Self { client: control_plane.client(ADMIN).await? })
    }

    /// Creates an object and returns the stored one.
    pub async fn create(&self, object: &Value) -> Result<Value, kube::Error> {
        self.create_with(object, &PostParams::default()).await
    }

    /// Creates an object as a dry run.
    pub async fn try_create(&self, object: &Value) -> Result<Value, kube::Error> {
        self.create_with(object, &PostParams { dry_run: true, ..PostParams::default() }).await
    }

    async fn create_with(&self, object: &Value, parameters: &PostParams) -> Result<Value, kube::Error> {
        let dynamic: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        let stored = self.api_of(object).create(parameters, &dynamic).await?;
        serde_json::to_value(stored).map_err(kube::Error::SerdeError)
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, object: &Value, patch: &Value) -> Result<Value, kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let stored = self.api_of(object).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        serde_json::to_value(stored).map_err(kube::Error::SerdeError)
    }

    pub async fn patch_status(&self, object: &Value, status: &Value) -> Result<Value, kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Merge(serde_json::json!({"status": status}));
        let stored = self.api_of(object).patch_status(name, &PatchParams::default(), &patch).await?;
        serde_json::to_value(stored).map_err(kube::Error::SerdeError)
    }

    pub async fn delete(&self, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.api_of(object).delete(name, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        let kind = object["kind"].as_str().unwrap_or_default();
        api(&self.client, kind, object["metadata"]["namespace"].as_str())
    }
}

/// The message with which a request was denied.
pub fn refusal(result: Result<Value, kube::Error>) -> Result<String> {
    match result {
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(error) => Err(error).context("no answer of the API server"),
        Ok(stored) => anyhow::bail!("it was not refused: {stored}"),
    }
}

/// `details` of the status with which a request was denied.
pub fn details(result: &Result<Value, kube::Error>) -> Result<Value> {
    match result {
        Err(kube::Error::Api(status)) => Ok(serde_json::to_value(&status.details)?),
        other => anyhow::bail!("it was not refused: {other:?}"),
    }
}
