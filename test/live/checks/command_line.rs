//! `preview --live`, for Workers and Shoots, and `why` read the cluster that the controller writes to.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::CONTROLLER;
use test_support::shoot::{Shoot, set_image};

#[tokio::test]
async fn a_roll_is_seen_before_it_happens_and_explained_after_it() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "commands").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    let worker = shoot.succeeded().await?;
    let kubeconfig = cluster.kubeconfig_file(CONTROLLER)?;

    let live = ["preview", "--live", "--namespace", &shoot.namespace];
    let unchanged = run(&kubeconfig, &live).await?;
    ensure!(unchanged.status.code() == Some(0), "what was just made needs no change: {unchanged:?}");

    let mut expected = worker.clone();
    set_image(&mut expected, "bow", IMAGE);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("after.json");
    // Only the Worker: related objects come from the cluster.
    std::fs::write(&file, expected.to_string())?;
    let file = file.to_str().context("the folder's name is no text")?;
    let rolling = run(&kubeconfig, &[&live[..], &[file]].concat()).await?;
    let printed = String::from_utf8_lossy(&rolling.stdout);
    ensure!(rolling.status.code() == Some(5), "another image rolls: {rolling:?}");
    for word in ["bow", "ROLL", "nodeAgentSecretName"] {
        ensure!(printed.contains(word), "no {word} in {printed}");
    }

    shoot.change_worker(|worker| set_image(worker, "bow", IMAGE)).await?;
    shoot.succeeded().await?;
    let deployment = format!("{0}/{0}-bow-z1", shoot.namespace);
    let reported = run(&kubeconfig, &["why", &deployment]).await?;
    let printed = String::from_utf8_lossy(&reported.stdout);
    ensure!(reported.status.code() == Some(0), "{reported:?}");
    for word in ["nodeAgentSecretName", "machineImage"] {
        ensure!(printed.contains(word), "no {word} in {printed}");
    }
    Ok(())
}

/// The Worker in the seed differs from what gardenlet would render today, but the preview only reports the effect of
/// the edit.
#[tokio::test]
async fn an_edit_of_a_shoot_is_compared_with_its_worker_on_the_seed() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "mirror").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let mirror = |namespace: &str| {
        let pool = |name: &str, zones: Value, surge: i64| {
            json!({
                "name": name, "minimum": 2, "maximum": 4, "maxSurge": surge, "maxUnavailable": 0, "zones": zones,
                "machine": {"type": "Standard_F4s_v2", "architecture": "amd64",
                    "image": {"name": "harborlinux", "version": "12.1.0"}},
                "volume": {"type": "Premium_LRS", "size": "64Gi"},
            })
        };
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "mirrored", "namespace": "garden-live"},
            "spec": {
                "cloudProfile": {"kind": "CloudProfile", "name": "azure-live"}, "region": "swedencentral",
                "kubernetes": {"version": "1.34.3", "kubelet": {"failSwapOn": true}},
                "provider": {"type": "azure", "workers": [pool("bow", json!(["1", "2"]), 2), pool("stern", json!(["3"]), 1)]},
            },
            "status": {"technicalID": namespace},
        })
    };
    let mut profile = Value::Null;
    shoot
        .create(|documents| {
            let cluster = documents.of_kind("Cluster");
            let namespace = cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            cluster["spec"]["shoot"] = mirror(&namespace);
            let spec = &mut cluster["spec"]["cloudProfile"]["spec"];
            spec["kubernetes"] = json!({"versions": [{"version": "1.34.3"}]});
            let versions = ["12.1.0", IMAGE].map(|version| json!({"version": version, "architectures": ["amd64"]}));
            spec["machineImages"] = json!([{"name": "harborlinux", "versions": versions}]);
            profile = cluster["spec"]["cloudProfile"].clone();
        })
        .await?;
    shoot.succeeded().await?;
    let kubeconfig = cluster.kubeconfig_file(CONTROLLER)?;
    let folder = tempfile::tempdir()?;
    let preview = async |edited: &Value, profile: Option<&Value>| -> Result<(Option<i32>, Value)> {
        let [file, of_profile] = ["shoot.json", "profile.json"].map(|name| folder.path().join(name));
        std::fs::write(&file, edited.to_string())?;
        std::fs::write(&of_profile, profile.unwrap_or(&Value::Null).to_string())?;
        let [file, of_profile] = [&file, &of_profile].map(|path| path.to_str().unwrap_or_default());
        let profiles = ["--profiles", of_profile];
        let profiles = if profile.is_some() { &profiles[..] } else { &[] };
        let output = run(&kubeconfig, &[&["preview", "--live", "-o", "json", file], profiles].concat()).await?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| text.into())))
    };
    let stored = mirror(&shoot.namespace);
    let same = preview(&stored, None).await?;
    ensure!(same.0 == Some(0) && same.1["total"]["workers"] == 1, "{same:#?}");

    let mut edited = stored.clone();
    edited["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = IMAGE.into();
    let rolls = preview(&edited, None).await?;
    ensure!(rolls.0 == Some(5), "{rolls:#?}");
    ensure!(
        rolls.1["total"]["placements"]
            == json!({"ROLL": 2, "IN-PLACE": 0, "DELETE": 0, "CREATE": 0, "SCALE": 0,
        "METADATA": 0, "NONE": 1}),
        "{rolls:#?}"
    );
    let placement = &rolls.1["workers"][0]["placements"][0];
    ensure!(placement["nodes"]["seen"] == true && placement["nodes"]["before"] == 1, "{placement:#}");
    let cause = &placement["causes"][0];
    ensure!(cause["object"] == "Shoot" && cause["old"] == "12.1.0", "{cause:#}");

    // The Worker keeps its pools' image when the CloudProfile loses it.
    let mut smaller = profile.clone();
    for versions in ["/spec/machineImages/0/versions", "/spec/providerConfig/machineImages/0/versions"] {
        let versions = smaller.pointer_mut(versions).and_then(Value::as_array_mut).context("no versions")?;
        versions.retain(|version| version["version"] == IMAGE);
    }
    let kept = preview(&stored, Some(&smaller)).await?;
    ensure!(kept.0 == Some(0), "{kept:#?}");

    let mut elsewhere = stored;
    elsewhere["status"] = json!({"technicalID": "shoot--live--elsewhere"});
    let unknown = preview(&elsewhere, None).await?;
    let message = unknown.1["workers"][0]["findings"][0]["message"].to_string();
    ensure!(unknown.0 == Some(3) && message.contains("the seed has no Worker in namespace"), "{unknown:#?}");
    Ok(())
}

/// The image in shoot.yaml that is not in use.
const IMAGE: &str = "12.2.0";

pub(super) async fn run(kubeconfig: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = tokio::process::Command::from(test_support::program::command());
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    command.output().await.with_context(|| format!("{arguments:?}"))
}
