//! One Worker with 300 pools in one zone, through a proxy that delays each request by 200 ms.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use crate::controller;
use crate::figures::{head, row};
use crate::load::{self, Size, namespace, resource, worker_name};
use crate::workers::{Cached, Workers};
use test_support::cluster::{ADMIN, ControlPlane, FAKER, Faker};
use test_support::proxy::{Proxy, Treatment};

const SIZE: Size = Size { pools: 300, zones: 1 };
const DELAY: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(120);

pub(crate) async fn run() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = namespace("wide");
    load::prepare(&client, std::slice::from_ref(&namespace), SIZE).await?;
    let workers = Workers::follow(&client);
    let _faker = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let proxy = Proxy::start(&control_plane, &namespace).await?;
    proxy.set_faults(|call| if call.watches { Treatment::Forward } else { Treatment::Delay(DELAY) });
    let kubeconfig = control_plane.folder().join("slow.kubeconfig");
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "slow",
        "clusters": [{"name": "slow", "cluster": {"server": proxy.server()}}],
        "users": [{"name": "slow", "user": {"token": proxy.token()}}],
        "contexts": [{"name": "slow", "context": {"cluster": "slow", "user": "slow"}}],
    });
    std::fs::write(&kubeconfig, document.to_string())?;
    let process = controller::start(&control_plane, &kubeconfig)?;
    // Wait until its caches are filled.
    tokio::time::sleep(Duration::from_secs(5)).await;
    process.ensure_running()?;

    head(
        "One Worker with 300 pools, 200 ms for each request",
        &[
            "operation",
            "until all deployments are published, s",
            "until Succeeded, s",
            "writes",
            "of them machine objects",
        ],
    );
    let name = worker_name(&namespace);
    let resource = resource("extensions.gardener.cloud/v1alpha1", "Worker");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
    for operation in ["create", "no-op"] {
        let before = workers.stamps();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        proxy.take_writes();
        if operation == "create" {
            load::create(&client, load::worker(&namespace, SIZE)).await?;
        } else {
            api.patch(name, &PatchParams::default(), &Patch::Merge(load::request())).await?;
        }
        // From here on, the API server has the request.
        let start = Instant::now();
        let is_published = |cached: &Cached| {
            let published =
                cached.get(&namespace).and_then(|seen| seen.worker["status"]["machineDeployments"].as_array());
            ensure!(
                published.is_some_and(|published| published.len() == SIZE.pools),
                "not all deployments are published"
            );
            Ok(())
        };
        workers.until(LONG, is_published).await?;
        let published = start.elapsed();
        let done = workers.done(std::slice::from_ref(&namespace), &before, LONG).await?;
        let took = done.values().max().map_or(Duration::ZERO, |last| *last - start);
        let writes = proxy.take_writes();
        let of_machines =
            writes.iter().filter(|call| call.path.contains("/machine") || call.path.contains("/secrets")).count();
        let seconds = |time: Duration| format!("{:.2}", time.as_secs_f64());
        let until_published = if operation == "create" { seconds(published) } else { "–".to_owned() };
        row(&[&operation, &until_published, &seconds(took), &writes.len(), &of_machines]);
        ensure!(operation == "create" || of_machines == 0, "machine objects were written though nothing differs");
    }
    process.stop(Duration::from_secs(5)).await?;
    control_plane.stop().await
}
