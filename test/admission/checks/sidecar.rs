//! The webhook adds the provider's sidecar to machine-controller-manager when gardenlet writes its Deployment, and
//! keeps it there.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::program::{Admission, NAMESPACE};
use test_support::cluster::{self, ADMIN, ControlPlane, RESTRICTED};

const NAME: &str = "gardener-extension-worker-sidecar";
const MUTATED: &str = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook";

/// A seed with the webhook and the permissions of docs/sidecar.md. All tests share it.
async fn seed() -> Result<&'static ControlPlane> {
    static SHARED: tokio::sync::OnceCell<Admission> = tokio::sync::OnceCell::const_new();
    let control_plane = cluster::shared().await?;
    let start = async || {
        let rules = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["cloudprovider"]},
            {"apiGroups": ["extensions.gardener.cloud"], "resources": ["clusters"], "verbs": ["get"]},
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["mutatingwebhookconfigurations"],
                "verbs": ["get", "create", "update"]},
        ]);
        control_plane.grant(RESTRICTED, serde_json::from_value(rules)?).await?;
        grant_own_secrets(control_plane).await?;
        let sidecar = Admission::start_command(control_plane, "sidecar", RESTRICTED, "sidecar", |program| {
            program.flag("image", "azure=mcm-azure:v1").flag("image", "aws=mcm-aws:v1")
        });
        let sidecar = sidecar.await?;
        sidecar.ready().await?;
        anyhow::Ok(sidecar)
    };
    SHARED.get_or_try_init(start).await?.process().ensure_running()?;
    Ok(control_plane)
}

/// Grants access to Secrets in the webhook's own namespace only, for its certificate.
async fn grant_own_secrets(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.client(ADMIN).await?;
    let (kind, group) = ("Role", "rbac.authorization.k8s.io");
    let role = json!({"metadata": {"name": NAME},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update"]}]});
    let binding = json!({"metadata": {"name": NAME}, "roleRef": {"apiGroup": group, "kind": kind, "name": NAME},
        "subjects": [{"apiGroup": group, "kind": "User", "name": RESTRICTED}]});
    let parameters = PostParams::default();
    let roles: Api<Role> = Api::namespaced(client.clone(), NAMESPACE);
    roles.create(&parameters, &serde_json::from_value(role)?).await?;
    let bindings: Api<RoleBinding> = Api::namespaced(client, NAMESPACE);
    bindings.create(&parameters, &serde_json::from_value(binding)?).await?;
    Ok(())
}

/// The namespace of a shoot's control plane.
struct ControlPlaneNamespace {
    client: Client,
    name: String,
}

impl ControlPlaneNamespace {
    /// Creates a namespace for a shoot of this provider, with the credentials and the Cluster.
    async fn new(control_plane: &ControlPlane, name: &str, provider: &str, pool: Value) -> Result<Self> {
        let namespace = Self::bare(control_plane, name, provider).await?;
        namespace.credentials(json!({})).await?;
        let shoot = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "spec": {"provider": {"type": provider, "workers": [pool]}}});
        let cluster = json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"shoot": shoot, "cloudProfile": {}, "seed": {}}});
        namespace.create("extensions.gardener.cloud", cluster, false).await?;
        Ok(namespace)
    }

    async fn bare(control_plane: &ControlPlane, name: &str, provider: &str) -> Result<Self> {
        let namespace = Self { client: control_plane.client(ADMIN).await?, name: name.to_owned() };
        let labels = json!({"shoot.gardener.cloud/provider": provider});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        namespace.create("", object, false).await?;
        Ok(namespace)
    }

    async fn credentials(&self, labels: Value) -> Result<()> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "cloudprovider", "namespace": self.name, "labels": labels}});
        let api = self.api("", &secret, true);
        let parameters = PatchParams::apply("test").force();
        api.patch("cloudprovider", &parameters, &Patch::Apply(secret)).await?;
        Ok(())
    }

    fn api(&self, group: &str, object: &Value, namespaced: bool) -> Api<DynamicObject> {
        let text = |member: &str| object[member].as_str().unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let plural = format!("{}s", kind.to_lowercase());
        let resource = ApiResource { group: group.to_owned(), version, api_version, kind, plural };
        match namespaced {
            true => Api::namespaced_with(self.client.clone(), &self.name, &resource),
            false => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn create(&self, group: &str, object: Value, namespaced: bool) -> Result<Value> {
        let api = self.api(group, &object, namespaced);
        let created = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(serde_json::to_value(created)?)
    }

    /// Patches like gardenlet: a merge patch with the whole pod.
    async fn patch(&self, group: &str, object: &Value) -> Result<Value> {
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let patch = Patch::Merge(json!({"metadata": {"labels": object["metadata"]["labels"]}, "spec": object["spec"]}));
        let patched = self.api(group, object, true).patch(name, &PatchParams::default(), &patch).await?;
        Ok(serde_json::to_value(patched)?)
    }

    /// The Deployment that gardenlet writes, with additional containers.
    fn deployment(&self, more: &[Value]) -> Value {
        let mut containers = vec![json!({"name": "machine-controller-manager", "image": "mcm:v1"})];
        containers.extend_from_slice(more);
        let labels = json!({"app": "kubernetes", "role": "machine-controller-manager"});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "machine-controller-manager", "namespace": self.name, "labels": {MUTATED: "true"}},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers, "volumes": [
                    {"name": "kubeconfig", "projected": {"sources": [{"secret": {"name": "generic-token-kubeconfig"}}]}},
                ]}},
            },
        })
    }

    /// The container that the Go extension injects.
    fn container_of_go(&self, name: &str, image: &str) -> Value {
        json!({
            "name": name, "image": image, "imagePullPolicy": "IfNotPresent",
            "args": [
                "--control-kubeconfig=inClusterConfig", "--kube-api-qps=100", "--kube-api-burst=200",
                "--machine-creation-timeout=20m", "--machine-drain-timeout=2h", "--machine-health-timeout=10m",
                "--machine-safety-apiserver-statuscheck-timeout=30s", "--machine-safety-apiserver-statuscheck-period=1m",
                "--machine-safety-orphan-vms-period=30m", format!("--namespace={}", self.name), "--port=10259",
                "--target-kubeconfig=/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig", "--v=3",
                "--machine-pv-reattach-timeout=150s",
            ],
            "ports": [{"name": "providermetrics", "containerPort": 10259, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
            "volumeMounts": [
                {"name": "kubeconfig", "readOnly": true, "mountPath": "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"},
            ],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 10259, "scheme": "HTTP"}, "initialDelaySeconds": 30,
                "timeoutSeconds": 5, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
            "securityContext": {"allowPrivilegeEscalation": false},
        })
    }
}

/// Adds the defaults that an API server sets in a container.
fn stored(mut container: Value) -> Value {
    container["terminationMessagePath"] = json!("/dev/termination-log");
    container["terminationMessagePolicy"] = json!("File");
    container
}

fn pod(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]
}

#[tokio::test]
async fn the_deployment_of_gardenlet_comes_back_with_the_sidecar_and_stays_as_it_is() -> Result<()> {
    let shoot =
        ControlPlaneNamespace::new(seed().await?, "shoot--sidecar--azure", "azure", json!({"name": "a"})).await?;
    let expected = shoot.deployment(&[]);
    let created = shoot.create("apps", expected.clone(), true).await?;
    let sidecar = stored(shoot.container_of_go("machine-controller-manager-provider-azure", "mcm-azure:v1"));
    ensure!(pod(&created)["containers"][1] == sidecar, "{:#}", pod(&created)["containers"][1]);
    ensure!(pod(&created)["containers"][0]["name"] == "machine-controller-manager", "{created:#}");
    ensure!(pod(&created)["volumes"].as_array().map(Vec::len) == Some(1), "{created:#}");
    // gardenlet does not include the sidecar and writes its own pod repeatedly.
    for _ in 0..2 {
        let patched = shoot.patch("apps", &expected).await?;
        ensure!(patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"], "{patched:#}");
        ensure!(patched["metadata"]["generation"] == 1, "{patched:#}");
    }
    // The next write picks up a workload identity.
    shoot.credentials(json!({"security.gardener.cloud/purpose": "workload-identity-token-requestor"})).await?;
    let patched = shoot.patch("apps", &expected).await?;
    let mount = json!({"name": "workload-identity", "mountPath": "/var/run/secrets/gardener.cloud/workload-identity"});
    ensure!(pod(&patched)["containers"][1]["volumeMounts"][1] == mount, "{patched:#}");
    let volume = json!({"name": "workload-identity", "projected": {"defaultMode": 420, "sources": [
        {"secret": {"name": "cloudprovider", "items": [{"key": "token", "path": "token"}]}},
    ]}});
    ensure!(pod(&patched)["volumes"][1] == volume, "{patched:#}");
    let again = shoot.patch("apps", &expected).await?;
    ensure!(again["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"], "{again:#}");
    shoot.credentials(json!({})).await?;
    let back = shoot.patch("apps", &expected).await?;
    ensure!(pod(&back) == pod(&created), "{back:#}");
    Ok(())
}

#[tokio::test]
async fn what_the_go_extension_has_injected_stays_to_the_byte() -> Result<()> {
    let control_plane = seed().await?;
    let shoot = ControlPlaneNamespace::new(control_plane, "shoot--sidecar--go", "azure", json!({"name": "a"})).await?;
    let injected = shoot.container_of_go("machine-controller-manager-provider-azure", "mcm-azure:v1");
    // Without the label, no webhook reviews this Deployment.
    let mut unseen = shoot.deployment(&[injected]);
    unseen["metadata"]["labels"] = json!({});
    let before = shoot.create("apps", unseen.clone(), true).await?;
    unseen["metadata"]["labels"] = json!({MUTATED: "true"});
    let after = shoot.patch("apps", &unseen).await?;
    ensure!(after["spec"] == before["spec"], "{after:#}");
    ensure!(after["metadata"]["generation"] == before["metadata"]["generation"], "{after:#}");
    Ok(())
}

#[tokio::test]
async fn other_providers_and_self_hosted_shoots_get_what_is_theirs() -> Result<()> {
    let control_plane = seed().await?;
    let pool = json!({"name": "a", "controlPlane": {}});
    let shoot = ControlPlaneNamespace::new(control_plane, "shoot--sidecar--aws", "aws", pool).await?;
    let created = shoot.create("apps", shoot.deployment(&[]), true).await?;
    let sidecar = &pod(&created)["containers"][1];
    ensure!(
        sidecar["name"] == "machine-controller-manager-provider-aws" && sidecar["image"] == "mcm-aws:v1",
        "{sidecar:#}"
    );
    let arguments = sidecar["args"].to_string();
    ensure!(arguments.ends_with(r#""--target-kubeconfig=none","--v=3"]"#), "{arguments}");
    ensure!(sidecar["volumeMounts"].is_null(), "{sidecar:#}");
    // Without an image for the provider, the webhook is not called.
    let shoot = ControlPlaneNamespace::bare(control_plane, "shoot--sidecar--gcp", "gcp").await?;
    let created = shoot.create("apps", shoot.deployment(&[]), true).await?;
    ensure!(pod(&created)["containers"].as_array().map(Vec::len) == Some(1), "{created:#}");
    Ok(())
}

#[tokio::test]
async fn an_unreadable_shoot_is_denied_and_other_objects_are_admitted() -> Result<()> {
    let shoot = ControlPlaneNamespace::bare(seed().await?, "shoot--sidecar--unknown", "azure").await?;
    let refused = |result: Result<Value>| {
        let error = result.err().map(|error| format!("{error:#}"));
        error.context("it was not refused")
    };
    let message = refused(shoot.create("apps", shoot.deployment(&[]), true).await)?;
    let names = "deployments shoot--sidecar--unknown/machine-controller-manager";
    ensure!(message.contains(names) && message.contains("not found"), "{message}");
    shoot.credentials(json!({})).await?;
    let message = refused(shoot.create("apps", shoot.deployment(&[]), true).await)?;
    ensure!(message.contains("Cluster shoot--sidecar--unknown can't be read"), "{message}");
    let mut other = shoot.deployment(&[]);
    other["metadata"]["name"] = json!("kube-apiserver");
    let created = shoot.create("apps", other, true).await?;
    ensure!(pod(&created)["containers"].as_array().map(Vec::len) == Some(1), "{created:#}");
    Ok(())
}

#[tokio::test]
async fn the_autoscaler_gets_a_policy_for_the_sidecar() -> Result<()> {
    let shoot = ControlPlaneNamespace::bare(seed().await?, "shoot--sidecar--vpa", "azure").await?;
    let group = "autoscaling.k8s.io";
    let expected = json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "machine-controller-manager-vpa", "namespace": shoot.name, "labels": {MUTATED: "true"}},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "machine-controller-manager"},
            "resourcePolicy": {"containerPolicies": [
                {"containerName": "machine-controller-manager", "controlledValues": "RequestsOnly"},
                {"containerName": "*", "mode": "Off"},
            ]},
        },
    });
    let created = shoot.create(group, expected.clone(), true).await?;
    let policies = &created["spec"]["resourcePolicy"]["containerPolicies"];
    let policy =
        json!({"containerName": "machine-controller-manager-provider-azure", "controlledValues": "RequestsOnly"});
    ensure!(policies[2] == policy && policies[1]["containerName"] == "*", "{policies:#}");
    let patched = shoot.patch(group, &expected).await?;
    ensure!(patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"], "{patched:#}");
    Ok(())
}

#[tokio::test]
async fn only_a_changing_webhook_for_namespaces_of_its_providers_is_registered() -> Result<()> {
    let client = seed().await?.client(ADMIN).await?;
    let configuration = Api::<MutatingWebhookConfiguration>::all(client.clone()).get(NAME).await?;
    let webhooks = configuration.webhooks.unwrap_or_default();
    ensure!(webhooks.len() == 2, "{webhooks:?}");
    for (webhook, provider) in webhooks.iter().zip(["azure", "aws"]) {
        let labels = |selector: Option<&LabelSelector>| {
            selector.and_then(|selector| selector.match_labels.clone()).unwrap_or_default()
        };
        let namespaces = labels(webhook.namespace_selector.as_ref());
        ensure!(
            namespaces.get("shoot.gardener.cloud/provider").is_some_and(|value| value == provider),
            "{namespaces:?}"
        );
        ensure!(labels(webhook.object_selector.as_ref()).contains_key(MUTATED), "{webhook:?}");
        ensure!(webhook.failure_policy.as_deref() == Some("Fail"), "{webhook:?}");
        let resources: Vec<String> =
            webhook.rules.iter().flatten().flat_map(|rule| rule.resources.clone().unwrap_or_default()).collect();
        ensure!(resources == ["deployments", "verticalpodautoscalers"], "{resources:?}");
    }
    let validating = Api::<ValidatingWebhookConfiguration>::all(client).get_opt(NAME).await?;
    ensure!(validating.is_none(), "nothing is judged: {validating:?}");
    Ok(())
}
