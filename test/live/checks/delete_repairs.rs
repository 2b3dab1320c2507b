//! While machines of a deleted Worker exist, machine-controller-manager needs their classes and Secrets to delete them.
//! Lost or edited ones are restored, and those that cannot be restored are reported.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::scale_sets::{group, without_zones};
use crate::program;
use test_support::cluster::{ControlPlane, Deletion, FAKER, Faker, MachineControllerManager, eventually};
use test_support::leaks;
use test_support::shoot::{Documents, Kind, SOON, Shoot, ensure_reports, pool};

const HOLDER: &str = "live.example/held";

#[tokio::test]
async fn machines_whose_class_was_lost_are_deleted() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "delete-lost").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let class = class_of(&shoot, "stern").await?;
    for kind in [Kind::MachineClass, Kind::ClassSecret] {
        lose(&shoot, kind, &class).await?;
    }

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await?;
    ensure!(shoot.ready_nodes().await?.is_empty(), "nodes are left");
    Ok(())
}

#[tokio::test]
async fn a_deletion_repairs_what_its_machines_need_and_nothing_else() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "delete-repair").await?;
    let azure = group(&shoot)?;
    let _machines = held_machines(&shoot, cluster, 3, |documents| without_zones(documents, &shoot.namespace)).await?;
    let (calls, versions) = (azure.calls().len(), class_versions(&shoot).await?);
    let [bow, stern] = [class_of(&shoot, "bow").await?, class_of(&shoot, "stern").await?];
    let whole = contents(&shoot).await?;

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    reports(&shoot, &["deleted: 3 machines, 2 machine classes, 2 machine class secrets", HOLDER]).await?;
    ensure!(class_versions(&shoot).await? == versions, "what did not differ was written");

    for kind in [Kind::MachineClass, Kind::ClassSecret] {
        lose(&shoot, kind, &bow).await?;
    }
    shoot
        .change(Kind::MachineClass, &stern, |class| class["credentialsSecretRef"]["name"] = json!("elsewhere"))
        .await?;
    shoot.change(Kind::ClassSecret, &stern, |secret| secret["data"]["userData"] = json!("")).await?;
    become_whole(&shoot, &whole).await?;

    // A change that the API server rejects is reported.
    shoot
        .change(Kind::ClassSecret, &bow, |secret| {
            secret["data"]["userData"] = json!("");
            secret["immutable"] = json!(true);
        })
        .await?;
    let text = reports(&shoot, &["3 machines", &bow, "can't be repaired", "immutable"]).await?;
    leaks::ensure_no_secrets("the status", &text)?;
    lose(&shoot, Kind::ClassSecret, &bow).await?;
    become_whole(&shoot, &whole).await?;

    // An object that cannot be planned is only reported if it is missing.
    shoot.change(Kind::Cluster, &shoot.namespace, |cluster| set_machine_types(cluster, &[])).await?;
    lose(&shoot, Kind::MachineClass, &stern).await?;
    let text = reports(&shoot, &["3 machines", &stern, "is missing", "pool \"stern\": machineType"]).await?;
    ensure!(!text.contains(&bow), "nothing of pool bow is missing: {text}");
    let known = [json!({"name": "Standard_F4s_v2", "capabilities": {"architecture": ["amd64"]}})];
    shoot.change(Kind::Cluster, &shoot.namespace, |cluster| set_machine_types(cluster, &known)).await?;
    become_whole(&shoot, &whole).await?;

    let requested = azure.calls().len() - calls;
    ensure!(requested == 0, "Azure was asked {requested} times");
    release(&shoot).await?;
    shoot.deleted().await
}

#[tokio::test]
async fn deletion_continues_without_user_created_objects() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "delete-lacking").await?;
    let _machines = held_machines(&shoot, cluster, 3, |_| {}).await?;
    let stern = class_of(&shoot, "stern").await?;
    let old: BTreeSet<String> = shoot.names(Kind::MachineClass).await?;
    let boot = shoot.get(Kind::Secret, "boot").await?.context("it is there")?;

    // No operation was requested for this roll, so no object uses its class.
    shoot.change(Kind::Worker, "fleet", |worker| pool(worker, "bow")["nodeAgentSecretName"] = json!("another")).await?;
    let bow = class_of(&shoot, "bow-").await?;
    lose(&shoot, Kind::MachineClass, &bow).await?;
    lose(&shoot, Kind::ClassSecret, &stern).await?;
    lose(&shoot, Kind::Secret, "boot").await?;
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;

    let text = reports(&shoot, &["3 machines, 2 machine classes", &stern, "Secret \"boot\" does not exist"]).await?;
    ensure!(text.contains("the Secret of machine class") && text.contains(&bow), "{text}");
    leaks::ensure_no_secrets("the status", &text)?;
    let mut boot = boot;
    boot["metadata"] = json!({"name": "boot", "namespace": shoot.namespace});
    shoot.api(Kind::Secret).create(&PostParams::default(), &serde_json::from_value(boot)?).await?;
    eventually(SOON, "the Secret of the class is back", async || {
        ensure!(shoot.get(Kind::ClassSecret, &stern).await?.is_some(), "it is missing");
        Ok(())
    })
    .await?;
    reports(&shoot, &[&bow, "has another class now"]).await?;
    let made: Vec<_> = shoot.names(Kind::MachineClass).await?.difference(&old).cloned().collect();
    ensure!(made.is_empty(), "{made:?} were made for nothing");
    release(&shoot).await?;
    shoot.deleted().await
}

/// A reconciled Worker with this number of machines, whose finalizers block their deletion.
async fn held_machines(
    shoot: &Shoot,
    cluster: &ControlPlane,
    count: usize,
    change: impl FnOnce(&mut Documents),
) -> Result<Faker> {
    let machines = Faker::start_with_machines(cluster.client(FAKER).await?, Some(&shoot.namespace), Duration::ZERO);
    shoot.create(change).await?;
    shoot.succeeded().await?;
    let all = eventually(SOON, "all machines are there", async || {
        let machines = shoot.list(Kind::Machine).await?;
        ensure!(machines.len() == count, "{} of {count}", machines.len());
        Ok(machines)
    })
    .await?;
    set_finalizers_of_machines(shoot, &all, &[HOLDER]).await?;
    Ok(machines)
}

async fn release(shoot: &Shoot) -> Result<()> {
    set_finalizers_of_machines(shoot, &shoot.list(Kind::Machine).await?, &[]).await
}

async fn set_finalizers_of_machines(shoot: &Shoot, machines: &[Value], finalizers: &[&str]) -> Result<()> {
    for machine in machines {
        let name = machine["metadata"]["name"].as_str().unwrap_or_default();
        set_finalizers(shoot, Kind::Machine, name, finalizers).await?;
    }
    Ok(())
}

async fn set_finalizers(shoot: &Shoot, kind: Kind, name: &str, finalizers: &[&str]) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    shoot.api(kind).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Deletes an object regardless of its finalizers. It may be recreated with another UID.
async fn lose(shoot: &Shoot, kind: Kind, name: &str) -> Result<()> {
    let uid = shoot.get(kind, name).await?.context("it is there")?["metadata"]["uid"].clone();
    shoot.api(kind).delete(name, &DeleteParams::default()).await?;
    eventually(SOON, &format!("{kind:?} {name} is lost"), async || {
        let Some(object) = shoot.get(kind, name).await?.filter(|object| object["metadata"]["uid"] == uid) else {
            return Ok(());
        };
        set_finalizers(shoot, kind, name, &[]).await?;
        bail!("it is held by {}", object["metadata"]["finalizers"])
    })
    .await
}

fn set_machine_types(cluster: &mut Value, types: &[Value]) {
    cluster["spec"]["cloudProfile"]["spec"]["machineTypes"] = json!(types);
}

/// The first class of a pool, by its name.
async fn class_of(shoot: &Shoot, pool: &str) -> Result<String> {
    let names = shoot.names(Kind::MachineClass).await?;
    let name = names.into_iter().find(|name| name.starts_with(pool)).context("the pool has no class")?;
    Ok(format!("{}-{name}", shoot.namespace))
}

async fn class_versions(shoot: &Shoot) -> Result<[BTreeSet<[String; 3]>; 2]> {
    Ok([shoot.versions(Kind::MachineClass).await?, shoot.versions(Kind::ClassSecret).await?])
}

/// Content of classes and their Secrets, without other metadata.
async fn contents(shoot: &Shoot) -> Result<Vec<Value>> {
    let mut objects = shoot.list(Kind::MachineClass).await?;
    objects.extend(shoot.list(Kind::ClassSecret).await?);
    for object in &mut objects {
        let metadata = &object["metadata"];
        object["metadata"] = json!({"name": metadata["name"], "labels": metadata["labels"]});
    }
    Ok(objects)
}

/// Waits until classes and Secrets have that content again.
async fn become_whole(shoot: &Shoot, whole: &[Value]) -> Result<()> {
    eventually(SOON, "classes and Secrets are as they were", async || {
        let now = contents(shoot).await?;
        ensure!(now == whole, "they were {whole:?} and are {now:?}");
        Ok(())
    })
    .await
}

/// Waits until the description of the Worker's operation contains all of these words. Returns it.
async fn reports(shoot: &Shoot, words: &[&str]) -> Result<String> {
    eventually(SOON, "the Worker tells what is left", async || {
        let last = &shoot.worker().await?["status"]["lastOperation"];
        ensure!(last["type"] == "Delete" && last["state"] == "Processing", "{last}");
        ensure_reports(&last["description"], words)?;
        Ok(last["description"].as_str().unwrap_or_default().to_owned())
    })
    .await
}
