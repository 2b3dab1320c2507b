//! The part of a machine class that is the same for every provider.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::image::architecture;
use super::node_template::StrictNodeTemplate;
use super::{PoolProblem, WorkerContext};
use crate::api::gardener::WorkerPool;
use crate::api::machine::{MachineClass, MachineClassNodeTemplate};
use crate::pool::names::ClassName;

/// The label that says what an object is for; some Go extensions give it to classes, too.
pub(in crate::provider) const PURPOSE: (&str, &str) = ("gardener.cloud/purpose", "machineclass");

/// What a provider says in a machine class.
#[derive(Debug)]
pub struct ClassContent {
    /// Driver that makes the machines, such as `Azure`.
    pub provider: &'static str,
    /// Labels of the class.
    pub labels: BTreeMap<String, String>,
    /// What a node looks like, for the cluster-autoscaler.
    pub node_template: Option<MachineClassNodeTemplate>,
    /// What the driver reads.
    pub provider_spec: Value,
}

/// A machine class in the Worker's namespace, with the Worker's credentials and a Secret of its own for the user data.
#[must_use]
pub fn machine_class(context: &WorkerContext<'_>, name: &ClassName, content: ClassContent) -> MachineClass {
    let worker = context.worker;
    let namespace = worker.metadata.namespace.clone();
    MachineClass {
        metadata: ObjectMeta {
            name: Some(name.0.clone()),
            namespace: namespace.clone(),
            labels: Some(content.labels),
            ..ObjectMeta::default()
        },
        node_template: content.node_template,
        credentials_secret_ref: Some(worker.spec.secret_ref.clone()),
        provider: content.provider.to_owned(),
        provider_spec: content.provider_spec,
        secret_ref: Some(SecretReference { name: Some(name.0.clone()), namespace }),
    }
}

/// A provider spec without the members that are absent.
#[must_use]
pub fn without_nulls(mut spec: Value) -> Value {
    match &mut spec {
        Value::Object(members) => {
            let given = std::mem::take(members).into_iter().filter(|(_, value)| !value.is_null());
            members.extend(given.map(|(name, value)| (name, without_nulls(value))));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_nulls(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    spec
}

/// What a node of the pool looks like in a zone, with what its provider config says over it; nothing where the pool does not
/// say it.
#[must_use]
pub fn node_template(
    context: &WorkerContext<'_>,
    pool: &WorkerPool,
    zone: String,
    overrides: Option<&StrictNodeTemplate>,
) -> Option<MachineClassNodeTemplate> {
    let mut template = pool.node_template.clone()?;
    if let Some(overrides) = overrides {
        overrides.override_in(&mut template);
    }
    Some(MachineClassNodeTemplate {
        architecture: Some(architecture(pool).to_owned()),
        capacity: template.capacity,
        virtual_capacity: template.virtual_capacity,
        instance_type: pool.machine_type.clone(),
        region: context.worker.spec.region.clone(),
        zone,
    })
}

/// The same where a class always has one: for a pool that says nothing, with nothing in it.
///
/// # Errors
/// When the provider config overrides what is not there; the Go extensions end in a panic then.
pub(super) fn node_template_or_empty(
    context: &WorkerContext<'_>,
    pool: &WorkerPool,
    zone: &str,
    overrides: Option<&StrictNodeTemplate>,
) -> Result<MachineClassNodeTemplate, PoolProblem> {
    if let Some(template) = node_template(context, pool, zone.to_owned(), overrides) {
        return Ok(template);
    }
    if overrides.is_some_and(|overrides| !overrides.capacity.is_empty()) {
        let detail = "required: a capacity that providerConfig.nodeTemplate.capacity can override";
        return Err(PoolProblem::field("nodeTemplate", detail));
    }
    let virtual_capacity = overrides.and_then(|overrides| overrides.virtual_capacity.clone()).unwrap_or_default();
    Ok(MachineClassNodeTemplate { virtual_capacity, ..MachineClassNodeTemplate::default() })
}

/// Labels that tell the operating system, where the pool names image and version.
#[must_use]
pub fn operating_system_labels(pool: &WorkerPool) -> BTreeMap<String, String> {
    let image = &pool.machine_image;
    if image.name.is_empty() || image.version.is_empty() {
        return BTreeMap::new();
    }
    BTreeMap::from([
        ("operatingSystemName".to_owned(), image.name.clone()),
        ("operatingSystemVersion".to_owned(), image.version.replace('+', "_")),
    ])
}
