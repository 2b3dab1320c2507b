//! One process, five clouds: a cloud that is down, never responds or rejects the credentials does not affect others.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};

use super::scale_sets::{group, without_zones};
use crate::program;
use test_support::cluster::{ControlPlane, FAKER, Faker, eventually};
use test_support::openstack::{Fault, OpenStack, enable_groups};
use test_support::shoot::{Documents, SOON, Shoot, ensure_reports};

/// The request timeout for a cloud is 30 seconds. If its Workers occupied slots, the test would take twice as long.
const MOST: Duration = Duration::from_secs(40);
/// Maximum number of concurrent reconciles, and the number of Workers per broken cloud, which exceeds it.
const SLOTS: &str = "--worker-max-concurrent-reconciles=2";
const EACH: usize = 4;

/// A broken cloud, and the error that its Workers report.
struct Trouble {
    cloud: &'static str,
    what: &'static str,
    message: &'static [&'static str],
    code: Option<&'static str>,
}

const TROUBLES: [Trouble; 4] = [
    Trouble { cloud: "openstack", what: "down", message: &["\"search\"", "asking Keystone"], code: None },
    Trouble { cloud: "openstack", what: "silent", message: &["\"search\"", "for its server group"], code: None },
    Trouble {
        cloud: "openstack",
        what: "refuses",
        message: &["\"search\"", "status 401"],
        code: Some("ERR_INFRA_UNAUTHENTICATED"),
    },
    Trouble {
        cloud: "azure",
        what: "refuses",
        message: &["AADSTS700016", "scale set"],
        code: Some("ERR_INFRA_UNAUTHENTICATED"),
    },
];

impl Trouble {
    async fn create(&self, shoot: &Shoot, openstack: &OpenStack) -> Result<()> {
        let project = openstack.project(&shoot.namespace);
        match (self.cloud, self.what) {
            ("azure", _) => {
                program::azure()?.refuse_client(&shoot.namespace, 700_016, "Application was not found.");
                let refused = |documents: &mut Documents| {
                    without_zones(documents, &shoot.namespace);
                    credentials(documents)["clientID"] = json!(shoot.namespace);
                };
                return shoot.create(refused).await;
            }
            (_, "silent") => project.set(|state| state.delay = Duration::from_secs(600)),
            (_, "refuses") => project.set(|state| state.fails.push(Fault::of("authenticate", 401, "{}"))),
            _ => {}
        }
        let asking = |documents: &mut Documents| {
            enable_groups(documents.all(), &project, &[("search", "affinity")]);
            if self.what == "down" {
                // No server listens on this port.
                credentials(documents)["authURL"] = json!("http://127.0.0.1:1/identity");
            }
        };
        shoot.create_example_with("openstack", asking).await
    }

    /// Waits until the Worker reports the error.
    async fn is_reported(&self, shoot: &Shoot) -> Result<()> {
        eventually(SOON, &format!("{} {} is reported", self.cloud, self.what), async || {
            let status = &shoot.worker().await?["status"];
            let error = &status["lastError"];
            let reported = if error.is_null() { &status["lastOperation"] } else { error };
            ensure_reports(&reported["description"], self.message)?;
            let codes = self.code.map_or(Value::Null, |code| json!([code]));
            ensure!(error["codes"] == codes, "{error}");
            Ok(())
        })
        .await
    }
}

fn credentials(documents: &mut Documents) -> &mut Value {
    let mut all = documents.all().iter_mut();
    let secret = all.find(|document| document["metadata"]["name"] == "cloudprovider");
    &mut secret.expect("there are credentials")["stringData"]
}

#[tokio::test]
async fn a_cloud_in_trouble_disturbs_no_worker_of_another() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let _machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let program = program::start_with(&control_plane, "clouds", &[SLOTS])?;
    let openstack = OpenStack::start()?;
    let mut troubled = Vec::new();
    for trouble in TROUBLES.iter().flat_map(|trouble| std::iter::repeat_n(trouble, EACH)) {
        let shoot = Shoot::new(&control_plane, "troubled").await?;
        trouble.create(&shoot, &openstack).await?;
        troubled.push((trouble, shoot));
    }
    let began = Instant::now();
    let others = ["azure", "aws", "gcp", "alicloud", "openstack"].map(async |cloud| {
        let shoot = Shoot::new(&control_plane, cloud).await?;
        let project = openstack.project(&shoot.namespace);
        match cloud {
            "azure" => {
                group(&shoot)?;
                shoot.create(|documents| without_zones(documents, &shoot.namespace)).await?;
            }
            "openstack" => {
                let asking =
                    |documents: &mut Documents| enable_groups(documents.all(), &project, &[("search", "affinity")]);
                shoot.create_example_with(cloud, asking).await?;
            }
            _ => shoot.create_example(cloud).await?,
        }
        shoot.succeeded().await.with_context(|| cloud.to_owned())?;
        ensure!(began.elapsed() < MOST, "{cloud} took {:?}", began.elapsed());
        anyhow::Ok(shoot)
    });
    let others = try_join_all(others).await?;
    let reported = troubled.iter().map(|(trouble, shoot)| trouble.is_reported(shoot));
    for reported in join_all(reported).await {
        reported?;
    }
    // A change is also reconciled while all broken Workers are retried.
    for shoot in &others {
        shoot.change_worker(|_| {}).await?;
        shoot.succeeded().await?;
    }
    program.ensure_running()
}
