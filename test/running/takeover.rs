//! The Go extension's objects are compared by a read-only shadow and by `takeover check`, and taken over by the
//! controller. Afterwards, the Go extension would find its own templates again.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::controller::Controller;
use test_support::cluster::{CONTROLLER, ControlPlane, RESTRICTED, eventually};
use test_support::left_by_go::left_by_go;
use test_support::measured::cases::find;
use test_support::shoot::{Kind, SOON, Shoot};

/// A Worker with three pools and four machine deployments.
const CASE: &str = "azure/pools-zones/priorities";
/// Its namespace and technical id.
const NAMESPACE: &str = "shoot--core--prod";
/// The Worker's name.
const WORKER: &str = "prod";

/// A shadow only needs read permissions.
fn permissions_of_a_shadow() -> Value {
    let read = ["get", "list", "watch"];
    json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["workers", "clusters"], "verbs": read},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machineclasses", "machinedeployments", "machines", "machinesets"],
            "verbs": read},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": read},
    ])
}

/// A seed with the Worker as left by the Go extension.
async fn seed(control_plane: &ControlPlane, prefix: &str, change: impl FnOnce(&mut Value)) -> Result<Shoot> {
    seed_of(CASE, control_plane, prefix, change).await.map(|(shoot, _)| shoot)
}

/// Same as [`seed`] for any case. Also returns the Go extension's objects.
async fn seed_of(
    case: &str,
    control_plane: &ControlPlane,
    prefix: &str,
    change: impl FnOnce(&mut Value),
) -> Result<(Shoot, Vec<Value>)> {
    let shoot = Shoot::new(control_plane, prefix).await?;
    let bundle = left_by_go(find(case).map_err(Error::msg)?).with_context(|| format!("no case {case}"))?;
    let mut bundle: Value = serde_json::from_str(&bundle.to_string().replace(NAMESPACE, &shoot.namespace))?;
    change(&mut bundle);
    let status = bundle["worker"]["status"].take();
    bundle["worker"]["metadata"]["finalizers"] = json!(["extensions.gardener.cloud/worker"]);
    let written = bundle["existing"].as_array().cloned().unwrap_or_default();
    let mut documents = Vec::new();
    for member in ["secrets", "existing"] {
        documents.extend(bundle[member].as_array().cloned().unwrap_or_default());
    }
    documents.extend([bundle["cluster"].take(), bundle["worker"].take()]);
    shoot.create_these(documents).await?;
    response(&shoot, status).await?;
    Ok((shoot, written))
}

/// The Go extension writes a successful operation.
async fn response(shoot: &Shoot, mut status: Value) -> Result<()> {
    let worker = shoot.get(Kind::Worker, WORKER).await?.context("no Worker")?;
    status["observedGeneration"] = worker["metadata"]["generation"].clone();
    status["lastOperation"] = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100,
        "lastUpdateTime": "2026-11-21T12:00:00Z", "description": "Successfully reconciled Worker"});
    let patch = Patch::Merge(json!({"status": status}));
    shoot.api(Kind::Worker).patch_status(WORKER, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Changes the Worker. The Go extension reports success without changing anything.
async fn set_spec(shoot: &Shoot, spec: &Value) -> Result<()> {
    shoot.change(Kind::Worker, WORKER, |worker| worker["spec"] = spec.clone()).await?;
    response(shoot, json!({})).await
}

/// Waits until the metrics contain these lines.
async fn measured(shadow: &Controller, lines: &[&str]) -> Result<()> {
    eventually(SOON, &format!("the metrics of the shadow say {lines:?}"), async || {
        let metrics = shadow.metrics().await?;
        for line in lines {
            let line = format!("gardener_extension_worker_shadow_{line}");
            let shadow: Vec<&str> = metrics.lines().filter(|line| line.contains("_shadow_")).collect();
            ensure!(metrics.lines().any(|cached| cached == line), "{shadow:#?}");
        }
        Ok(())
    })
    .await
}

async fn check(kubeconfig: &Path, namespace: &str, options: &[&str]) -> Result<Output> {
    check_all(kubeconfig, &[&["--namespace", namespace], options].concat()).await
}

async fn check_all(kubeconfig: &Path, options: &[&str]) -> Result<Output> {
    let mut command = tokio::process::Command::from(test_support::program::command());
    command.args(["takeover", "check"]).args(options).arg("--kubeconfig").arg(kubeconfig);
    command.output().await.context("takeover check")
}

/// The parts of objects that affect machine-controller-manager and machines.
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
    let shoot = seed(&control_plane, "taken-over", |_| {}).await?;
    let left = substance(&shoot).await?;
    ensure!(left.len() > 8, "{} objects", left.len());
    let kubeconfig = control_plane.kubeconfig_file(CONTROLLER)?;

    // The shadow finds no differences.
    let shadow = Controller::start(&control_plane, "shadow", RESTRICTED, |program| program.arg("--shadow"))?;
    shadow.ready("ready\n").await?;
    let nothing = [
        r#"workers{standing="same"} 1"#,
        r#"workers{standing="differs"} 0"#,
        r#"differences{kind="MachineDeployment",would_be="changed"} 0"#,
        r#"rolls{cause="not-recorded"} 0"#,
    ];
    measured(&shadow, &nothing).await?;
    one_summary_and_no_line_of_a_worker_that_is_the_same(&shadow, &shoot).await?;
    let checked = check(&kubeconfig, &shoot.namespace, &[]).await?;
    let printed = String::from_utf8_lossy(&checked.stdout);
    ensure!(checked.status.code() == Some(0) && printed.contains("No node would roll"), "{checked:?}");

    // An injected difference is reported with name, path and cause.
    let spec = shoot.get(Kind::Worker, WORKER).await?.context("no Worker")?["spec"].take();
    let mut other = spec.clone();
    other["pools"][0]["volume"]["size"] = json!("99Gi");
    let deleted = other["pools"].as_array_mut().and_then(Vec::pop).context("no pool")?;
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
    let reported = format!("MachineDeployment {}-a-z1 would be changed, and its machines replaced", shoot.namespace);
    let location = "providerSpec.properties.storageProfile.osDisk.diskSizeGB";
    ensure!(
        log.lines().any(|line| line.contains(&reported) && line.contains(location)),
        "{reported:?} is missing:\n{log}"
    );
    let reported = format!("MachineDeployment {}-{}-", shoot.namespace, deleted["name"].as_str().unwrap_or_default());
    ensure!(
        log.lines().any(|line| line.contains(&reported) && line.contains("would be deleted")),
        "{reported:?}:\n{log}"
    );
    let checked = check(&kubeconfig, &shoot.namespace, &["-o", "json"]).await?;
    let printed: Value = serde_json::from_slice(&checked.stdout).with_context(|| format!("{checked:?}"))?;
    // A pool was removed from the Worker.
    ensure!(checked.status.code() == Some(6), "{checked:?}");
    ensure!(
        printed["rolls"][0]["pool"] == "a" && printed["rolls"][0]["differences"][0] == location,
        "{}",
        printed["rolls"]
    );
    ensure!(printed["permissions"]["missing"] == json!([]), "{}", printed["permissions"]);

    // The controller needs more permissions than the shadow.
    let refused = check(&kubeconfig, &shoot.namespace, &["--as", RESTRICTED]).await?;
    let printed = String::from_utf8_lossy(&refused.stdout);
    ensure!(
        refused.status.code() == Some(6) && printed.contains("MISSING") && printed.contains("workers/status"),
        "{refused:?}"
    );

    set_spec(&shoot, &spec).await?;
    measured(&shadow, &nothing).await?;
    let refused = check(&kubeconfig, &shoot.namespace, &["--as", RESTRICTED]).await?;
    ensure!(refused.status.code() == Some(1), "what is not allowed is no yes: {refused:?}");
    shadow.process.stop(Duration::from_secs(10)).await?;
    ensure!(substance(&shoot).await? == left, "the shadow has written");

    // This controller takes over: it writes its annotation, and nothing that other programs read.
    let before = shoot.get(Kind::Worker, WORKER).await?;
    let ours = Controller::start(&control_plane, "ours", CONTROLLER, |program| program)?;
    ours.ready("ready\n").await?;
    all_workers_are_known(&control_plane).await?;
    ensure!(shoot.get(Kind::Worker, WORKER).await? == before, "the Worker is written before anything is asked");
    taken_over(&shoot).await?;
    ours.process.stop(Duration::from_secs(10)).await?;
    // The Go extension would write the same values as before, because none have changed.
    ensure!(substance(&shoot).await? == left, "something was written anew");
    an_unreadable_object_is_reported_and_stops_no_other(&control_plane, &shoot, &kubeconfig).await?;
    control_plane.stop().await
}

/// Without differences, the shadow's log contains no line per Worker, and no colours.
async fn one_summary_and_no_line_of_a_worker_that_is_the_same(shadow: &Controller, shoot: &Shoot) -> Result<()> {
    let log = async || {
        let log = std::fs::read_to_string(shadow.process.log())?;
        ensure!(log.contains("dry run: Workers compared same=1"), "no summary in\n{log}");
        Ok(log)
    };
    eventually(SOON, "the summary is logged", async || log().await.map(drop)).await?;
    let log = log().await?;
    ensure!(!log.contains(&shoot.namespace), "a line about {}:\n{log}", shoot.namespace);
    ensure!(!log.contains('\u{1b}'), "codes of a terminal in a file:\n{log}");
    Ok(())
}

/// Waits until the controller has observed all existing Workers, because it has reconciled a later one.
async fn all_workers_are_known(control_plane: &ControlPlane) -> Result<()> {
    let later = Shoot::new(control_plane, "later").await?;
    later.create(|_| {}).await?;
    eventually(SOON, "a later Worker is answered", async || {
        let operation = later.worker().await?["status"]["lastOperation"].take();
        ensure!(operation.is_object(), "{operation}");
        Ok(())
    })
    .await?;
    later.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    later.deleted().await
}

/// The custom resource definitions accept any string as a duration.
async fn an_unreadable_object_is_reported_and_stops_no_other(
    control_plane: &ControlPlane,
    shoot: &Shoot,
    kubeconfig: &Path,
) -> Result<()> {
    let a_worker = seed(control_plane, "unreadable-worker", |bundle| {
        bundle["worker"]["spec"]["pools"][1]["clusterAutoscaler"] = json!({"maxNodeProvisionTime": "hunter2"});
    })
    .await?;
    let an_object = seed(control_plane, "unreadable-object", |bundle| {
        let existing = bundle["existing"].as_array_mut().into_iter().flatten();
        let mut deployments = existing.filter(|object| object["kind"] == "MachineDeployment");
        if let Some(deployment) = deployments.next() {
            deployment["spec"]["template"]["spec"]["drainTimeout"] = json!("hunter2");
        }
    })
    .await?;
    let deployment = format!("MachineDeployment \"{}-a-z1\"", an_object.namespace);
    let expected = [
        (
            &a_worker.namespace,
            vec!["can't be compared: spec.pools[1].clusterAutoscaler.maxNodeProvisionTime: a duration such as"],
        ),
        (
            &an_object.namespace,
            vec!["can't be compared", deployment.as_str(), "spec.template.spec", "a duration such as"],
        ),
    ];

    let checked = check_all(kubeconfig, &["-o", "json"]).await?;
    ensure!(checked.status.code() == Some(3), "what can't be compared is no yes: {checked:?}");
    let printed: Value = serde_json::from_slice(&checked.stdout).with_context(|| format!("{checked:?}"))?;
    let of = |namespace: &str| {
        let mut workers = printed["workers"].as_array().into_iter().flatten();
        workers.find(|worker| worker["namespace"] == namespace).cloned().unwrap_or_default()
    };
    ensure!(printed["workers"].as_array().is_some_and(|workers| workers.len() == 3), "{printed}");
    let readable = of(&shoot.namespace);
    ensure!(readable["placements"].as_array().is_some_and(|placements| placements.len() == 4), "{readable}");
    for (namespace, words) in &expected {
        let worker = of(namespace);
        let finding = &worker["findings"][0];
        ensure!(finding["kind"] == "cannot-be-judged" && finding["severity"] == "error", "{worker}");
        ensure!(worker["type"] == "azure" && worker["placements"] == json!([]), "{worker}");
        let message = finding["message"].as_str().unwrap_or_default();
        ensure!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    }

    let table = check_all(kubeconfig, &[]).await?;
    let text = String::from_utf8_lossy(&table.stdout).into_owned() + &String::from_utf8_lossy(&table.stderr);
    ensure!(table.status.code() == Some(3) && text.contains("the check is incomplete"), "{table:?}");
    ensure!(text.matches("can't be compared").count() == 2, "{text}");
    ensure!(!text.contains("hunter2") && !printed.to_string().contains("hunter2"), "a value is shown: {text}");

    let mut preview = tokio::process::Command::from(test_support::program::command());
    preview.args(["preview", "--live", "-o", "json", "--kubeconfig"]).arg(kubeconfig);
    let previewed = preview.output().await?;
    let printed: Value = serde_json::from_slice(&previewed.stdout).with_context(|| format!("{previewed:?}"))?;
    ensure!(previewed.status.code() == Some(3) && printed["total"]["findings"]["error"] == 2, "{previewed:?}");

    // A Worker that rolls is reported although others cannot be compared.
    let spec = shoot.get(Kind::Worker, WORKER).await?.context("no Worker")?["spec"].take();
    let mut other = spec.clone();
    other["pools"][0]["volume"]["size"] = json!("99Gi");
    set_spec(shoot, &other).await?;
    let checked = check_all(kubeconfig, &["-o", "json"]).await?;
    let printed: Value = serde_json::from_slice(&checked.stdout).with_context(|| format!("{checked:?}"))?;
    ensure!(checked.status.code() == Some(3) && printed["rolls"][0]["pool"] == "a", "{checked:?}");
    Ok(())
}

/// Requests a reconcile, and waits until each machine deployment has this controller's annotation.
async fn taken_over(shoot: &Shoot) -> Result<()> {
    let request = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    shoot.api(Kind::Worker).patch(WORKER, &PatchParams::default(), &Patch::Merge(request)).await?;
    eventually(SOON, &format!("all deployments of {} are ours", shoot.namespace), async || {
        let last_error = shoot.get(Kind::Worker, WORKER).await?.unwrap_or_default()["status"]["lastError"].take();
        for deployment in shoot.list(Kind::MachineDeployment).await? {
            let annotations = &deployment["metadata"]["annotations"];
            ensure!(annotations["gardener-extension-worker/class-inputs"].is_string(), "{annotations}: {last_error}");
        }
        Ok(())
    })
    .await
}

/// Very different cases: zones, in-place updates, volumes, settings, other providers.
const THERE_AND_BACK: [&str; 14] = [
    "azure/pools-zones/priorities",
    "azure/in-place/auto-image-version",
    "azure/volumes/data-image-community",
    "azure/mcm-settings/all",
    "azure/worker-config/capacity-and-virtual-v2-133",
    "aws/pools-zones/percent-uneven",
    "aws/in-place/AutoInPlaceUpdate",
    "aws/hash/data-volumes-and-config-134",
    "gcp/pools-zones/four-zones",
    "gcp/in-place/AutoInPlaceUpdate-three-zones",
    "openstack/pools-zones/six-pools",
    "openstack/in-place/mixed-pools",
    "alicloud/volumes/without-type",
    "alicloud/in-place/mixed-pools",
];

/// A Worker of each cloud.
const OF_EACH_CLOUD: [&str; 5] = [
    CASE,
    "aws/pools-zones/percent-uneven",
    "gcp/pools-zones/four-zones",
    "openstack/pools-zones/six-pools",
    "alicloud/pools-zones/two-pools",
];

#[tokio::test]
async fn a_shadow_compares_the_workers_of_each_cloud() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    control_plane.grant(RESTRICTED, serde_json::from_value(permissions_of_a_shadow())?).await?;
    let mut shoots = Vec::new();
    for case in OF_EACH_CLOUD {
        shoots.push(seed_of(case, &control_plane, "clouds", |_| {}).await.with_context(|| case.to_owned())?.0);
    }
    let shadow = Controller::start(&control_plane, "shadow", RESTRICTED, |program| program.arg("--shadow"))?;
    shadow.ready("ready\n").await?;
    measured(&shadow, &[r#"workers{standing="same"} 5"#, r#"workers{standing="differs"} 0"#]).await?;
    for shoot in &shoots {
        let mut spec = shoot.get(Kind::Worker, WORKER).await?.context("no Worker")?["spec"].take();
        spec["pools"][0]["volume"]["size"] = json!("99Gi");
        set_spec(shoot, &spec).await?;
    }
    measured(&shadow, &[r#"workers{standing="same"} 0"#, r#"workers{standing="differs"} 5"#]).await?;
    let log = std::fs::read_to_string(shadow.process.log())?;
    for (case, shoot) in OF_EACH_CLOUD.into_iter().zip(&shoots) {
        let announced = |line: &str| {
            line.contains(&shoot.namespace) && line.contains("would be changed") && line.contains("providerSpec.")
        };
        ensure!(log.lines().any(announced), "{case} is not in\n{log}");
    }
    shadow.process.stop(Duration::from_secs(10)).await?;
    control_plane.stop().await
}

#[tokio::test]
async fn writes_of_the_go_extension_after_the_takeover_change_nothing() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let mut shoots = Vec::new();
    for case in THERE_AND_BACK {
        let (shoot, written) = seed_of(case, &control_plane, "there-and-back", |_| {}).await?;
        let left = generations(&shoot).await?;
        ensure!(!left.is_empty() && written.len() > left.len(), "{case}: {left:?}");
        shoots.push((case, shoot, written, left));
    }
    let ours = Controller::start(&control_plane, "ours", CONTROLLER, |program| program)?;
    ours.ready("ready\n").await?;
    for (case, shoot, ..) in &shoots {
        taken_over(shoot).await.with_context(|| case.to_string())?;
    }
    ours.process.stop(Duration::from_secs(10)).await?;
    for (case, shoot, written, left) in &shoots {
        ensure!(generations(shoot).await? == *left, "{case}: ours has changed a machine deployment");
        for object in written {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            write_as_go_does(shoot, object).await.with_context(|| format!("{case}: {name}"))?;
        }
        let now = generations(shoot).await?;
        ensure!(now == *left, "{case}: the Go extension changes a machine deployment: {left:?}, {now:?}");
    }
    control_plane.stop().await
}

/// Generations of machine deployments, which increase with each change of their spec.
async fn generations(shoot: &Shoot) -> Result<Vec<(String, i64)>> {
    let deployments = shoot.list(Kind::MachineDeployment).await?.into_iter();
    let of = |deployment: Value| {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Some((name, deployment["metadata"]["generation"].as_i64()?))
    };
    deployments.map(|deployment| of(deployment).context("a deployment without a generation")).collect()
}

/// Writes the Go extension's objects of the case over the current ones: members of the spec are replaced individually,
/// and labels and annotations of others stay (docs/contract.md#machinedeployments). Nothing may change.
async fn write_as_go_does(shoot: &Shoot, written: &Value) -> Result<()> {
    let kind = match written["kind"].as_str() {
        Some("MachineDeployment") => Kind::MachineDeployment,
        Some("MachineClass") => Kind::MachineClass,
        _ => Kind::Secret,
    };
    let name = written["metadata"]["name"].as_str().context("an object has a name")?;
    let before = shoot.get(kind, name).await?.context("it is gone")?;
    let mut after = before.clone();
    let members = written.as_object().into_iter().flatten();
    for (member, value) in members.filter(|(member, _)| !["apiVersion", "kind", "status"].contains(&member.as_str())) {
        match (member.as_str(), value) {
            ("metadata", metadata) => {
                for member in ["labels", "annotations"] {
                    for (key, value) in metadata[member].as_object().into_iter().flatten() {
                        after["metadata"][member][key] = value.clone();
                    }
                }
            }
            ("spec", Value::Object(spec)) => {
                spec.iter().for_each(|(member, value)| after["spec"][member] = value.clone());
            }
            _ => after[member] = value.clone(),
        }
    }
    shoot.api(kind).replace(name, &PostParams::default(), &serde_json::from_value(after)?).await?;
    let after = shoot.get(kind, name).await?.context("it is gone")?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    ensure!(version(&before) == version(&after), "there is something to write: {before:#} becomes {after:#}");
    Ok(())
}
