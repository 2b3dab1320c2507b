//! Operator endpoints of a running process: health, readiness, metrics, log level. Also its reports to gardenlet.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::controller::Controller;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, eventually};
use test_support::shoot::{Documents, SOON, Shoot};

#[tokio::test]
async fn readiness_names_what_is_missing() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(control_plane.client(ADMIN).await?);
    let name = "machinesets.machine.sapcloud.io";
    let definition = definitions.get(name).await?;
    definitions.delete(name, &DeleteParams::default()).await?;
    eventually(SOON, "the definition is gone", async || {
        ensure!(definitions.get_opt(name).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    let controller = Controller::start(&control_plane, "unready", CONTROLLER, |program| program)?;
    controller.readyz(503, "machinesets of machine.sapcloud.io/v1alpha1 are not served").await?;
    let (status, _) = controller.request("GET", "/healthz", "").await?;
    ensure!(status == 200, "it is alive all the same: {status}");

    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mut again = CustomResourceDefinition { metadata, status: None, ..definition };
    again.metadata.annotations = None;
    definitions.create(&PostParams::default(), &again).await?;
    controller.ready("ready\n").await
}

#[tokio::test]
async fn a_running_controller_serves_health_metrics_and_log_level() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let namespace = control_plane.namespace("extension").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, "log-level: error\nlog-format: json\nheartbeat-renew-interval-seconds: 1\n")?;
    let controller = Controller::start(&control_plane, "running", CONTROLLER, |program| {
        program
            .flag("config", &file)
            .flag("heartbeat-namespace", &namespace)
            .env("GARDENER_EXTENSION_WORKER_LOG_FORMAT", "text")
            .env("RUST_LOG", "")
    })?;
    controller.ready("ready\n").await?;

    // The environment takes precedence over the file, and the file over defaults.
    let (_, logs) = controller.request("GET", "/log-level", "").await?;
    ensure!(logs == "error text\n", "{logs:?}");
    let (status, refusal) = controller.request("PUT", "/log-level", "kube=loud").await?;
    ensure!(status == 400 && refusal.contains("kube=loud"), "{status} {refusal}");
    let (_, logs) = controller.request("PUT", "/log-level", "debug json").await?;
    ensure!(logs.ends_with(" json\n") && logs.contains("gardener_extension_worker=debug"), "{logs:?}");

    let shoot = Shoot::new(&control_plane, "shoot").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let namespace_of_shoot = &shoot.namespace;
    eventually(SOON, "the metrics tell of the Worker", async || {
        let metrics = controller.metrics().await?;
        for expected in [
            r#"_reconciles_total{worker_type="azure",operation="Create",result="succeeded"} 1"#.to_owned(),
            format!(r#"_pools{{namespace="{namespace_of_shoot}",state="failed"}} 0"#),
            r#"_api_requests_total{verb="create",resource="machineclasses",code="201"}"#.to_owned(),
            r#"_phase_duration_seconds_count{phase="apply"}"#.to_owned(),
        ] {
            ensure!(metrics.contains(&expected), "{expected} is not in\n{metrics}");
        }
        Ok(())
    })
    .await?;
    let lines = controller.process.last_lines(3);
    let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    ensure!(lines.lines().all(is_json), "logs in another format:\n{lines}");

    let leases: Api<Lease> = Api::namespaced(control_plane.client(ADMIN).await?, &namespace);
    let beat = async || {
        let spec = leases.get("gardener-extension-heartbeat").await?.spec.context("an empty lease")?;
        ensure!(spec.holder_identity.as_deref() == Some("gardener-extension-worker"), "{spec:?}");
        spec.renew_time.context("never renewed")
    };
    let first = beat().await?;
    eventually(SOON, "the heart beats", async || {
        let next = beat().await?;
        ensure!(next.0 > first.0, "last beat at {}", next.0);
        Ok(())
    })
    .await
}

/// A Cluster with a maintenance window and one pool, whose image expires.
fn with_versions(documents: &mut Documents) {
    let spec = &mut documents.of_kind("Cluster")["spec"];
    let image =
        |version: &str| json!({"version": version, "architectures": ["amd64"], "cri": [{"name": "containerd"}]});
    let mut expiring = image("12.1.0");
    expiring["expirationDate"] = json!("2020-04-01T00:00:00Z");
    spec["cloudProfile"]["spec"]["machineImages"] =
        json!([{"name": "harborlinux", "versions": [image("12.2.0"), expiring]}]);
    spec["cloudProfile"]["spec"]["kubernetes"] = json!({"versions": [{"version": "1.34.3"}]});
    let machine = json!({
        "type": "Standard_F4s_v2", "architecture": "amd64", "image": {"name": "harborlinux", "version": "12.1.0"},
    });
    spec["shoot"]["spec"]["provider"] = json!({"workers": [{"name": "main", "machine": machine}]});
    spec["shoot"]["spec"]["maintenance"] =
        json!({"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}});
}

#[tokio::test]
async fn the_condition_versions_current_is_forecast() -> Result<()> {
    const REPORTED: &str = "pool main: harborlinux 12.1.0 expired on 2020-04-01: forced to 12.2.0";
    let control_plane = ControlPlane::start().await?;
    let start = |name: &str, with: bool| {
        Controller::start(&control_plane, name, CONTROLLER, |program| {
            if with { program.env("GARDENER_EXTENSION_WORKER_VERSION_FORECAST", "true") } else { program }
        })
    };
    let controller = start("forecast", true)?;
    let shoot = Shoot::new(&control_plane, "shoot").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(with_versions).await?;
    let condition = |worker: &Value| {
        let mut conditions = worker["status"]["conditions"].as_array().into_iter().flatten();
        conditions.find(|condition| condition["type"] == "VersionsCurrent").cloned().context("no condition")
    };
    let reported = condition(&shoot.succeeded().await?)?;
    ensure!(
        reported["status"] == "False" && reported["reason"] == "VersionExpires" && reported["message"] == REPORTED,
        "{reported}"
    );
    let metrics = controller.metrics().await?;
    let of_pool = format!(r#"{{namespace="{}",pool="main"}}"#, shoot.namespace);
    for (name, number) in [("image_expiration_timestamp", 1_585_699_200), ("update_available", 1)] {
        let expected = format!("_pool_{name}{of_pool} {number}");
        ensure!(metrics.contains(&expected), "{expected} is not in\n{metrics}");
    }

    // A no-op request needs as many requests as without a forecast: Cluster and both Secrets are read, status and
    // annotation written.
    let requests = async || -> Result<Vec<String>> {
        let metrics = controller.metrics().await?;
        let of_worker = |line: &&str| line.contains("_api_requests_total{") && !line.contains("verb=\"watch\"");
        Ok(metrics.lines().filter(of_worker).filter(|line| !line.contains("leases")).map(str::to_owned).collect())
    };
    let sum = |lines: &[String]| -> f64 {
        lines.iter().filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let before = requests().await?;
    shoot.annotate_worker().await?;
    ensure!(condition(&shoot.succeeded().await?)? == reported, "it stays as it was, with its times");
    let after = requests().await?;
    ensure!(sum(&after) - sum(&before) <= 5.0, "{before:#?}\n{after:#?}");

    drop(controller);
    let without = start("without", false)?;
    without.ready("ready\n").await?;
    shoot.annotate_worker().await?;
    let stale = condition(&shoot.succeeded().await?)?;
    ensure!(stale["status"] == "Unknown" && stale["reason"] == "NoForecast", "{stale}");
    ensure!(!without.metrics().await?.contains("_pool_image_expiration_timestamp{"), "nobody asked for them");
    Ok(())
}

#[tokio::test]
async fn a_process_ends_when_its_kubeconfig_changes() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let kubeconfig = control_plane.folder().join("rotated.kubeconfig");
    std::fs::copy(control_plane.kubeconfig_file(CONTROLLER)?, &kubeconfig)?;
    let controller = Controller::start_at(&control_plane, "rotated", &kubeconfig, |program| program)?;
    controller.ready("ready\n").await?;
    let content = std::fs::read_to_string(&kubeconfig)?;
    std::fs::write(&kubeconfig, format!("{content}\n"))?;
    let status = controller.process.wait(SOON).await?;
    let log = controller.process.last_lines(5);
    ensure!(!status.success() && log.contains("rotated.kubeconfig has changed"), "{status}\n{log}");
    Ok(())
}
