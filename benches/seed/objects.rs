//! The objects of a hundred Workers with three pools in three zones, created by a plain client: the baseline cost for
//! the API server, with the faker of `fleet`.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::controller;
use crate::figures::{head, row};
use crate::load::{self, SIDE_BY_SIDE, Size, namespace, resource};
use crate::workers::Workers;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, FAKER, Faker, processor_seconds};

const WORKERS: u32 = 100;
const SIZE: Size = Size { pools: 3, zones: 3 };
const LONG: Duration = Duration::from_secs(600);
/// Time after which the faker is idle.
const REST: Duration = Duration::from_secs(8);
/// Kinds, with a label that selects a Worker's objects.
const KINDS: [(&str, &str, &str); 3] = [
    ("v1", "Secret", "gardener.cloud/purpose=machineclass"),
    ("machine.sapcloud.io/v1alpha1", "MachineClass", ""),
    ("machine.sapcloud.io/v1alpha1", "MachineDeployment", ""),
];

pub(crate) async fn run() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let first = namespace("first");
    load::prepare(&client, std::slice::from_ref(&first), SIZE).await?;
    let workers = Workers::follow(&client);
    let _faker = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let process = controller::start(&control_plane, &control_plane.kubeconfig_file(CONTROLLER)?)?;
    load::create(&client, load::worker(&first, SIZE)).await?;
    workers.done(std::slice::from_ref(&first), &Default::default(), LONG).await?;
    process.stop(Duration::from_secs(5)).await?;

    let namespaces: Vec<String> = (0..WORKERS).map(|number| namespace(&format!("copy-{number:04}"))).collect();
    for name in &namespaces {
        load::create(&client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await?;
    }
    let apiserver = control_plane.apiserver().id().await?;
    head("The objects of 100 Workers without a controller", &["objects", "processor s of the API server per Worker"]);
    for (group_version, kind, label) in KINDS {
        let objects = objects(&client, &first, group_version, kind, label).await?;
        ensure!(objects.len() == SIZE.pools * SIZE.zones, "{} objects {kind}", objects.len());
        let before = processor_seconds(apiserver)?;
        let copied = namespaces.iter().map(|name| copy(&client, &objects, name)).collect::<Vec<_>>();
        stream::iter(copied).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;
        sleep(REST).await;
        let used = (processor_seconds(apiserver)? - before) / f64::from(WORKERS);
        row(&[&format!("{} × {kind}", objects.len()), &format!("{used:.4}")]);
    }
    control_plane.stop().await
}

/// The objects of a kind, in the form in which they were created.
async fn objects(client: &Client, namespace: &str, group_version: &str, kind: &str, label: &str) -> Result<Vec<Value>> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource(group_version, kind));
    let listed = api.list(&ListParams::default().labels(label)).await?;
    let made = listed.into_iter().map(|object| {
        let mut made = object.data;
        if let Some(members) = made.as_object_mut() {
            members.remove("status");
        }
        (made["apiVersion"], made["kind"]) = (json!(group_version), json!(kind));
        let metadata = object.metadata;
        made["metadata"] =
            json!({"name": metadata.name, "labels": metadata.labels, "annotations": metadata.annotations});
        made
    });
    Ok(made.collect())
}

async fn copy(client: &Client, objects: &[Value], namespace: &str) -> Result<()> {
    for object in objects {
        let mut copy = object.clone();
        copy["metadata"]["namespace"] = json!(namespace);
        load::create(client, copy).await?;
    }
    Ok(())
}
