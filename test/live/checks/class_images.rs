//! A CloudProfile changes the image of a version that machines already run (`--image-drift`, `--pin-images`).

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::shoot::{Kind, Shoot, ensure_reports, set_image};

const FIRST: &str = "/CommunityGalleries/live/Images/harborlinux/Versions/12.1.0";
const REBUILT: &str = "/CommunityGalleries/live/Images/harborlinux/Versions/12.1.1";

#[tokio::test]
async fn a_changed_image_is_reported_and_new_nodes_get_it() -> Result<()> {
    changed_image("reports", "--image-drift", REBUILT, "gives that to new nodes").await
}

#[tokio::test]
async fn a_pinned_class_keeps_its_image_until_it_is_replaced() -> Result<()> {
    changed_image("pins", "--pin-images", FIRST, "keeps it until it is replaced").await
}

/// Checks the effect of a rebuilt image with this argument. `kept` is the image of the classes afterwards.
async fn changed_image(class: &str, argument: &str, kept: &str, reports: &str) -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, class).await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|documents| documents.of_kind("Worker")["spec"]["class"] = json!(class)).await?;
    let arguments = ["--extension-classes", class, argument];
    let _program = program::start_with(cluster, &format!("controller-{class}"), &arguments)?;
    let worker = shoot.succeeded().await?;
    let condition = image_drift(&worker)?;
    ensure!(condition["status"] == "False" && condition["reason"] == "ImagesUnchanged", "{condition}");
    let classes = shoot.names(Kind::MachineClass).await?;
    ensure!(images(&shoot).await? == BTreeSet::from([FIRST.to_owned()]), "classes have {:?}", images(&shoot).await?);

    shoot
        .change(Kind::Cluster, &shoot.namespace, |cluster| {
            let images = &mut cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"];
            images[0]["versions"][0]["capabilityFlavors"][0]["communityGalleryImageID"] = json!(REBUILT);
        })
        .await?;
    shoot.change_worker(|_| {}).await?;
    let worker = shoot.succeeded().await?;
    ensure!(shoot.names(Kind::MachineClass).await? == classes, "a changed image rolls nothing");
    ensure!(images(&shoot).await? == BTreeSet::from([kept.to_owned()]), "classes have {:?}", images(&shoot).await?);
    let condition = image_drift(&worker)?;
    ensure!(condition["status"] == "True" && condition["reason"] == "ImageChanged", "{condition}");
    ensure_reports(&condition["message"], &["pool \"bow\"", "pool \"stern\"", FIRST, REBUILT, reports])?;

    // The replaced classes have the CloudProfile's image, so no drift is left to report.
    let roll = |worker: &mut Value| ["bow", "stern"].into_iter().for_each(|pool| set_image(worker, pool, "12.2.0"));
    shoot.change_worker(roll).await?;
    let worker = shoot.succeeded().await?;
    let condition = image_drift(&worker)?;
    ensure!(condition["status"] == "False", "{condition}");
    Ok(())
}

fn image_drift(worker: &Value) -> Result<Value> {
    let mut conditions = worker["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == "ImageDrift").cloned().context("ImageDrift is not there")
}

/// The images of all classes.
async fn images(shoot: &Shoot) -> Result<BTreeSet<String>> {
    let classes = shoot.list(Kind::MachineClass).await?;
    let image = |class: &Value| {
        let reference = &class["providerSpec"]["properties"]["storageProfile"]["imageReference"];
        reference["communityGalleryImageID"].as_str().unwrap_or_default().to_owned()
    };
    Ok(classes.iter().map(image).collect())
}
