//! Runs the unmodified sharder of kubernetes-controller-sharding, with its own permissions and those of
//! `example/sharding.yaml`, for the ring in that file.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};

use super::control_plane::{ControlPlane, written};
use super::crds::{install_from, module_folder};
use super::process::{Process, Program};
use super::{ADMIN, SHARDER, binaries, eventually};

/// The ring of `example/sharding.yaml`.
pub const RING: &str = "gardener-extension-worker";

const MODULE: &str = "github.com/timebertt/kubernetes-controller-sharding";
/// The port of its webhook is not configurable.
const PORT: u16 = 9443;
/// How long another test on this machine may occupy the port.
const PORT_IS_FREE: Duration = Duration::from_secs(600);
const START: Duration = Duration::from_secs(120);

/// A running sharder. Dropping it kills it.
pub struct Sharder {
    process: Process,
    rings: Api<DynamicObject>,
}

impl Sharder {
    /// Starts it, and waits until it serves the ring.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let (binary, module) = (binaries::sharder().await?, module_folder("sharder", MODULE).await?);
        let client = control_plane.client(ADMIN).await?;
        install_from(&client, &module, &["config/crds/sharding.timebertt.dev_controllerrings.yaml"]).await?;
        let role = std::fs::read_to_string(module.join("config/rbac/role.yaml"))?;
        let role: ClusterRole = serde_saphyr::from_str(&role).context("reading the role of the sharder")?;
        let example = std::fs::read_to_string(crate::repository().join("example/sharding.yaml"))?;
        let example = gardener_extension_worker::api::gotext::yaml::documents(&example)?;
        let of_kind =
            |kind: &str| example.iter().find(|document| document["kind"] == kind).cloned().unwrap_or_default();
        let added: Vec<PolicyRule> = serde_json::from_value(of_kind("ClusterRole")["rules"].take())?;
        control_plane.grant(SHARDER, role.rules.into_iter().flatten().chain(added).collect()).await?;
        let rings = rings(client);
        let parameters = PatchParams::apply("test").force();
        rings.patch(RING, &parameters, &Patch::Apply(of_kind("ControllerRing"))).await?;

        eventually(PORT_IS_FREE, &format!("port {PORT} is free"), async || {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).map(drop).context("the sharder's port is in use")
        })
        .await?;
        let configuration =
            written(control_plane.folder(), "sharder.json", &configuration(control_plane)?.to_string())?;
        let program = Program::new("sharder", binary)
            .flag("config", configuration)
            .env("KUBECONFIG", control_plane.kubeconfig_file(SHARDER)?);
        let sharder = Self { process: Process::start(program, control_plane.folder())?, rings };
        let is_ready = |ring: &Value| {
            let mut conditions = ring["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        sharder.ring("the ring is ready", is_ready).await?;
        Ok(sharder)
    }

    /// Waits until the ring has this number of available shards.
    pub async fn has_shards(&self, count: usize) -> Result<()> {
        let is_complete = |ring: &Value| ring["status"]["availableShards"] == count;
        self.ring(&format!("the ring has {count} shards"), is_complete).await
    }

    async fn ring(&self, what: &str, is_required: impl Fn(&Value) -> bool) -> Result<()> {
        eventually(START, what, async || {
            self.process.ensure_running()?;
            let ring = serde_json::to_value(self.rings.get(RING).await?)?;
            ensure!(is_required(&ring), "{}", ring["status"]);
            Ok(())
        })
        .await
        .with_context(|| self.process.last_lines(15))
    }
}

fn rings(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("sharding.timebertt.dev", "v1alpha1", "ControllerRing");
    Api::all_with(client, &ApiResource::from_gvk(&kind))
}

/// Configuration for a single local process.
fn configuration(control_plane: &ControlPlane) -> Result<Value> {
    let (folder, authority) = (control_plane.folder(), control_plane.front_proxy());
    let certificate = authority.server("localhost")?;
    written(folder, "sharder.crt", &certificate.certificate)?;
    written(folder, "sharder.key", &certificate.key)?;
    let bundle = serde_json::to_value(ByteString(authority.certificate().as_bytes().to_vec()))?;
    Ok(json!({
        "apiVersion": "config.sharding.timebertt.dev/v1alpha1",
        "kind": "SharderConfig",
        "leaderElection": {"leaderElect": false},
        "health": {"bindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {
            "server": {"certDir": folder, "certName": "sharder.crt", "keyName": "sharder.key"},
            "config": {"clientConfig": {"url": format!("https://localhost:{PORT}"), "caBundle": bundle}},
        },
    }))
}
