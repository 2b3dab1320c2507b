//! Runs a case: prepares its location, requests one operation after the other, waits for the end of each, and returns
//! the objects that exist then, in the form of the measurements.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::Clouds;
use crate::case::{Case, Machines, Step};
use crate::location::{Location, NotStorable};
use crate::machines::{StandIn, is_of_stand_in};
use crate::openstack;

/// Long enough for a busy machine; a step takes a second or less.
const SOON: Duration = Duration::from_secs(90);
/// Time limit for retries after a failed attempt; the first retries begin within seconds.
const SOON_AGAIN: Duration = Duration::from_secs(20);
/// A time that is longer ago than a deadline of five minutes.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";
const EXTENSION_FINALIZER: &str = "extensions.gardener.cloud/worker";

/// The outcome of a case.
pub(crate) enum Outcome {
    /// The API server refuses a given object.
    NotStorable(String),
    /// The state after each step.
    Ran(Vec<Value>),
}

/// Runs a case in its own location.
pub(crate) async fn run(case: &Case, mut location: Location, clouds: &Clouds) -> Result<Outcome> {
    let project = openstack::prepare(&clouds.openstack, case, &location);
    location.send_openstack_requests_to(&project.auth_url());
    if let Err(NotStorable(reason)) = location.prepare(&case.given).await? {
        return Ok(Outcome::NotStorable(reason));
    }
    let group = clouds.azure.prepare(case, &location);
    let location = Arc::new(location);
    let machines = StandIn::start(location.clone(), case.given.machines);
    let mut found = Vec::new();
    for step in &case.steps {
        if step.operation == "delete" {
            let reference = location.worker().await?["spec"]["secretRef"].clone();
            let text = |member: &str| reference[member].as_str().unwrap_or_default().to_owned();
            if case.given.machines == Machines::Healthy {
                machines.holds(&text("namespace"), &text("name"));
            }
        }
        location.request(&step.operation).await?;
        let worker = ended(&location, step).await?;
        let mut after = state_after(case, &location, &worker).await?;
        if step.operation == "delete" {
            after["machinesWhenDeploymentsWereDeleted"] = machines.machines_at_deletion();
        }
        after["azureCalls"] = group.as_ref().map(|group| group.calls()).unwrap_or_default();
        after["openstackCalls"] = openstack::calls(&project);
        found.push(location.in_given_names(&after)?);
    }
    Ok(Outcome::Ran(found))
}

/// Waits for the measured end and returns the Worker. If that end is not reached, returns the Worker as it is.
async fn ended(location: &Location, step: &Step) -> Result<Value> {
    let fails = step.expected["error"].is_string();
    let worker = location
        .until(SOON, |worker| {
            has_succeeded(worker, &step.operation) || state(worker) == "Error" || (fails && waits(worker))
        })
        .await?;
    if fails {
        let waits_in_vain = worker["status"]["lastOperation"]["state"] == "Processing";
        if !waits_in_vain || worker["status"]["machineDeploymentsLastUpdateTime"].is_null() {
            return Ok(worker);
        }
        let patch = Patch::Merge(json!({"status": {"machineDeploymentsLastUpdateTime": LONG_AGO}}));
        location.workers().patch_status(&location.worker_name, &PatchParams::default(), &patch).await?;
        return location.until(SOON, |worker| has_succeeded(worker, &step.operation) || state(worker) == "Error").await;
    }
    if worker["status"]["lastOperation"]["state"] != "Error" {
        return Ok(worker);
    }
    // The controller retries. If the difference is deliberate, the error stays.
    location.until(SOON_AGAIN, |worker| has_succeeded(worker, &step.operation)).await
}

impl Location {
    /// Waits for a condition of the Worker until the limit. Returns the Worker that meets it, because the next attempt
    /// may begin a moment later. After the limit, returns the Worker as it is.
    async fn until(&self, limit: Duration, condition: impl Fn(&DynamicObject) -> bool) -> Result<Value> {
        let is_gone_or = |worker: Option<&DynamicObject>| worker.is_none_or(&condition);
        let reached = await_condition(self.workers(), &self.worker_name, is_gone_or);
        match tokio::time::timeout(limit, reached).await {
            Ok(Ok(Some(worker))) => Ok(serde_json::to_value(worker)?),
            // The comparison shows the difference.
            _ => self.worker().await,
        }
    }

    async fn worker(&self) -> Result<Value> {
        let worker = self.workers().get(&self.worker_name).await.context("reading the Worker")?;
        Ok(serde_json::to_value(worker)?)
    }
}

fn state(worker: &DynamicObject) -> &str {
    worker.data["status"]["lastOperation"]["state"].as_str().unwrap_or_default()
}

/// Whether the Worker has reached the state that gardenlet waits for.
fn has_succeeded(worker: &DynamicObject, operation: &str) -> bool {
    let status = &worker.data["status"];
    let is_held = worker.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == EXTENSION_FINALIZER);
    let is_requested =
        worker.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("gardener.cloud/operation"));
    let kind = &status["lastOperation"]["type"];
    let is_of_operation = match operation {
        "reconcile" => kind == "Create" || kind == "Reconcile",
        "restore" => kind == "Restore",
        "migrate" => kind == "Migrate" && !is_held,
        _ => kind == "Delete" && !is_held,
    };
    is_of_operation && state(worker) == "Succeeded" && !is_requested
}

/// Whether the controller waits for machines.
fn waits(worker: &DynamicObject) -> bool {
    let last = &worker.data["status"]["lastOperation"];
    last["state"] == "Processing" && last["progress"].as_i64().is_some_and(|progress| progress > 1)
}

/// The current state of the location.
async fn state_after(case: &Case, location: &Location, worker: &Value) -> Result<Value> {
    let as_given = case.given.machines == Machines::AsGiven;
    let given_secrets: Vec<&Value> = case.given.objects.iter().filter(|object| object["kind"] == "Secret").collect();
    let secrets = location.list("v1", "Secret").await?;
    let is_of_class = |secret: &&Value| {
        secret["metadata"]["labels"]["gardener.cloud/purpose"] == "machineclass"
            || !given_secrets.iter().any(|given| given["metadata"]["name"] == secret["metadata"]["name"])
    };
    let mut deployments = location.list_machines("MachineDeployment").await?;
    for deployment in &mut deployments {
        deployment["status"] = if as_given { given_status(&deployment["status"]) } else { Value::Null };
    }
    let mut sets = location.list_machines("MachineSet").await?;
    sets.retain(|set| !is_of_stand_in(set));
    let replicas = location.api("apps/v1", "Deployment").get_opt("machine-controller-manager").await?;
    let status = &worker["status"];
    let last_error = &status["lastError"];
    Ok(json!({
        "machineClasses": location.list_machines("MachineClass").await?,
        "machineClassSecrets": secrets.iter().filter(is_of_class).collect::<Vec<_>>(),
        "machineDeploymentObjects": deployments,
        "machineSetObjects": sets,
        "machineSetNames": names(&sets),
        "machineObjects": location.list_machines("Machine").await?,
        "pods": location.list("v1", "Pod").await?,
        "secretNames": names(&secrets),
        "machineControllerManagerReplicas": replicas.map(|deployment| deployment.data["spec"]["replicas"].clone()),
        "deleted": location.deleted().await?,
        "workerStatus": {
            "providerStatus": status["providerStatus"],
            "machineDeployments": status["machineDeployments"],
            "inPlaceUpdates": status["inPlaceUpdates"],
            "machineDeploymentsLastUpdateTimeSet": !status["machineDeploymentsLastUpdateTime"].is_null(),
        },
        "state": status["lastOperation"]["state"],
        "error": last_error["description"],
        "errorCodes": last_error["codes"],
    }))
}

/// A status as it was given: without the generation that the stand-in has set, and without zeros, which Go omits.
fn given_status(status: &Value) -> Value {
    let members = status.as_object().into_iter().flatten();
    let given = members.filter(|(name, value)| *name != "observedGeneration" && *value != &json!(0));
    Value::Object(given.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn names(objects: &[Value]) -> Vec<&Value> {
    objects.iter().map(|object| &object["metadata"]["name"]).collect()
}
