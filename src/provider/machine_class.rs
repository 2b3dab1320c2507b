//! The part of a machine class that is the same for every provider.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::WorkerContext;
use crate::api::gardener::WorkerPool;
use crate::api::machine::{MachineClass, MachineClassNodeTemplate};
use crate::pool::names::ClassName;

/// What a provider says in a machine class.
#[derive(Debug)]
pub(super) struct ClassContent {
    /// Driver that makes the machines, such as `Azure`.
    pub(super) provider: &'static str,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) node_template: Option<MachineClassNodeTemplate>,
    pub(super) provider_spec: Value,
}

/// A machine class in the Worker's namespace, with the Worker's credentials and a Secret of its own for the user data.
pub(super) fn machine_class(context: &WorkerContext<'_>, name: &ClassName, content: ClassContent) -> MachineClass {
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

/// Labels that tell the operating system, where the pool names image and version.
pub(super) fn operating_system_labels(pool: &WorkerPool) -> BTreeMap<String, String> {
    let image = &pool.machine_image;
    if image.name.is_empty() || image.version.is_empty() {
        return BTreeMap::new();
    }
    BTreeMap::from([
        ("operatingSystemName".to_owned(), image.name.clone()),
        ("operatingSystemVersion".to_owned(), image.version.replace('+', "_")),
    ])
}
