//! containerd, kubelet, scheduler and controllers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1 as core;
use kube::api::Api;
use serde_json::{Value, json};
use test_support::cluster::{self, ADMIN, ControlPlane, Process, Program, SERVICE, eventually};

use crate::{images, namespaces};

/// Name of the node in bindings of pods.
pub(crate) const NAME: &str = "node";
/// Socket of containerd.
const CONTAINERD: &str = "/run/containerd/containerd.sock";
const START: Duration = Duration::from_secs(90);

/// Addresses of pods, of which the node has the first. The API server has an address of the node, so no address
/// translation is needed.
const NETWORK: &str = r#"{
  "cniVersion": "0.4.0", "name": "pods", "plugins": [{
    "type": "bridge", "bridge": "pods", "isGateway": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}"#;

/// Debian's containerd, except that it gives no process a better OOM score than its own, which a test may not do.
fn containerd() -> String {
    format!(
        r#"version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{}"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/run/cni"
[plugins."io.containerd.internal.v1.opt"]
path = "/run/opt"
"#,
        images::PAUSE
    )
}

fn kubelet() -> Result<Value> {
    Ok(json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
        "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true}},
        "authorization": {"mode": "Webhook"},
        // Puts all of its cgroups below one folder.
        "cgroupDriver": "cgroupfs", "cgroupRoot": namespaces::cgroup()?, "failCgroupV1": false,
        // Changes no settings of the machine.
        "protectKernelDefaults": true, "oomScoreAdj": 0, "makeIPTablesUtilChains": false, "failSwapOn": false,
        "resolvConf": "",
        "featureGates": {"KubeletInUserNamespace": true},
        // The disk belongs to the machine, and other programs may fill it.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    }))
}

/// The processes in the namespaces in addition to the control plane. Dropping the node ends them.
pub(crate) struct Node {
    processes: Vec<Process>,
}

impl Node {
    /// Starts all processes with these images. Returns when the node is ready.
    pub(crate) async fn start(control_plane: &ControlPlane, images: &[impl AsRef<Path>]) -> Result<Self> {
        let logs = control_plane.folder();
        let kubeconfig = control_plane.kubeconfig_file(ADMIN)?;
        let programs = cluster::pod_programs().await?;
        fs::create_dir_all("/run/cni")?;
        fs::write("/run/cni/pods.conflist", NETWORK)?;
        fs::write("/run/containerd.toml", containerd())?;
        let config = "/run/kubelet.json";
        fs::write(config, kubelet()?.to_string())?;

        let containerd = Program::new("containerd", "/usr/bin/containerd").flag("config", "/run/containerd.toml");
        let mut node = Self { processes: vec![Process::start(containerd, logs)?] };
        node.import(images).await?;
        let of_control_plane = |name, binary: &Path| {
            let program = Program::new(name, binary).flag("bind-address", "127.0.0.1").flag("leader-elect", "false");
            let flags = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
            flags.iter().fold(program, |program, flag| program.flag(flag, &kubeconfig))
        };
        let controllers = of_control_plane("kube-controller-manager", &programs.kube_controller_manager)
            .flag("root-ca-file", control_plane.authority())
            // The nodes of a shoot's machines are only objects, so no kubelet renews their leases.
            .flag("node-monitor-grace-period", "1h");
        let kubelet = Program::new("kubelet", &programs.kubelet)
            .flag("kubeconfig", &kubeconfig)
            .flag("config", config)
            .flag("hostname-override", NAME)
            .flag("node-ip", SERVICE);
        for program in [controllers, of_control_plane("kube-scheduler", &programs.kube_scheduler), kubelet] {
            node.processes.push(Process::start(program, logs)?);
        }
        node.wait_until_ready(control_plane).await?;
        Ok(node)
    }

    /// Imports the images into containerd.
    async fn import(&self, images: &[impl AsRef<Path>]) -> Result<()> {
        let ctr = async |arguments: &[&str]| {
            self.ensure_running()?;
            let mut ctr = Command::new("ctr");
            let output = ctr.args(["--address", CONTAINERD, "--namespace", "k8s.io"]).args(arguments).output()?;
            ensure!(output.status.success(), "ctr {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Ok(())
        };
        eventually(START, "containerd answers", async || ctr(&["version"]).await).await?;
        for image in images {
            let archive = image.as_ref().to_str().context("a path in UTF-8")?;
            ctr(&["images", "import", archive]).await?;
        }
        Ok(())
    }

    async fn wait_until_ready(&self, control_plane: &ControlPlane) -> Result<()> {
        let nodes: Api<core::Node> = Api::all(control_plane.client(ADMIN).await?);
        let ready = eventually(START, "the node is ready", async || {
            if let Err(ended) = self.ensure_running() {
                return Ok(Err(ended));
            }
            let node = nodes.get(NAME).await?;
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            let ready =
                conditions.iter().find(|condition| condition.type_ == "Ready").context("it has no condition")?;
            ensure!(ready.status == "True", "{:?}", ready.message);
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            ensure!(taints.is_empty(), "{taints:?}");
            Ok(Ok(()))
        });
        ready.await.with_context(|| self.last_lines())?
    }

    /// Fails if one of the processes has ended.
    pub(crate) fn ensure_running(&self) -> Result<()> {
        self.processes.iter().try_for_each(Process::ensure_running)
    }

    /// The last log lines of the processes and containers, for an error.
    pub(crate) fn last_lines(&self) -> String {
        let of = |process: &Process| format!("{}:\n{}", process.name(), process.last_lines(12));
        let mut lines: Vec<_> = self.processes.iter().map(of).collect();
        for log in logs_of_containers(Path::new("/var/log/pods")).unwrap_or_default() {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().rev().take(12).collect::<Vec<_>>();
            lines.push(format!("{}, backwards:\n{}", log.display(), last.join("\n")));
        }
        lines.join("\n")
    }

    /// Stops all processes, the kubelet first.
    pub(crate) async fn stop(mut self) -> Result<()> {
        while let Some(process) = self.processes.pop() {
            process.stop(Duration::from_secs(5)).await?;
        }
        Ok(())
    }
}

fn logs_of_containers(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { logs.extend(logs_of_containers(&path)?) } else { logs.push(path) }
    }
    Ok(logs)
}
