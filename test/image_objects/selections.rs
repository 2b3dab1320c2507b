//! First resolutions are recorded once, even with two controllers. Newer images are announced.

use anyhow::{Result, ensure};
use gardener_extension_worker::api::image_objects::ImageSelection;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use test_support::cluster::{CONTROLLER, MACHINE_CONTROLLER_MANAGER, eventually};
use test_support::image_objects::{READ, SOON, Stage, V1, V2, ami};

#[tokio::test]
async fn a_first_resolution_stays_and_an_upgrade_is_announced() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.control_plane.namespace("capi").await?;
    stage.list(&[ami(1, V1, "2026-09-22")])?;
    stage.lookup().await?;
    stage.selection(&namespace, "nodes", json!({})).await?;
    let controller = stage.controller("controller", CONTROLLER, &[])?;
    becomes(&stage, &namespace, "ami-00000001", "False", "").await?;
    stage.list(&[ami(1, V1, "2026-09-22"), ami(2, V2, "2026-11-18")])?;
    becomes(&stage, &namespace, "ami-00000001", "True", "ami-00000002").await?;
    stage.is_quiet(&controller).await?;
    let newer = json!({"spec": {"images": {"1.34.2": "ami-00000002"}}});
    let api = stage.namespaced::<ImageSelection>(&namespace);
    api.patch("nodes", &PatchParams::default(), &Patch::Merge(newer)).await?;
    becomes(&stage, &namespace, "ami-00000002", "False", "").await?;
    stage.is_quiet(&controller).await
}

/// Waits for the image of the version, the condition, and the newer image.
async fn becomes(stage: &Stage, namespace: &str, image: &str, condition: &str, newer: &str) -> Result<()> {
    eventually(SOON, &format!("{image} is used, UpgradeAvailable is {condition}"), async || {
        let selection = stage.namespaced::<ImageSelection>(namespace).get("nodes").await?;
        ensure!(selection.spec.images.get("1.34.2").is_some_and(|used| used == image), "{:?}", selection.spec);
        let status = &selection.status;
        let known = status.conditions.iter().find(|known| known.condition_type == "UpgradeAvailable");
        ensure!(known.is_some_and(|known| known.status == condition), "{status:?}");
        let upgrades: Vec<&str> = status.upgrades.iter().map(|upgrade| upgrade.newer.as_str()).collect();
        ensure!(upgrades.concat() == newer, "{status:?}");
        ensure!(Some(status.observed_generation) == selection.metadata.generation, "{status:?}");
        Ok(())
    })
    .await
}

const SELECTIONS: usize = 20;

#[tokio::test]
async fn two_writers_of_a_first_resolution_agree() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.control_plane.namespace("capi").await?;
    stage.list(&[ami(1, V1, "2026-09-22"), ami(2, V2, "2026-11-18")])?;
    stage.lookup().await?;
    let users = [CONTROLLER, MACHINE_CONTROLLER_MANAGER];
    let controllers = users.map(|user| stage.controller(&format!("of-{user}"), user, &[]).unwrap());
    stage.images_become(&["ami-00000001", "ami-00000002*"]).await?;
    for controller in &controllers {
        stage.reads(controller, 1).await?;
    }
    let mark = stage.audit.mark().await?;
    for index in 0..SELECTIONS {
        stage.selection(&namespace, &format!("nodes-{index}"), json!({})).await?;
    }
    eventually(SOON, "all selections are resolved", async || {
        let selections = stage.namespaced::<ImageSelection>(&namespace).list(&ListParams::default()).await?;
        let is_done = |selection: &ImageSelection| {
            selection.spec.images.get("1.34.2").is_some_and(|image| image == "ami-00000002")
                && !selection.status.conditions.is_empty()
        };
        let done = selections.items.iter().filter(|selection| is_done(selection)).count();
        ensure!(done == SELECTIONS, "{done}");
        Ok(())
    })
    .await?;
    let mut recorded = 0;
    for user in users {
        let writes = stage.writes(user, mark).await?;
        recorded += writes.iter().filter(|write| write.resource == "imageselections" && write.code < 300).count();
        ensure!(writes.iter().all(|write| write.code < 300 || write.code == 409), "{writes:?}");
    }
    ensure!(recorded == SELECTIONS, "{recorded} first resolutions were written: the loser has to read the winner's");
    Ok(())
}

const KILLS: usize = 6;

#[tokio::test]
async fn a_controller_that_is_killed_at_its_writes_ends_with_the_same_images() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.control_plane.namespace("capi").await?;
    let amis: Vec<_> = (1..=28)
        .map(|id| ami(id, &format!("capa-ami-ubuntu-24.04-v1.34.2-{id}"), &format!("2026-09-{id:02}")))
        .collect();
    stage.list(&amis)?;
    stage.lookup().await?;
    stage.selection(&namespace, "nodes", json!({})).await?;
    for kill in 0..KILLS {
        let mark = stage.audit.mark().await?;
        let controller = stage.controller(&format!("killed-{kill}"), CONTROLLER, &[])?;
        eventually(SOON, "something is written, or nothing is left", async || {
            let reads = std::fs::read_to_string(controller.log())?.matches(READ).count();
            ensure!(reads > 3 || !stage.writes(CONTROLLER, mark).await?.is_empty(), "nothing yet");
            Ok(())
        })
        .await?;
        controller.signal("KILL")?;
        controller.wait(SOON).await?;
    }
    let controller = stage.controller("last", CONTROLLER, &[])?;
    // The newest of all images found, not of those written before a kill.
    becomes(&stage, &namespace, "ami-00000028", "False", "").await?;
    ensure!(stage.images().await?.len() == amis.len(), "{:?}", stage.images().await?);
    stage.is_quiet(&controller).await
}
