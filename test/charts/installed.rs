//! Installs a rendered chart in a real API server and runs the program of its Deployment as a local process.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, discovery};
use serde_json::{Value, json};

use crate::chart::Rendered;
use test_support::cluster::{ADMIN, ControlPlane, Process, Program, eventually};
use test_support::shoot::SOON;
use test_support::{http, program};

/// The field manager of objects that an operator applies.
const OPERATOR: &str = "operator";

/// Applies an object like `kubectl apply --server-side --validate=strict`. Returns the stored object.
pub(crate) async fn apply(client: &Client, object: &Value) -> Result<Value> {
    apply_as(OPERATOR, client, object).await
}

async fn apply_as(applier: &str, client: &Client, object: &Value) -> Result<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let applied = async {
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = GroupVersionKind::gvk(group, version, &kind);
        // The API server serves a new kind before discovery lists it.
        let (resource, capabilities) = eventually(SOON, "its kind is announced", async || {
            discovery::pinned_kind(client, &kind).await.context("asking for its kind")
        })
        .await?;
        let api = match capabilities.scope {
            discovery::Scope::Cluster => Api::all_with(client.clone(), &resource),
            discovery::Scope::Namespaced => namespaced(client, object, &resource),
        };
        let parameters = PatchParams::apply(applier).validation_strict();
        let stored: DynamicObject = api.patch(&name, &parameters, &Patch::Apply(object)).await?;
        anyhow::Ok(serde_json::to_value(stored)?)
    };
    applied.await.with_context(|| format!("applying {kind} {name}"))
}

fn namespaced(client: &Client, object: &Value, resource: &ApiResource) -> Api<DynamicObject> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    Api::namespaced_with(client.clone(), namespace, resource)
}

/// Installs a rendered chart in a namespace. Cluster-scoped objects have the same name in every installation, so a
/// second namespace would take over the permissions of the first. The API server rejects that, because each namespace
/// has its own field manager.
pub(crate) async fn install(client: &Client, rendered: &Rendered, namespace: &str) -> Result<()> {
    for object in &rendered.objects {
        apply_as(&format!("{OPERATOR}-{namespace}"), client, object).await?;
    }
    Ok(())
}

/// The user name of a service account.
pub(crate) fn user(namespace: &str, service_account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{service_account}")
}

/// Starts the program of a Deployment with its arguments, environment, files and service account. Two things differ
/// from a pod: mounted files have other paths, and a kubeconfig replaces the pod's own token.
pub(crate) async fn start(
    control_plane: &ControlPlane,
    rendered: &Rendered,
    deployment: &str,
    change: impl FnOnce(Program) -> Program,
) -> Result<Process> {
    let client = control_plane.client(ADMIN).await?;
    let deployment = rendered.one("Deployment", deployment)?;
    let namespace = deployment["metadata"]["namespace"].as_str().context("a Deployment has a namespace")?;
    let pod = &deployment["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().context("the pod has a service account")?;
    let folder = control_plane.folder().join(namespace);
    std::fs::create_dir_all(&folder)?;
    let kubeconfig = kubeconfig(control_plane, &client, namespace, account, &folder).await?;
    let container = &pod["containers"][0];
    let mut program = Program::new(format!("{account}-{namespace}"), program::binary())
        .env("KUBECONFIG", kubeconfig)
        .env("NO_COLOR", "1");
    let mounts = mounted(rendered, pod, &folder)?;
    for argument in container["args"].as_array().into_iter().flatten() {
        let argument = argument.as_str().context("an argument is a text")?;
        program = program.arg(mounts.iter().fold(argument.to_owned(), |text, (path, here)| text.replace(path, here)));
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().context("a variable has a name")?;
        let value = match variable.pointer("/valueFrom/fieldRef/fieldPath").and_then(Value::as_str) {
            Some("metadata.namespace") => namespace,
            // A name that is unique among the processes.
            Some("metadata.name") => account,
            Some(field) => anyhow::bail!("{name} comes from {field}"),
            None => variable["value"].as_str().context("a variable has a value")?,
        };
        program = program.env(name, value);
    }
    Process::start(change(program), control_plane.folder())
}

/// A client that authenticates as a service account.
pub(crate) async fn client(control_plane: &ControlPlane, namespace: &str, account: &str) -> Result<Client> {
    let admin = control_plane.client(ADMIN).await?;
    let folder = control_plane.folder().join(namespace);
    std::fs::create_dir_all(&folder)?;
    let file = kubeconfig(control_plane, &admin, namespace, account, &folder).await?;
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Waits until `/readyz` of the pod succeeds.
pub(crate) async fn ready(program: &Process, port: u16) -> Result<()> {
    eventually(SOON, "/readyz says that all is there", async || {
        if let Err(ended) = program.ensure_running() {
            return Ok(Err(ended));
        }
        let (status, result) = http::get(port, "/readyz").await?;
        ensure!(status == 200, "{status} {result}");
        Ok(Ok(()))
    })
    .await?
}

/// Writes the mounted ConfigMaps. Returns the path in the pod and the local path of each.
fn mounted(rendered: &Rendered, pod: &Value, folder: &Path) -> Result<Vec<(String, String)>> {
    let mut mounts = Vec::new();
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        let Some(name) = volume.pointer("/configMap/name").and_then(Value::as_str) else { continue };
        let here = folder.join(volume["name"].as_str().unwrap_or_default());
        std::fs::create_dir_all(&here)?;
        // A ConfigMap outside the chart is created by the operator.
        let made =
            rendered.objects.iter().find(|object| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name);
        for (file, content) in made.and_then(|made| made["data"].as_object()).into_iter().flatten() {
            std::fs::write(here.join(file), content.as_str().unwrap_or_default())?;
        }
        let mut all = pod["containers"][0]["volumeMounts"].as_array().into_iter().flatten();
        let mount = all.find(|mount| mount["name"] == volume["name"]).context("a volume is mounted")?;
        let path = mount["mountPath"].as_str().context("a mount has a path")?.to_owned();
        mounts.push((path, here.display().to_string()));
    }
    Ok(mounts)
}

/// Creates a kubeconfig with a token of the service account, like the token that the kubelet requests.
async fn kubeconfig(
    control_plane: &ControlPlane,
    client: &Client,
    namespace: &str,
    account: &str,
    folder: &Path,
) -> Result<std::path::PathBuf> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest::default();
    let token = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    let token = token.status.context("no token was given")?.token;
    let file = std::fs::read(control_plane.kubeconfig_file(ADMIN)?)?;
    let mut kubeconfig: Value = serde_json::from_slice(&file).context("reading a kubeconfig")?;
    kubeconfig["users"][0]["user"] = json!({"token": token});
    let path = folder.join(format!("{account}.kubeconfig"));
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}
