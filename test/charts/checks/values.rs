//! Each value is documented and validated, and an invalid value is rejected with its path.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::{Value, json};

use crate::chart::{Chart, merge, refusal, render};

#[test]
fn every_value_is_described_and_has_a_schema() -> Result<()> {
    for chart in Chart::ALL {
        let read = |file: &str| std::fs::read_to_string(chart.folder().join(file)).with_context(|| file.to_owned());
        let values = read("values.yaml")?;
        let document = documents(&values)?.pop().context("values.yaml is empty")?;
        let schema: Value = serde_json::from_str(&read("values.schema.json")?)?;
        let (mut with_default, mut with_schema) = (BTreeSet::new(), BTreeSet::new());
        members(&document, &schema, "", &mut with_default);
        members_of_schema(&schema, "", &mut with_schema);
        // `global` belongs to Helm, for subcharts. The controller's limit has no default, because operators should not
        // set it.
        let has_no_default = |member: &str| member == "resources.limits" && !with_default.contains(member);
        with_schema.retain(|member| member != "global" && !has_no_default(member));
        ensure!(with_default == with_schema, "{:?}", with_default.symmetric_difference(&with_schema));
        let lines: Vec<&str> = values.lines().collect();
        for (number, pair) in lines.windows(2).enumerate() {
            let [before, line] = pair else { continue };
            let is_leaf = line.trim_start().split_once(": ").is_some_and(|(name, _)| !name.starts_with(['#', '-']));
            let is_switch = line.trim_start().starts_with("enabled:");
            let is_of_resources = before.trim_start().starts_with("cpu:");
            ensure!(
                !is_leaf || is_switch || is_of_resources || before.trim_start().starts_with('#'),
                "{chart:?}, line {}: {line} is not described",
                number + 2
            );
        }
    }
    Ok(())
}

/// Members with a default, down to the level where the schema allows any content.
fn members(document: &Value, schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    match (document, schema.get("properties")) {
        (Value::Object(members_here), Some(properties)) => {
            for (name, value) in members_here {
                members(value, &properties[name], &path(at, name), found);
            }
        }
        _ => {
            found.insert(at.to_owned());
        }
    }
}

fn members_of_schema(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            properties.iter().for_each(|(name, schema)| members_of_schema(schema, &path(at, name), found));
        }
        None => {
            found.insert(at.to_owned());
        }
    }
}

fn path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

#[tokio::test]
async fn rejects_wrong_values_with_their_path() -> Result<()> {
    let wrong = [
        (json!({"replicas": 2}), "replicas"),
        (json!({"image": {"digest": "sha256:short"}}), "/image/digest"),
        (json!({"image": {"tag": 1}}), "/image/tag"),
        (json!({"replicaCount": -1}), "/replicaCount"),
        (json!({"workers": {"types": []}}), "/workers/types"),
        (json!({"workers": {"types": ["azure\n- aws"]}}), "/workers/types/0"),
        (json!({"workers": {"extensionClasses": ["shoots"]}}), "/workers/extensionClasses/0"),
        (json!({"workers": {"maxConcurrentReconciles": 0}}), "/workers/maxConcurrentReconciles"),
        (json!({"disableControllers": ["everything"]}), "/disableControllers/0"),
        (json!({"azure": {"resourceManagerUrl": "arm.example.org"}}), "/azure/resourceManagerUrl"),
        (json!({"logging": {"level": "trace"}}), "/logging/level"),
        (json!({"ports": {"metrics": 80}}), "/ports/metrics"),
        (json!({"leaderElection": {"leaseSeconds": 1}}), "/leaderElection/leaseSeconds"),
        (json!({"heartbeat": {"renewIntervalSeconds": 300}}), "/heartbeat/renewIntervalSeconds"),
        (json!({"sharding": {"ring": "-workers"}}), "/sharding/ring"),
        (json!({"sharding": {"ring": "w"}, "shadow": true}), "sharding.ring and shadow"),
        (json!({"sharding": {"ring": "w"}, "images": {"enabled": true}}), "sharding.ring and images.enabled"),
        (json!({"sharding": {"ring": "w"}, "disableControllers": ["worker"]}), "sharding.ring and the part worker"),
        (json!({"sharding": {"ring": "w"}, "leaderElection": {"leaseSeconds": 5}}), "leaseSeconds of 6 or more"),
        (json!({"podLabels": {"a": true}}), "/podLabels/a"),
        (json!({"sidecarWebhook": {"enabled": true}}), "sidecarWebhook.images is needed"),
        (json!({"sidecarWebhook": {"images": {"azure": ""}}}), "/sidecarWebhook/images/azure"),
        (json!({"images": {"intervalSeconds": 0}}), "/images/intervalSeconds"),
        (json!({"images": {"sources": [{"region": "eu-central-1"}]}}), "/images/sources/0"),
        (json!({"images": {"enabled": true, "sources": [{"configMapName": "a"}, {"configMapName": "a"}]}}), "a twice"),
        (json!({"metrics": {"serviceMonitor": {"interval": "often"}}}), "/metrics/serviceMonitor/interval"),
    ];
    for (change, location) in wrong {
        is_refused(Chart::Worker, &change, location).await?;
    }
    let of_webhooks = [
        (json!({"providerTypes": "azure"}), "/providerTypes"),
        (json!({"certificate": {"validity": "a month"}}), "/certificate/validity"),
        (json!({"webhook": {"url": "https://admission.example.org"}}), "/webhook/url"),
        (json!({"gardener": {"virtualCluster": {"enabled": "yes"}}}), "/gardener/virtualCluster/enabled"),
        (json!({"shadow": true}), "shadow"),
    ];
    for (change, location) in of_webhooks {
        is_refused(Chart::AdmissionRuntime, &change, location).await?;
    }
    let change = json!({"webhook": {"ownerNamespace": ["a"]}});
    is_refused(Chart::AdmissionApplication, &change, "/webhook/ownerNamespace").await?;
    for chart in [Chart::Worker, Chart::AdmissionRuntime] {
        for (values, words) in [
            (json!({}), "image.repository is needed"),
            (json!({"image": {"repository": "registry.example.org/worker"}}), "image.tag or image.digest is needed"),
        ] {
            let text = refusal(chart, &values).await?;
            ensure!(text.contains(words), "{values}: {text}");
        }
    }
    Ok(())
}

/// gardener-operator gives all values of an admission to both of its charts.
#[tokio::test]
async fn the_charts_of_the_webhooks_take_each_others_values() -> Result<()> {
    let mut values = Chart::AdmissionApplication.everything();
    values.as_object_mut().context("values are an object")?.remove("values");
    merge(&mut values, &Chart::AdmissionRuntime.everything());
    for chart in [Chart::AdmissionRuntime, Chart::AdmissionApplication] {
        render(chart, &values, "extension").await?;
    }
    Ok(())
}

#[tokio::test]
async fn namespaces_of_workers_are_those_that_are_named() -> Result<()> {
    for (labels, namespaces) in [
        (json!({}), vec![("gardener.cloud/role", "shoot")]),
        (json!({"kubernetes.io/metadata.name": "kube-system"}), vec![("kubernetes.io/metadata.name", "kube-system")]),
    ] {
        let mut values = Chart::Worker.needed();
        merge(&mut values, &json!({"admissionPolicy": {"namespaceLabels": labels}}));
        let rendered = render(Chart::Worker, &values, "extension").await?;
        let policy =
            rendered.one("ValidatingAdmissionPolicy", "-scale")?["spec"]["validations"][0]["expression"].clone();
        let expected = namespaces
            .iter()
            .map(|(label, value)| format!("variables.namespaceLabels[?'{label}'].orValue('') == '{value}'"));
        ensure!(policy == expected.collect::<Vec<_>>().join(" && "), "{policy}");
    }
    Ok(())
}

async fn is_refused(chart: Chart, change: &Value, location: &str) -> Result<()> {
    let mut values = chart.needed();
    merge(&mut values, change);
    let text = refusal(chart, &values).await?;
    ensure!(text.contains(location), "{chart:?}: {change} is refused without {location}: {text}");
    Ok(())
}

/// gardenlet adds its own values, and operators write numbers as strings, including quotes.
#[tokio::test]
async fn texts_stay_texts() -> Result<()> {
    let mut values = Chart::Worker.needed();
    let hostile = "a\"b: {{ .Release }}\n- c";
    merge(
        &mut values,
        &json!({
            "gardener": {"garden": {"clusterIdentity": hostile}}, "proxy": {"exceptions": hostile},
            "podAnnotations": {"example.org/note": hostile}, "image": {"tag": "1.0"},
        }),
    );
    let rendered = render(Chart::Worker, &values, "extension").await?;
    let template = &rendered.one("Deployment", "")?["spec"]["template"];
    ensure!(template["metadata"]["annotations"]["example.org/note"] == hostile, "{template}");
    let variables = template["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    ensure!(variables.contains(&json!({"name": "NO_PROXY", "value": hostile})), "{variables:?}");
    ensure!(template["spec"]["containers"][0]["image"] == "registry.example.org/worker:1.0", "{template}");
    Ok(())
}
