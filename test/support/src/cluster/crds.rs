//! Installs CustomResourceDefinitions from Gardener's Go module, without copies in this repository.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use tokio::process::Command;

use super::binaries::control_plane_sources;
use super::eventually;

/// Groups to install: Gardener's extension API, machine-controller-manager, managed resources, and autoscalers of
/// seeds.
const GROUPS: [&str; 4] =
    ["extensions.gardener.cloud", "machine.sapcloud.io", "resources.gardener.cloud", "autoscaling.k8s.io"];

/// Installs the definitions and waits until the API server serves them.
pub async fn install(client: &Client) -> Result<()> {
    let definitions = read(&folder().await?.join("seed-crds"))?;
    ensure!(!definitions.is_empty(), "no custom resource definitions found");
    install_all(client, &definitions).await
}

/// Installs further definitions from files below `example/` of Gardener's module.
pub async fn install_files(client: &Client, files: &[&str]) -> Result<()> {
    install_from(client, &folder().await?, files).await
}

/// Same as [`install_files`] for another module, relative to its folder.
pub async fn install_from(client: &Client, folder: &Path, files: &[&str]) -> Result<()> {
    let read = |file: &&str| {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))
    };
    install_all(client, &files.iter().map(read).collect::<Result<Vec<_>>>()?).await
}

async fn install_all(client: &Client, definitions: &[CustomResourceDefinition]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    futures::stream::iter(definitions)
        .map(async |definition| {
            let name = definition.name_any();
            match api.create(&PostParams::default(), definition).await {
                // Another test with the same control plane installed it already.
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                created => drop(created.with_context(|| format!("creating {name}"))?),
            }
            eventually(Duration::from_secs(60), &format!("{name} is served"), async || served(client, definition).await)
                .await
        })
        .buffer_unordered(definitions.len())
        .try_collect()
        .await
}

/// Lists the objects, because that works only some time after the condition `Established`.
async fn served(client: &Client, definition: &CustomResourceDefinition) -> Result<()> {
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.served).context("no version is served")?;
    let resource = ApiResource {
        group: spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", spec.group, version.name),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    };
    Api::<DynamicObject>::all_with(client.clone(), &resource).list(&ListParams::default().limit(1)).await?;
    Ok(())
}

fn read(folder: &Path) -> Result<Vec<CustomResourceDefinition>> {
    let mut definitions = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        // File names are 10-crd-<group>_<plural>.yaml.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let group = name.strip_prefix("10-crd-").and_then(|rest| rest.split('_').next());
        if group.is_some_and(|group| GROUPS.contains(&group)) {
            let text = std::fs::read_to_string(&path)?;
            definitions.push(serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))?);
        }
    }
    Ok(definitions)
}

/// The folder `example/` in Go's module cache. `test/control-plane/crds/go.mod` selects the version.
async fn folder() -> Result<PathBuf> {
    Ok(gardener_module("crds").await?.join("example"))
}

/// Gardener's folder in Go's module cache, in the version that a module of `test/control-plane` requires. Downloads it
/// if needed.
pub async fn gardener_module(module: &str) -> Result<PathBuf> {
    module_folder(module, "github.com/gardener/gardener").await
}

/// Same as [`gardener_module`] for another dependency.
pub async fn module_folder(module: &str, dependency: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", dependency])
        .current_dir(control_plane_sources().join(module))
        .env("GOWORK", "off")
        .output()
        .await
        .context("starting go (Go is needed for what others publish, see test/control-plane/README.md)")?;
    if !output.status.success() {
        bail!(
            "downloading the Go module {dependency}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let module: serde_json::Value = serde_json::from_slice(&output.stdout).context("reading what go wrote")?;
    let folder = module["Dir"].as_str().with_context(|| format!("go names no folder for {dependency}"))?;
    Ok(Path::new(folder).to_owned())
}
