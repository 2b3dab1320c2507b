//! 500 Workers in one process: all of Azure, and of five clouds. Measures requests, CPU and memory per cloud. Each
//! OpenStack Worker has a server group in a fake OpenStack.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::controller;
use crate::figures::{head, row};
use crate::fleet::{Bench, PHASES};
use crate::load::SIDE_BY_SIDE;
use crate::workers::Workers;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, FAKER, Faker, memory};
use test_support::openstack::{OpenStack, enable_groups};
use test_support::shoot::Shoot;

const CLOUDS: [&str; 5] = ["azure", "aws", "gcp", "alicloud", "openstack"];
/// Workers per cloud.
const EACH: usize = 100;

pub(crate) async fn run() -> Result<()> {
    let one = mix("500 Workers of Azure", ["azure"; CLOUDS.len()]).await?;
    let five = mix("500 Workers of five clouds", CLOUDS).await?;
    head("Memory of five clouds", &["what", "RSS MiB after the run"]);
    row(&[&"one cloud", &format!("{one:.1}")]);
    row(&[&"five clouds", &format!("{five:.1}")]);
    row(&[&"more", &format!("{:.1}", five - one)]);
    Ok(())
}

/// Creates the Workers cloud by cloud and requests a reconcile of all. Returns the memory used afterwards.
async fn mix(title: &str, clouds: [&str; CLOUDS.len()]) -> Result<f64> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let _faker = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let openstack = OpenStack::start()?;
    let workers = Workers::follow(&client);
    let process = controller::start(&control_plane, &control_plane.kubeconfig_file(CONTROLLER)?)?;
    let pid = process.id().await?;
    head(title, &PHASES);
    for cloud in clouds {
        let shoots = (0..EACH).map(|_| Shoot::new(&control_plane, cloud));
        let shoots: Vec<Shoot> = stream::iter(shoots).buffer_unordered(SIDE_BY_SIDE).try_collect().await?;
        let names: Vec<String> = shoots.iter().map(|shoot| shoot.namespace.clone()).collect();
        let shoots: HashMap<&String, &Shoot> = names.iter().zip(&shoots).collect();
        let shoot = |namespace: &String| shoots.get(namespace).copied().context("a Worker of another phase");
        let bench = Bench { control_plane: &control_plane, client: &client, workers: &workers, names: &names, pid };
        let create = async |namespace: &String| create(shoot(namespace)?, cloud, &openstack).await;
        bench.phase(&format!("{cloud}: create"), create).await?;
        let confirm = async |namespace: &String| shoot(namespace)?.change_worker(|_| {}).await;
        bench.phase(&format!("{cloud}: no-op"), confirm).await?;
    }
    let used = memory(pid, "VmRSS")?;
    process.stop(Duration::from_secs(5)).await?;
    control_plane.stop().await?;
    Ok(used)
}

async fn create(shoot: &Shoot, cloud: &str, openstack: &OpenStack) -> Result<()> {
    if cloud == "azure" {
        return shoot.create(|_| {}).await;
    }
    let project = openstack.project(&shoot.namespace);
    shoot
        .create_example_with(cloud, |documents| {
            if cloud == "openstack" {
                enable_groups(documents.all(), &project, &[("search", "soft-anti-affinity")]);
            }
        })
        .await
}
