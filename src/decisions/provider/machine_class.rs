//! The parts of a machine class that all providers share.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::image::architecture;
use super::node_template::StrictNodeTemplate;
use super::{PoolProblem, WorkerContext};
use crate::pool::names::ClassName;
use wire::api::gardener::WorkerPool;
use wire::api::machine::{MachineClass, MachineClassNodeTemplate};

/// The label with the purpose of an object; some Go extensions also add it to classes.
pub(in crate::provider) const PURPOSE: (&str, &str) = ("gardener.cloud/purpose", "machineclass");

/// The provider-specific content of a machine class.
#[derive(Debug)]
pub struct ClassContent {
    /// Name of the driver that creates the machines, such as `Azure`.
    pub provider: &'static str,
    /// Labels of the class.
    pub labels: BTreeMap<String, String>,
    /// Capacity of a node, for the cluster-autoscaler.
    pub node_template: Option<MachineClassNodeTemplate>,
    /// Configuration for the driver.
    pub provider_spec: Value,
}

/// A machine class in the namespace of the Worker, with the Worker's credentials and its own user data Secret.
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

/// Removes null members from a provider spec.
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

/// The node template of the pool for a zone, overridden by its provider config; `None` if the pool has no template.
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

/// As [`node_template`], but an empty template if the pool has none, for providers whose classes always have one.
///
/// # Errors
/// If the provider config overrides the capacity of a missing template, where the Go extensions panic.
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

/// Labels with the operating system, if the pool has the name and version of an image.
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
