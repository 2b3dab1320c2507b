//! Runs the webhooks as their charts install them, with exactly the permissions of the charts' roles. They use all of
//! these permissions.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::chart::{Chart, merge, render};
use crate::installed::{self, apply, install, ready, user};
use crate::permissions::{allowed, ensure_exact};
use test_support::cluster::{ADMIN, ControlPlane, Program, eventually, free_ports, install_files};
use test_support::garden::{self, Garden};
use test_support::garden_objects::{azure_profile, azure_shoot, namespaced_profile};
use test_support::shoot::SOON;

const NAME: &str = "gardener-extension-worker-admission";

#[tokio::test]
async fn the_roles_of_the_webhooks_allow_what_is_needed_and_nothing_else() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    garden::install(&control_plane).await?;
    let client = control_plane.client(ADMIN).await?;
    install_files(&client, &["seed-crds/10-crd-autoscaling.k8s.io_verticalpodautoscalers.yaml"]).await?;
    let namespace = control_plane.namespace("garden").await?;
    let [webhook, metrics, health] = free_ports()?;
    // The values that gardener-operator gives to both charts. Here one cluster has both roles, and Services route to no
    // process.
    let mut values = Chart::AdmissionRuntime.needed();
    merge(
        &mut values,
        &json!({
            "webhook": {"url": format!("127.0.0.1:{webhook}")},
            "ports": {"webhook": webhook, "metrics": metrics, "health": health},
            "certificate": {"validity": "24s", "announcement": "2s"},
            "gardener": {"virtualCluster": {
                "enabled": true, "namespace": namespace, "serviceAccount": {"name": NAME, "namespace": namespace},
            }},
        }),
    );
    let runtime = render(Chart::AdmissionRuntime, &values, &namespace).await?;
    let application = render(Chart::AdmissionApplication, &values, &namespace).await?;
    install(&client, &runtime, &namespace).await?;
    install(&client, &application, &namespace).await?;
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;

    let program = installed::start(&control_plane, &runtime, "-admission", |program| program).await?;
    ready(&program, health).await?;
    let garden = Garden::new(&control_plane).await?;
    let mut profile = azure_profile("parent");
    garden.create(&profile).await?;
    profile["spec"]["providerConfig"]["machineImages"] = json!([]);
    ensure!(garden.try_create(&profile).await.is_err(), "a profile without images is not refused");
    garden.create(&namespaced_profile(&namespace, "parent")).await?;
    let mut shoot = azure_shoot(&namespace);
    shoot["spec"]["cloudProfile"] = json!({"kind": "NamespacedCloudProfile", "name": "own"});
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"] = json!({"name": "linux", "version": "2.0.0"});
    // The result does not matter, because the review needs the request in any case.
    let _ = garden.try_create(&shoot).await;
    let configurations = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    configurations.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"webhooks": []}))).await?;
    eventually(SOON, "the webhooks are registered again", async || {
        let webhooks = configurations.get(NAME).await?.webhooks.unwrap_or_default();
        ensure!(!webhooks.is_empty(), "none is registered");
        Ok(())
    })
    .await?;
    is_renewed(&client, &namespace, NAME).await?;
    program.stop(Duration::from_secs(10)).await?;

    let objects: Vec<Value> = [runtime.objects, application.objects].concat();
    ensure_exact(&allowed(&objects)?, &audit.requests(&user(&namespace, NAME), mark).await?, &[])
}

/// The webhook of the seed. The controller's chart contains its role.
#[tokio::test]
async fn the_role_of_the_sidecar_allows_what_is_needed_and_nothing_else() -> Result<()> {
    const NAME: &str = "gardener-extension-worker-sidecar";
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    install_files(&client, &["seed-crds/10-crd-autoscaling.k8s.io_verticalpodautoscalers.yaml"]).await?;
    let namespace = control_plane.namespace("extension-worker").await?;
    let [webhook, metrics, health] = free_ports()?;
    let mut values = Chart::Worker.needed();
    let images = json!({"azure": "registry.example.org/sidecar:v1"});
    merge(
        &mut values,
        &json!({
            "sidecarWebhook": {"enabled": true, "images": images, "port": webhook},
            "ports": {"metrics": metrics, "health": health},
        }),
    );
    let rendered = render(Chart::Worker, &values, &namespace).await?;
    install(&client, &rendered, &namespace).await?;
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;
    // Services route to no process here, and the certificate must expire within the test.
    let reached = |program: Program| {
        program
            .flag("webhook-config-mode", "url")
            .flag("webhook-config-url", format!("127.0.0.1:{webhook}"))
            .flag("certificate-validity", "24s")
            .flag("certificate-announcement", "2s")
    };
    let program = installed::start(&control_plane, &rendered, "-sidecar", reached).await?;
    ready(&program, health).await?;

    let shoot = "shoot--p--s";
    let labels = json!({"shoot.gardener.cloud/provider": "azure"});
    let of_gardenlet = json!({"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"});
    let pods = json!({"role": "machine-controller-manager"});
    let container = json!({"name": "machine-controller-manager", "image": "none"});
    let volume = json!({"name": "kubeconfig", "secret": {"secretName": "generic-token-kubeconfig"}});
    let spec = json!({"provider": {"type": "azure", "workers": []}});
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shoot, "labels": labels}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloudprovider", "namespace": shoot}}),
        json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": shoot},
            "spec": {"cloudProfile": {}, "seed": {}, "shoot": {"spec": spec}},
        }),
    ] {
        apply(&client, &object).await?;
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "machine-controller-manager", "namespace": shoot, "labels": of_gardenlet},
        "spec": {"selector": {"matchLabels": pods}, "template": {
            "metadata": {"labels": pods}, "spec": {"containers": [container], "volumes": [volume]},
        }},
    });
    let stored = apply(&client, &deployment).await?;
    let image = &stored["spec"]["template"]["spec"]["containers"][1]["image"];
    ensure!(image == "registry.example.org/sidecar:v1", "no sidecar in {stored}");
    let configurations = Api::<MutatingWebhookConfiguration>::all(client.clone());
    configurations.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"webhooks": []}))).await?;
    is_renewed(&client, &namespace, NAME).await?;
    program.stop(Duration::from_secs(10)).await?;

    let own: Vec<Value> = rendered.objects.into_iter().filter(|object| object["metadata"]["name"] == NAME).collect();
    ensure_exact(&allowed(&own)?, &audit.requests(&user(&namespace, NAME), mark).await?, &[])
}

/// Waits until the announced authority signs.
async fn is_renewed(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    eventually(3 * SOON, "the certificate is renewed", async || {
        let data = secrets.get(name).await?.data.unwrap_or_default();
        ensure!(data.contains_key("former-authority.crt"), "the first authority signs: {:?}", data.keys());
        Ok(())
    })
    .await
}
