//! Lookups that query EC2 themselves: against a stand-in that checks signatures and responds in pages, and against
//! moto, which evaluates owners and names by its own rules.

use anyhow::{Result, ensure};
use gardener_extension_worker::api::image_objects::ImageLookup;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use test_support::cluster::{CONTROLLER, Process, eventually};
use test_support::ec2::{ACCESS_KEY, Ec2, error};
use test_support::image_objects::{OURS, SOON, Stage, V1, ami};
use test_support::moto::{self, Moto};

/// The members of an image in EC2's XML.
fn item(id: u32, name: &str) -> String {
    format!(
        "<imageId>ami-{id:08}</imageId><imageState>available</imageState><imageOwnerId>{OURS}</imageOwnerId>\
         <architecture>x86_64</architecture><imageType>machine</imageType><name>{name}</name>\
         <creationDate>2026-09-22T09:00:00.000Z</creationDate>"
    )
}

/// A lookup for Flatcar that queries EC2.
fn live_lookup() -> Value {
    json!({"metadata": {"name": "live"}, "spec": {"provider": "aws", "imagePrefix": "capa-ami",
        "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*", "os": ["flatcar-stable"], "arch": ["amd64"], "versions": ">=1.33, <1.36",
        "owners": [OURS], "ec2": {"regions": ["eu-central-1", "eu-west-1"]}}})
}

#[tokio::test]
async fn ec2_lookup_finds_images_and_fails_alone() -> Result<()> {
    let stage = Stage::new().await?;
    let ec2 = Ec2::start(1)?;
    ec2.has("eu-central-1", &item(5, "capa-ami-flatcar-stable-v1.34.2-1"));
    ec2.has("eu-central-1", &item(6, "capa-ami-flatcar-stable-v1.34.3-1"));
    ec2.has("eu-west-1", &item(7, "capa-ami-flatcar-stable-v1.34.2-1"));
    stage.list(&[ami(1, V1, "2026-09-22")])?;
    stage.lookup().await?;
    stage.make::<ImageLookup>(live_lookup()).await?;
    let program = stage.program("controller", CONTROLLER)?;
    let program = program.env("AWS_ACCESS_KEY_ID", ACCESS_KEY.0).env("AWS_SECRET_ACCESS_KEY", ACCESS_KEY.1);
    let program = program.env("AWS_EC2_METADATA_DISABLED", "true").env("AWS_ENDPOINT_URL_EC2", ec2.url());
    let controller = Process::start(program, stage.control_plane.folder())?;
    // All pages of all regions are read.
    stage.images_become(&["ami-00000001*", "ami-00000005*", "ami-00000006*", "ami-00000007*"]).await?;
    status(&stage, "live", 3, "").await?;
    let names: Vec<String> = ec2.requests().iter().filter_map(|form| form.get("Filter.1.Value.1").cloned()).collect();
    ensure!(names.iter().all(|name| name.contains("flatcar-stable")) && !names.is_empty(), "{names:?}");

    for _ in 0..200 {
        ec2.fail(403, &error("UnauthorizedOperation", "You are not authorized to perform this operation."));
    }
    status(&stage, "live", 0, "EC2 in eu-central-1: UnauthorizedOperation").await?;
    let events = Api::<Event>::namespaced(stage.client.clone(), "default").list(&ListParams::default()).await?;
    ensure!(events.iter().any(|event| event.reason.as_deref() == Some("ImageLookupFailed")), "{events:?}");
    // Its images stay, and the other lookup continues.
    stage.list(&[ami(1, V1, "2026-09-22"), ami(2, "capa-ami-ubuntu-24.04-v1.34.3-1", "2026-09-22")])?;
    stage.images_become(&["ami-00000001*", "ami-00000002*", "ami-00000005*", "ami-00000006*", "ami-00000007*"]).await?;
    status(&stage, "capi", 2, "").await?;
    controller.ensure_running()?;

    // An invalid region is reported before any request is sent.
    let wrong = Patch::Merge(json!({"spec": {"ec2": {"regions": ["evil.example.com/"]}}}));
    Api::<ImageLookup>::all(stage.client.clone()).patch("live", &PatchParams::default(), &wrong).await?;
    status(&stage, "live", 0, "is no region").await
}

#[tokio::test]
async fn moto_lookup_keeps_images_while_it_is_unreachable() -> Result<()> {
    let images = json!([
        moto::ami(1, "capa-ami-flatcar-stable-v1.34.2-1", &json!({"owner_id": OURS})),
        moto::ami(
            2,
            "capa-ami-flatcar-stable-1.34.2-2",
            &json!({"owner_id": OURS, "creation_date": "2026-11-18T09:00:00.000Z"})
        ),
        moto::ami(3, "capa-ami-flatcar-stable-v1.34.2-9", &json!({"owner_id": "333333333333"})),
        moto::ami(4, "capa-ami-flatcar-stable-v1.36.0-1", &json!({"owner_id": OURS})),
        moto::ami(5, "something-else-v1.34.2-1", &json!({"owner_id": OURS})),
        moto::ami(6, "capa-ami-flatcar-stable-v1.35.1-1", &json!({"owner_id": OURS, "state": "pending"})),
        moto::ami(7, "capa-ami-flatcar-stable-v1.35.0-1", &json!({"owner_id": OURS, "architecture": "arm64"})),
    ]);
    let Some(moto) = Moto::start(&images).await? else { return Ok(()) };
    let stage = Stage::new().await?;
    let mut lookup = live_lookup();
    lookup["spec"]["ec2"]["regions"] = json!(["eu-central-1"]);
    stage.make::<ImageLookup>(lookup).await?;
    let start = |name: &str| {
        let program = stage.program(name, CONTROLLER)?.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
        let program = program.env("AWS_EC2_METADATA_DISABLED", "true").env("AWS_ENDPOINT_URL_EC2", moto.url());
        Process::start(program, stage.control_plane.folder())
    };
    let controller = start("controller")?;
    stage.images_become(&["ami-00000001", "ami-00000002*"]).await?;
    status(&stage, "live", 2, "").await?;
    stage.is_quiet(&controller).await?;
    controller.stop(SOON).await?;
    // After a restart, the status does not change until EC2 responds, and the response does not change it either.
    let before = Api::<ImageLookup>::all(stage.client.clone()).get("live").await?;
    let controller = start("another")?;
    stage.is_quiet(&controller).await?;
    ensure!(Api::<ImageLookup>::all(stage.client.clone()).get("live").await? == before, "{before:?}");
    drop(moto);
    status(&stage, "live", 0, "EC2 in eu-central-1: ").await?;
    stage.images_become(&["ami-00000001", "ami-00000002*"]).await?;
    controller.ensure_running()
}

/// Waits until the lookup's status has this count and error.
async fn status(stage: &Stage, name: &str, found: i64, error: &str) -> Result<()> {
    eventually(SOON, &format!("{name} finds {found}"), async || {
        let status = Api::<ImageLookup>::all(stage.client.clone()).get(name).await?.status;
        ensure!(status.found == found && status.errors.is_empty() == error.is_empty(), "{status:?}");
        ensure!(status.errors.iter().all(|known| known.contains(error)), "{status:?}");
        ensure!(status.failing_since.is_some() != error.is_empty(), "{status:?}");
        Ok(())
    })
    .await
}
