//! What the Go extension has left is seen as it is: by a shadow that may only read, by `takeover check`, and by the controller
//! that takes it over. Then the Go extension would find its own templates again.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::{CONTROLLER, ControlPlane, RESTRICTED, eventually};
use crate::controller::Controller;
use crate::left_by_go::left_by_go;
use crate::shoot::{Kind, SOON, Shoot};

/// A Worker with three pools in four places.
const CASE: &str = "azure/pools-zones/priorities";
/// Namespace and technical id in it.
const NAMESPACE: &str = "shoot--core--prod";
/// Name of its Worker.
const WORKER: &str = "prod";

/// What a shadow may do: read.
fn permissions_of_a_shadow() -> Value {
    let read = ["get", "list", "watch"];
    json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["workers", "clusters"], "verbs": read},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machineclasses", "machinedeployments", "machines", "machinesets"],
            "verbs": read},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": read},
    ])
}

/// A seed with the Worker as the Go extension has left it.
async fn seed(control_plane: &ControlPlane) -> Result<Shoot> {
    let shoot = Shoot::new(control_plane, "taken-over").await?;
    let bundle = left_by_go(CASE).context("no such case")?;
    let mut bundle: Value = serde_json::from_str(&bundle.to_string().replace(NAMESPACE, &shoot.namespace))?;
    let status = bundle["worker"]["status"].take();
    bundle["worker"]["metadata"]["finalizers"] = json!(["extensions.gardener.cloud/worker"]);
    let mut documents = Vec::new();
    for member in ["secrets", "existing"] {
        documents.extend(bundle[member].as_array().cloned().unwrap_or_default());
    }
    documents.extend([bundle["cluster"].take(), bundle["worker"].take()]);
    shoot.create_these(documents).await?;
    answer(&shoot, status).await?;
    Ok(shoot)
}

/// The Go extension says that it is done.
async fn answer(shoot: &Shoot, mut status: Value) -> Result<()> {
    let worker = shoot.get(Kind::Worker, WORKER).await?.context("no Worker")?;
    status["observedGeneration"] = worker["metadata"]["generation"].clone();
    status["lastOperation"] = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100,
        "lastUpdateTime": "2026-11-21T12:00:00Z", "description": "Successfully reconciled Worker"});
    let patch = Patch::Merge(json!({"status": status}));
    shoot.api(Kind::Worker).patch_status(WORKER, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Another Worker, to which the Go extension answers that it is done although it has changed nothing.
async fn set_spec(shoot: &Shoot, spec: &Value) -> Result<()> {
    shoot.change(Kind::Worker, WORKER, |worker| worker["spec"] = spec.clone()).await?;
    answer(shoot, json!({})).await
}

/// Waits until the metrics have these lines.
async fn measured(shadow: &Controller, lines: &[&str]) -> Result<()> {
    eventually(SOON, &format!("the metrics of the shadow say {lines:?}"), async || {
        let metrics = shadow.metrics().await?;
        for line in lines {
            let line = format!("gardener_extension_worker_shadow_{line}");
            let told: Vec<&str> = metrics.lines().filter(|line| line.contains("_shadow_")).collect();
            ensure!(metrics.lines().any(|told| told == line), "{told:#?}");
        }
        Ok(())
    })
    .await
}

async fn check(kubeconfig: &Path, namespace: &str, options: &[&str]) -> Result<Output> {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_gardener-extension-worker"));
    command.args(["takeover", "check", "--namespace", namespace]).args(options).arg("--kubeconfig").arg(kubeconfig);
    command.output().await.context("takeover check")
}

/// What machine-controller-manager looks at, and what machines are made of.
async fn substance(shoot: &Shoot) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for kind in [Kind::MachineDeployment, Kind::MachineClass, Kind::ClassSecret] {
        for mut object in shoot.list(kind).await? {
            let metadata = json!({"name": object["metadata"]["name"], "labels": object["metadata"]["labels"]});
            object["metadata"] = metadata;
            object["status"] = Value::Null;
            objects.push(object);
        }
    }
    Ok(objects)
}

#[tokio::test]
async fn what_the_go_extension_has_left_is_taken_over_without_a_new_template() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    control_plane.grant(RESTRICTED, serde_json::from_value(permissions_of_a_shadow())?).await?;
    let shoot = seed(&control_plane).await?;
    let left = substance(&shoot).await?;
    ensure!(left.len() > 8, "{} objects", left.len());
    let kubeconfig = control_plane.kubeconfig_file(CONTROLLER)?;

    // The shadow sees no difference.
    let shadow = Controller::start(&control_plane, "shadow", RESTRICTED, |program| program.arg("--shadow"))?;
    shadow.ready("ready\n").await?;
    let nothing = [
        r#"workers{standing="same"} 1"#,
        r#"workers{standing="differs"} 0"#,
        r#"differences{kind="MachineDeployment",would_be="changed"} 0"#,
        r#"rolls{cause="not-recorded"} 0"#,
    ];
    measured(&shadow, &nothing).await?;
    let checked = check(&kubeconfig, &shoot.namespace, &[]).await?;
    let shown = String::from_utf8_lossy(&checked.stdout);
    ensure!(checked.status.code() == Some(0) && shown.contains("No node would roll"), "{checked:?}");

    // A seeded difference is told by name, place and cause.
    let spec = shoot.get(Kind::Worker, WORKER).await?.context("no Worker")?["spec"].take();
    let mut other = spec.clone();
    other["pools"][0]["volume"]["size"] = json!("99Gi");
    let gone = other["pools"].as_array_mut().and_then(Vec::pop).context("no pool")?;
    set_spec(&shoot, &other).await?;
    measured(
        &shadow,
        &[
            r#"workers{standing="differs"} 1"#,
            r#"differences{kind="MachineDeployment",would_be="changed"} 1"#,
            r#"differences{kind="MachineDeployment",would_be="deleted"} 1"#,
            r#"differences{kind="MachineClass",would_be="created"} 1"#,
            r#"differences{kind="Secret",would_be="created"} 1"#,
            r#"rolls{cause="not-recorded"} 1"#,
        ],
    )
    .await?;
    let log = std::fs::read_to_string(shadow.process.log())?;
    let told = format!("MachineDeployment {}-a-z1 would be changed, and its machines replaced", shoot.namespace);
    let place = "providerSpec.properties.storageProfile.osDisk.diskSizeGB";
    ensure!(log.lines().any(|line| line.contains(&told) && line.contains(place)), "{told:?} is missing:\n{log}");
    let told = format!("MachineDeployment {}-{}-", shoot.namespace, gone["name"].as_str().unwrap_or_default());
    ensure!(log.lines().any(|line| line.contains(&told) && line.contains("would be deleted")), "{told:?}:\n{log}");
    let checked = check(&kubeconfig, &shoot.namespace, &["-o", "json"]).await?;
    let shown: Value = serde_json::from_slice(&checked.stdout).with_context(|| format!("{checked:?}"))?;
    ensure!(checked.status.code() == Some(3), "{checked:?}");
    ensure!(shown["rolls"][0]["pool"] == "a" && shown["rolls"][0]["differences"][0] == place, "{}", shown["rolls"]);
    ensure!(shown["permissions"]["missing"] == json!([]), "{}", shown["permissions"]);

    // The controller may more than the shadow.
    let refused = check(&kubeconfig, &shoot.namespace, &["--as", RESTRICTED]).await?;
    let shown = String::from_utf8_lossy(&refused.stdout);
    ensure!(
        refused.status.code() == Some(3) && shown.contains("MISSING") && shown.contains("workers/status"),
        "{refused:?}"
    );

    set_spec(&shoot, &spec).await?;
    measured(&shadow, &nothing).await?;
    let refused = check(&kubeconfig, &shoot.namespace, &["--as", RESTRICTED]).await?;
    ensure!(refused.status.code() == Some(1), "what is not allowed is no yes: {refused:?}");
    shadow.process.stop(Duration::from_secs(10)).await?;
    ensure!(substance(&shoot).await? == left, "the shadow has written");

    // Ours takes over: it writes its annotation, and nothing that anybody else looks at.
    let ours = Controller::start(&control_plane, "ours", CONTROLLER, |program| program)?;
    ours.ready("ready\n").await?;
    let request = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    shoot.api(Kind::Worker).patch(WORKER, &PatchParams::default(), &Patch::Merge(request)).await?;
    eventually(SOON, "all deployments are ours", async || {
        for deployment in shoot.list(Kind::MachineDeployment).await? {
            let annotations = &deployment["metadata"]["annotations"];
            ensure!(annotations["gardener-extension-worker/class-inputs"].is_string(), "{annotations}");
        }
        Ok(())
    })
    .await?;
    ours.process.stop(Duration::from_secs(10)).await?;
    // The Go extension would write what it has written before: nothing of that has changed.
    ensure!(substance(&shoot).await? == left, "something was written anew");
    control_plane.stop().await
}
