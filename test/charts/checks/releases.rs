//! Installs a release like a new user: runs the commands of docs/install.md with the files of a release and Helm, while
//! a Worker has machines. No command affects a machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use release::chart::{CHARTS, package};
use release::source::Source;
use serde_json::{Value, json};
use test_support::cluster::{self, ADMIN, ControlPlane, Deletion, MachineControllerManager, Process, free_ports};
use test_support::shoot::{Kind, Shoot};

use super::runs::{install_others, shoot_of};
use crate::chart::{Rendered, merge};
use crate::installed::{self, ready, user};
use crate::programs::{helm, output};

const PAGE: &str = include_str!("../../../docs/install.md");
const IMAGE: &str = "registry.example.org/gardener-extension-worker";
const NAMESPACE: &str = "extension-worker";
const HOMEPAGE: &str = "https://docs.example.org/worker";

/// A folder with two releases, and Helm.
struct Stranger {
    folder: tempfile::TempDir,
    helm: PathBuf,
    kubeconfig: PathBuf,
    health: u16,
}

impl Stranger {
    async fn new(control_plane: &ControlPlane) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for version in ["0.1.0", "0.2.0"] {
            write_charts(folder.path(), version)?;
        }
        let [metrics, health] = free_ports()?;
        let mut values = documents(documented_values()?)?.pop().context("docs/install.md has values")?;
        let ports = json!({"metrics": metrics, "health": health});
        merge(&mut values, &json!({"ports": ports, "leaderElection": {"leaseSeconds": 3}}));
        merge(&mut values, &json!({"metrics": {"prometheusRule": {"enabled": true}}}));
        std::fs::write(folder.path().join("values.yaml"), values.to_string())?;
        Ok(Self { folder, helm: helm().await?, kubeconfig: control_plane.kubeconfig_file(ADMIN)?, health })
    }

    /// Runs a Helm command exactly as documented.
    fn run_documented(&self, command: &str) -> Result<()> {
        let start = format!("helm {command} ");
        let line = PAGE.lines().find(|line| line.starts_with(&start));
        let line = line.with_context(|| format!("docs/install.md has no {start:?}"))?;
        self.run(&line.split_whitespace().skip(1).collect::<Vec<_>>())?;
        Ok(())
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut helm = Command::new(&self.helm);
        helm.args(arguments).current_dir(self.folder.path()).env("KUBECONFIG", &self.kubeconfig);
        for variable in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
            helm.env(variable, self.folder.path().join("helm"));
        }
        let (succeeded, text) = output(&mut helm)?;
        ensure!(succeeded, "helm {arguments:?}: {text}");
        Ok(text)
    }

    /// Starts the program that the installed chart describes, in place of a kubelet.
    async fn start(&self, control_plane: &ControlPlane, version: &str) -> Result<Process> {
        let text = self.run(&["get", "manifest", release::NAME, "--namespace", NAMESPACE])?;
        let rendered = Rendered { objects: documents(&text)?, text };
        let deployment = rendered.one("Deployment", "-worker")?;
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        ensure!(*image == format!("{IMAGE}:{version}"), "{image} instead of version {version}");
        let program = installed::start(control_plane, &rendered, "-worker", |program| program).await?;
        ready(&program, self.health).await?;
        Ok(program)
    }
}

fn write_charts(folder: &Path, version: &str) -> Result<()> {
    let source = Source {
        version: version.to_owned(),
        commit: "0".repeat(40),
        time: 1_700_000_000,
        homepage: Some(HOMEPAGE.to_owned()),
        repository: None,
        image: IMAGE.to_owned(),
    };
    for chart in CHARTS {
        let packaged = package(&test_support::repository().join("charts").join(chart), &source, IMAGE)?;
        std::fs::write(folder.join(packaged.file), packaged.archive)?;
    }
    Ok(())
}

/// The values of docs/install.md.
fn documented_values() -> Result<&'static str> {
    let (_, rest) = PAGE.split_once("```yaml\n# values.yaml\n").context("docs/install.md has no values.yaml")?;
    Ok(rest.split("```").next().unwrap_or_default())
}

/// Names of all nodes and machines, versions of their classes, and generations of their deployments.
async fn machines(shoot: &Shoot) -> Result<Value> {
    let (nodes, names) = (shoot.ready_nodes().await?, shoot.names(Kind::Machine).await?);
    ensure!(!nodes.is_empty() && nodes.len() == names.len(), "{nodes:?} and {names:?}");
    let classes = shoot.versions(Kind::MachineClass).await?;
    let mut generations = Vec::new();
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        generations.push(json!([deployment["metadata"]["name"], deployment["metadata"]["generation"]]));
    }
    Ok(json!([nodes, names, classes, generations]))
}

#[tokio::test]
async fn release_is_installed_upgraded_rolled_back_and_removed() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    install_others(&client).await?;
    let stranger = Stranger::new(&control_plane).await?;
    stranger.run_documented("install")?;
    let program = stranger.start(&control_plane, "0.1.0").await?;
    let shoot = shoot_of(&control_plane, "stranger").await?;
    let _machines = MachineControllerManager::start(&control_plane, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let before = machines(&shoot).await?;
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;

    stranger.run_documented("upgrade")?;
    program.stop(Duration::from_secs(5)).await?;
    let program = stranger.start(&control_plane, "0.2.0").await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    stranger.run_documented("rollback")?;
    program.stop(Duration::from_secs(5)).await?;
    let program = stranger.start(&control_plane, "0.1.0").await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    program.stop(Duration::from_secs(5)).await?;
    stranger.run_documented("uninstall")?;

    ensure!(machines(&shoot).await? == before, "{} became {}", before, machines(&shoot).await?);
    let requests = audit.requests(&user(NAMESPACE, release::NAME), mark).await?;
    ensure!(!requests.is_empty(), "the controller did nothing");
    for request in requests.iter().filter(|request| request.writes()) {
        ensure!(!request.resource.starts_with("machine"), "{} {} {}", request.verb, request.resource, request.name);
    }
    let releases = stranger.run(&["list", "--all-namespaces", "--output", "json"])?;
    ensure!(releases.trim().ends_with("[]"), "left: {releases}");
    Ok(())
}

#[tokio::test]
async fn charts_of_a_release_are_valid() -> Result<()> {
    let stranger = Stranger::new(cluster::shared().await?).await?;
    for name in ["", "-admission-runtime", "-admission-application"] {
        let chart = format!("{}{name}-0.1.0.tgz", release::NAME);
        let text = stranger.run(&["lint", "--strict", &chart])?;
        ensure!(text.contains("0 chart(s) failed"), "{text}");
        let page = stranger.run(&["show", "readme", &chart])?;
        ensure!(page.contains("| value | default | meaning |"), "{page}");
    }
    let chart = format!("{}-0.1.0.tgz", release::NAME);
    let rendered = stranger.run(&["template", "x", &chart, "--set", "metrics.prometheusRule.enabled=true"])?;
    ensure!(rendered.contains(&format!("runbook_url: {HOMEPAGE}/runbooks.html#workerfails")), "{rendered}");
    Ok(())
}
