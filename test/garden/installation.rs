//! Installation as described in `example/landscape`, with Gardener's own code: gardener-operator turns an Extension
//! into webhooks and a registration, gardener-controller-manager creates a ControllerInstallation for a seed that needs
//! it, and gardenlet generates the objects applied there. Charts are pulled from a registry, as in a landscape.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::{Value, json};
use test_support::cluster::{GardenerPart, eventually};

use crate::project::Project;
use crate::stage;

/// Registry of the charts and images in the examples.
const HOST: &str = "registry.example.org";
const NAME: &str = "gardener-extension-worker";

/// Folders of our charts, by the references in the examples.
fn charts() -> Value {
    let folder = |chart: &str| test_support::repository().join("charts").join(chart).display().to_string();
    json!({
        "charts/gardener-extension-worker:0.1.0": folder("gardener-extension-worker"),
        "charts/gardener-extension-worker-admission-runtime:0.1.0": folder("gardener-extension-worker-admission/runtime"),
        "charts/gardener-extension-worker-admission-application:0.1.0":
            folder("gardener-extension-worker-admission/application"),
    })
}

fn example(file: &str) -> Result<Vec<Value>> {
    let path = test_support::repository().join("example/landscape").join(file);
    documents(&std::fs::read_to_string(path)?).map_err(Into::into)
}

/// Returns the applied objects by ManagedResource, and the whole response. A query without charts installs those of the
/// repository.
pub(crate) async fn installed(mut query: Value) -> Result<(Value, Value)> {
    if query["charts"].is_null() {
        query["charts"] = charts();
    }
    query["host"] = HOST.into();
    let mut part = GardenerPart::start::<&str>("installation", &[]).await?;
    let response = part.request(&query).await?;
    ensure!(response["error"].is_null(), "{}", response["error"]);
    let mut resources = json!({});
    for (name, texts) in response["managedResources"].as_object().context("nothing is applied")? {
        let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str);
        let objects = texts.map(documents).collect::<Result<Vec<_>, _>>()?;
        resources[name] = objects.into_iter().flatten().filter(|object| !object.is_null()).collect();
    }
    Ok((resources, response))
}

/// The objects of a kind.
pub(crate) fn of_kind<'a>(objects: &'a Value, kind: &str) -> Vec<&'a Value> {
    objects.as_array().into_iter().flatten().filter(|object| object["kind"] == kind).collect()
}

/// The only object of a kind.
pub(crate) fn only<'a>(objects: &'a Value, kind: &str) -> Result<&'a Value> {
    let found = of_kind(objects, kind);
    ensure!(found.len() == 1, "{} of kind {kind}", found.len());
    Ok(found[0])
}

/// Ensures that a Deployment's container has the kubeconfig of the garden.
fn ensure_reaches_garden(deployment: &Value) -> Result<()> {
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let variables = container["env"].as_array().into_iter().flatten();
    let kubeconfig = variables.clone().find(|variable| variable["name"] == "GARDEN_KUBECONFIG");
    let path = kubeconfig.context("no GARDEN_KUBECONFIG")?["value"].as_str().context("no path")?;
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let mut mounts = mounts.filter(|mount| path.starts_with(mount["mountPath"].as_str().unwrap_or("-")));
    let mount = mounts.next().context("the kubeconfig is not mounted")?;
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    ensure!(volumes.clone().any(|volume| volume["name"] == mount["name"]), "{mount} has no volume");
    Ok(())
}

#[tokio::test]
async fn gardener_operator_installs_webhooks_and_registration() -> Result<()> {
    let extension = example("extension.yaml")?.remove(0);
    let (resources, _) = installed(json!({"extension": extension})).await?;
    let registered = &resources[format!("extension-registration-{NAME}")];
    let registration = only(registered, "ControllerRegistration")?;
    ensure!(registration["spec"]["resources"] == json!([{"kind": "Worker", "type": "azure"}]), "{registration}");
    let deployment = only(registered, "ControllerDeployment")?;
    ensure!(deployment["injectGardenKubeconfig"] == true, "{deployment}");
    let plain = example("controller-registration.yaml")?;
    let [ours, plain] = [deployment, &plain[0]].map(|one| &one["helm"]["values"]);
    ensure!(ours == plain, "the two ways of installation give other values: {ours}, {plain}");
    let runtime = &resources[format!("extension-admission-runtime-{NAME}")];
    ensure_reaches_garden(only(runtime, "Deployment")?).context("the webhooks")?;
    let virtual_garden = &resources[format!("extension-admission-virtual-{NAME}")];
    let binding = only(virtual_garden, "ClusterRoleBinding")?;
    let subject = &binding["subjects"][0];
    ensure!(subject["namespace"] == "kube-system", "not the account that gardener-operator makes: {subject}");
    Ok(())
}

/// A ready Seed with only the fields that its Shoots need.
pub(crate) async fn seed(project: &Project) -> Result<Value> {
    let credentials = json!({"apiVersion": "v1", "kind": "Secret", "name": "cloud", "namespace": project.namespace()});
    let seed = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "seed"},
        "spec": {
            "provider": {"type": "azure", "region": "westeurope", "zones": ["1", "2"]},
            "dns": {
                "provider": {"type": "azure-dns", "credentialsRef": credentials},
                "internal": {"type": "azure-dns", "domain": "internal.example.org", "credentialsRef": credentials},
            },
            "ingress": {"domain": "ingress.example.org", "controller": {"kind": "nginx"}},
            "networks": {"nodes": "10.240.0.0/16", "pods": "10.241.128.0/17", "services": "10.241.0.0/17"},
        },
    });
    eventually(Duration::from_secs(30), "the seed's extensions are known", async || {
        Ok(project.garden.create(&seed).await?)
    })
    .await?;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let is_true = |kind: &str| json!({"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": now, "lastUpdateTime": now});
    let conditions = ["GardenletReady", "ExtensionsReady", "SeedSystemComponentsHealthy"].map(is_true);
    let status = json!({
        "clusterIdentity": "seed-of-tests", "kubernetesVersion": "1.36.3", "observedGeneration": 1,
        "gardener": {"id": "i", "name": "gardenlet", "version": "v1.150.0"},
        "conditions": conditions,
        "lastOperation": {"description": "", "lastUpdateTime": now, "progress": 100, "state": "Succeeded", "type": "Reconcile"},
    });
    Ok(project.garden.patch_status(&seed, &status).await?)
}

#[tokio::test]
async fn a_seed_with_workers_gets_the_controller() -> Result<()> {
    let stage = stage::bare().await?;
    let project = Project::new(stage, "installed", |_| {}).await?;
    let mut objects = example("controller-registration.yaml")?;
    let (registration, deployment) = (objects.remove(1), objects.remove(0));
    let seed = seed(&project).await?;
    let mut shoot = project.shoot("s");
    shoot["spec"]["seedName"] = "seed".into();
    project.create(&shoot).await?.taken()?;
    let installations = test_support::garden::api(&stage.client().await?, "ControllerInstallation", None);
    let installation = eventually(Duration::from_secs(60), "a ControllerInstallation is made", async || {
        let all = serde_json::to_value(installations.list(&kube::api::ListParams::default()).await?.items)?;
        let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
        all.find(|one| one["spec"]["registrationRef"]["name"] == NAME).context("none is there")
    })
    .await?;
    let (resources, response) = installed(json!({
        "controllerInstallation": installation, "controllerRegistration": registration,
        "controllerDeployment": deployment, "seed": seed,
    }))
    .await?;
    let conditions = response["conditions"].as_array().context("no conditions")?;
    for expected in ["Valid", "Installed", "Healthy"] {
        let found = conditions.iter().find(|condition| condition["type"] == expected).context("no condition")?;
        ensure!(found["status"] == "True", "{found}");
    }
    let name = installation["metadata"]["name"].as_str().unwrap_or_default();
    let controller = only(&resources[name], "Deployment")?;
    ensure_reaches_garden(controller)?;
    ensure!(controller["metadata"]["namespace"] == format!("extension-{name}"), "{}", controller["metadata"]);
    let container = &controller["spec"]["template"]["spec"]["containers"][0];
    let image = container["image"].as_str().unwrap_or_default();
    ensure!(image == format!("{HOST}/{NAME}:0.1.0"), "{image}");
    let account = only(&resources[name], "ServiceAccount")?["metadata"]["name"].clone();
    let bindings = of_kind(&resources[name], "ClusterRoleBinding");
    ensure!(bindings.iter().any(|binding| binding["subjects"][0]["name"] == account), "{account} may do nothing");
    eprintln!("a ControllerInstallation became objects in {} s", response["seconds"]);
    Ok(())
}
