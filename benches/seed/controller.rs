//! The measured controller: `CONTROLLER=FILE`, such as a released binary, or the one that `cargo bench` built with all
//! optional features. Alternatively the Go extension for Azure.

use std::path::{Path, PathBuf};

use anyhow::Result;

use test_support::cluster::{ControlPlane, Process, Program, free_ports};
use test_support::program;

/// Which program to measure.
pub(crate) enum Controller {
    Ours,
    /// The binary of gardener-extension-provider-azure.
    GoExtension(PathBuf),
}

impl Controller {
    pub(crate) fn binary(&self) -> PathBuf {
        match self {
            Self::Ours => program::measured(),
            Self::GoExtension(binary) => binary.clone(),
        }
    }

    /// Starts the program with a kubeconfig.
    pub(crate) fn start(&self, control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Process> {
        let program = match self {
            Self::Ours => {
                program::controller("controller", self.binary(), kubeconfig).env("RUST_LOG", "info,kube_runtime=warn")
            }
            Self::GoExtension(binary) => go_extension(binary, control_plane, kubeconfig)?,
        };
        Process::start(program, control_plane.folder())
    }
}

/// Starts this controller.
pub(crate) fn start(control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Process> {
    Controller::Ours.start(control_plane, kubeconfig)
}

/// Runs only its Worker controller, with twenty concurrent reconciles and practically no rate limit.
fn go_extension(binary: &Path, control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Program> {
    let configuration = control_plane.folder().join("go-extension.json");
    let content = serde_json::json!({
        "apiVersion": "azure.provider.extensions.config.gardener.cloud/v1alpha1", "kind": "ControllerConfiguration",
        "clientConnection": {
            "acceptContentTypes": "application/json", "contentType": "application/json", "qps": 1000, "burst": 1000,
        },
        "etcd": {"storage": {"className": "none", "capacity": "1Gi"}},
    });
    std::fs::write(&configuration, content.to_string())?;
    let [metrics, health, webhooks] = free_ports()?;
    let none = "network,acceleratednetwork,infrastructure,controlplane,seedprovider,cloudprovider,topology,high-availability-namespace";
    Ok(Program::new("controller", binary)
        .env("GARDEN_KUBECONFIG", kubeconfig)
        .flag("kubeconfig", kubeconfig)
        .flag("config-file", configuration)
        .flag("controllers", "worker")
        .flag("worker-max-concurrent-reconciles", "20")
        .flag("leader-election", "false")
        .flag("metrics-bind-address", format!("127.0.0.1:{metrics}"))
        .flag("health-bind-address", format!("127.0.0.1:{health}"))
        .flag("disable-webhooks", none)
        .flag("webhook-config-mode", "url")
        .flag("webhook-config-url", format!("127.0.0.1:{webhooks}"))
        .flag("webhook-config-server-host", "127.0.0.1")
        .flag("webhook-config-server-port", webhooks.to_string())
        .flag("webhook-config-cert-dir", control_plane.folder().join("webhooks"))
        .flag("webhook-config-namespace", "default")
        .flag("heartbeat-namespace", "default"))
}
