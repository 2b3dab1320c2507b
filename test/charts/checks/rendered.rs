//! The rendered charts are valid: for Helm, for Kubernetes' schemas, and for a real API server that rejects unknown
//! fields.

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::quantity::Quantity;
use serde_json::{Value, json};

use crate::chart::{Chart, lint, merge, render};
use crate::installed::apply;
use crate::programs::kubernetes_validate;
use test_support::cluster::{self, ADMIN, install_files};

/// The oldest and a recent version of Kubernetes that a seed may have.
const KUBERNETES: [&str; 2] = ["1.31", "1.36"];
/// CRDs of other projects that the charts need, below `example/` of Gardener's module.
const OF_OTHERS: [&str; 3] = [
    "seed-crds/10-crd-autoscaling.k8s.io_verticalpodautoscalers.yaml",
    "seed-crds/10-crd-monitoring.coreos.com_prometheusrules.yaml",
    "seed-crds/10-crd-monitoring.coreos.com_servicemonitors.yaml",
];

#[tokio::test]
async fn helm_lint_finds_nothing() -> Result<()> {
    for chart in Chart::ALL {
        for (name, values) in chart.value_sets() {
            let (succeeded, text) = lint(chart, &values).await?;
            ensure!(succeeded && !text.contains("[WARNING]"), "{chart:?} with {name}: {text}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn objects_follow_the_schemas_of_kubernetes() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    for chart in Chart::ALL {
        for (name, values) in chart.value_sets() {
            std::fs::write(file.path(), render(chart, &values, "extension").await?.text)?;
            for version in KUBERNETES {
                let Some(wrong) = kubernetes_validate(file.path(), version)? else { return Ok(()) };
                ensure!(wrong.is_empty(), "{chart:?} with {name}, Kubernetes {version}: {wrong}");
            }
        }
    }
    // A negative test, so that the check can't pass for any input.
    std::fs::write(file.path(), "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {port: 1}\n")?;
    let wrong = kubernetes_validate(file.path(), KUBERNETES[0])?.context("it has just worked")?;
    ensure!(wrong.contains("port"), "a wrong Service passes: {wrong}");
    Ok(())
}

#[tokio::test]
async fn an_api_server_takes_every_object() -> Result<()> {
    let control_plane = cluster::shared().await?;
    let client = control_plane.client(ADMIN).await?;
    install_files(&client, &OF_OTHERS).await?;
    for chart in Chart::ALL {
        for (name, values) in chart.value_sets() {
            let namespace = control_plane.namespace("applied").await?;
            for object in render(chart, &values, &namespace).await?.objects {
                let of_cluster = object["metadata"]["namespace"].is_null();
                let kind = object["kind"].as_str().unwrap_or_default();
                ensure!(
                    of_cluster
                        == ["Cluster", "CustomResourceDefinition", "ValidatingAdmissionPolicy"]
                            .iter()
                            .any(|start| kind.starts_with(start)),
                    "namespace of {}",
                    object["kind"]
                );
                apply(&client, &object).await.with_context(|| format!("{chart:?} with {name}"))?;
            }
        }
    }
    Ok(())
}

/// If a kind is missing, the API server rejects every request that the policy covers.
#[tokio::test]
async fn policies_come_with_the_kinds_that_they_refer_to() -> Result<()> {
    let mut found = 0;
    for chart in Chart::ALL {
        for (name, values) in chart.value_sets() {
            let objects = render(chart, &values, "extension").await?.objects;
            let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
            for policy in of_kind("ValidatingAdmissionPolicy") {
                let expected = &policy["spec"]["paramKind"];
                let Some(target_kind) = expected["kind"].as_str() else { continue };
                let is_defined = of_kind("CustomResourceDefinition").any(|definition| {
                    let group = definition["spec"]["group"].as_str().unwrap_or_default();
                    definition["spec"]["names"]["kind"] == target_kind
                        && expected["apiVersion"].as_str().is_some_and(|version| version.starts_with(group))
                });
                ensure!(is_defined, "{chart:?} with {name}: {} has no {target_kind}", policy["metadata"]["name"]);
                found += 1;
            }
        }
    }
    ensure!(found >= 6, "{found} policies");
    Ok(())
}

/// An alert for metrics that Prometheus does not scrape fires forever.
#[tokio::test]
async fn what_has_metrics_is_scraped_where_monitors_are_made() -> Result<()> {
    for chart in [Chart::Worker, Chart::AdmissionRuntime] {
        let objects = render(chart, &chart.everything(), "extension").await?.objects;
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        for service in of_kind("Service") {
            let labels = service["metadata"]["labels"].as_object().context("a Service has labels")?;
            let selects = |monitor: &Value| {
                let expected = monitor["spec"]["selector"]["matchLabels"].as_object();
                expected.is_some_and(|expected| expected.iter().all(|(name, value)| labels.get(name) == Some(value)))
            };
            let monitors = of_kind("ServiceMonitor").filter(|monitor| selects(monitor)).count();
            ensure!(monitors == 1, "{chart:?}: {monitors} monitors select {}", service["metadata"]["name"]);
        }
    }
    Ok(())
}

/// By default, Gardener's webhook for high availability sets two replicas.
#[tokio::test]
async fn gardener_leaves_the_replicas_as_they_are() -> Result<()> {
    for chart in [Chart::Worker, Chart::AdmissionRuntime] {
        let mut values = chart.everything();
        merge(&mut values, &json!({"replicaCount": 4}));
        for object in render(chart, &values, "extension").await?.objects {
            let metadata = &object["metadata"];
            if !metadata["labels"]["high-availability-config.resources.gardener.cloud/type"].is_null() {
                let expected = &metadata["annotations"]["high-availability-config.resources.gardener.cloud/replicas"];
                ensure!(expected.as_str() == Some(&object["spec"]["replicas"].to_string()), "{metadata}");
            }
        }
    }
    Ok(())
}

/// The network policies of the seed require this label on the pods.
#[tokio::test]
async fn who_counts_nodes_reaches_the_api_servers_of_shoots() -> Result<()> {
    const LABEL: &str = "networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443";
    for (health_check, shadow, reaches) in [(false, false, false), (true, false, true), (true, true, false)] {
        let mut values = Chart::Worker.needed();
        merge(&mut values, &json!({"workers": {"healthCheck": health_check}, "shadow": shadow}));
        let rendered = render(Chart::Worker, &values, "extension").await?;
        let labels = &rendered.one("Deployment", "-worker")?["spec"]["template"]["metadata"]["labels"];
        ensure!((labels[LABEL] == "allowed") == reaches, "{health_check}, {shadow}: {labels}");
    }
    Ok(())
}

/// Both bounds of the recommendation are set. A pod that requests more than a node has is never scheduled again.
#[tokio::test]
async fn autoscalers_have_a_lower_and_an_upper_bound() -> Result<()> {
    let mut found = 0;
    for chart in [Chart::Worker, Chart::AdmissionRuntime] {
        for (name, values) in chart.value_sets() {
            let rendered = render(chart, &values, "extension").await?;
            for object in rendered.objects.iter().filter(|object| object["kind"] == "VerticalPodAutoscaler") {
                let policy = &object["spec"]["resourcePolicy"]["containerPolicies"][0];
                let bound = |member: &str| {
                    let text = policy[member]["memory"].as_str().unwrap_or_default();
                    let quantity = Quantity::parse(text).with_context(|| format!("{name}, {member}"))?;
                    anyhow::Ok(quantity.value_rounded_up())
                };
                ensure!(bound("minAllowed")? < bound("maxAllowed")?, "{chart:?} with {name}: {policy}");
                found += 1;
            }
        }
    }
    ensure!(found >= 6, "{found} autoscalers");
    Ok(())
}

/// The API server enforces its strictest standard. Gardener's landscapes may be less strict.
#[tokio::test]
async fn pods_meet_the_restricted_standard() -> Result<()> {
    let control_plane = cluster::shared().await?;
    let client = control_plane.client(ADMIN).await?;
    let mut worker = Chart::Worker.needed();
    merge(
        &mut worker,
        &json!({"sidecarWebhook": {"enabled": true, "images": {"azure": "registry.example.org/azure:v1"}}}),
    );
    for (chart, deployment, values) in [
        (Chart::Worker, "-worker", &worker),
        (Chart::Worker, "-sidecar", &worker),
        (Chart::AdmissionRuntime, "-admission", &Chart::AdmissionRuntime.needed()),
    ] {
        let namespace = control_plane.namespace("restricted").await?;
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let strict =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
        apply(&client, &strict).await?;
        let rendered = render(chart, values, &namespace).await?;
        let template = &rendered.one("Deployment", deployment)?["spec"]["template"];
        let class = template["spec"]["priorityClassName"].as_str().context("pods have a priority")?;
        let of_scheduling = "scheduling.k8s.io/v1";
        apply(
            &client,
            &json!({"apiVersion": of_scheduling, "kind": "PriorityClass", "metadata": {"name": class}, "value": 900}),
        )
        .await?;
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]});
        pod["metadata"] = json!({"name": "one", "namespace": namespace, "labels": template["metadata"]["labels"]});
        let stored = apply(&client, &pod).await?;
        ensure!(stored["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] == true, "{stored}");
        // The pod is denied because of the standard.
        pod["metadata"]["name"] = json!("two");
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = Value::Bool(true);
        let refused = apply(&client, &pod).await.err().context("a pod that may become root is not refused")?;
        ensure!(format!("{refused:#}").contains("restricted"), "{refused:#}");
    }
    Ok(())
}
