//! `takeover plan`, forward and back, next to a registration of the Go extension. The test runs the commands of the
//! plan as a person would, and Gardener's own code processes the result: gardener-operator turns Extensions into
//! registrations, the garden's API server validates and admits them, gardener-controller-manager installs them on a
//! seed, and gardenlet creates the objects there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::cluster::eventually;
use test_support::garden::api;
use test_support::left_by_go::left_by_go;
use test_support::measured::cases::find;

use crate::installation::{installed, of_kind, only, seed};
use crate::project::Project;
use crate::stage::{Stage, command};

/// A Worker that the Go extension has reconciled.
const CASE: &str = "azure/pools-zones/priorities";
const CHART: &str = "registry.example.org/charts/gardener-extension-worker:0.1.0";
const GO: &str = "provider-azure";
const OURS: &str = "gardener-extension-worker";
/// Time limit for Gardener's controllers.
const SOON: Duration = Duration::from_secs(60);

/// How the extensions are registered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Operator,
    Garden,
}

/// A garden with a seed, and the Extensions of its runtime cluster.
struct Landscape {
    form: Form,
    project: Project,
    seed: Value,
    extensions: BTreeMap<String, Value>,
    folder: TempDir,
}

/// The commands of a step.
#[derive(Debug, Default)]
struct Step {
    run: Vec<String>,
    undo: Vec<String>,
}

/// The registration of the Go extension, with a setting that must be preserved.
fn go_extension(form: Form) -> Vec<Value> {
    let resources: Value = [("Infrastructure", "azure"), ("ControlPlane", "azure"), ("Worker", "azure")]
        .map(|(kind, of_type)| json!({"kind": kind, "type": of_type}))
        .into_iter()
        .collect();
    let helm = json!({"ociRepository": {"ref": "registry.example.org/charts/provider-azure:1.60.0"}});
    let values = json!({"replicaCount": 2, "disableControllers": ["bastion"]});
    match form {
        Form::Operator => vec![json!({
            "apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": {"name": GO},
            "spec": {"resources": resources, "deployment": {"extension": {"helm": helm, "values": values}}},
        })],
        Form::Garden => {
            let mut helm = helm;
            helm["values"] = values;
            vec![
                json!({
                    "apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": GO},
                    "helm": helm,
                }),
                json!({
                    "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration",
                    "metadata": {"name": GO},
                    "spec": {"resources": resources, "deployment": {"deploymentRefs": [{"name": GO}]}},
                }),
            ]
        }
    }
}

/// Changes a document as `kubectl patch --type merge` does.
fn merge(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in members {
        if value.is_null() {
            target.as_object_mut().expect("it is an object").remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// The API path of the objects of a kind.
fn path(object: &Value) -> String {
    let of = |member: &str| object[member].as_str().unwrap_or_default();
    format!("/apis/{}/{}s", of("apiVersion"), of("kind").to_lowercase())
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

impl Landscape {
    async fn new(stage: &Stage, form: Form, name: &'static str) -> Result<Self> {
        let others = [
            ("Network", "calico"),
            ("OperatingSystemConfig", "gardenlinux"),
            ("ContainerRuntime", "containerd"),
            ("DNSRecord", "azure-dns"),
        ]
        .map(|(kind, of_type)| json!({"kind": kind, "type": of_type}));
        let others = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration",
            "metadata": {"name": "others"}, "spec": {"resources": others},
        });
        let project = Project::with_registrations(stage, name, |_| {}, vec![others]).await?;
        let folder = tempfile::tempdir()?;
        let mut landscape = Self { form, project, seed: Value::Null, extensions: BTreeMap::new(), folder };
        for object in go_extension(form) {
            landscape.apply(object).await?;
        }
        landscape.seed = seed(&landscape.project).await?;
        let mut shoot = landscape.project.shoot("s");
        shoot["spec"]["seedName"] = "seed".into();
        landscape.project.create(&shoot).await?.taken()?;
        Ok(landscape)
    }

    /// The registrations as a person exports them for `takeover plan`.
    async fn registrations(&self) -> Result<Value> {
        let mut items: Vec<Value> = self.extensions.values().cloned().collect();
        if self.form == Form::Garden {
            for object in go_extension(Form::Garden) {
                items.push(self.stored(&object).await?.context("it is not stored")?);
            }
        }
        Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
    }

    /// Runs `takeover plan` and returns the commands of its steps.
    async fn plan(&self) -> Result<Vec<Step>> {
        let file = |name: &str| self.folder.path().join(name).to_str().expect("a path").to_owned();
        let (bundle, registrations, to) = (file("bundle.json"), file("registrations.json"), file("plan"));
        let measured = left_by_go(find(CASE).map_err(anyhow::Error::msg)?).context("the case has no machines")?;
        std::fs::write(&bundle, measured.to_string())?;
        std::fs::write(&registrations, self.registrations().await?.to_string())?;
        let arguments = ["takeover", "plan", &bundle, "--registrations", &registrations, "--to", &to, "--chart", CHART];
        let output = command(&arguments, "").await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut steps: Vec<Step> = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            if line.split_once(". ").is_some_and(|(number, _)| number.parse::<usize>().is_ok()) {
                steps.push(Step::default());
            }
            let Some(step) = steps.last_mut() else { continue };
            match line.trim_start().split_once(' ') {
                Some(("run", command)) => step.run.push(command.trim().to_owned()),
                Some(("undo", command)) => step.undo.push(command.trim().to_owned()),
                _ => {}
            }
        }
        Ok(steps)
    }

    /// Runs commands as a person would.
    async fn run(&mut self, commands: &[String]) -> Result<()> {
        for command in commands {
            let words: Vec<&str> = command.split_whitespace().collect();
            match words.as_slice() {
                ["gardener-extension-worker", "takeover", "check", ..] => {}
                ["kubectl", "patch", resource, name, "--type", "merge", "--patch-file", file] => {
                    self.patch(resource, name, &document(file)?).await.with_context(|| command.clone())?;
                }
                ["kubectl", "apply", "-f", file] => {
                    self.apply(document(file)?).await.with_context(|| command.clone())?
                }
                ["kubectl", "delete", "-f", file] => {
                    self.delete(&document(file)?).await.with_context(|| command.clone())?;
                }
                _ => bail!("a person can't run {command:?}"),
            }
        }
        Ok(())
    }

    async fn patch(&mut self, resource: &str, name: &str, patch: &Value) -> Result<()> {
        if resource == "extensions.operator.gardener.cloud" {
            let mut extension = self.extensions.get(name).context("there is no such Extension")?.clone();
            merge(&mut extension, patch);
            return self.apply(extension).await;
        }
        let folder = match resource {
            "controllerdeployments.v1.core.gardener.cloud" => "/apis/core.gardener.cloud/v1/controllerdeployments",
            "controllerregistrations.core.gardener.cloud" => {
                "/apis/core.gardener.cloud/v1beta1/controllerregistrations"
            }
            other => bail!("{other} is unknown"),
        };
        let request = kube::core::Request::new(folder).patch(name, &PatchParams::default(), &Patch::Merge(patch))?;
        self.project.client().request::<Value>(request).await?;
        Ok(())
    }

    /// Writes an object. gardener-operator turns an Extension into registrations.
    async fn apply(&mut self, object: Value) -> Result<()> {
        if object["kind"] != "Extension" {
            return self.store(&object).await;
        }
        let (resources, _) = installed(json!({"extension": object})).await?;
        let registered = &resources[format!("extension-registration-{}", name(&object))];
        let mut deployment = only(registered, "ControllerDeployment")?.clone();
        // The registry of this test has another address in each request.
        let reference = &object["spec"]["deployment"]["extension"]["helm"]["ociRepository"]["ref"];
        deployment["helm"]["ociRepository"]["ref"] = reference.clone();
        self.store(&deployment).await?;
        self.store(only(registered, "ControllerRegistration")?).await?;
        self.extensions.insert(name(&object).to_owned(), object);
        Ok(())
    }

    /// Replaces or creates an object of the garden with all its members, as gardener-resource-manager does.
    async fn store(&self, object: &Value) -> Result<()> {
        let Some(stored) = self.stored(object).await? else {
            self.project.request("POST", &path(object), object).await?.taken()?;
            return Ok(());
        };
        let mut changed = object.clone();
        changed["metadata"] = stored["metadata"].clone();
        let path = format!("{}/{}", path(object), name(object));
        self.project.request("PUT", &path, &changed).await?.taken()?;
        Ok(())
    }

    async fn stored(&self, object: &Value) -> Result<Option<Value>> {
        let path = format!("{}/{}", path(object), name(object));
        let response = self.project.request("GET", &path, &Value::Null).await?;
        Ok(if response.status == 404 { None } else { Some(response.taken()?.body) })
    }

    async fn delete(&mut self, object: &Value) -> Result<()> {
        self.extensions.remove(name(object));
        let both = [
            ("core.gardener.cloud/v1beta1", "ControllerRegistration"),
            ("core.gardener.cloud/v1", "ControllerDeployment"),
        ];
        for (version, kind) in both {
            if object["kind"] == "Extension" || object["kind"] == kind {
                let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name(object)}});
                let path = format!("{}/{}", path(&object), name(&object));
                self.project.request("DELETE", &path, &json!({})).await?.taken()?;
            }
        }
        Ok(())
    }

    /// The registrations responsible for Workers.
    async fn responsible(&self) -> Result<Vec<String>> {
        let registrations = api(self.project.client(), "ControllerRegistration", None);
        let all = serde_json::to_value(registrations.list(&ListParams::default()).await?.items)?;
        let has_workers = |one: &&Value| {
            let mut resources = one["spec"]["resources"].as_array().into_iter().flatten();
            resources.any(|resource| resource["kind"] == "Worker" && resource["type"] == "azure")
        };
        Ok(all.as_array().into_iter().flatten().filter(has_workers).map(|one| name(one).to_owned()).collect())
    }

    /// The registrations that are installed on the seed.
    async fn installations(&self) -> Result<BTreeMap<String, Value>> {
        let installations = api(self.project.client(), "ControllerInstallation", None);
        let all = serde_json::to_value(installations.list(&ListParams::default()).await?.items)?;
        let all = all.as_array().cloned().unwrap_or_default().into_iter();
        let exists = |one: &Value| one["metadata"]["deletionTimestamp"].is_null();
        let of = |one: &Value| one["spec"]["registrationRef"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(all.filter(exists).map(|one| (of(&one), one)).collect())
    }

    /// Waits until this extension is installed, and returns how gardenlet installs it on the seed.
    async fn ours_on_seed(&self) -> Result<Ours> {
        let installation = eventually(SOON, "this extension is installed on the seed", async || {
            self.installations().await?.remove(OURS).context("it is not")
        })
        .await?;
        let of = |version: &str, kind: &str| {
            let version = format!("core.gardener.cloud/{version}");
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": OURS}})
        };
        let [registration, deployment] = [of("v1beta1", "ControllerRegistration"), of("v1", "ControllerDeployment")];
        let (resources, _) = installed(json!({
            "charts": {"charts/gardener-extension-worker:0.1.0": released_chart(self.folder.path())?},
            "controllerInstallation": installation, "seed": self.seed,
            "controllerRegistration": self.stored(&registration).await?,
            "controllerDeployment": self.stored(&deployment).await?,
        }))
        .await?;
        let objects = &resources[name(&installation)];
        only(objects, "Deployment")?;
        let configuration =
            of_kind(objects, "ConfigMap").into_iter().find_map(|map| map["data"]["config.yaml"].as_str());
        let configuration = documents(configuration.context("no configuration")?)?.pop().context("it is empty")?;
        let roles = of_kind(objects, "ClusterRole").into_iter().flat_map(|role| role["rules"].as_array()).flatten();
        let may_create = |rule: &Value| {
            let has = |member: &str, word: &str| rule[member].as_array().is_some_and(|all| all.contains(&json!(word)));
            has("resources", "machinedeployments") && has("verbs", "create")
        };
        match (configuration["shadow"].as_bool().unwrap_or_default(), roles.into_iter().any(may_create)) {
            (true, false) => Ok(Ours::DryRun),
            (false, true) => Ok(Ours::Serving),
            (shadow, may_create) => bail!("shadow is {shadow}, and it may create machine deployments: {may_create}"),
        }
    }

    /// Ensures that exactly these registrations are responsible for Workers, that the Go extension is still installed,
    /// and that this extension runs as expected.
    async fn ensure(&self, responsible: &[&str], ours: Ours) -> Result<()> {
        ensure!(self.responsible().await? == responsible, "{:?} are responsible", self.responsible().await?);
        eventually(SOON, "the Go extension is installed for the other resources", async || {
            ensure!(self.installations().await?.contains_key(GO), "it is not");
            Ok(())
        })
        .await?;
        if ours == Ours::Absent {
            return eventually(SOON, "this extension is not installed", async || {
                ensure!(!self.installations().await?.contains_key(OURS), "it is");
                Ok(())
            })
            .await;
        }
        let installed = self.ours_on_seed().await?;
        ensure!(installed == ours, "it is installed as {installed:?} instead of {ours:?}");
        Ok(())
    }
}

/// How this extension is installed on the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    Absent,
    DryRun,
    Serving,
}

/// The chart with an image as its default, as in a release.
fn released_chart(folder: &Path) -> Result<String> {
    let chart = folder.join("chart");
    if !chart.exists() {
        let original = test_support::repository().join("charts").join(OURS);
        let copied = Command::new("cp").arg("-r").args([&original, &chart]).status()?;
        ensure!(copied.success(), "the chart can't be copied");
        let values = std::fs::read_to_string(chart.join("values.yaml"))?;
        let [repository, tag] = ["\n  repository: \"\"\n", "\n  tag: \"\"\n"];
        ensure!(values.contains(repository) && values.contains(tag), "the chart has an image by default");
        let values = values.replace(repository, "\n  repository: registry.example.org/worker\n");
        std::fs::write(chart.join("values.yaml"), values.replace(tag, "\n  tag: 0.1.0\n"))?;
    }
    Ok(chart.display().to_string())
}

fn document(file: &str) -> Result<Value> {
    documents(&std::fs::read_to_string(file)?)?.pop().context("an empty file")
}

/// The user-written parts of the Go extension's registration.
async fn written(landscape: &Landscape) -> Result<Vec<Value>> {
    let mut parts: Vec<Value> = landscape.extensions.values().map(|extension| extension["spec"].clone()).collect();
    for object in go_extension(Form::Garden) {
        let stored = landscape.stored(&object).await?.context("it is not stored")?;
        parts.push(json!([stored["spec"], stored["helm"]]));
    }
    Ok(parts)
}

async fn there_and_back(form: Form, name: &'static str) -> Result<()> {
    let stage = Stage::without_webhooks().await?;
    let mut landscape = Landscape::new(&stage, form, name).await?;
    let before = written(&landscape).await?;
    landscape.ensure(&[GO], Ours::Absent).await.context("before")?;
    let steps = landscape.plan().await?;
    let [check, dry_run, off, on] = steps.as_slice() else { bail!("{} steps", steps.len()) };
    landscape.run(&check.run).await?;
    landscape.run(&dry_run.run).await?;
    landscape.ensure(&[GO], Ours::DryRun).await.context("dry run")?;

    let too_early = landscape.run(&on.run).await.expect_err("both can't be responsible");
    ensure!(format!("{too_early:#}").contains("another ControllerRegistration"), "{too_early:#}");
    landscape.run(&on.undo).await.context("after a step too early")?;
    landscape.ensure(&[GO], Ours::DryRun).await.context("after a step too early")?;

    landscape.run(&off.run).await?;
    landscape.ensure(&[], Ours::DryRun).await.context("the Go extension is off")?;
    landscape.run(&on.run).await?;
    landscape.ensure(&[OURS], Ours::Serving).await.context("taken over")?;

    landscape.run(&on.undo).await?;
    landscape.ensure(&[], Ours::DryRun).await.context("on the way back")?;
    landscape.run(&off.undo).await?;
    landscape.ensure(&[GO], Ours::DryRun).await.context("given back")?;
    landscape.run(&dry_run.undo).await?;
    landscape.ensure(&[GO], Ours::Absent).await.context("as before")?;
    ensure!(written(&landscape).await? == before, "{:#?} was {before:#?}", written(&landscape).await?);
    Ok(())
}

#[tokio::test]
async fn plan_works_with_gardener_operator() -> Result<()> {
    there_and_back(Form::Operator, "operator").await
}

#[tokio::test]
async fn plan_works_without_gardener_operator() -> Result<()> {
    there_and_back(Form::Garden, "plain").await
}
