//! The chart of the controller, installed by Helm's own commands, and its pods.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use test_support::cluster::{self, ADMIN, ControlPlane, eventually};

use crate::images::{REPOSITORY, image_name};
use crate::node;

/// Release and chart.
const NAME: &str = "gardener-extension-worker";
/// Longer than a pod may take to terminate and to become ready.
const SOON: Duration = Duration::from_secs(120);

/// A release of the chart.
pub(crate) struct Chart {
    helm: PathBuf,
    kubeconfig: PathBuf,
    client: Client,
    pub(crate) namespace: String,
}

/// A pod of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) pod: String,
    pub(crate) image: String,
    pub(crate) restarts: i32,
    container: String,
}

/// The leader named in the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    /// Identifies the process: a restarted container has another identity.
    pub(crate) identity: String,
    pub(crate) running: Running,
}

impl Chart {
    /// A release that is not installed yet, in its own namespace.
    pub(crate) async fn new(control_plane: &ControlPlane) -> Result<Self> {
        Ok(Self {
            helm: cluster::helm().await?,
            kubeconfig: control_plane.kubeconfig_file(ADMIN)?,
            client: control_plane.client(ADMIN).await?,
            namespace: control_plane.namespace("extension-worker").await?,
        })
    }

    /// Name of its service account at the API server.
    pub(crate) fn account(&self) -> String {
        format!("system:serviceaccount:{}:{NAME}", self.namespace)
    }

    /// Installs or upgrades the release with an image, and waits until all pods have that image and are ready.
    pub(crate) async fn with_image(&self, tag: &str) -> Result<Vec<Running>> {
        let values = json!({
            "image": {"repository": REPOSITORY, "tag": tag},
            // The nodes of shoots are Nodes of this cluster, too.
            "nodeSelector": {"kubernetes.io/hostname": node::NAME},
        });
        let file = tempfile::NamedTempFile::new()?;
        serde_json::to_writer(&file, &values)?;
        let file = file.path().to_str().context("a path in UTF-8")?;
        let chart = test_support::repository().join("charts").join(NAME);
        let chart = chart.to_str().context("a path in UTF-8")?;
        self.helm(&["upgrade", "--install", NAME, chart, "--values", file, "--wait", "--timeout", "2m"])?;
        eventually(SOON, "two pods are ready", async || {
            let pods = self.ready().await?;
            ensure!(pods.len() == 2 && pods.iter().all(|pod| pod.image == image_name(tag)), "{pods:?}");
            Ok(pods)
        })
        .await
    }

    /// Uninstalls the release and waits until no pod and no process is left.
    pub(crate) async fn uninstall(&self) -> Result<()> {
        self.helm(&["uninstall", NAME, "--wait", "--timeout", "2m"])?;
        eventually(SOON, "no pod is left", async || {
            let left = self.pods().await?.len();
            ensure!(left == 0 && processes()?.is_empty(), "{left} pods, {:?}", processes()?);
            Ok(())
        })
        .await
    }

    fn helm(&self, arguments: &[&str]) -> Result<()> {
        let home = std::env::temp_dir();
        let mut helm = Command::new(&self.helm);
        helm.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig).args(["--namespace", &self.namespace]);
        // Ignores the Helm settings of the user who runs the test.
        helm.env("HELM_CONFIG_HOME", &home).env("HELM_CACHE_HOME", &home).env("HELM_DATA_HOME", &home);
        let output = helm.output().context("starting Helm")?;
        let text = [output.stdout, output.stderr].concat();
        ensure!(output.status.success(), "helm {arguments:?}: {}", String::from_utf8_lossy(&text));
        Ok(())
    }

    async fn pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(pods.list(&ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"))).await?.items)
    }

    /// Its pods whose container is ready and that are not being deleted.
    pub(crate) async fn ready(&self) -> Result<Vec<Running>> {
        let mut pods = self.pods().await?;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(pods.iter().filter_map(|pod| running(pod, |container| container.ready)).collect())
    }

    /// The leading process, in a pod that exists.
    pub(crate) async fn leader(&self) -> Result<Leader> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let lease = leases.get("gardener-extension-worker-leader-election").await?;
        let identity = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        let pods = self.pods().await?;
        let leader = pods.iter().find(|pod| identity.starts_with(&format!("{}_", pod.name_any())));
        let running = leader.and_then(|pod| running(pod, |_| true));
        let running = running.with_context(|| format!("the lease is held by {identity:?}"))?;
        Ok(Leader { identity, running })
    }
}

/// A pod with its first container, if the container matches `is_meant`.
fn running(pod: &Pod, is_meant: impl Fn(&ContainerStatus) -> bool) -> Option<Running> {
    let mut containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let container = containers.next().filter(|container| is_meant(container))?;
    Some(Running {
        pod: pod.name_any(),
        image: container.image.clone(),
        restarts: container.restart_count,
        container: container.container_id.as_deref()?.trim_start_matches("containerd://").to_owned(),
    })
}

impl Running {
    /// PID of its container's process on the node.
    pub(crate) fn process(&self) -> Result<u32> {
        let processes = processes()?;
        let mut own = processes.iter().filter(|(_, cgroup)| cgroup.contains(&self.container));
        own.next().map(|(id, _)| *id).with_context(|| format!("{} has no process among {processes:?}", self.pod))
    }

    /// Fields of `/proc/<pid>/status` for its process, by name.
    pub(crate) fn status(&self) -> Result<BTreeMap<String, String>> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process()?))?;
        let members = text.lines().filter_map(|line| line.split_once(':'));
        Ok(members
            .map(|(name, value)| (name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
            .collect())
    }
}

/// Processes of the controller in containers, with their cgroups.
fn processes() -> Result<Vec<(u32, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Skips a process that has ended meanwhile.
        let Ok(command) = fs::read(entry.path().join("cmdline")) else { continue };
        if command.starts_with(b"/gardener-extension-worker\0controller\0") {
            found.push((id, fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default()));
        }
    }
    Ok(found)
}
