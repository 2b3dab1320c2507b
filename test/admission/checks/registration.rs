//! The webhooks register themselves and revert changes by other clients.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::program::{self, Admission, NAME, NAMESPACE};
use test_support::cluster::{ADMIN, ControlPlane, RESTRICTED, eventually};
use test_support::garden::{self, Garden};
use test_support::garden_objects::{azure_profile, namespaced_profile};
use test_support::https::Connection;

#[tokio::test]
async fn both_configurations_and_the_secret_are_there() -> Result<()> {
    let (control_plane, admission) = program::shared().await?;
    let client = control_plane.client(ADMIN).await?;
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone()).get(NAME).await?;
    let webhooks = validating.webhooks.context("no webhooks")?;
    let names: Vec<&str> = webhooks.iter().map(|webhook| webhook.name.as_str()).collect();
    for provider in ["azure", "aws"] {
        let name = format!("validator.worker-admission-{provider}.extensions.gardener.cloud");
        ensure!(names.contains(&name.as_str()), "{name} is missing in {names:?}");
    }
    for webhook in &webhooks {
        ensure!(webhook.failure_policy.as_deref() == Some("Fail"), "{webhook:?}");
        let url = webhook.client_config.url.as_deref();
        ensure!(url == Some(&format!("https://127.0.0.1:{}/webhooks/validate", admission.port)), "{webhook:?}");
    }
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone()).get(NAME).await?;
    let rules = mutating.webhooks.into_iter().flatten().flat_map(|webhook| webhook.rules.unwrap_or_default());
    let status = "namespacedcloudprofiles/status".to_owned();
    ensure!(rules.into_iter().all(|rule| rule.resources.is_some_and(|resources| resources.contains(&status))));
    let labels = validating.metadata.labels.unwrap_or_default();
    ensure!(labels.contains_key("remediation.webhook.shoot.gardener.cloud/exclude"), "{labels:?}");
    let secret = Api::<Secret>::namespaced(client, NAMESPACE).get(NAME).await?;
    let data = secret.data.context("an empty Secret")?;
    ensure!(["ca.crt", "tls.crt", "tls.key"].iter().all(|member| data.contains_key(*member)), "{:?}", data.keys());
    // The log contains nothing of the key.
    let log = admission.log()?;
    let key = String::from_utf8_lossy(&data["tls.key"].0);
    ensure!(key.lines().filter(|line| !line.starts_with("---")).all(|line| !log.contains(line)), "the key was logged");
    Ok(())
}

#[tokio::test]
async fn replicas_share_one_certificate() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let start = |name| {
        Admission::start(control_plane, name, |program| {
            program.flag("webhook-config-name", "replicas").arg("--webhook-config-unmanaged")
        })
    };
    let (one, other) = tokio::try_join!(start("replica-1"), start("replica-2"))?;
    tokio::try_join!(one.ready(), other.ready())?;
    let (one, other) = tokio::try_join!(Connection::open(one.port), Connection::open(other.port))?;
    ensure!(one.certificate() == other.certificate(), "the replicas present different certificates");
    Ok(())
}

#[tokio::test]
async fn a_changed_configuration_and_a_lost_secret_are_repaired_with_the_documented_permissions() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    garden::install(&control_plane).await?;
    // Exactly the permissions in docs/admission.md.
    let written = vec!["get", "create", "update"];
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": written},
        {"apiGroups": ["admissionregistration.k8s.io"], "verbs": written,
            "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]},
        {"apiGroups": ["core.gardener.cloud"], "resources": ["cloudprofiles", "namespacedcloudprofiles"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]);
    control_plane.grant(RESTRICTED, serde_json::from_value(rules)?).await?;
    // The announcement sets the period of the check: a quarter of 4 s is one second.
    let admission = Admission::start_as(&control_plane, RESTRICTED, "repaired", |program| {
        program
            .flag("certificate-announcement", "4s")
            .flag("certificate-validity", "1h")
            .flag("webhook-config-owner-namespace", NAMESPACE)
    })
    .await?;
    admission.ready().await?;
    let client = control_plane.client(ADMIN).await?;
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let broken = json!({"metadata": {"labels": {"mine": "stays"}}, "webhooks": []});
    api.patch(NAME, &PatchParams::default(), &Patch::Merge(&broken)).await?;
    Api::<Secret>::namespaced(client, NAMESPACE).delete(NAME, &kube::api::DeleteParams::default()).await?;
    let garden = Garden::new(&control_plane).await?;
    eventually(Duration::from_secs(30), "the webhooks work again", async || {
        let configuration = api.get(NAME).await?;
        ensure!(configuration.webhooks.is_some_and(|webhooks| !webhooks.is_empty()), "no webhooks");
        ensure!(configuration.metadata.labels.is_some_and(|labels| labels.contains_key("mine")), "a label is lost");
        garden.try_create(&azure_profile("again")).await?;
        Ok(())
    })
    .await?;
    let owners = api.get(NAME).await?.metadata.owner_references.unwrap_or_default();
    ensure!(owners.iter().any(|owner| owner.kind == "Namespace" && owner.name == NAMESPACE), "{owners:?}");
    garden.create(&azure_profile("parent")).await?;
    garden.try_create(&namespaced_profile(NAMESPACE, "parent")).await?;
    admission.stop().await?;
    control_plane.stop().await
}
