//! If the garden does not respond, the user gets an error before the API server times out.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::program::{self, Admission};
use test_support::cluster::CONTROLLER;
use test_support::garden_objects::{azure_profile, namespaced_profile, review};
use test_support::https::Connection;
use test_support::shoot::SOON;

#[tokio::test]
async fn review_ends_in_time_without_the_garden() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    // Accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let kubeconfig = tempfile::NamedTempFile::new()?;
    let server = format!("http://{}", silent.local_addr()?);
    serde_json::to_writer(
        &kubeconfig,
        &json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }),
    )?;
    let admission = Admission::start(control_plane, "silent-garden", |program| {
        program
            .flag("garden-kubeconfig", kubeconfig.path())
            .flag("webhook-config-name", "silent-garden")
            .arg("--webhook-config-unmanaged")
    })
    .await?;
    admission.ready().await?;
    let request = async |path: &str, resource: &str, object: &Value| {
        let mut connection = Connection::open(admission.port).await?;
        let began = Instant::now();
        let reply = connection.post(path, "application/json", &review(resource, object)).await?;
        let body: Value = serde_json::from_str(&reply.body)?;
        anyhow::Ok((body["response"].clone(), began.elapsed()))
    };
    let (profile, parent) = (namespaced_profile("garden-x", "azure"), azure_profile("azure"));
    let (stuck, quick, hurried) = tokio::try_join!(
        request("/webhooks/validate?timeout=10s", "namespacedcloudprofiles", &profile),
        request("/webhooks/validate?timeout=10s", "cloudprofiles", &parent),
        request("/webhooks/validate?timeout=2s", "namespacedcloudprofiles", &profile),
    )?;
    let (response, took) = stuck;
    let message = response["status"]["message"].as_str().unwrap_or_default();
    ensure!(response["allowed"] == false && response["status"]["code"] == 500, "{response}");
    ensure!(message.contains("the garden did not give CloudProfile \"azure\" within 5s"), "{message}");
    ensure!(took < Duration::from_secs(9), "{took:?}");
    ensure!(quick.0["allowed"] == true, "{quick:?}");
    ensure!(hurried.0["status"]["code"] == 504 && hurried.1 < Duration::from_secs(2), "{hurried:?}");
    admission.stop().await
}

/// The client reads the kubeconfig only once. With the old CA it could no longer reach the garden, and reviews that
/// need the garden would be denied.
#[tokio::test]
async fn a_process_ends_when_the_kubeconfig_of_the_garden_changes() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let kubeconfig = control_plane.folder().join("rotated-garden.kubeconfig");
    std::fs::copy(control_plane.kubeconfig_file(CONTROLLER)?, &kubeconfig)?;
    let admission = Admission::start(control_plane, "rotated-garden", |program| {
        program
            .flag("garden-kubeconfig", &kubeconfig)
            .flag("webhook-config-name", "rotated-garden")
            .arg("--webhook-config-unmanaged")
    })
    .await?;
    admission.ready().await?;
    let content = std::fs::read_to_string(&kubeconfig)?;
    std::fs::write(&kubeconfig, format!("{content}\n"))?;
    let status = admission.process().wait(SOON).await?;
    let log = admission.process().last_lines(5);
    ensure!(!status.success() && log.contains("rotated-garden.kubeconfig has changed"), "{status}\n{log}");
    Ok(())
}
