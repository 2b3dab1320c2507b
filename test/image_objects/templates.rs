//! AWSMachineTemplates that opt in, with the definitions that Cluster API's provider for AWS installs. Its webhook is
//! not installed, so this test does not cover requests that the webhook would reject.

use anyhow::{Result, ensure};
use gardener_extension_worker::api::capa::AwsMachineTemplate;
use gardener_extension_worker::api::image_objects::ImageSelection;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use test_support::cluster::{CONTROLLER, eventually, free_ports};
use test_support::http;
use test_support::image_objects::{SOON, Stage, V1, V2, ami, template};

#[tokio::test]
async fn a_template_that_opts_in_gets_one_image_per_version() -> Result<()> {
    let stage = Stage::new().await?;
    stage.define_templates().await?;
    let namespace = stage.control_plane.namespace("capi").await?;
    let templates = templates(&stage, &namespace);
    let opted_in =
        json!({"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1"});
    let made = templates.create(&PostParams::default(), &template("nodes", opted_in)).await?;
    templates.create(&PostParams::default(), &template("other", json!({}))).await?;
    stage.list(&[ami(1, V1, "2026-09-22"), ami(3, "capa-ami-ubuntu-24.04-v1.33.6-1", "2026-09-22")])?;
    stage.lookup().await?;
    // A management cluster of Cluster API has no Workers.
    let [health] = free_ports()?;
    let arguments = ["--image-machine-templates", "--disable-controllers=worker", &format!("--health-port={health}")];
    let controller = stage.controller("controller", CONTROLLER, &arguments)?;
    labelled(&templates, "nodes", &["1.33.6 ami-00000003", "1.34.2 ami-00000001"]).await?;
    let now = templates.get("nodes").await?;
    ensure!(now.data["spec"] == made.data["spec"], "the spec of a template never changes: {now:?}");
    stage.is_quiet(&controller).await?;

    stage.list(&[
        ami(1, V1, "2026-09-22"),
        ami(2, V2, "2026-11-18"),
        ami(3, "capa-ami-ubuntu-24.04-v1.33.6-1", "2026-09-22"),
    ])?;
    upgrade(&stage, &namespace, "True").await?;
    labelled(&templates, "nodes", &["1.33.6 ami-00000003", "1.34.2 ami-00000001"]).await?;
    // Writing the newer image moves the version.
    let newer = json!({"metadata": {"labels": {"cluster.x-k8s.io/version-ami-1.34.2": "ami-00000002"}}});
    templates.patch("nodes", &PatchParams::default(), &Patch::Merge(newer)).await?;
    upgrade(&stage, &namespace, "False").await?;
    labelled(&templates, "nodes", &["1.33.6 ami-00000003", "1.34.2 ami-00000002"]).await?;
    labelled(&templates, "other", &[]).await?;
    let (status, text) = http::get(health, "/readyz").await?;
    ensure!(status == 200, "{status} {text}");
    stage.is_quiet(&controller).await
}

fn templates(stage: &Stage, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(stage.client.clone(), namespace, &ApiResource::erase::<AwsMachineTemplate>(&()))
}

async fn labelled(templates: &Api<DynamicObject>, name: &str, expected: &[&str]) -> Result<()> {
    eventually(SOON, &format!("the labels of {name} are {expected:?}"), async || {
        let labels = templates.get(name).await?.metadata.labels.unwrap_or_default();
        let of_version = labels.iter().filter_map(|(label, image)| {
            Some(format!("{} {image}", label.strip_prefix("cluster.x-k8s.io/version-ami-")?))
        });
        let found: Vec<String> = of_version.collect();
        ensure!(found == expected, "{found:?}");
        Ok(())
    })
    .await
}

async fn upgrade(stage: &Stage, namespace: &str, expected: &str) -> Result<()> {
    eventually(SOON, &format!("UpgradeAvailable is {expected}"), async || {
        let selection = stage.namespaced::<ImageSelection>(namespace).get("nodes").await?;
        let condition = selection.status.conditions.iter().find(|known| known.condition_type == "UpgradeAvailable");
        ensure!(condition.is_some_and(|known| known.status == expected), "{:?}", selection.status);
        Ok(())
    })
    .await
}
