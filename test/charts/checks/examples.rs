//! `example/landscape`: an API server accepts the files, they render the charts, and they transfer Workers in both
//! directions. Workers never have two registrations.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};

use crate::chart::{Chart, merge, render};
use crate::installed::apply;
use crate::programs::output;
use test_support::cluster::{self, ADMIN, ControlPlane, install_files};
use test_support::left_by_go::left_by_go;
use test_support::measured::cases::find;

fn read(file: &str) -> Result<Vec<Value>> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/example/landscape")).join(file);
    documents(&std::fs::read_to_string(&path)?).with_context(|| path.display().to_string())
}

#[tokio::test]
async fn charts_render_with_the_values_of_the_examples() -> Result<()> {
    let extension = read("extension.yaml")?.pop().context("an Extension")?;
    let registration = read("controller-registration.yaml")?;
    // Gardener labels the namespaces of the pods with this standard, which the pods meet.
    for registered in [&extension, &registration[1]] {
        let standard = &registered["metadata"]["annotations"]["security.gardener.cloud/pod-security-enforce"];
        ensure!(standard == "restricted", "{} has pod security {standard}", registered["kind"]);
    }
    let deployment = &extension["spec"]["deployment"];
    for given in [&deployment["extension"]["values"], &registration[0]["helm"]["values"]] {
        let mut values = given.clone();
        // gardenlet sets these values.
        let gardener =
            json!({"version": "v1.149.3", "garden": {"clusterIdentity": "x"}, "seed": {"name": "x", "spec": {}}});
        merge(&mut values, &json!({ "gardener": gardener }));
        let rendered = render(Chart::Worker, &values, "extension-worker-x7k2p").await?;
        let text = rendered.one("ConfigMap", "")?["data"]["config.yaml"].to_string();
        ensure!(text.contains("- azure"), "{text}");
    }
    // gardener-operator sets these values, and each chart gets its part.
    let account = json!({"name": "extension-admission-worker", "namespace": "kube-system"});
    let values = &deployment["admission"]["values"];
    // Since 1.151, the operator may omit whether a virtual garden is enabled.
    for enabled in [json!({"enabled": true}), json!({})] {
        ensure_garden_is_another_cluster(values, &enabled, &account).await?;
    }
    Ok(())
}

async fn ensure_garden_is_another_cluster(values: &Value, enabled: &Value, account: &Value) -> Result<()> {
    let mut runtime = values.clone();
    let mut application = values.clone();
    let here = json!({"runtimeCluster": {"priorityClassName": "gardener-system-400"}, "virtualCluster": {
        "namespace": "extension-gardener-extension-worker",
    }});
    merge(&mut runtime, &json!({ "gardener": here }));
    merge(&mut runtime, &json!({"gardener": {"virtualCluster": enabled}}));
    merge(&mut application, &json!({"gardener": {"virtualCluster": {"serviceAccount": account}}}));
    merge(&mut application, &json!({"gardener": {"virtualCluster": enabled}}));
    let runtime = render(Chart::AdmissionRuntime, &runtime, "garden").await?;
    let text = runtime.one("ConfigMap", "")?["data"]["config.yaml"].to_string();
    for line in [
        "webhook-config-url: gardener-extension-worker-admission.garden",
        "webhook-config-owner-namespace: extension-gardener-extension-worker",
    ] {
        ensure!(text.contains(line), "{line} is not in {text}");
    }
    let class = &runtime.one("Deployment", "")?["spec"]["template"]["spec"]["priorityClassName"];
    ensure!(class == "gardener-system-400", "{class}");
    let application = render(Chart::AdmissionApplication, &application, "extension-gardener-extension-worker").await?;
    let subject = &application.one("ClusterRoleBinding", "")?["subjects"][0];
    ensure!(subject["name"] == account["name"] && subject["namespace"] == account["namespace"], "{subject}");
    let role = application.one("ClusterRole", "")?["rules"].to_string();
    ensure!(role.contains("extension-gardener-extension-worker"), "the owner of the configurations: {role}");
    Ok(())
}

#[tokio::test]
async fn a_takeover_and_the_way_back_never_register_workers_twice() -> Result<()> {
    let control_plane = cluster::shared().await?;
    let client = control_plane.client(ADMIN).await?;
    install_files(&client, &["operator/10-crd-operator.gardener.cloud_extensions.yaml"]).await?;
    let kind = GroupVersionKind::gvk("operator.gardener.cloud", "v1alpha1", "Extension");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let patch = async |name: &str, file: &str| -> Result<()> {
        let patch = read(file)?.pop().with_context(|| format!("{file} is a patch"))?;
        let parameters =
            PatchParams { field_validation: Some(kube::api::ValidationDirective::Strict), ..Default::default() };
        api.patch(name, &parameters, &Patch::Merge(patch)).await.with_context(|| file.to_owned())?;
        Ok(())
    };
    let (go, ours) = ("provider-azure", "gardener-extension-worker");
    let all = read("takeover/back-2-go-worker-controller-on.yaml")?.pop().context("the list of all")?;
    let before = json!({
        "apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": {"name": go},
        "spec": all["spec"],
    });
    apply(&client, &before).await?;
    ensure!(who(&api).await? == [(go.to_owned(), false)], "before: {:?}", who(&api).await?);

    let shadow = read("takeover/2-shadow.yaml")?.pop().context("an Extension")?;
    apply(&client, &shadow).await?;
    ensure!(who(&api).await? == [(go.to_owned(), false)], "with the dry run: {:?}", who(&api).await?);
    let values = &shadow["spec"]["deployment"]["extension"]["values"];
    ensure!(!render(Chart::Worker, values, "extension").await?.has("Role"), "the dry run may write leases");

    patch(go, "takeover/3-go-worker-controller-off.yaml").await?;
    ensure!(who(&api).await?.is_empty(), "after step 3: {:?}", who(&api).await?);
    ensure!(is_off(&api, go).await?, "its controller is on");
    patch(ours, "takeover/4-this-controller-on.yaml").await?;
    ensure!(who(&api).await? == [(ours.to_owned(), false)], "after step 4: {:?}", who(&api).await?);
    let on = api.get(ours).await?;
    let extension = on.data.pointer("/spec/deployment/extension").context("the Extension has no deployment")?;
    ensure!(extension["values"]["shadow"] == false && extension["policy"] == "OnDemand", "{extension}");
    // The whole example also works without a dry run, or after it.
    apply(&client, &read("extension.yaml")?.pop().context("an Extension")?).await?;
    ensure!(who(&api).await? == [(ours.to_owned(), false)], "after the whole example: {:?}", who(&api).await?);

    patch(ours, "takeover/back-1-this-controller-off.yaml").await?;
    ensure!(who(&api).await?.is_empty() && is_off(&api, ours).await?, "on the way back: {:?}", who(&api).await?);
    patch(go, "takeover/back-2-go-worker-controller-on.yaml").await?;
    ensure!(who(&api).await? == [(go.to_owned(), false)], "after the way back: {:?}", who(&api).await?);
    let after = serde_json::to_value(api.get(go).await?)?;
    ensure!(after["spec"] == before["spec"], "{} became {}", before["spec"], after["spec"]);
    Ok(())
}

/// The Extensions that are registered for Workers of Azure, each with whether its controller is disabled.
async fn who(api: &Api<DynamicObject>) -> Result<Vec<(String, bool)>> {
    let mut found = Vec::new();
    for extension in api.list(&Default::default()).await? {
        let worker = json!({"kind": "Worker", "type": "azure"});
        let resources = extension.data["spec"]["resources"].as_array().into_iter().flatten();
        if resources.into_iter().any(|resource| *resource == worker) {
            let name = extension.metadata.name.unwrap_or_default();
            let off = is_off(api, &name).await?;
            found.push((name, off));
        }
    }
    Ok(found)
}

async fn is_off(api: &Api<DynamicObject>, name: &str) -> Result<bool> {
    let extension = api.get(name).await?;
    let off = extension.data.pointer("/spec/deployment/extension/values/disableControllers");
    Ok(off.and_then(Value::as_array).is_some_and(|off| off.contains(&json!("worker"))))
}

/// Runs a command of a plan like kubectl. Skips read-only commands.
async fn run_planned(api: &Api<DynamicObject>, command: &str) -> Result<()> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let document = |file: &str| -> Result<Value> {
        documents(&std::fs::read_to_string(file)?)?.pop().with_context(|| format!("{file} is empty"))
    };
    match words.as_slice() {
        ["kubectl", "apply", "-f", file] => {
            apply(&api.clone().into_client(), &document(file)?).await?;
        }
        ["kubectl", "delete", "-f", file] => {
            let name = document(file)?["metadata"]["name"].as_str().context("a name")?.to_owned();
            api.delete(&name, &Default::default()).await?;
        }
        ["kubectl", "patch", "extensions.operator.gardener.cloud", name, "--type", "merge", "--patch-file", file] => {
            let parameters =
                PatchParams { field_validation: Some(kube::api::ValidationDirective::Strict), ..Default::default() };
            api.patch(name, &parameters, &Patch::Merge(document(file)?)).await.with_context(|| (*file).to_owned())?;
        }
        ["gardener-extension-worker", "takeover", "check", ..] => {}
        _ => anyhow::bail!("an unknown command: {command}"),
    }
    Ok(())
}

/// The commands of a plan that follow this word, in order.
fn planned<'a>(plan: &'a str, word: &str) -> Vec<&'a str> {
    let commands = plan.lines().filter_map(|line| line.trim_start().strip_prefix(word)?.strip_prefix(' '));
    commands.map(str::trim).collect()
}

#[tokio::test]
async fn planned_takeover_leads_there_and_back() -> Result<()> {
    // A separate control plane, because the other test has objects of the same names.
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    install_files(&client, &["operator/10-crd-operator.gardener.cloud_extensions.yaml"]).await?;
    let kind = GroupVersionKind::gvk("operator.gardener.cloud", "v1alpha1", "Extension");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let (go, ours) = ("provider-azure", "gardener-extension-worker");
    let all = read("takeover/back-2-go-worker-controller-on.yaml")?.pop().context("the list of all")?;
    let mut before =
        json!({"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": {"name": go}});
    before["spec"] = all["spec"].clone();
    apply(&client, &before).await?;
    let before = serde_json::to_value(api.get(go).await?)?;

    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let case = find("azure/pools-zones/priorities").map_err(anyhow::Error::msg)?;
    let bundle = left_by_go(case).context("the Go extension has made no machine deployments")?;
    std::fs::write(path("seed.json"), bundle.to_string())?;
    std::fs::write(path("extensions.json"), before.to_string())?;
    let mut program = test_support::program::command();
    program.args(["takeover", "plan", &path("seed.json"), "--registrations", &path("extensions.json")]);
    program.args(["--to", &path("plan"), "--chart", "registry.example.org/charts/gardener-extension-worker:0.1.0"]);
    let (succeeded, plan) = output(&mut program)?;
    ensure!(succeeded, "{plan}");

    let mut seen = Vec::new();
    for command in planned(&plan, "run") {
        run_planned(&api, command).await?;
        seen.push(who(&api).await?.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    }
    ensure!(seen == [vec![go], vec![go], vec![], vec![ours]], "registered for Workers: {seen:?}");
    let is_shadow = api.get(ours).await?.data["spec"]["deployment"]["extension"]["values"]["shadow"].clone();
    ensure!(is_off(&api, go).await? && is_shadow == false, "both may write: {plan}");
    for command in planned(&plan, "undo").into_iter().rev() {
        run_planned(&api, command).await?;
        ensure!(who(&api).await?.len() <= 1, "two registrations after {command}");
    }
    let after = serde_json::to_value(api.get(go).await?)?;
    ensure!(after["spec"] == before["spec"], "{} became {}", before["spec"], after["spec"]);
    ensure!(api.get_opt(ours).await?.is_none(), "our registration is left");
    Ok(())
}
