//! A real garden: Gardener's API server behind kube-apiserver, and gardener-controller-manager.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::binaries::{self, Gardener};
use super::control_plane::{ControlPlane, free_ports, written};
use super::process::{Process, Program};
use super::{ADMIN, GARDENER, crds, eventually};
use crate::{garden, http};

const START: Duration = Duration::from_secs(240);
/// Host name under which kube-apiserver verifies the aggregated API server.
const HOST: &str = "gardener-apiserver.garden.svc";
/// Served groups and versions.
const GROUPS: [(&str, &str); 5] = [
    ("core", "v1"),
    ("core", "v1beta1"),
    ("seedmanagement", "v1alpha1"),
    ("operations", "v1alpha1"),
    ("security", "v1alpha1"),
];

/// Both servers. Dropping kills them.
pub struct GardenServers {
    controller_manager: Process,
    apiserver: Process,
}

impl GardenServers {
    /// Starts both, and waits until the resources of a garden are served.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let binaries = binaries::gardener().await?;
        let client = control_plane.client(ADMIN).await?;
        let [port, health, metrics] = free_ports()?;
        register(&client, port, control_plane.front_proxy().certificate()).await?;
        let apiserver = start_apiserver(control_plane, &binaries, port)?;
        let served = eventually(START, "the garden's resources are served", async || {
            if let Err(ended) = apiserver.ensure_running() {
                return Ok(Err(ended));
            }
            serves_all(&client).await?;
            Ok(Ok(()))
        });
        served.await.with_context(|| apiserver.last_lines(15))??;
        let controller_manager = start_controller_manager(control_plane, &binaries, health, metrics).await?;
        let healthy = eventually(START, "gardener-controller-manager is healthy", async || {
            if let Err(ended) = controller_manager.ensure_running() {
                return Ok(Err(ended));
            }
            let (status, response) = http::get(health, "/healthz").await?;
            ensure!(status == 200, "/healthz answers {status}: {response}");
            Ok(Ok(()))
        });
        healthy.await.with_context(|| controller_manager.last_lines(15))??;
        Ok(Self { controller_manager, apiserver })
    }

    /// Fails if one of them has ended.
    pub fn ensure_running(&self) -> Result<()> {
        self.apiserver.ensure_running().and_then(|()| self.controller_manager.ensure_running())
    }
}

/// Registers the local port with kube-apiserver as an aggregated API server.
async fn register(client: &Client, port: u16, authority: &str) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "garden", "labels": {"gardener.cloud/role": "garden"}},
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "gardener-apiserver", "namespace": "garden"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    let parameters = PatchParams::apply("test").force();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    namespaces.patch("garden", &parameters, &Patch::Apply(namespace)).await?;
    let services: Api<k8s_openapi::api::core::v1::Service> = Api::namespaced(client.clone(), "garden");
    services.patch("gardener-apiserver", &parameters, &Patch::Apply(service)).await?;
    let api_services: Api<APIService> = Api::all(client.clone());
    for (group, version) in GROUPS {
        let api_service = api_service(group, version, port, authority)?;
        let name = api_service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        api_services.patch(&name, &parameters, &Patch::Apply(api_service)).await?;
    }
    Ok(())
}

/// Fails until each group is served: gardener-controller-manager ends if one of them is not.
async fn serves_all(client: &Client) -> Result<()> {
    for (group, version) in GROUPS {
        let group = format!("{group}.gardener.cloud/{version}");
        client.list_api_group_resources(&group).await.with_context(|| group.clone())?;
    }
    garden::api(client, "CloudProfile", None).list(&ListParams::default()).await?;
    Ok(())
}

fn api_service(group: &str, version: &str, port: u16, authority: &str) -> Result<Value> {
    let group = format!("{group}.gardener.cloud");
    Ok(json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}")},
        "spec": {
            "group": group, "version": version, "groupPriorityMinimum": 10000, "versionPriority": 20,
            "service": {"name": "gardener-apiserver", "namespace": "garden", "port": port},
            "caBundle": serde_json::to_value(k8s_openapi::ByteString(authority.as_bytes().to_vec()))?,
        },
    }))
}

fn start_apiserver(control_plane: &ControlPlane, binaries: &Gardener, port: u16) -> Result<Process> {
    let folder = control_plane.folder();
    let kubeconfig = control_plane.kubeconfig_file(GARDENER)?;
    let certificate = control_plane.front_proxy().server(HOST)?;
    let program = Program::new("gardener-apiserver", &binaries.apiserver)
        .flag("etcd-servers", control_plane.etcd_server())
        .flag("kubeconfig", &kubeconfig)
        .flag("authentication-kubeconfig", &kubeconfig)
        .flag("authorization-kubeconfig", &kubeconfig)
        .flag("cluster-identity", "garden-of-tests")
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", port.to_string())
        .flag("tls-cert-file", written(folder, "gardener-apiserver.crt", &certificate.certificate)?)
        .flag("tls-private-key-file", written(folder, "gardener-apiserver.key", &certificate.key)?)
        .flag("workload-identity-token-issuer", "https://issuer.example.org")
        .flag("workload-identity-signing-key-file", folder.join("service-account.key"))
        .flag("enable-priority-and-fairness", "false")
        .flag("log-format", "text");
    Process::start(program, folder)
}

async fn start_controller_manager(
    control_plane: &ControlPlane,
    binaries: &Gardener,
    health: u16,
    metrics: u16,
) -> Result<Process> {
    let folder = control_plane.folder();
    let config = controller_manager_config(health, metrics).await?;
    let config = written(folder, "gardener-controller-manager.yaml", &config.to_string())?;
    let program = Program::new("gardener-controller-manager", &binaries.controller_manager)
        .flag("config", config)
        .env("KUBECONFIG", control_plane.kubeconfig_file(GARDENER)?);
    Process::start(program, folder)
}

/// Gardener's example configuration, for a local port and without leader election.
async fn controller_manager_config(health: u16, metrics: u16) -> Result<Value> {
    let example: PathBuf = crds::gardener_module("gardener").await?.join("example");
    let text = std::fs::read_to_string(example.join("20-componentconfig-gardener-controller-manager.yaml"))?;
    let mut documents = gardener_extension_worker::api::gotext::yaml::documents(&text)?;
    let mut config = documents.pop().context("the example is empty")?;
    config["leaderElection"] = json!({"leaderElect": false});
    let on = |port: u16| json!({"bindAddress": "127.0.0.1", "port": port});
    config["server"] = json!({"healthProbes": on(health), "metrics": on(metrics)});
    Ok(config)
}
