//! The garden: the same API server, which also serves ShootStates. Gardener serves them with its own API server and
//! provides no definition, so this definition accepts everything that a case contains.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use serde_json::json;

use test_support::cluster::eventually;

/// Installs the garden's resources in the API server.
pub(crate) async fn install(client: &Client) -> Result<()> {
    let definition = json!({
        "metadata": {"name": "shootstates.core.gardener.cloud"},
        "spec": {
            "group": "core.gardener.cloud", "scope": "Namespaced",
            "names": {"kind": "ShootState", "plural": "shootstates"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", "ShootState"));
    let states: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    eventually(Duration::from_secs(60), "ShootStates are served", async || {
        states.list(&ListParams::default()).await.context("listing them")
    })
    .await?;
    Ok(())
}
