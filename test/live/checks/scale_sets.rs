//! A shoot without zones: its machines are placed in scale sets, which are created and deleted as its pools need them.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::nothing_differs::{Requester, responses_only};
use crate::program;
use test_support::arm::{Group, Operations};
use test_support::cluster::{ControlPlane, FAKER, Faker, eventually};
use test_support::shoot::{Documents, Kind, SOON, Shoot, ensure_reports, pool};

/// Makes the shoot non-zonal, with a resource group named like its namespace.
pub(super) fn without_zones(documents: &mut Documents, namespace: &str) {
    let worker = documents.of_kind("Worker");
    let infrastructure = &mut worker["spec"]["infrastructureProviderStatus"];
    infrastructure["zoned"] = json!(false);
    infrastructure["resourceGroup"]["name"] = json!(namespace);
    for pool in worker["spec"]["pools"].as_array_mut().into_iter().flatten() {
        pool["zones"] = json!([]);
    }
    set_fault_domains(documents.of_kind("Cluster"), 3);
}

fn set_fault_domains(cluster: &mut Value, count: i32) {
    cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["countFaultDomains"] =
        json!([{"region": "swedencentral", "count": count}]);
}

pub(super) fn group(shoot: &Shoot) -> Result<Group> {
    Ok(program::azure()?.group("subscription-of-the-live-tests", &shoot.namespace))
}

/// Pool, name and id of every record. Checks that the pools' classes refer to them.
async fn records(shoot: &Shoot) -> Result<Vec<[String; 3]>> {
    let worker = shoot.worker().await?;
    let records = worker["status"]["providerStatus"]["vmoDependencies"].as_array().cloned().unwrap_or_default();
    let text = |record: &Value, member: &str| record[member].as_str().unwrap_or_default().to_owned();
    let records: Vec<_> =
        records.iter().map(|record| ["poolName", "name", "id"].map(|member| text(record, member))).collect();
    let mut in_use: Vec<String> = Vec::new();
    for class in shoot.list(Kind::MachineClass).await? {
        let set = &class["providerSpec"]["properties"]["machineSet"];
        ensure!(set["kind"] == "vmo", "a class without a scale set: {class}");
        in_use.push(set["id"].as_str().unwrap_or_default().to_owned());
    }
    in_use.sort();
    let mut recorded: Vec<String> = records.iter().map(|[.., id]| id.clone()).collect();
    recorded.sort();
    ensure!(recorded == in_use, "records {records:?}, classes are for {in_use:?}");
    Ok(records)
}

fn names(records: &[[String; 3]]) -> Vec<String> {
    records.iter().map(|[_, name, _]| name.clone()).collect()
}

#[tokio::test]
async fn scale_sets_come_and_go_with_what_pools_need() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "no-zones").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let group = group(&shoot)?;
    group.operations(Operations::Polled { times: 2, retry_after: 0 });
    shoot.create(|documents| without_zones(documents, &shoot.namespace)).await?;
    shoot.succeeded().await?;
    let first = records(&shoot).await?;
    ensure!(group.names() == names(&first) && first.len() == 2, "{first:?}, at Azure {:?}", group.names());
    let deployments = shoot.names(Kind::MachineDeployment).await?;
    ensure!(deployments.iter().eq(["bow", "stern"]), "{deployments:?}");

    // A no-op request queries Azure and changes nothing.
    let before = shoot.versions(Kind::MachineClass).await?;
    responses_only(cluster, &shoot, Requester::Gardenlet).await?;
    ensure!(
        records(&shoot).await? == first && shoot.versions(Kind::MachineClass).await? == before,
        "something changed"
    );

    // Other fault domains: create new scale sets, replace the machines, then delete the old scale sets.
    shoot.change(Kind::Cluster, &shoot.namespace, |cluster| set_fault_domains(cluster, 2)).await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    let second = records(&shoot).await?;
    ensure!(group.names() == names(&second), "{second:?}, at Azure {:?}", group.names());
    ensure!(names(&second).iter().all(|name| !names(&first).contains(name)), "{first:?} became {second:?}");
    ensure!(group.scale_sets().iter().all(|set| set.fault_domains == 2), "{:?}", group.scale_sets());

    // The scale set of a removed pool is deleted.
    shoot
        .change_worker(|worker| {
            let pools = worker["spec"]["pools"].as_array_mut().expect("pools are a list");
            pools.retain(|pool| pool["name"] == "bow");
        })
        .await?;
    shoot.succeeded().await?;
    let third = records(&shoot).await?;
    ensure!(third.len() == 1 && third[0] == second[0] && group.names() == names(&third), "{third:?}");

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await?;
    ensure!(group.names().is_empty(), "left at Azure: {:?}", group.names());
    for call in group.calls() {
        println!("{}", call.in_flows());
    }
    Ok(())
}

#[tokio::test]
async fn no_pool_waits_for_the_scale_set_of_another() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "new-pool").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let group = group(&shoot)?;
    shoot.create(|documents| without_zones(documents, &shoot.namespace)).await?;
    shoot.succeeded().await?;

    group.operations(Operations::Held);
    shoot
        .change_worker(|worker| {
            pool(worker, "bow")["maximum"] = json!(9);
            let mut mast = pool(worker, "stern").clone();
            mast["name"] = json!("mast");
            worker["spec"]["pools"].as_array_mut().expect("pools are a list").push(mast);
        })
        .await?;
    let waiting = eventually(SOON, "pool bow goes on and pool mast waits", async || {
        let worker = shoot.worker().await?;
        ensure_reports(&worker["status"]["lastOperation"]["description"], &["\"mast\"", "waiting for its scale set"])?;
        let bounds = worker["status"]["machineDeployments"].as_array().cloned().unwrap_or_default();
        ensure!(bounds.iter().any(|bound| bound["maximum"] == 9), "{bounds:?}");
        Ok(worker)
    })
    .await?;
    ensure!(waiting["status"]["lastOperation"]["state"] == "Processing", "{}", waiting["status"]["lastOperation"]);

    // The operation does not wait for the scale set of a pool that has been removed.
    shoot
        .change_worker(|worker| {
            worker["spec"]["pools"].as_array_mut().expect("pools are a list").retain(|pool| pool["name"] != "mast");
        })
        .await?;
    eventually(SOON, "pool mast is forgotten", async || {
        let description = &shoot.worker().await?["status"]["lastOperation"]["description"];
        ensure!(!description.as_str().unwrap_or_default().contains("mast"), "{description}");
        Ok(())
    })
    .await?;
    group.operations(Operations::AtOnce);
    group.complete_operations();
    shoot.succeeded().await?;
    ensure!(group.names() == names(&records(&shoot).await?), "the begun one is gone too: {:?}", group.names());
    Ok(())
}

#[tokio::test]
async fn a_refused_client_is_the_worker_s_error_until_it_is_accepted() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "no-token").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let azure = program::azure()?;
    azure.refuse_client(&shoot.namespace, 700_016, "Application was not found in the directory.");
    shoot
        .create(|documents| {
            without_zones(documents, &shoot.namespace);
            documents.of_kind("Secret")["stringData"]["clientID"] = json!(shoot.namespace);
        })
        .await?;
    let failed = shoot.fails(|_| Ok(())).await?;
    let error = &failed["status"]["lastError"];
    ensure!(error["codes"] == json!(["ERR_INFRA_UNAUTHENTICATED"]), "{error}");
    ensure_reports(&error["description"], &["AADSTS700016", "bow", "stern"])?;
    ensure!(group(&shoot)?.calls().is_empty(), "nothing can be asked without a token");
    azure.accept_client(&shoot.namespace);
    shoot.succeeded().await?;
    Ok(())
}

#[tokio::test]
async fn a_crash_during_an_azure_operation_creates_nothing_twice() -> Result<()> {
    let cluster = ControlPlane::start().await?;
    let _machines = Faker::start(cluster.client(FAKER).await?, None, Duration::ZERO);
    let mut running = program::start(&cluster)?;
    let shoot = Shoot::new(&cluster, "killed-at-azure").await?;
    let group = group(&shoot)?;
    group.operations(Operations::Held);
    shoot.create(|documents| without_zones(documents, &shoot.namespace)).await?;
    eventually(SOON, "both scale sets are begun", async || {
        ensure!(group.names().len() == 2, "{:?}", group.names());
        Ok(())
    })
    .await?;
    program::kill(running).await?;
    group.complete_operations();
    group.operations(Operations::AtOnce);
    running = program::start(&cluster)?;
    shoot.succeeded().await?;
    let made = records(&shoot).await?;
    ensure!(group.names() == names(&made) && made.len() == 2, "{made:?}, at Azure {:?}", group.names());

    // Kill the controller again, while it replaces the scale sets.
    shoot.change(Kind::Cluster, &shoot.namespace, |cluster| set_fault_domains(cluster, 2)).await?;
    let requests = group.calls().len();
    shoot.change_worker(|_| {}).await?;
    eventually(SOON, "Azure is asked for new ones", async || {
        ensure!(group.calls().len() > requests + 1, "{:?}", group.calls());
        Ok(())
    })
    .await?;
    program::kill(running).await?;
    running = program::start(&cluster)?;
    shoot.succeeded().await?;
    let replaced = records(&shoot).await?;
    ensure!(group.names() == names(&replaced) && replaced.len() == 2, "{replaced:?}, at Azure {:?}", group.names());
    running.ensure_running()
}
