//! The sidecar as a container, with its volume and the policy of its autoscaler (docs/contract.md#its-sidecar).

use serde_json::{Value, json};

use super::surroundings::Surroundings;

/// Port of the sidecar's metrics and health.
const PORT: u16 = 10259;
/// Where gardenlet's volume `kubeconfig` with the shoot's kubeconfig is mounted.
const KUBECONFIG_FOLDER: &str = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig";
/// Where the token of a workload identity is mounted.
const WORKLOAD_IDENTITY_FOLDER: &str = "/var/run/secrets/gardener.cloud/workload-identity";
/// The volume with that token.
const WORKLOAD_IDENTITY: &str = "workload-identity";
/// The namespace of control planes that run in their own cluster.
const KUBE_SYSTEM: &str = "kube-system";
/// The Secret with the credentials for the cloud.
pub(super) const CREDENTIALS: &str = "cloudprovider";

/// The sidecar of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Sidecar {
    /// `spec.type` of Workers.
    pub(crate) provider_type: String,
    /// As a container runtime reads it.
    pub(crate) image: String,
    /// What only this provider's sidecar is told.
    pub(crate) arguments: &'static [&'static str],
}

impl Sidecar {
    /// Name of the container, the same as with the Go extension: it finds its own.
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

    /// The policy in the VerticalPodAutoscaler, where gardenlet's own says that other containers are left alone.
    pub(super) fn autoscaler_policy(&self) -> Value {
        json!({"containerName": self.name(), "controlledValues": "RequestsOnly"})
    }
}

/// Where the sidecar finds the cluster whose nodes it makes.
fn target_kubeconfig(namespace: &str, surroundings: Surroundings) -> String {
    match (surroundings.self_hosted, namespace) {
        (false, _) => format!("{KUBECONFIG_FOLDER}/kubeconfig"),
        // It runs in that cluster.
        (true, KUBE_SYSTEM) => String::new(),
        // There is no such cluster yet: machines for its control plane are being made.
        (true, _) => "none".to_owned(),
    }
}

/// The volume that a workload identity needs.
pub(super) fn volume(surroundings: Surroundings) -> Option<Value> {
    let volume = json!({
        "name": WORKLOAD_IDENTITY,
        "projected": {"sources": [{"secret": {"name": CREDENTIALS, "items": [{"key": "token", "path": "token"}]}}]},
    });
    surroundings.workload_identity.then_some(volume)
}
