//! A Worker of AWS, the one of `example/aws.yaml`: ready nodes, another AMI without a roll, a refusal, a roll, the end.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager};
use test_support::shoot::{Kind, Shoot, ensure_says, pool, set_image};

const AMI: &str = "ami-0arm64";
const NEW_AMI: &str = "ami-1arm64";

#[tokio::test]
async fn a_worker_of_aws_lives_from_its_first_node_to_its_last() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "aws").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create_on_aws().await?;
    let worker = shoot.succeeded().await?;
    becomes_nodes(&shoot, &worker).await?;
    another_ami_rolls_nothing(&shoot).await?;
    a_refusal_is_told(&shoot).await?;
    another_image_rolls_its_pool(&shoot).await?;
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.gone().await?;
    ensure!(shoot.ready_nodes().await?.is_empty(), "nodes are left");
    Ok(())
}

async fn becomes_nodes(shoot: &Shoot, worker: &Value) -> Result<()> {
    let nodes = shoot.ready_nodes().await?;
    ensure!(nodes.len() == 5, "three web nodes and two search nodes are ready: {nodes:?}");
    let deployments = shoot.names(Kind::MachineDeployment).await?;
    ensure!(deployments.iter().eq(["search-z1", "web-z1", "web-z2"]), "{deployments:?}");
    let (classes, secrets) = (shoot.names(Kind::MachineClass).await?, shoot.names(Kind::ClassSecret).await?);
    ensure!(classes.len() == 3 && classes == secrets, "{classes:?}, {secrets:?}");
    for class in shoot.list(Kind::MachineClass).await? {
        ensure!(class["provider"] == "AWS", "{class}");
        ensure!(class["credentialsSecretRef"]["name"] == "cloudprovider", "{class}");
    }
    let images = &worker["status"]["providerStatus"]["machineImages"];
    let amis: Vec<_> = images.as_array().into_iter().flatten().filter_map(|image| image["ami"].as_str()).collect();
    ensure!(amis == [AMI, "ami-0amd64uefi"], "{images}");
    Ok(())
}

/// An AMI is in no hash: only machines that come later start from the new one.
async fn another_ami_rolls_nothing(shoot: &Shoot) -> Result<()> {
    let (nodes, classes) = (shoot.ready_nodes().await?, shoot.names(Kind::MachineClass).await?);
    let replace = |cluster: &mut Value| {
        let flavors = &mut cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"][0]["versions"][0]
            ["capabilityFlavors"];
        flavors[2]["regions"][0]["ami"] = json!(NEW_AMI);
    };
    shoot.change(Kind::Cluster, &shoot.namespace, replace).await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    for class in shoot.list(Kind::MachineClass).await? {
        let name = class["metadata"]["name"].as_str().unwrap_or_default();
        let wanted = if name.contains("-web-") { NEW_AMI } else { "ami-0amd64uefi" };
        ensure!(class["providerSpec"]["ami"] == wanted, "{name} starts from {}", class["providerSpec"]["ami"]);
    }
    ensure!(shoot.names(Kind::MachineClass).await? == classes, "classes have other names");
    ensure!(shoot.ready_nodes().await? == nodes, "nodes were replaced");
    Ok(())
}

/// A label of a pool becomes a tag of its machines, and this tag makes the cloud of the tests fail.
async fn a_refusal_is_told(shoot: &Shoot) -> Result<()> {
    let ask_for = |worker: &mut Value, failure: Option<&str>| {
        let search = pool(worker, "search");
        let labels = search["labels"].as_object_mut().expect("labels are a map");
        match failure {
            Some(code) => labels.insert("demo.fail".to_owned(), json!(code)),
            None => labels.remove("demo.fail"),
        };
        search["minimum"] = json!(if failure.is_some() { 3 } else { 2 });
        search["maximum"] = json!(3);
    };
    shoot.change_worker(|worker| ask_for(worker, Some("ResourceExhausted"))).await?;
    let told = |worker: &Value| {
        let error = &worker["status"]["lastError"];
        ensure!(error["codes"] == json!(["ERR_INFRA_RESOURCES_DEPLETED"]), "{error}");
        ensure_says(&error["description"], &["\"search\"", "asks for this failure"])
    };
    shoot.fails(told).await?;
    shoot.change_worker(|worker| ask_for(worker, None)).await?;
    shoot.succeeded().await?;
    Ok(())
}

async fn another_image_rolls_its_pool(shoot: &Shoot) -> Result<()> {
    let before = shoot.ready_nodes().await?;
    shoot.change_worker(|worker| set_image(worker, "web", "1877.9.0")).await?;
    let worker = shoot.succeeded().await?;
    let after = shoot.ready_nodes().await?;
    let is_web = |name: &&String| name.contains("-web-");
    ensure!(!after.iter().filter(is_web).any(|node| before.contains(node)), "{before:?} became {after:?}");
    ensure!(after.iter().filter(is_web).count() == 3, "{after:?}");
    ensure!(after.iter().filter(|node| !is_web(node)).all(|node| before.contains(node)), "search has new nodes");
    let image = &worker["status"]["providerStatus"]["machineImages"][0];
    ensure!(image["ami"] == "ami-9arm64" && image["version"] == "1877.9.0", "the status keeps {image}");
    for class in shoot.list(Kind::MachineClass).await? {
        let name = class["metadata"]["name"].as_str().unwrap_or_default();
        let ami = &class["providerSpec"]["ami"];
        ensure!(!name.contains("-web-") || ami == "ami-9arm64", "{name} of the old image is left");
    }
    Ok(())
}
