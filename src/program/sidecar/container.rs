//! The sidecar container, its volume, and its policy in the VerticalPodAutoscaler (docs/contract.md#its-sidecar).

use serde_json::{Value, json};

use super::surroundings::Surroundings;

/// Port of the sidecar's metrics and health endpoints.
const PORT: u16 = 10259;
/// Mount path of gardenlet's volume `kubeconfig` with the shoot's kubeconfig.
const KUBECONFIG_FOLDER: &str = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig";
/// Mount path of the token of a workload identity.
const WORKLOAD_IDENTITY_FOLDER: &str = "/var/run/secrets/gardener.cloud/workload-identity";
/// Name of the volume with that token.
const WORKLOAD_IDENTITY: &str = "workload-identity";
/// Namespace of control planes that run in their own cluster.
const KUBE_SYSTEM: &str = "kube-system";
/// Name of the Secret with the cloud credentials.
pub(super) const CREDENTIALS: &str = "cloudprovider";

/// The sidecar of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Sidecar {
    /// `spec.type` of Workers.
    pub(crate) provider_type: String,
    /// Image reference for the container runtime.
    pub(crate) image: String,
    /// Arguments that only this provider's sidecar has.
    pub(crate) arguments: &'static [&'static str],
}

impl Sidecar {
    /// Name of the container. The same as in the Go extension, so that neither of them adds a second container.
    pub(super) fn name(&self) -> String {
        format!("machine-controller-manager-provider-{}", self.provider_type)
    }

    /// The container for the machine-controller-manager of a namespace.
    pub(super) fn container(&self, namespace: &str, surroundings: Surroundings) -> Value {
        let mut container = json!({
            "name": self.name(),
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "args": self.command_line(namespace, surroundings),
            "ports": [{"name": "providermetrics", "containerPort": PORT, "protocol": "TCP"}],
            "livenessProbe": {
                "httpGet": {"path": "/healthz", "port": PORT, "scheme": "HTTP"},
                "initialDelaySeconds": 30,
                "periodSeconds": 10,
                "timeoutSeconds": 5,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
            "securityContext": {"allowPrivilegeEscalation": false},
        });
        let mut mounts = Vec::new();
        if !surroundings.self_hosted {
            mounts.push(json!({"name": "kubeconfig", "mountPath": KUBECONFIG_FOLDER, "readOnly": true}));
        }
        if surroundings.workload_identity {
            mounts.push(json!({"name": WORKLOAD_IDENTITY, "mountPath": WORKLOAD_IDENTITY_FOLDER}));
        }
        if !mounts.is_empty() {
            container["volumeMounts"] = mounts.into();
        }
        container
    }

    fn command_line(&self, namespace: &str, surroundings: Surroundings) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "--control-kubeconfig=inClusterConfig",
            "--kube-api-qps=100",
            "--kube-api-burst=200",
            "--machine-creation-timeout=20m",
            "--machine-drain-timeout=2h",
            "--machine-health-timeout=10m",
            "--machine-safety-apiserver-statuscheck-timeout=30s",
            "--machine-safety-apiserver-statuscheck-period=1m",
            "--machine-safety-orphan-vms-period=30m",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--namespace={namespace}"));
        arguments.push(format!("--port={PORT}"));
        arguments.push(format!("--target-kubeconfig={}", target_kubeconfig(namespace, surroundings)));
        arguments.push("--v=3".to_owned());
        arguments.extend(self.arguments.iter().map(|argument| (*argument).to_owned()));
        arguments
    }

    /// Container policy in the VerticalPodAutoscaler, because gardenlet's default policy excludes other containers.
    pub(super) fn autoscaler_policy(&self) -> Value {
        json!({"containerName": self.name(), "controlledValues": "RequestsOnly"})
    }
}

/// Path of the kubeconfig of the cluster for which the sidecar creates nodes.
fn target_kubeconfig(namespace: &str, surroundings: Surroundings) -> String {
    match (surroundings.self_hosted, namespace) {
        (false, _) => format!("{KUBECONFIG_FOLDER}/kubeconfig"),
        // The sidecar runs in that cluster.
        (true, KUBE_SYSTEM) => String::new(),
        // That cluster does not exist yet: its control plane machines are being created.
        (true, _) => "none".to_owned(),
    }
}

/// The volume for a workload identity.
pub(super) fn volume(surroundings: Surroundings) -> Option<Value> {
    let volume = json!({
        "name": WORKLOAD_IDENTITY,
        "projected": {"sources": [{"secret": {"name": CREDENTIALS, "items": [{"key": "token", "path": "token"}]}}]},
    });
    surroundings.workload_identity.then_some(volume)
}
