//! Server groups in OpenStack: created for a policy, replaced with it, and deleted with the Worker. Also trusted CA
//! certificates.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::nothing_differs::{Requester, responses_only};
use crate::program;
use test_support::cluster::eventually;
use test_support::leaks;
use test_support::openstack::{OpenStack, Project, enable_groups, made, set_policy};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports};

#[tokio::test]
async fn server_group_follows_its_policy_and_worker() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "groups").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let project = create(&shoot, program::openstack()?, json!({})).await?;
    let worker = shoot.succeeded().await?;
    ensure_grouped(&shoot, &worker, &made(1)).await?;
    ensure!(policies(&project) == [json!(["anti-affinity"])], "{:?}", policies(&project));
    let untouched = class_of(&shoot, "web").await?;

    shoot.change_worker(|worker| set_policy(worker, "search", "soft-anti-affinity")).await?;
    let worker = shoot.succeeded().await?;
    ensure_grouped(&shoot, &worker, &made(2)).await?;
    eventually(SOON, "the group of the old policy is gone", async || {
        ensure!(policies(&project) == [json!(["soft-anti-affinity"])], "{:?}", policies(&project));
        Ok(())
    })
    .await?;
    ensure!(class_of(&shoot, "web").await? == untouched, "a pool without a policy rolls");
    // A no-op request makes as few Kubernetes requests as at a cloud without dependencies.
    project.take_calls();
    responses_only(cluster, &shoot, Requester::Gardenlet).await?;
    let calls = project.calls();
    ensure!(
        calls == ["authenticate".to_owned(), format!("get {}", made(2)), "list".to_owned(), "list offset=1".to_owned()],
        "{calls:?}"
    );

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await?;
    ensure!(project.names().is_empty(), "{:?}", project.names());
    leaks::ensure_no_secrets("the log", &program::log(cluster)?)
}

#[tokio::test]
async fn only_a_certificate_that_the_credentials_trust_is_talked_to() -> Result<()> {
    let cluster = program::shared().await?;
    let openstack = program::openstack_tls()?;
    for trust in [json!({"caCert": openstack.certificate()}), json!({"insecure": "true"})] {
        let shoot = Shoot::new(cluster, "trusted").await?;
        let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
        create(&shoot, openstack, trust).await?;
        ensure_grouped(&shoot, &shoot.succeeded().await?, &made(1)).await?;
    }
    let shoot = Shoot::new(cluster, "untrusted").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let project = create(&shoot, openstack, json!({})).await?;
    let refused = |worker: &Value| {
        let error = &worker["status"]["lastError"]["description"];
        leaks::ensure_no_secrets("the error", &error.to_string())?;
        ensure_reports(error, &["\"search\"", "asking Keystone", "certificate"])
    };
    let worker = shoot.fails(refused).await?;
    ensure!(worker["status"]["machineDeployments"].as_array().is_some_and(|pools| pools.len() == 2), "web has nodes");
    ensure!(project.calls().is_empty(), "credentials went to a server that is not trusted");
    let trust = |secret: &mut Value| secret["stringData"] = json!({"caCert": openstack.certificate()});
    shoot.change(Kind::Secret, "cloudprovider", trust).await?;
    shoot.change_worker(|_| {}).await?;
    ensure_grouped(&shoot, &shoot.succeeded().await?, &made(1)).await?;
    leaks::ensure_no_secrets("the log", &program::log(cluster)?)
}

/// The example's Worker with a policy for pool search, and further credentials.
async fn create(shoot: &Shoot, openstack: &OpenStack, credentials: Value) -> Result<Project> {
    let project = openstack.project(&shoot.namespace);
    shoot
        .create_example_with("openstack", |documents| {
            enable_groups(documents.all(), &project, &[("search", "anti-affinity")]);
            let mut all = documents.all().iter_mut();
            let secret = all.find(|document| document["metadata"]["name"] == "cloudprovider");
            let data = &mut secret.expect("the example has credentials")["stringData"];
            for (key, value) in credentials.as_object().into_iter().flatten() {
                data[key] = value.clone();
            }
        })
        .await?;
    Ok(project)
}

fn policies(project: &Project) -> Vec<Value> {
    project.set(|state| state.groups.iter().map(|group| group["policies"].clone()).collect())
}

/// The provider specs of a pool's classes.
async fn class_of(shoot: &Shoot, pool: &str) -> Result<Vec<Value>> {
    let mut classes = shoot.list(Kind::MachineClass).await?;
    classes.retain(|class| class["metadata"]["name"].as_str().is_some_and(|name| name.contains(&format!("-{pool}-"))));
    Ok(classes.into_iter().map(|class| class["providerSpec"].clone()).collect())
}

/// Checks that pool search has this group, in its class and in the status, and that web has none.
async fn ensure_grouped(shoot: &Shoot, worker: &Value, id: &str) -> Result<()> {
    let records = &worker["status"]["providerStatus"]["serverGroupDependencies"];
    let recorded: Vec<_> = records.as_array().into_iter().flatten().map(|record| &record["id"]).collect();
    ensure!(recorded == [id] && records[0]["poolName"] == "search", "{records}");
    let group = |class: &Value| class["spec"]["serverGroupID"].clone();
    let [search, web] = [class_of(shoot, "search").await?, class_of(shoot, "web").await?];
    ensure!(search.iter().map(group).eq([json!(id)]), "{search:?}");
    ensure!(web.iter().all(|class| group(class).is_null()), "{web:?}");
    Ok(())
}
