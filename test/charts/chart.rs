//! Renders a chart with Helm.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::{Value, json};

use crate::programs::{self, output};

/// One of the charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chart {
    /// The controller on a seed.
    Worker,
    /// The webhooks, in the cluster where they run.
    AdmissionRuntime,
    /// The permissions of the webhooks in the garden.
    AdmissionApplication,
}

impl Chart {
    pub(crate) const ALL: [Self; 3] = [Self::Worker, Self::AdmissionRuntime, Self::AdmissionApplication];

    pub(crate) fn folder(self) -> PathBuf {
        let folder = match self {
            Self::Worker => "gardener-extension-worker",
            Self::AdmissionRuntime => "gardener-extension-worker-admission/runtime",
            Self::AdmissionApplication => "gardener-extension-worker-admission/application",
        };
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/charts")).join(folder)
    }

    /// The values that an operator must set. All others have defaults.
    pub(crate) fn needed(self) -> Value {
        match self {
            Self::Worker | Self::AdmissionRuntime => {
                json!({"image": {"repository": "registry.example.org/worker", "tag": "0.1.0"}})
            }
            Self::AdmissionApplication => json!({}),
        }
    }

    /// Values with every switch and every member set.
    pub(crate) fn everything(self) -> Value {
        let mut values = match self {
            Self::Worker => json!({
                "workers": {
                    "types": ["azure", "aws"], "extensionClasses": ["shoot", "seed"], "maxConcurrentReconciles": 5,
                    "ignoreOperationAnnotation": true,
                    "healthCheck": true, "imageDrift": true, "pinImages": true,
                    "versionForecast": true, "rollBudget": 0,
                },
                "images": {
                    "enabled": true, "sources": [{"configMapName": "amis", "region": "RegionOne"}, {"configMapName": "release"}],
                    "intervalSeconds": 60, "machineTemplates": true, "admissionPolicies": true,
                },
                "disableControllers": ["heartbeat"],
                "azure": {"resourceManagerUrl": "https://arm.example.org", "authorityUrl": "https://login.example.org"},
                "proxy": {"https": "http://proxy.example.org:3128", "exceptions": "10.0.0.0/8,.svc"},
                "sidecarWebhook": {
                    "enabled": true, "images": {"azure": "registry.example.org/sidecar:v1", "aws": "registry.example.org/aws:v1"},
                    "replicaCount": 3, "port": 9443,
                },
                "traces": {"otlpEndpoint": "http://collector.example.org:4318"},
                "ports": {"metrics": 9090, "health": 9091},
                "leaderElection": {"leaseSeconds": 30},
                "heartbeat": {"renewIntervalSeconds": 20},
                "gardener": {"version": "v1.149.3", "seed": {"name": "one"}}, "usablePorts": [10000, 10001],
                "network": {"toPublicNetworks": true, "toPrivateNetworks": true},
                "metrics": {
                    "serviceMonitor": {"enabled": true, "labels": {"prometheus": "seed"}, "interval": "1m"},
                    "prometheusRule": {
                        "enabled": true, "labels": {"prometheus": "seed"}, "runbookUrl": "https://docs.example.org/runbooks",
                    },
                    "dashboard": {"enabled": true, "labels": {"dashboard.monitoring.gardener.cloud/seed": "true"}},
                },
            }),
            Self::AdmissionRuntime => json!({
                "providerTypes": ["azure", "aws"], "nodeWarnings": false, "profileWarnings": true,
                "webhook": {"url": "admission.example.org:8443", "ownerNamespace": "extension-worker"},
                "gardener": {"runtimeCluster": {"priorityClassName": "gardener-system-400"}, "virtualCluster": {
                    "enabled": true, "namespace": "extension-worker", "serviceAccount": {"name": "a", "namespace": "b"},
                }},
                "certificate": {"secretName": "certificate"},
                "metrics": {"serviceMonitor": {"enabled": true, "labels": {"prometheus": "garden"}}, "prometheusRule": {
                    "enabled": true, "labels": {"prometheus": "garden"}, "runbookUrl": "https://docs.example.org/runbooks",
                }},
                "ports": {"webhook": 9443, "metrics": 9090, "health": 9091},
                "imagePolicies": {"enabled": true},
            }),
            Self::AdmissionApplication => json!({
                "profileWarnings": true, "imagePolicies": {"enabled": true},
                "webhook": {"ownerNamespace": "extension-worker"},
                "gardener": {"virtualCluster": {"enabled": true, "serviceAccount": {"name": "a", "namespace": "b"}}},
                "values": "of the other chart",
            }),
        };
        if self != Self::AdmissionApplication {
            merge(&mut values, &of_pods());
        }
        values
    }

    /// The sets of values that the checks render, by name.
    pub(crate) fn value_sets(self) -> Vec<(&'static str, Value)> {
        let with = |change: Value| {
            let mut values = self.needed();
            merge(&mut values, &change);
            values
        };
        let mut sets = vec![("defaults", self.needed()), ("everything", self.everything())];
        let nothing = json!({
            "metrics": {"scrape": false}, "verticalPodAutoscaler": {"enabled": false},
            "podDisruptionBudget": {"enabled": false},
        });
        match self {
            Self::Worker => {
                sets.push(("nothing optional", with(nothing)));
                sets.push(("a closed network", with(json!({"network": {"toPublicNetworks": false}}))));
                sets.push(("shadow", with(json!({"shadow": true}))));
                let mut shadow_of_everything = self.everything();
                merge(&mut shadow_of_everything, &json!({"shadow": true}));
                sets.push(("shadow of everything", shadow_of_everything));
                sets.push(("shards", with(json!({"sharding": {"ring": "workers"}, "replicaCount": 4}))));
                let images = json!({"azure": "registry.example.org/sidecar:v1"});
                sets.push(("images", with(json!({"images": {"enabled": true}}))));
                let only = json!({"images": {"enabled": true}, "disableControllers": ["worker"]});
                sets.push(("images only", with(only)));
                sets.push(("sidecar", with(json!({"sidecarWebhook": {"enabled": true, "images": images}}))));
            }
            Self::AdmissionRuntime => sets.push(("nothing optional", with(nothing))),
            Self::AdmissionApplication => {
                sets.push(("the operator's", with(json!({"gardener": {"virtualCluster": {"enabled": true}}}))));
            }
        }
        sets
    }
}

/// Values that all charts with pods share.
fn of_pods() -> Value {
    json!({
        "image": {
            "repository": "registry.example.org/worker", "digest": format!("sha256:{}", "0".repeat(64)),
            "pullPolicy": "Always",
        },
        "imagePullSecrets": [{"name": "registry"}],
        "replicaCount": 3,
        "logging": {"level": "debug", "format": "text"},
        "garden": {"kubeconfigSecretName": "garden"},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "verticalPodAutoscaler": {"minAllowed": {"memory": "64Mi"}, "maxAllowed": {"memory": "4Gi"}},
        "priorityClassName": "gardener-system-800",
        "podAnnotations": {"example.org/note": "true"},
        "podLabels": {"example.org/number": "1"},
        "nodeSelector": {"worker.gardener.cloud/pool": "8"},
        "tolerations": [{"key": "only", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
        ]}}},
    })
}

/// Merges members recursively into a document and overwrites existing ones.
pub(crate) fn merge(document: &mut Value, over: &Value) {
    match (document, over) {
        (Value::Object(members), Value::Object(over)) => {
            for (name, value) in over {
                merge(members.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (document, over) => document.clone_from(over),
    }
}

/// The output of Helm.
pub(crate) struct Rendered {
    /// The manifests as text.
    pub(crate) text: String,
    /// The parsed manifests.
    pub(crate) objects: Vec<Value>,
}

impl Rendered {
    /// Returns the only object of this kind whose name has this suffix.
    pub(crate) fn one(&self, kind: &str, name: &str) -> Result<&Value> {
        let mut found = self.objects.iter().filter(|object| {
            object["kind"] == kind && object["metadata"]["name"].as_str().is_some_and(|found| found.ends_with(name))
        });
        let one = found.next().with_context(|| format!("no {kind} …{name} is rendered"))?;
        ensure!(found.next().is_none(), "several {kind} …{name} are rendered");
        Ok(one)
    }

    /// Whether there is an object of this kind.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.objects.iter().any(|object| object["kind"] == kind)
    }
}

/// Renders a chart with values in a namespace.
pub(crate) async fn render(chart: Chart, values: &Value, namespace: &str) -> Result<Rendered> {
    let (succeeded, text) = template(chart, values, namespace).await?;
    ensure!(succeeded, "{text}");
    Ok(Rendered { objects: documents(&text).context("reading what Helm rendered")?, text })
}

/// Returns the error of Helm for a chart with these values.
pub(crate) async fn refusal(chart: Chart, values: &Value) -> Result<String> {
    let (succeeded, text) = template(chart, values, "extension").await?;
    ensure!(!succeeded, "these values are not refused: {values}");
    Ok(text)
}

/// Lints a chart with Helm. Returns whether that succeeded, with the output.
pub(crate) async fn lint(chart: Chart, values: &Value) -> Result<(bool, String)> {
    let mut helm = command(chart, values, &["lint", "--strict"]).await?;
    output(&mut helm.0)
}

async fn template(chart: Chart, values: &Value, namespace: &str) -> Result<(bool, String)> {
    let name = "gardener-extension-worker";
    let mut helm = command(chart, values, &["template", name, "--namespace", namespace]).await?;
    let output = helm.0.output().context("starting Helm")?;
    let text = if output.status.success() { output.stdout } else { output.stderr };
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// A Helm command with a temporary file of values, which is deleted with the second part.
async fn command(chart: Chart, values: &Value, arguments: &[&str]) -> Result<(Command, tempfile::NamedTempFile)> {
    let file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(&file, values)?;
    let home = std::env::temp_dir();
    let mut helm = Command::new(programs::helm().await?);
    helm.args(arguments).arg(chart.folder()).arg("--values").arg(file.path());
    // Isolates Helm from the settings of the user.
    helm.env("HELM_CONFIG_HOME", &home).env("HELM_CACHE_HOME", &home).env("HELM_DATA_HOME", &home);
    Ok((helm, file))
}
