//! One case: the given objects, the steps, and the measured result of each, from documents of either form.

use std::path::Path;

use serde_json::{Value, json};
use test_support::measured::cases::{self, Documents, Form};

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) family: String,
    pub(crate) given: Given,
    /// In order. Each step begins when the previous one has ended.
    pub(crate) steps: Vec<Step>,
}

/// The initial state.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) worker: Value,
    pub(crate) cluster: Value,
    /// Secrets and other objects of the seed.
    pub(crate) objects: Vec<Value>,
    /// Objects of the garden.
    pub(crate) garden: Vec<Value>,
    pub(crate) azure: Azure,
    /// `openstack` of the case.
    pub(crate) openstack: Value,
    pub(crate) machines: Machines,
}

/// Scale sets that Azure has, and calls that fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Azure {
    pub(crate) scale_sets: Vec<Value>,
    pub(crate) failures: Value,
    /// Notation of calls and of names of new scale sets.
    pub(crate) form: Form,
}

/// The behaviour of machine-controller-manager for machine deployments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machines {
    /// Completes everything at once.
    Healthy,
    /// Does nothing: only the given objects matter.
    AsGiven,
}

/// An operation and its measured result.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) operation: String,
    pub(crate) expected: Value,
}

/// Finds the cases below a folder or in the file of a family, in the order of names.
pub(crate) fn collect(path: &Path) -> Result<Vec<Case>, String> {
    let cases = cases::collect(path)?.into_iter().map(|case| {
        let Documents { input, expected } = case.documents?;
        match case.form {
            Form::Cases => Ok(of_folder(case.name, case.family, input, expected)),
            Form::Flows => of_file(case.name, case.family, input, &expected),
        }
    });
    cases.collect()
}

fn of_folder(name: String, family: String, mut input: Value, expected: Value) -> Case {
    let operation = input["operation"].as_str().unwrap_or("reconcile").to_owned();
    let machines = if input["mcm"] == "asGiven" { Machines::AsGiven } else { Machines::Healthy };
    let given = Given {
        worker: input["worker"].take(),
        cluster: input["cluster"].take(),
        objects: [list(&mut input["secrets"]), list(&mut input["existing"])].concat(),
        garden: list(&mut input["garden"]),
        azure: Azure {
            scale_sets: list(&mut input["azure"]["vmss"]),
            failures: input["azure"]["fail"].take(),
            form: Form::Cases,
        },
        openstack: input["openstack"].take(),
        machines,
    };
    Case { name, family, given, steps: vec![Step { operation, expected }] }
}

fn of_file(name: String, family: String, mut input: Value, measured: &Value) -> Result<Case, String> {
    let operations = match list(&mut input["steps"]) {
        none if none.is_empty() => vec!["reconcile".to_owned()],
        operations => operations.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    let steps = operations.into_iter().enumerate().map(|(index, operation)| {
        let measured = measured.get(format!("{index}-{operation}"));
        let expected = expected_of_file(measured.ok_or_else(|| format!("{name}: step {index} was not measured"))?);
        Ok(Step { operation, expected })
    });
    let steps = steps.collect::<Result<_, String>>()?;
    let worker = with_type(input["worker"].take(), "extensions.gardener.cloud/v1alpha1", "Worker");
    let namespace = worker["metadata"]["namespace"].clone();
    let typed = |objects: Vec<Value>, group_version: &'static str, kind: &'static str| {
        objects.into_iter().map(move |object| with_type(object, group_version, kind))
    };
    let mut objects: Vec<Value> = typed(list(&mut input["secrets"]), "v1", "Secret").collect();
    let deployments = list(&mut input["existingMachineDeployments"]);
    objects.extend(typed(deployments, "machine.sapcloud.io/v1alpha1", "MachineDeployment"));
    objects.push(machine_controller_manager(&namespace, input["mcmReplicas"].as_i64().unwrap_or(1)));
    let given = Given {
        worker,
        cluster: match input["cluster"].take() {
            Value::Null => Value::Null,
            cluster => with_type(cluster, "extensions.gardener.cloud/v1alpha1", "Cluster"),
        },
        objects,
        garden: Vec::new(),
        azure: Azure { scale_sets: list(&mut input["vmss"]), failures: Value::Null, form: Form::Flows },
        openstack: Value::Null,
        machines: Machines::Healthy,
    };
    Ok(Case { name, family, given, steps })
}

/// The members of `expected.yaml` from a measured step. Contains a rendered object only if it exists after the step.
fn expected_of_file(measured: &Value) -> Value {
    let after: Vec<&Value> = items(&measured["machineClassesAfter"]).iter().collect();
    let rendered = |kind: &str| -> Vec<&Value> {
        let objects = measured["renderedObjects"].as_object().into_iter().flat_map(serde_json::Map::values);
        objects.filter(|object| object["kind"] == kind && after.contains(&&object["metadata"]["name"])).collect()
    };
    let made_by_the_stand_in =
        |name: &Value| name.as_str().is_some_and(|name| name.starts_with("ms-") || name.starts_with("old-"));
    let deployments = measured["machineDeployments"].as_object().into_iter().flat_map(serde_json::Map::values);
    let mut status = measured["workerStatus"].clone();
    status["machineDeploymentsLastUpdateTimeSet"] = json!(!status["machineDeploymentsLastUpdateTime"].is_null());
    let typed = |objects: Vec<Value>, kind: &str| -> Vec<Value> {
        objects.into_iter().map(|object| with_type(object, "machine.sapcloud.io/v1alpha1", kind)).collect()
    };
    let mut expected = json!({
        "machineClasses": rendered("MachineClass"),
        "machineClassSecrets": rendered("Secret"),
        "machineDeploymentObjects": typed(deployments.cloned().collect(), "MachineDeployment"),
        "workerStatus": status,
        "machineControllerManagerReplicas": measured["mcmReplicas"],
        "azureCalls": measured["azureCalls"],
        "errorCodes": measured["errorCodes"],
    });
    match [&measured["error"], &measured["delegateError"]].into_iter().find(|error| !error.is_null()) {
        Some(Value::String(panic)) if panic.starts_with("PANIC") => {
            expected["error"] = json!(panic);
            expected["errorStage"] = json!("panic");
        }
        Some(error) => expected["error"] = error.clone(),
        None => {}
    }
    if measured.get("machines").is_some() {
        expected["machineObjects"] = json!(typed(items(&measured["machines"]).to_vec(), "Machine"));
        let sets = items(&measured["machineSets"]).iter();
        expected["machineSetNames"] = json!(sets.filter(|name| !made_by_the_stand_in(name)).collect::<Vec<_>>());
        expected["secretNames"] = measured["secretsAfter"].clone();
    }
    expected
}

fn machine_controller_manager(namespace: &Value, replicas: i64) -> Value {
    let labels = json!({"role": "machine-controller-manager"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "machine-controller-manager", "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "none", "image": "none"}]}},
        },
    })
}

fn with_type(mut object: Value, group_version: &str, kind: &str) -> Value {
    object["apiVersion"] = json!(group_version);
    object["kind"] = json!(kind);
    object
}

fn list(value: &mut Value) -> Vec<Value> {
    match value.take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}
