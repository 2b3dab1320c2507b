//! What gardenlet does when a control plane moves: it keeps the machines, takes their objects away, and asks for them again
//! in the place where nothing of the shoot is left but its VMs. One control plane plays both seeds.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::eventually;
use super::shoot::{Kind, SOON, Shoot};

/// Asks for an operation as gardenlet does.
pub async fn ask(shoot: &Shoot, operation: &str) -> Result<()> {
    let annotate =
        |worker: &mut Value| worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!(operation);
    shoot.change(Kind::Worker, "fleet", annotate).await?;
    Ok(())
}

/// What gardenlet keeps of the machines, in the form of `status.state`.
pub async fn kept_machines(shoot: &Shoot) -> Result<Value> {
    let kept = |object: &Value| {
        let metadata = &object["metadata"];
        let [name, namespace, labels, annotations] =
            ["name", "namespace", "labels", "annotations"].map(|member| &metadata[member]);
        let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "annotations": annotations});
        json!({"metadata": metadata, "spec": object["spec"]})
    };
    let (sets, machines) = (shoot.list(Kind::MachineSet).await?, shoot.list(Kind::Machine).await?);
    let mut deployments = json!({});
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        let name = deployment["metadata"]["name"].as_str().context("a deployment has a name")?;
        let own = |object: &&Value| object["metadata"]["labels"]["name"] == name;
        deployments[name] = json!({
            "replicas": deployment["spec"]["replicas"],
            "machineSets": sets.iter().filter(own).map(kept).collect::<Vec<_>>(),
            "machines": machines.iter().filter(own).map(kept).collect::<Vec<_>>(),
        });
    }
    packed(&deployments)
}

/// What is kept of these deployments in the form in which gardenlet keeps it.
pub fn packed(deployments: &Value) -> Result<Value> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut gzip, &json!({"machineDeployments": deployments}))?;
    gzip.flush()?;
    Ok(json!({"state": base64::engine::general_purpose::STANDARD.encode(gzip.finish()?)}))
}

/// Removes all objects of the machines without anybody who could delete their VMs, and the Worker.
pub async fn take_away(shoot: &Shoot) -> Result<()> {
    let scaled_down = |deployment: &mut Value| deployment["spec"]["replicas"] = json!(0);
    shoot.change(Kind::Deployment, "machine-controller-manager", scaled_down).await?;
    for kind in Kind::OF_MACHINES {
        eventually(SOON, &format!("{kind:?} are taken away"), async || take_away_all(shoot, kind).await).await?;
    }
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    ensure!(shoot.get(Kind::Worker, "fleet").await?.is_none(), "the Worker is held");
    Ok(())
}

/// Tries it once; somebody who holds them may come in between.
async fn take_away_all(shoot: &Shoot, kind: Kind) -> Result<()> {
    for object in shoot.list(kind).await? {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let freed = shoot.api(kind).patch(name, &PatchParams::default(), &free).await.map(|_| ());
        let deleted = shoot.api(kind).delete(name, &DeleteParams::default()).await.map(|_| ());
        for outcome in [freed, deleted] {
            match outcome {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                outcome => outcome?,
            }
        }
    }
    let left = shoot.names(kind).await?;
    ensure!(left.is_empty(), "{left:?} are left");
    Ok(())
}

/// The Worker on its new seed: first without a request, then with what was kept in its status.
pub async fn restored_worker(shoot: &Shoot, moved: &Value, kept: &Value) -> Result<()> {
    let worker = json!({
        "apiVersion": moved["apiVersion"], "kind": moved["kind"], "spec": moved["spec"],
        "metadata": {
            "name": "fleet", "namespace": shoot.namespace, "annotations": {"gardener.cloud/operation": "wait-for-state"},
        },
    });
    shoot.api(Kind::Worker).create(&PostParams::default(), &serde_json::from_value(worker)?).await?;
    let status = Patch::Merge(json!({"status": {"state": kept, "providerStatus": moved["status"]["providerStatus"]}}));
    shoot.api(Kind::Worker).patch_status("fleet", &PatchParams::default(), &status).await?;
    Ok(())
}

/// The Deployment of machine-controller-manager.
pub async fn machine_controller(shoot: &Shoot) -> Result<Value> {
    shoot.get(Kind::Deployment, "machine-controller-manager").await?.context("it is gone")
}
