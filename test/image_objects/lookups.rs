//! Images are discovered, enriched, marked and cleaned up.

use anyhow::{Context as _, Result, ensure};
use axum::http::Request;
use gardener_extension_worker::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use test_support::cluster::{CONTROLLER, eventually};
use test_support::image_objects::{SOON, Stage, V1, V2, ami};

#[tokio::test]
async fn a_lookup_discovers_images_and_labels_the_newest_latest() -> Result<()> {
    let stage = Stage::new().await?;
    stage.list(&[ami(1, V1, "2026-09-22")])?;
    stage.lookup().await?;
    let controller = stage.controller("controller", CONTROLLER, &[])?;
    stage.images_become(&["ami-00000001*"]).await?;
    stage.list(&[ami(1, V1, "2026-09-22"), ami(2, V2, "2026-11-18")])?;
    stage.images_become(&["ami-00000001", "ami-00000002*"]).await?;
    found(&stage, 2, "").await?;
    ensure!(
        printed(&stage, "machineimages", 1).await?
            == ["ami-00000002", "ubuntu-24.04", "1.34.2", "amd64", "eu-central-1", "true"]
    );
    ensure!(printed(&stage, "imagelookups", 0).await? == ["capi", "aws", ">=1.33, <1.36", "2"]);
    stage.is_quiet(&controller).await?;
    // A truncated file does not prove that images were deleted.
    stage.list_text("{\"Images\": [")?;
    found(&stage, 0, "amis.json").await?;
    ensure!(stage.images().await?.len() == 2, "nothing is deleted because of a mistake");
    stage.list(&[ami(2, V2, "2026-11-18")])?;
    stage.images_become(&["ami-00000002*"]).await?;
    found(&stage, 1, "").await?;
    stage.is_quiet(&controller).await
}

#[tokio::test]
async fn clean_up_spares_what_is_used() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.control_plane.namespace("capi").await?;
    stage.list(&[ami(1, V1, "2026-09-22")])?;
    stage.lookup().await?;
    let controller = stage.controller("controller", CONTROLLER, &[])?;
    stage.images_become(&["ami-00000001*"]).await?;
    stage.selection(&namespace, "nodes", json!({"1.34.2": "ami-00000001"})).await?;
    stage.reads(&controller, 1).await?;
    stage.list(&[ami(2, V2, "2026-11-18")])?;
    stage.images_become(&["ami-00000001", "ami-00000002*"]).await?;
    stage.is_quiet(&controller).await?;
    let gone = Api::<MachineImage>::all(stage.client.clone()).get("ami-00000001").await?;
    ensure!(gone.spec.state.as_deref() == Some("gone"), "{gone:?}");
    stage.namespaced::<ImageSelection>(&namespace).delete("nodes", &DeleteParams::default()).await?;
    stage.images_become(&["ami-00000002*"]).await
}

#[tokio::test]
async fn a_hand_made_image_is_enriched_and_never_deleted() -> Result<()> {
    let stage = Stage::new().await?;
    stage.list(&[ami(1, V1, "2026-09-22")])?;
    stage.make::<MachineImage>(image("mine", json!({}))).await?;
    let controller = stage.controller("controller", CONTROLLER, &[])?;
    stage.images_become(&["mine*"]).await?;
    let mine = Api::<MachineImage>::all(stage.client.clone()).get("mine").await?;
    ensure!(mine.spec.created.as_deref() == Some("2026-09-22T09:00:00Z"), "{mine:?}");
    let labels = mine.metadata.labels.context("labels")?;
    ensure!(labels["images.gardener-extension-worker/architecture"] == "amd64", "{labels:?}");
    // The lookup finds the same image, so it creates no second object.
    stage.lookup().await?;
    stage.list(&[ami(1, V1, "2026-09-22"), ami(2, V2, "2026-11-18")])?;
    stage.images_become(&["ami-00000002*", "mine"]).await?;
    stage.list(&[ami(2, V2, "2026-11-18")])?;
    eventually(SOON, "the image is marked as gone", async || {
        let mine = Api::<MachineImage>::all(stage.client.clone()).get("mine").await?;
        ensure!(mine.spec.state.as_deref() == Some("gone"), "{mine:?}");
        Ok(())
    })
    .await?;
    stage.is_quiet(&controller).await?;
    stage.images_become(&["ami-00000002*", "mine"]).await
}

#[tokio::test]
async fn objects_that_make_no_sense_are_refused() -> Result<()> {
    let stage = Stage::new().await?;
    for (members, reported) in [
        (json!({"reference": {"ami": "ami-00000001", "id": "x"}}), "spec.reference"),
        (json!({"reference": {}}), "spec.reference"),
        (json!({"version": ""}), "spec.version"),
        (json!({"created": "yesterday"}), "spec.created"),
    ] {
        let error = stage.make::<MachineImage>(image("bad", members)).await.unwrap_err();
        ensure!(error.to_string().contains(reported), "{error}");
    }
    let lookup = json!({"metadata": {"name": "bad"}, "spec": {"provider": "aws", "lookupFormat": "x", "arch": ["amd64"], "versions": ">=1", "owners": []}});
    let error = stage.make::<ImageLookup>(lookup).await.unwrap_err();
    ensure!(error.to_string().contains("spec.owners"), "{error}");
    Ok(())
}

/// The cells that `kubectl get` prints for an object, except ages and empty ones.
async fn printed(stage: &Stage, plural: &str, row: usize) -> Result<Vec<String>> {
    let request = Request::get(format!("/apis/images.gardener-extension-worker/v1alpha1/{plural}"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = serde_json::from_str(&stage.client.request_text(request).await?)?;
    let columns = table["columnDefinitions"].as_array().context("columns")?.iter();
    let cells = table["rows"][row]["cells"].as_array().context("cells")?.iter();
    let reported = columns.zip(cells).filter(|(column, cell)| column["type"] != "date" && !cell.is_null());
    Ok(reported.map(|(_, cell)| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)).collect())
}

fn image(name: &str, members: Value) -> Value {
    let mut spec = json!({"provider": "aws", "region": "eu-central-1", "reference": {"ami": "ami-00000001"}, "image": "ubuntu-24.04", "version": "1.34.2"});
    spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Waits until the lookup's status has this count and error.
async fn found(stage: &Stage, count: i64, error: &str) -> Result<()> {
    eventually(SOON, &format!("the lookup finds {count} images"), async || {
        let lookup = Api::<ImageLookup>::all(stage.client.clone()).get("capi").await?;
        let status = &lookup.status;
        ensure!(status.found == count && status.errors.is_empty() == error.is_empty(), "{status:?}");
        ensure!(
            status.errors.iter().all(|reported| reported.contains(error)) && status.last_run.is_some(),
            "{status:?}"
        );
        Ok(())
    })
    .await
}
