//! gardenlet's part in moving a control plane: it saves the machines, deletes their objects, and requests them again on
//! the new seed, where only the VMs of the shoot exist. One control plane acts as both seeds.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::eventually;
use super::shoot::{Kind, SOON, Shoot};

/// Sets the operation annotation as gardenlet does.
pub async fn request(shoot: &Shoot, operation: &str) -> Result<()> {
    let annotate =
        |worker: &mut Value| worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!(operation);
    shoot.change(Kind::Worker, "fleet", annotate).await?;
    Ok(())
}

/// The machines that gardenlet saves, in the form of `status.state`.
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

/// The deployments in the form that gardenlet saves.
pub fn packed(deployments: &Value) -> Result<Value> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut gzip, &json!({"machineDeployments": deployments}))?;
    gzip.flush()?;
    Ok(json!({"state": base64::engine::general_purpose::STANDARD.encode(gzip.finish()?)}))
}

/// Deletes the Worker and all machine objects, while no program runs that could delete the VMs.
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

/// Tries once, because a controller may add finalizers concurrently.
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

/// Creates the Worker on its new seed: first without an operation, then with the saved state in its status.
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

pub async fn machine_controller(shoot: &Shoot) -> Result<Value> {
    shoot.get(Kind::Deployment, "machine-controller-manager").await?.context("it is gone")
}
