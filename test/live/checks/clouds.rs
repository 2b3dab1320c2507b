//! Workers of other clouds, from `example/`: ready nodes, another image for a version without a roll, a cloud error, a
//! roll, and the deletion.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager};
use test_support::shoot::{Kind, Shoot, ensure_reports, pool, set_image};

/// Differences between clouds.
struct Cloud {
    example: &'static str,
    provider: &'static str,
    /// Suffixes of the deployments of search and web.
    deployments: [&'static str; 3],
    /// The image in the provider spec, and its member in the provider status.
    image: fn(&Value) -> &Value,
    status: &'static str,
    /// Changes the image of pool web in the CloudProfile, for the same version.
    replace: fn(&mut Value),
    /// The images of web and search, the replacement for web, and the image of web's next version.
    web: &'static str,
    search: &'static str,
    replaced: &'static str,
    next: &'static str,
    /// Whether a pool's label becomes a tag, with which the fake cloud can be made to fail.
    has_tags: bool,
}

const AWS: Cloud = Cloud {
    example: "aws",
    provider: "AWS",
    deployments: ["search-z1", "web-z1", "web-z2"],
    image: |spec| &spec["ami"],
    status: "ami",
    replace: |flavor| flavor["regions"][0]["ami"] = json!(AWS.replaced),
    web: "ami-0arm64",
    search: "ami-0amd64uefi",
    replaced: "ami-1arm64",
    next: "ami-9arm64",
    has_tags: true,
};

const GCP: Cloud = Cloud {
    example: "gcp",
    provider: "GCP",
    deployments: ["search-z1", "web-z1", "web-z2"],
    image: |spec| &spec["disks"][0]["image"],
    status: "image",
    replace: |flavor| flavor["image"] = json!(GCP.replaced),
    web: "projects/garden/global/images/gardenlinux-1877-3-0-arm64",
    search: "projects/garden/global/images/gardenlinux-1877-3-0-amd64-gvnic",
    replaced: "projects/garden/global/images/another",
    next: "projects/garden/global/images/gardenlinux-1877-9-0-arm64",
    has_tags: false,
};

const ALICLOUD: Cloud = Cloud {
    example: "alicloud",
    provider: "Alicloud",
    deployments: ["search-eu-central-1b", "web-eu-central-1a", "web-eu-central-1b"],
    image: |spec| &spec["imageID"],
    status: "id",
    replace: |flavor| flavor["regions"][0]["id"] = json!(ALICLOUD.replaced),
    web: "m-arm64",
    search: "m-encrypted",
    replaced: "m-another",
    next: "m-9-arm64",
    has_tags: true,
};

const OPENSTACK: Cloud = Cloud {
    example: "openstack",
    provider: "OpenStack",
    deployments: ["search-z1", "web-z1", "web-z2"],
    image: |spec| &spec["spec"]["imageID"],
    status: "id",
    replace: |flavor| flavor["regions"][0]["id"] = json!(OPENSTACK.replaced),
    web: "image-arm64",
    search: "image-amd64",
    replaced: "image-another",
    next: "image-9-arm64",
    has_tags: false,
};

#[tokio::test]
async fn a_worker_of_openstack_lives_from_its_first_node_to_its_last() -> Result<()> {
    lives(&OPENSTACK).await
}

#[tokio::test]
async fn a_worker_of_alicloud_lives_from_its_first_node_to_its_last() -> Result<()> {
    lives(&ALICLOUD).await
}

#[tokio::test]
async fn a_worker_of_aws_lives_from_its_first_node_to_its_last() -> Result<()> {
    lives(&AWS).await
}

#[tokio::test]
async fn a_worker_of_gcp_lives_from_its_first_node_to_its_last() -> Result<()> {
    lives(&GCP).await
}

async fn lives(cloud: &Cloud) -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, cloud.example).await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create_example(cloud.example).await?;
    let worker = shoot.succeeded().await?;
    becomes_nodes(cloud, &shoot, &worker).await?;
    another_image_of_the_version_rolls_nothing(cloud, &shoot).await?;
    if cloud.has_tags {
        a_refusal_is_reported(&shoot).await?;
    }
    another_version_rolls_its_pool(cloud, &shoot).await?;
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await?;
    ensure!(shoot.ready_nodes().await?.is_empty(), "nodes are left");
    Ok(())
}

async fn becomes_nodes(cloud: &Cloud, shoot: &Shoot, worker: &Value) -> Result<()> {
    let nodes = shoot.ready_nodes().await?;
    ensure!(nodes.len() == 5, "three web nodes and two search nodes are ready: {nodes:?}");
    let deployments = shoot.names(Kind::MachineDeployment).await?;
    ensure!(deployments.iter().eq(cloud.deployments), "{deployments:?}");
    let (classes, secrets) = (shoot.names(Kind::MachineClass).await?, shoot.names(Kind::ClassSecret).await?);
    ensure!(classes.len() == 3 && classes == secrets, "{classes:?}, {secrets:?}");
    for class in shoot.list(Kind::MachineClass).await? {
        ensure!(class["provider"] == cloud.provider, "{class}");
        ensure!(class["credentialsSecretRef"]["name"] == "cloudprovider", "{class}");
    }
    let images = &worker["status"]["providerStatus"]["machineImages"];
    let names = images.as_array().into_iter().flatten().filter_map(|image| image[cloud.status].as_str());
    ensure!(names.eq([cloud.web, cloud.search]), "{images}");
    Ok(())
}

/// The hash does not contain the image, so only later machines use the new one.
async fn another_image_of_the_version_rolls_nothing(cloud: &Cloud, shoot: &Shoot) -> Result<()> {
    let (nodes, classes) = (shoot.ready_nodes().await?, shoot.names(Kind::MachineClass).await?);
    let replace = |cluster: &mut Value| {
        let flavors = &mut cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"][0]["versions"][0]
            ["capabilityFlavors"];
        (cloud.replace)(&mut flavors[2]);
    };
    shoot.change(Kind::Cluster, &shoot.namespace, replace).await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    for class in shoot.list(Kind::MachineClass).await? {
        let name = class["metadata"]["name"].as_str().unwrap_or_default();
        let expected = if name.contains("-web-") { cloud.replaced } else { cloud.search };
        let image = (cloud.image)(&class["providerSpec"]);
        ensure!(image == expected, "{name} starts from {image}");
    }
    ensure!(shoot.names(Kind::MachineClass).await? == classes, "classes have other names");
    ensure!(shoot.ready_nodes().await? == nodes, "nodes were replaced");
    Ok(())
}

/// A label of a pool becomes a tag of its machines, and this tag makes the fake cloud fail.
async fn a_refusal_is_reported(shoot: &Shoot) -> Result<()> {
    let request_for = |worker: &mut Value, failure: Option<&str>| {
        let search = pool(worker, "search");
        let labels = search["labels"].as_object_mut().expect("labels are a map");
        match failure {
            Some(code) => labels.insert("demo.fail".to_owned(), json!(code)),
            None => labels.remove("demo.fail"),
        };
        search["minimum"] = json!(if failure.is_some() { 3 } else { 2 });
        search["maximum"] = json!(3);
    };
    shoot.change_worker(|worker| request_for(worker, Some("ResourceExhausted"))).await?;
    let reported = |worker: &Value| {
        let error = &worker["status"]["lastError"];
        ensure!(error["codes"] == json!(["ERR_INFRA_RESOURCES_DEPLETED"]), "{error}");
        ensure_reports(&error["description"], &["\"search\"", "asks for this failure"])
    };
    shoot.fails(reported).await?;
    shoot.change_worker(|worker| request_for(worker, None)).await?;
    shoot.succeeded().await?;
    Ok(())
}

async fn another_version_rolls_its_pool(cloud: &Cloud, shoot: &Shoot) -> Result<()> {
    let before = shoot.ready_nodes().await?;
    shoot.change_worker(|worker| set_image(worker, "web", "1877.9.0")).await?;
    let worker = shoot.succeeded().await?;
    let after = shoot.ready_nodes().await?;
    let is_web = |name: &&String| name.contains("-web-");
    ensure!(!after.iter().filter(is_web).any(|node| before.contains(node)), "{before:?} became {after:?}");
    ensure!(after.iter().filter(is_web).count() == 3, "{after:?}");
    ensure!(after.iter().filter(|node| !is_web(node)).all(|node| before.contains(node)), "search has new nodes");
    let image = &worker["status"]["providerStatus"]["machineImages"][0];
    ensure!(image[cloud.status] == cloud.next && image["version"] == "1877.9.0", "the status keeps {image}");
    for class in shoot.list(Kind::MachineClass).await? {
        let name = class["metadata"]["name"].as_str().unwrap_or_default();
        let image = (cloud.image)(&class["providerSpec"]);
        ensure!(!name.contains("-web-") || image == cloud.next, "{name} of the old image is left");
    }
    Ok(())
}
