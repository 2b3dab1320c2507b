//! Runs the controller as the chart installs it: with its configuration and service account, and exactly the
//! permissions of its role. It uses all of these permissions.

use std::slice;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use gardener_extension_worker::worker::plan::class_inputs::{ANNOTATION, History};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::alerts::ensure_documented;
use crate::chart::{Chart, merge, render};
use crate::installed::{self, apply, install, ready, user};
use crate::permissions::{allowed, ensure_exact, ensure_not_refused};
use test_support::cluster::{ADMIN, ControlPlane, eventually, free_ports, install_files};
use test_support::http;
use test_support::shoot::{Kind, SOON, Shoot, pool, set_image};

const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// Permissions that a test run can't be forced to use, each with the case that needs it.
const RARELY_NEEDED: [(&str, &str, &str); 3] = [
    ("events.k8s.io/events", "patch", "an event that repeats within minutes is counted up rather than written anew"),
    ("extensions.gardener.cloud/clusters", "list", "an API server that does not stream lists is asked for pages"),
    ("extensions.gardener.cloud/workers", "list", "an API server that does not stream lists is asked for pages"),
];

#[tokio::test]
async fn the_program_understands_every_setting() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = control_plane.namespace("everything").await?;
    let [metrics, health] = free_ports()?;
    let mut values = Chart::Worker.everything();
    // The Secret for mounted files is missing; the controller reads it only when a shoot moves.
    merge(&mut values, &json!({"ports": {"metrics": metrics, "health": health}, "shadow": true}));
    let rendered = render(Chart::Worker, &values, &namespace).await?;
    install_others(&client).await?;
    install(&client, &rendered, &namespace).await?;
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;
    let program = installed::start(&control_plane, &rendered, "-worker", |program| program).await?;
    ready(&program, health).await?;
    // In a dry run, the role allows only reads.
    ensure_not_refused(&audit.requests(&user(&namespace, "gardener-extension-worker"), mark).await?)
}

/// Runs every operation of a Worker under the role of the chart. No request is denied, so no rule is missing. Every
/// rule is used, so none can be removed.
#[tokio::test]
async fn the_role_allows_what_is_needed_and_nothing_else() -> Result<()> {
    // A separate control plane, because two controllers would share the work.
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = control_plane.namespace("extension-worker").await?;
    let [metrics, health] = free_ports()?;
    let mut values = Chart::Worker.needed();
    let quick = json!({"leaderElection": {"leaseSeconds": 3}, "heartbeat": {"renewIntervalSeconds": 1}});
    merge(&mut values, &quick);
    merge(&mut values, &json!({"ports": {"metrics": metrics, "health": health}}));
    let rendered = render(Chart::Worker, &values, &namespace).await?;
    install_others(&client).await?;
    install(&client, &rendered, &namespace).await?;
    let account = user(&namespace, "gardener-extension-worker");
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;

    let program = installed::start(&control_plane, &rendered, "-worker", |program| program).await?;
    ready(&program, health).await?;
    let operations = tokio::try_join!(
        lives(&control_plane),
        moves_here(&control_plane),
        is_stuck(&control_plane),
        is_undecodable(&control_plane),
        fails(&control_plane),
    );
    let (_, served) = http::get(metrics, "/metrics").await?;
    let requested = permissions_of_the_takeover_check(&control_plane, &account)?;
    program.stop(Duration::from_secs(5)).await?;

    let (all, requests) = (allowed(&rendered.objects)?, audit.requests(&account, mark).await?);
    // Checked first, because denied requests explain failed operations.
    ensure_not_refused(&requests)?;
    operations?;
    ensure_exact(&all, &requests, &RARELY_NEEDED)?;
    // The dry run, the version forecast, image objects and the roll budget are off, and no zone waits.
    // test/charts/incidents.yaml covers the metrics of all but the dry run.
    const OFF: [&str; 6] = ["shadow_", "pool_", "image_lookup_", "machine_images", "rolls_held", "roll_budget"];
    ensure_documented(&served, |name| !OFF.iter().any(|off| name.starts_with(off)))?;
    let everywhere = allowed(slice::from_ref(rendered.one("ClusterRole", "-worker")?))?.len();
    ensure!(
        usize::try_from(requested)? == everywhere,
        "takeover check asks for {requested} permissions, the ClusterRole has {everywhere}"
    );
    let count = format!("allows {} pairs of resource and verb", all.len());
    ensure!(OPERATIONS.contains(&count), "docs/operations.md does not say that the role {count}");
    Ok(())
}

/// Returns the number of permissions that `takeover check` checks. The service account has all of them.
fn permissions_of_the_takeover_check(control_plane: &ControlPlane, account: &str) -> Result<u64> {
    let mut check = test_support::program::command();
    check.args(["takeover", "check", "-o", "json", "--as", account, "--kubeconfig"]);
    let output = check.arg(control_plane.kubeconfig_file(ADMIN)?).output().context("starting the check")?;
    let words = || String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).with_context(words)?;
    let permissions = &report["permissions"];
    ensure!(permissions["missing"] == json!([]), "missing: {permissions}");
    permissions["asked"].as_u64().with_context(|| format!("no permissions in {report}"))
}

/// A second installation in another namespace rebinds the ClusterRole to its own service account.
#[tokio::test]
async fn a_program_whose_role_is_bound_to_another_is_unready_with_the_reason() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = control_plane.namespace("extension-worker").await?;
    let [metrics, health] = free_ports()?;
    let mut values = Chart::Worker.needed();
    merge(&mut values, &json!({"ports": {"metrics": metrics, "health": health}}));
    let rendered = render(Chart::Worker, &values, &namespace).await?;
    install_others(&client).await?;
    install(&client, &rendered, &namespace).await?;
    let bindings = Api::<ClusterRoleBinding>::all(client);
    let bind = async |namespace: &str| {
        let subject = json!({"kind": "ServiceAccount", "name": "gardener-extension-worker", "namespace": namespace});
        let bound = Patch::Merge(json!({"subjects": [subject]}));
        bindings.patch("gardener-extension-worker", &PatchParams::default(), &bound).await
    };
    bind("elsewhere").await?;
    let program = installed::start(&control_plane, &rendered, "-worker", |program| program).await?;
    eventually(SOON, "/readyz says what is not allowed", async || {
        let (status, result) = http::get(health, "/readyz").await?;
        let refusal = "the API server answers 403 Forbidden: clusters.extensions.gardener.cloud is forbidden";
        ensure!(status == 503 && result.contains(refusal), "{status} {result}");
        Ok(())
    })
    .await?;
    bind(&namespace).await?;
    ready(&program, health).await?;
    // Each watch is retried once a second.
    let log = std::fs::read_to_string(program.log())?;
    let refused = log.lines().filter(|line| line.contains("403")).count();
    let warned = log.lines().filter(|line| line.contains("a watch is not allowed")).count();
    ensure!(warned == 8 && refused <= warned + 1, "once for each watch, and for what is missing: {log}");
    program.stop(Duration::from_secs(5)).await
}

/// The lease is named after the pod. test/running/shards.rs verifies that shards need the same permissions as a leader.
#[tokio::test]
async fn the_role_of_a_shard_allows_its_lease_and_that_of_leaders() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let namespace = control_plane.namespace("shard").await?;
    let [metrics, health] = free_ports()?;
    let mut values = Chart::Worker.needed();
    let ports = json!({"metrics": metrics, "health": health});
    merge(
        &mut values,
        &json!({"ports": ports, "sharding": {"ring": "workers"}, "leaderElection": {"leaseSeconds": 6}}),
    );
    let rendered = render(Chart::Worker, &values, &namespace).await?;
    let client = control_plane.client(ADMIN).await?;
    install_others(&client).await?;
    install(&client, &rendered, &namespace).await?;
    let account = user(&namespace, "gardener-extension-worker");
    let (audit, leases) = (control_plane.audit().await?, Api::<Lease>::namespaced(client, &namespace));
    let mark = audit.mark().await?;
    let program = installed::start(&control_plane, &rendered, "-worker", |program| program).await?;
    ready(&program, health).await?;
    let of_ring = ListParams::default().labels("alpha.sharding.timebertt.dev/controllerring=workers");
    let renewed = async || {
        let lease = leases.list(&of_ring).await?.items.pop().context("there is no lease of a shard")?;
        let spec = lease.spec.context("it has no record")?;
        ensure!(spec.holder_identity == lease.metadata.name, "the sharder takes it for dead: {spec:?}");
        let of_leaders = leases.get("gardener-extension-worker-leader-election").await?.spec;
        anyhow::Ok([Some(spec), of_leaders].map(|spec| spec.and_then(|spec| spec.renew_time)))
    };
    let first = eventually(SOON, "the shard has its lease", renewed).await?;
    eventually(SOON, "both leases are renewed", async || {
        let now = renewed().await?;
        ensure!(now[0] != first[0] && now[1] != first[1], "{now:?}, as before");
        Ok(())
    })
    .await?;
    program.stop(Duration::from_secs(5)).await?;
    let requests = audit.requests(&account, mark).await?;
    ensure_not_refused(&requests)?;
    Ok(())
}

#[tokio::test]
async fn a_shadow_may_only_read() -> Result<()> {
    let mut values = Chart::Worker.needed();
    merge(&mut values, &json!({"shadow": true}));
    let rendered = render(Chart::Worker, &values, "extension").await?;
    ensure!(!rendered.has("Role"), "it may write leases");
    for (resource, verb) in allowed(&rendered.objects)? {
        ensure!(["get", "list", "watch"].contains(&verb.as_str()), "it may {verb} {resource}");
    }
    Ok(())
}

pub(super) async fn install_others(client: &kube::Client) -> Result<()> {
    install_files(client, &["seed-crds/10-crd-autoscaling.k8s.io_verticalpodautoscalers.yaml"]).await?;
    let monitoring = ["prometheusrules", "servicemonitors"];
    let files = monitoring.map(|plural| format!("seed-crds/10-crd-monitoring.coreos.com_{plural}.yaml"));
    install_files(client, &files.each_ref().map(String::as_str)).await
}

/// Creates a shoot in a namespace with gardenlet's labels. The policies of the chart allow the controller to write only
/// in such namespaces.
pub(super) async fn shoot_of(control_plane: &ControlPlane, prefix: &str) -> Result<Shoot> {
    let shoot = Shoot::new(control_plane, prefix).await?;
    let labels = json!({"gardener.cloud/role": "shoot"});
    let metadata = json!({"name": shoot.namespace, "labels": labels});
    apply(&shoot.client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await?;
    Ok(shoot)
}

/// The full lifecycle of a shoot: created, changed, rolled, updated without changes, hibernated, deleted.
async fn lives(control_plane: &ControlPlane) -> Result<()> {
    let shoot = shoot_of(control_plane, "lives").await?;
    let _machines = shoot.fake_machines(control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    // One pool gets a new class, the class of the other pool gets more memory, and both get new user data.
    let script = Patch::Merge(json!({"stringData": {"script": "#!/bin/bash\necho again\n"}}));
    shoot.api(Kind::Secret).patch("boot", &PatchParams::default(), &script).await?;
    shoot
        .change_worker(|worker| {
            set_image(worker, "bow", "12.2.0");
            pool(worker, "stern")["nodeTemplate"]["capacity"]["memory"] = json!("16Gi");
        })
        .await?;
    shoot.succeeded().await?;
    // A no-op.
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    let cluster = shoot.namespace.clone();
    let hibernates = |cluster: &mut Value| {
        cluster["spec"]["shoot"]["spec"]["hibernation"] = json!({"enabled": true});
        cluster["spec"]["shoot"]["status"]["isHibernated"] = json!(true);
    };
    shoot.change(Kind::Cluster, &cluster, hibernates).await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    eventually(SOON, "machine-controller-manager sleeps", async || {
        let replicas = replicas_of_machine_controller(&shoot).await?;
        ensure!(replicas == Some(0), "it has {replicas:?} replicas");
        Ok(())
    })
    .await?;
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await
}

/// A shoot with one machine moves here and is deleted.
async fn moves_here(control_plane: &ControlPlane) -> Result<()> {
    let shoot = shoot_of(control_plane, "moves").await?;
    shoot
        .create(|documents| {
            documents.of_kind("Deployment")["spec"]["replicas"] = json!(0);
            let worker = documents.of_kind("Worker");
            worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!("wait-for-state");
        })
        .await?;
    let name = format!("{}-stern-z3", shoot.namespace);
    let of = |suffix: &str| json!({"name": format!("{name}-{suffix}"), "labels": {"name": name}});
    let kept = packed(&json!({&name: {
        "replicas": 1,
        "machineSets": [{"metadata": of("old"), "spec": {"replicas": 1, "selector": {"matchLabels": {"name": name}}}}],
        "machines": [{"metadata": of("one"), "spec": {"class": {"kind": "MachineClass", "name": "old"}}}],
    }}))?;
    let status = Patch::Merge(json!({"status": {"state": kept}}));
    shoot.api(Kind::Worker).patch_status("fleet", &PatchParams::default(), &status).await?;
    let restore = |worker: &mut Value| worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!("restore");
    shoot.change(Kind::Worker, "fleet", restore).await?;
    eventually(SOON, "machine-controller-manager may start", async || {
        let replicas = replicas_of_machine_controller(&shoot).await?;
        ensure!(replicas == Some(1), "it has {replicas:?} replicas");
        Ok(())
    })
    .await?;
    let machine = format!("{name}-one");
    ensure!(shoot.get(Kind::Machine, &machine).await?.is_some(), "the machine has not come back");
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    eventually(SOON, "the machine is marked", async || {
        let machine = shoot.get(Kind::Machine, &machine).await?.context("it is gone")?;
        ensure!(machine["metadata"]["labels"]["force-deletion"] == "True", "{}", machine["metadata"]);
        Ok(())
    })
    .await?;
    // Simulates machine-controller-manager, which has never processed the machine set.
    shoot.api(Kind::Machine).delete(&machine, &DeleteParams::default()).await?;
    shoot.deleted().await
}

/// machine-controller-manager ignores a new class past its deadline.
async fn is_stuck(control_plane: &ControlPlane) -> Result<()> {
    let shoot = shoot_of(control_plane, "stuck").await?;
    shoot.create(|_| {}).await?;
    let deployment = eventually(SOON, "there is a machine deployment", async || {
        shoot.list(Kind::MachineDeployment).await?.pop().context("there is none")
    })
    .await?;
    let labels = json!({"role": "machine-controller-manager"});
    let container = json!({"name": "machine-controller-manager", "image": "none"});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]},
        "metadata": {"name": "machine-controller-manager-1", "namespace": shoot.namespace, "labels": labels},
    });
    apply(&shoot.client, &pod).await?;
    // Backdates the change of the class, because its deadline is 2 minutes. 58 seconds keep the pod old enough: it was
    // created less than a minute after the change, half of the deadline.
    let name = deployment["metadata"]["name"].as_str().context("it has a name")?;
    let age = |deployment: &mut Value| {
        let record = &mut deployment["metadata"]["annotations"][ANNOTATION];
        let mut history = record.as_str().and_then(History::read).expect("a record of its class");
        history.generations[0].since = Timestamp::now() - SignedDuration::from_secs(58);
        *record = json!(history.write());
        // machine-controller-manager adds this finalizer when it observes the deployment.
        deployment["metadata"]["finalizers"] = json!(["machine.sapcloud.io/machine-controller-manager"]);
    };
    shoot.change(Kind::MachineDeployment, name, age).await?;
    let observed = json!({"status": {"observedGeneration": deployment["metadata"]["generation"]}});
    let api = shoot.api(Kind::MachineDeployment);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(observed)).await?;
    let pods: Api<DynamicObject> = Api::namespaced_with(
        shoot.client.clone(),
        &shoot.namespace,
        &kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()),
    );
    eventually(3 * SOON, "the pod is started anew", async || {
        let pod = pods.get_opt("machine-controller-manager-1").await?;
        ensure!(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()), "it is there");
        Ok(())
    })
    .await
}

/// A Worker that can't be decoded.
async fn is_undecodable(control_plane: &ControlPlane) -> Result<()> {
    let shoot = shoot_of(control_plane, "undecodable").await?;
    let autoscaler = json!({"maxNodeProvisionTime": "soon"});
    shoot.create(|documents| pool(documents.of_kind("Worker"), "stern")["clusterAutoscaler"] = autoscaler).await?;
    eventually(SOON, "an event says so", async || {
        let events = shoot.list(Kind::Event).await?;
        ensure!(events.iter().any(|event| event["reason"] == "WorkerUndecodable"), "{events:?}");
        Ok(())
    })
    .await
}

/// A pool whose image does not exist.
async fn fails(control_plane: &ControlPlane) -> Result<()> {
    let shoot = shoot_of(control_plane, "fails").await?;
    let _machines = shoot.fake_machines(control_plane, Duration::ZERO).await?;
    shoot.create(|documents| set_image(documents.of_kind("Worker"), "bow", "99.0.0")).await?;
    shoot.fails(|_| Ok(())).await?;
    Ok(())
}

async fn replicas_of_machine_controller(shoot: &Shoot) -> Result<Option<i32>> {
    let deployments: Api<Deployment> = Api::namespaced(shoot.client.clone(), &shoot.namespace);
    Ok(deployments.get("machine-controller-manager").await?.spec.and_then(|spec| spec.replicas))
}

/// The machine state in the form in which gardenlet keeps it in `status.state`.
fn packed(deployments: &Value) -> Result<Value> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut gzip, &json!({"machineDeployments": deployments}))?;
    Ok(json!({"state": base64::engine::general_purpose::STANDARD.encode(gzip.finish()?)}))
}
