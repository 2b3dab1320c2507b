//! Live machine objects of a Worker's namespace: deployments with the untouched document beside its typed view, classes and
//! their Secrets as a digest of what they say.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::digest::{self, Digest};
use crate::api::gotext::json::{DecodeError, decode_value};
use crate::api::machine::{Machine, MachineDeployment, MachineSet};

/// Label on a MachineDeployment: name of its pool.
pub const POOL_LABEL: &str = "worker.gardener.cloud/pool";
/// Label on classes and their Secrets.
pub const PURPOSE_LABEL: (&str, &str) = ("gardener.cloud/purpose", "machineclass");

/// An object as the API server sent it, and what is read of it.
#[derive(Clone, Debug)]
pub struct Live<T> {
    /// The whole document.
    pub document: Value,
    /// The typed view.
    pub object: T,
}

impl<T: DeserializeOwned> Live<T> {
    /// Reads the typed view.
    ///
    /// # Errors
    /// When a member has the wrong type.
    pub fn read(document: Value) -> Result<Self, DecodeError> {
        Ok(Self { object: decode_value(&document)?, document })
    }
}

/// An object that is only compared: who it is, and what it says as a digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Digested<T> {
    /// Name, uid, resource version, finalizers, time of deletion; labels and annotations are left out.
    pub metadata: ObjectMeta,
    /// What it says.
    pub digest: Digest,
    /// Id of what a class places machines in at the cloud, such as a scale set.
    pub placed_in: Option<String>,
    /// The object itself, where it was kept.
    pub whole: Option<Box<T>>,
}

impl Digested<Value> {
    /// Of a machine class.
    ///
    /// # Errors
    /// When its metadata can't be read.
    pub fn class(document: Value) -> Result<Self, DecodeError> {
        let metadata = decode_value(&document["metadata"]).map_err(|error| error.within("metadata"))?;
        let placed_in = document.pointer("/providerSpec/properties/machineSet/id").and_then(Value::as_str);
        Ok(Self {
            metadata: identity(metadata),
            digest: digest::of_document(&document),
            placed_in: placed_in.map(str::to_owned),
            whole: Some(Box::new(document)),
        })
    }
}

impl Digested<Secret> {
    /// Of the Secret of a machine class.
    #[must_use]
    pub fn secret(secret: Secret) -> Self {
        let metadata = identity(secret.metadata.clone());
        Self { metadata, digest: digest::of_secret(&secret), placed_in: None, whole: Some(Box::new(secret)) }
    }
}

impl<T> Digested<T> {
    /// Without the object itself.
    #[must_use]
    pub fn digest_only(self) -> Self {
        Self { whole: None, ..self }
    }

    /// Name and uid of those objects that are meant and that nobody deletes yet.
    pub fn still_to_delete(
        objects: &BTreeMap<String, Self>,
        is_meant: impl Fn(&String) -> bool,
    ) -> Vec<(&str, Option<&str>)> {
        let objects = objects.iter().filter(|(name, object)| is_meant(name) && !object.is_being_deleted());
        objects.map(|(name, object)| (name.as_str(), object.metadata.uid.as_deref())).collect()
    }

    /// Whether somebody has asked for its deletion.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

fn identity(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta { managed_fields: None, labels: None, annotations: None, ..metadata }
}

/// The machine objects in the namespace of one Worker, by name. The namespace belongs to the Worker as a whole.
#[derive(Clone, Default)]
pub struct MachineObjects {
    /// Machine deployments.
    pub deployments: BTreeMap<String, Live<MachineDeployment>>,
    /// Machine classes.
    pub classes: BTreeMap<String, Digested<Value>>,
    /// Secrets with the purpose label.
    pub class_secrets: BTreeMap<String, Digested<Secret>>,
    /// Machine sets.
    pub machine_sets: Vec<MachineSet>,
    /// Machines.
    pub machines: Vec<Machine>,
    /// Replicas of deployments that are brought back to this seed and not made yet, by name.
    pub moved_replicas: BTreeMap<String, i32>,
}

impl MachineObjects {
    /// Whether there is anything that classes are needed for.
    #[must_use]
    pub fn uses_classes(&self) -> bool {
        !(self.deployments.is_empty() && self.machine_sets.is_empty() && self.machines.is_empty())
    }

    /// The classes that deployments, machine sets and machines name.
    #[must_use]
    pub fn used_classes(&self) -> BTreeSet<&str> {
        let deployments = self.deployments.values().map(|live| &live.object.spec.template.spec.class);
        let sets = self.machine_sets.iter().map(|set| &set.spec.template.spec.class);
        let machines = self.machines.iter().map(|machine| &machine.spec.class);
        deployments.chain(sets).chain(machines).map(|class| class.name.as_str()).collect()
    }

    /// Whether no machine object is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deployments.is_empty()
            && self.classes.is_empty()
            && self.class_secrets.is_empty()
            && self.machine_sets.is_empty()
            && self.machines.is_empty()
    }
}

impl Live<MachineDeployment> {
    /// The pool that the deployment is labelled with.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.object.metadata.labels.as_ref()?.get(POOL_LABEL).map(String::as_str)
    }
}

/// A document of kind `T` with the given members, `apiVersion` and `kind` first.
#[must_use]
pub fn document_of<T: Resource>(mut members: Value) -> Value {
    if let Value::Object(map) = &mut members {
        map.insert("apiVersion".to_owned(), T::API_VERSION.into());
        map.insert("kind".to_owned(), T::KIND.into());
    }
    members
}
