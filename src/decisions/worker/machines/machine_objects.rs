//! Live machine objects in a Worker's namespace: deployments as the raw document and a typed view, classes and their
//! Secrets as a digest of their content.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::provider::{Provider, Providers};
use crate::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::plan::digest::{self, Digest};
use wire::api::gardener::ErrorCode;
use wire::api::gotext::json::{DecodeError, decode_value};
use wire::api::machine::{MachineDeployment, MachineLastOperation};

/// Label on a MachineDeployment with the name of its pool.
pub const POOL_LABEL: &str = "worker.gardener.cloud/pool";
/// Label on classes and their Secrets.
pub const PURPOSE_LABEL: (&str, &str) = ("gardener.cloud/purpose", "machineclass");

/// A MachineDeployment as received from the API server, and its typed view.
#[derive(Clone, Debug)]
pub struct LiveDeployment {
    /// The whole document.
    pub document: Value,
    /// The typed view, without failed machines, which are in `failed_machines`.
    pub object: MachineDeployment,
    /// Failed machines in its status.
    pub failed_machines: Vec<FailedMachine>,
}

/// A machine that could not be created, deleted or kept healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedMachine {
    /// Name of the Machine.
    pub name: String,
    /// Description from the driver.
    pub description: String,
    /// Gardener error codes.
    pub codes: BTreeSet<ErrorCode>,
    /// Whether its creation failed.
    pub is_creation: bool,
}

impl LiveDeployment {
    /// Decodes a deployment. The provider maps failures of machines to error codes.
    ///
    /// # Errors
    /// When a field has the wrong type.
    pub fn read(document: Value, provider: &dyn Provider) -> Result<Self, DecodeError> {
        Self::read_with(document, |code, text| provider.error_codes(code, text))
    }

    /// Decodes a deployment without error codes, if its failures are not reported.
    ///
    /// # Errors
    /// When a field has the wrong type.
    pub fn read_without_codes(document: Value) -> Result<Self, DecodeError> {
        Self::read_with(document, |_, _| BTreeSet::new())
    }

    fn read_with(
        document: Value,
        codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
    ) -> Result<Self, DecodeError> {
        let mut object: MachineDeployment = decode_value(&document)?;
        let failed = std::mem::take(&mut object.status.failed_machines).into_iter().map(|machine| {
            let MachineLastOperation { description, error_code, operation_type } = machine.last_operation;
            FailedMachine {
                name: machine.name,
                codes: codes_of(error_code.as_deref(), &description),
                description,
                is_creation: operation_type == "Create",
            }
        });
        Ok(Self { failed_machines: failed.collect(), object, document })
    }
}

/// An object that is only compared: its identity, finalizers and a digest of its content. A seed has two of them for
/// each machine deployment, so no other metadata is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestedObject<T> {
    /// UID; `None` in a file.
    pub uid: Option<Box<str>>,
    /// Resource version; `None` in a file.
    pub version: Option<Box<str>>,
    /// Finalizers of the object.
    pub finalizers: Box<[String]>,
    /// Whether its deletion was requested.
    pub is_being_deleted: bool,
    /// Digest of its content.
    pub digest: Digest,
    /// ID of the cloud resource in which a class places machines, such as a scale set, if a provider has parsed it.
    pub placed_in: Option<Box<str>>,
    /// The object itself, if it was kept.
    pub whole: Option<Box<T>>,
}

impl DigestedObject<Value> {
    /// Digest of a machine class.
    ///
    /// # Errors
    /// When its metadata can't be read.
    pub fn class(document: Value) -> Result<Self, DecodeError> {
        let metadata = decode_value(&document["metadata"]).map_err(|error| error.within("metadata"))?;
        Ok(Self::of(metadata, digest::of_document(&document), document))
    }

    /// Adds the cloud resource in which the class places machines, as parsed by one of these providers.
    #[must_use]
    pub fn with_dependency(self, providers: Providers) -> Self {
        let class = self.whole.as_deref();
        let placed_in = class.and_then(|class| providers.dependency_of_class(&class["providerSpec"])).map(Box::from);
        Self { placed_in, ..self }
    }
}

impl DigestedObject<Secret> {
    /// Digest of the Secret of a machine class.
    #[must_use]
    pub fn secret(secret: Secret) -> Self {
        Self::of(secret.metadata.clone(), digest::of_secret(&secret), secret)
    }
}

impl<T> DigestedObject<T> {
    fn of(metadata: ObjectMeta, digest: Digest, whole: T) -> Self {
        let ObjectMeta { uid, resource_version, finalizers, deletion_timestamp, .. } = metadata;
        Self {
            uid: uid.map(Into::into),
            version: resource_version.map(Into::into),
            finalizers: finalizers.unwrap_or_default().into(),
            is_being_deleted: deletion_timestamp.is_some(),
            digest,
            placed_in: None,
            whole: Some(Box::new(whole)),
        }
    }

    /// Drops the object itself.
    #[must_use]
    pub fn digest_only(self) -> Self {
        Self { whole: None, ..self }
    }
}

/// The machine objects in a Worker's namespace, by name. All of them belong to the Worker.
#[derive(Clone, Default)]
pub struct MachineObjects {
    /// Machine deployments.
    pub deployments: BTreeMap<String, LiveDeployment>,
    /// Machine classes.
    pub classes: BTreeMap<String, DigestedObject<Value>>,
    /// Secrets with the purpose label.
    pub class_secrets: BTreeMap<String, DigestedObject<Secret>>,
    /// Machine sets.
    pub machine_sets: Vec<LiveMachineSet>,
    /// Machines.
    pub machines: Vec<LiveMachine>,
    /// Replicas of deployments that are being restored on this seed and don't exist yet, by name.
    pub moved_replicas: BTreeMap<String, i32>,
}

impl MachineObjects {
    /// Whether any object exists that needs classes.
    #[must_use]
    pub fn uses_classes(&self) -> bool {
        !(self.deployments.is_empty() && self.machine_sets.is_empty() && self.machines.is_empty())
    }

    /// The classes that deployments, machine sets and machines refer to.
    #[must_use]
    pub fn used_classes(&self) -> BTreeSet<&str> {
        let deployments = self.deployments.values().map(|live| live.object.spec.template.spec.class.name.as_str());
        let sets = self.machine_sets.iter().map(|set| &*set.member.class);
        let machines = self.machines.iter().map(|machine| &*machine.member.class);
        deployments.chain(sets).chain(machines).collect()
    }

    /// IDs of the cloud resources in which classes place machines, unique and sorted. Classes being deleted are
    /// ignored.
    #[must_use]
    pub fn dependencies_of_classes(&self) -> Vec<String> {
        let stay = self.classes.values().filter(|class| !class.is_being_deleted);
        let ids: BTreeSet<&str> = stay.filter_map(|class| class.placed_in.as_deref()).collect();
        ids.into_iter().map(String::from).collect()
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

impl LiveDeployment {
    /// The deployment's pool, from its label.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.object.metadata.labels.as_ref()?.get(POOL_LABEL).map(String::as_str)
    }
}

/// Adds `apiVersion` and `kind` of `T` to a document.
#[must_use]
pub fn document_of<T: Resource>(mut members: Value) -> Value {
    if let Value::Object(map) = &mut members {
        map.insert("apiVersion".to_owned(), T::API_VERSION.into());
        map.insert("kind".to_owned(), T::KIND.into());
    }
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::azure::Azure;

    #[test]
    fn reads_class_dependency_by_provider() {
        let spec = json!({"properties": {"machineSet": {"id": "scale-set", "kind": "vmo"}}});
        let class = || DigestedObject::class(json!({"metadata": {"name": "a"}, "providerSpec": spec})).unwrap();
        assert_eq!(class().with_dependency(Providers::SHIPPED).placed_in.as_deref(), Some("scale-set"));
        let others = Providers { of_machines: &[] };
        assert_eq!(class().with_dependency(others).placed_in, None);
    }

    #[test]
    fn provider_sets_failure_codes() {
        let operation = |kind: &str| json!({"description": "no room", "errorCode": "ResourceExhausted", "type": kind});
        let failed = json!([{"name": "m1", "lastOperation": operation("Create")}, {"name": "m2", "lastOperation": operation("Delete")}]);
        let document = json!({"metadata": {"name": "a-z1"}, "status": {"failedMachines": failed}});
        let failed = LiveDeployment::read(document.clone(), &Azure).unwrap().failed_machines;
        let machines: Vec<_> = failed.iter().map(|machine| (machine.name.as_str(), machine.is_creation)).collect();
        assert_eq!(machines, [("m1", true), ("m2", false)]);
        assert_eq!(failed[0].codes, [ErrorCode::InfraResourcesDepleted].into());
        let in_a_file = LiveDeployment::read_without_codes(document).unwrap().failed_machines;
        assert!(in_a_file.len() == 2 && in_a_file[0].codes.is_empty());
    }

    #[test]
    fn is_empty_checks_all_kinds() {
        let named = || json!({"metadata": {"name": "a"}});
        let deployment = LiveDeployment::read_without_codes(named()).unwrap();
        let secret = DigestedObject::secret(serde_json::from_value(named()).unwrap());
        let nothing = MachineObjects::default;
        assert!(nothing().is_empty());
        for live in [
            MachineObjects { deployments: [("a".to_owned(), deployment)].into(), ..nothing() },
            MachineObjects { classes: [("a".to_owned(), DigestedObject::class(named()).unwrap())].into(), ..nothing() },
            MachineObjects { class_secrets: [("a".to_owned(), secret)].into(), ..nothing() },
            MachineObjects { machine_sets: vec![serde_json::from_value(named()).unwrap()], ..nothing() },
            MachineObjects { machines: vec![serde_json::from_value(named()).unwrap()], ..nothing() },
        ] {
            assert!(!live.is_empty());
        }
    }
}
