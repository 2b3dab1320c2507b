//! How an extension is registered with Gardener: by an Extension of gardener-operator, or by a ControllerRegistration
//! with its ControllerDeployment.

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Value of the Go extensions' charts with the names of controllers that do not run.
const DISABLED: &str = "disableControllers";
const WORKER_CONTROLLER: &str = "worker";

/// Kind of the registering objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An Extension in the runtime cluster.
    Operator,
    /// A ControllerRegistration in the garden, with the name of its ControllerDeployment.
    Garden { deployment: String },
}

/// A registered extension.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) form: Form,
    pub(super) name: String,
    resources: Vec<Value>,
    policy: Value,
    values: Value,
}

/// A merge patch for one object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectPatch {
    /// The argument of `kubectl patch`: resource and name.
    pub(super) target: String,
    pub(super) patch: Value,
}

/// Changed members of a registration.
pub(super) struct Change {
    pub(super) resources: Value,
    pub(super) policy: Option<Value>,
    pub(super) values: Value,
}

impl Form {
    pub(super) fn is_operator(&self) -> bool {
        *self == Self::Operator
    }
}

impl Registration {
    /// A registration of that form of which only the name is known.
    pub(super) fn of(form: &Form, name: &str) -> Self {
        let form = match form {
            Form::Operator => Form::Operator,
            Form::Garden { .. } => Form::Garden { deployment: name.to_owned() },
        };
        Self { form, name: name.to_owned(), resources: Vec::new(), policy: Value::Null, values: Value::Null }
    }

    /// All registrations among objects.
    pub(super) fn all(objects: &[Value]) -> anyhow::Result<Vec<Self>> {
        let mut found = Vec::new();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default();
            let is_of = |group: &str| object["apiVersion"].as_str().is_some_and(|version| version.starts_with(group));
            match kind {
                "Extension" if is_of("operator.gardener.cloud/") => found.push(Self::of_operator(object)?),
                "ControllerRegistration" if is_of("core.gardener.cloud/") => {
                    found.push(Self::of_garden(object, objects)?);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn of_operator(object: &Value) -> anyhow::Result<Self> {
        let extension = &object["spec"]["deployment"]["extension"];
        Ok(Self {
            form: Form::Operator,
            name: name(object)?,
            resources: resources(object),
            policy: extension["policy"].clone(),
            values: extension["values"].clone(),
        })
    }

    fn of_garden(object: &Value, objects: &[Value]) -> anyhow::Result<Self> {
        let registration = name(object)?;
        let references = object["spec"]["deployment"]["deploymentRefs"].as_array().map_or(&[][..], Vec::as_slice);
        let [reference] = references else {
            bail!("ControllerRegistration {registration} does not refer to one ControllerDeployment");
        };
        let deployment = objects.iter().find(|deployment| {
            deployment["kind"] == "ControllerDeployment" && deployment["metadata"]["name"] == reference["name"]
        });
        let deployment = deployment
            .with_context(|| format!("the ControllerDeployment of ControllerRegistration {registration} is missing"))?;
        if deployment["apiVersion"] != "core.gardener.cloud/v1" {
            bail!(
                "ControllerDeployment {}: read it as controllerdeployments.v1.core.gardener.cloud",
                name(deployment)?
            );
        }
        Ok(Self {
            form: Form::Garden { deployment: name(deployment)? },
            name: registration,
            resources: resources(object),
            policy: object["spec"]["deployment"]["policy"].clone(),
            values: deployment["helm"]["values"].clone(),
        })
    }

    /// Whether it is registered for Workers of a type.
    pub(super) fn has_workers_of(&self, worker_type: &str) -> bool {
        self.resources.iter().any(|resource| is_worker(resource, worker_type))
    }

    pub(super) fn has_resources(&self) -> bool {
        !self.resources.is_empty()
    }

    /// Turns the worker controller off, and frees the registration for Workers of these types.
    pub(super) fn without_workers(&self, worker_types: &[&str]) -> Vec<ObjectPatch> {
        let is_taken = |resource: &&Value| worker_types.iter().any(|of| is_worker(resource, of));
        let resources: Vec<&Value> = self.resources.iter().filter(|resource| !is_taken(resource)).collect();
        let mut disabled = self.values[DISABLED].as_array().cloned().unwrap_or_default();
        if !disabled.contains(&json!(WORKER_CONTROLLER)) {
            disabled.push(json!(WORKER_CONTROLLER));
        }
        self.patches(&Change { resources: json!(resources), policy: None, values: json!({DISABLED: disabled}) })
    }

    /// Restores the members that [`Self::without_workers`] changes.
    pub(super) fn restored(&self) -> Vec<ObjectPatch> {
        let values = json!({DISABLED: self.values[DISABLED]});
        self.patches(&Change { resources: json!(self.resources), policy: None, values })
    }

    /// Restores the members that a change of this extension's own registration sets.
    pub(super) fn as_before(&self) -> Change {
        let types = json!({"types": self.values["workers"]["types"]});
        let values = json!({"shadow": self.values["shadow"], DISABLED: self.values[DISABLED], "workers": types});
        Change { resources: json!(self.resources), policy: Some(self.policy.clone()), values }
    }

    /// The patches for a change.
    pub(super) fn patches(&self, change: &Change) -> Vec<ObjectPatch> {
        let mut deployment = json!({});
        if let Some(policy) = &change.policy {
            deployment["policy"] = policy.clone();
        }
        match &self.form {
            Form::Operator => {
                deployment["values"] = change.values.clone();
                let spec = json!({"resources": change.resources, "deployment": {"extension": deployment}});
                vec![ObjectPatch {
                    target: format!("extensions.operator.gardener.cloud {}", self.name),
                    patch: json!({"spec": spec}),
                }]
            }
            Form::Garden { deployment: name } => {
                let mut spec = json!({"resources": change.resources});
                if change.policy.is_some() {
                    spec["deployment"] = deployment;
                }
                vec![
                    ObjectPatch {
                        target: format!("controllerdeployments.v1.core.gardener.cloud {name}"),
                        patch: json!({"helm": {"values": change.values}}),
                    },
                    ObjectPatch {
                        target: format!("controllerregistrations.core.gardener.cloud {}", self.name),
                        patch: json!({"spec": spec}),
                    },
                ]
            }
        }
    }
}

fn resources(object: &Value) -> Vec<Value> {
    object["spec"]["resources"].as_array().cloned().unwrap_or_default()
}

fn is_worker(resource: &Value, worker_type: &str) -> bool {
    resource["kind"] == "Worker" && resource["type"] == worker_type
}

/// The name of an object, which may be part of a command in a shell.
fn name(object: &Value) -> anyhow::Result<String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    let is_valid = name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_plain);
    if !is_valid || name.len() > 253 {
        bail!("a {} has an invalid name: {name:?}", object["kind"].as_str().unwrap_or_default());
    }
    Ok(name.to_owned())
}
