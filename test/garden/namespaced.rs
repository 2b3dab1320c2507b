//! NamespacedCloudProfiles: Gardener's controller merges them with their parents as we do, and accepts those that
//! `lint` accepts.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use gardener_extension_worker::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use gardener_extension_worker::api::gotext::yaml::documents;
use gardener_extension_worker::cloud_profile::namespaced::merge;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use test_support::broken::{cases, put};
use test_support::cluster::eventually;
use test_support::garden::{Garden, api};

use crate::stage::{self, Stage, lint, verdict};

/// Changes that a project's profile makes to its parent, the example for Azure.
const MERGED: &str = include_str!("namespaced.txt");

/// Creates a project's namespace and the parent in the garden. Returns the parent.
async fn parent(stage: &Stage, name: &str) -> Result<Value> {
    let namespace = json!({"metadata": {
        "name": format!("garden-{name}"),
        "labels": {"gardener.cloud/role": "project", "project.gardener.cloud/name": name},
    }});
    let namespaces: Api<Namespace> = Api::all(stage.client().await?);
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    let mut parent = documents(&std::fs::read_to_string("example/cloudprofiles/azure.yaml")?)?.remove(0);
    parent["metadata"]["name"] = name.into();
    let stored = Garden::new(&stage.control_plane).await?.create(&parent).await?;
    // The API server updates its own cache a moment later.
    let beside = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "NamespacedCloudProfile",
        "metadata": {"name": "probe", "namespace": format!("garden-{name}")},
        "spec": {"parent": {"kind": "CloudProfile", "name": name}},
    });
    let client = stage.client().await?;
    eventually(Duration::from_secs(30), "the parent is known", async || {
        let verdict = verdict(&client, &beside).await?;
        ensure!(!verdict.is_refused(), "{}", verdict.text());
        Ok(())
    })
    .await?;
    Ok(stored)
}

/// A profile of the project, with one change.
fn beside(name: &str, number: usize, location: &str, value: Option<Value>) -> Value {
    let mut profile = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "NamespacedCloudProfile",
        "metadata": {"name": format!("own-{number}"), "namespace": format!("garden-{name}")},
        "spec": {"parent": {"kind": "CloudProfile", "name": name}},
    });
    put(&mut profile, &format!("/{location}"), value);
    profile
}

fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_str(&value.to_string()).context("decoding a profile")
}

#[tokio::test]
async fn gardener_s_controller_merges_as_we_do() -> Result<()> {
    let stage = stage::bare().await?;
    let parent = parent(stage, "merged").await?;
    let garden = Garden::new(&stage.control_plane).await?;
    let profiles = api(&stage.client().await?, "NamespacedCloudProfile", Some("garden-merged"));
    let mut different = Vec::new();
    for (number, case) in cases(MERGED).into_iter().enumerate() {
        let document = beside("merged", number, case.location, case.value.clone());
        let stored = garden.create(&document).await.map_err(|error| anyhow!("{}: {error}", case.line))?;
        let merged = eventually(Duration::from_secs(30), "Gardener has merged it", async || {
            let now = serde_json::to_value(profiles.get(&format!("own-{number}")).await?)?;
            ensure!(now["status"]["observedGeneration"] == now["metadata"]["generation"], "{}", now["status"]);
            Ok(now["status"]["cloudProfileSpec"].clone())
        })
        .await
        .context(case.line)?;
        let own: NamespacedProfileSpec = decoded(&stored["spec"])?;
        let ours = serde_json::to_value(merge(decoded(&parent["spec"])?, own))?;
        // Decoded and encoded again, so that both omit the same members.
        let theirs = serde_json::to_value(decoded::<ProfileSpec>(&merged)?)?;
        if ours != theirs {
            different.push(format!("{}\nours: {ours}\nGardener: {theirs}", case.line));
        }
    }
    ensure!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    Ok(())
}

#[tokio::test]
async fn lint_and_a_garden_deny_the_same_profiles_of_projects() -> Result<()> {
    let stages = [stage::bare().await?, stage::with_webhooks().await?];
    for stage in stages {
        parent(stage, "judged").await?;
    }
    let parent = parent_file()?;
    let arguments = ["--parent", parent.path().to_str().context("a path")?];
    let base = documents(&std::fs::read_to_string("test/cli/broken/namespaced.yaml")?)?.remove(0);
    let mut wrong = Vec::new();
    let tables = [include_str!("../cli/broken/namespaced.txt"), include_str!("projects.txt")];
    for case in tables.into_iter().flat_map(cases) {
        let mut document = base.clone();
        document["metadata"]["namespace"] = "garden-judged".into();
        document["spec"]["parent"]["name"] = "judged".into();
        put(&mut document, &format!("/{}", case.location), case.value.clone());
        let bare = verdict(&stages[0].client().await?, &document).await?;
        let hooked = verdict(&stages[1].client().await?, &document).await?;
        let refusals = lint(&document, &arguments).await?;
        let agrees = bare.is_refused() == refusals.by_gardener
            && hooked.is_refused() == (refusals.by_gardener || refusals.by_provider);
        if !agrees {
            wrong.push(format!("## {}\n{}\n{}\n{}", case.line, bare.text(), hooked.text(), refusals.text));
        }
    }
    ensure!(wrong.is_empty(), "{} disagreements:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// The example for Azure with its name in the garden.
fn parent_file() -> Result<tempfile::NamedTempFile> {
    let text = std::fs::read_to_string("example/cloudprofiles/azure.yaml")?;
    let mut parent = documents(&text)?.remove(0);
    parent["metadata"]["name"] = "judged".into();
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), parent.to_string())?;
    Ok(file)
}
