//! The objects in a Worker's namespace, decoded as far as a diagnosis needs them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Surroundings;
use super::finding::{Finding, FindingKind};
use super::machine_document::MachineDocument;
use decisions::provider::Provider;
use decisions::worker::machines::machine_objects::LiveDeployment;
use wire::api::deployment::Deployment;
use wire::api::gardener::{Cluster, ErrorCode, Worker};
use wire::api::gotext::json::{DecodeError, decode_lenient, decode_value, to_go_json};
use wire::api::machine::MachineSet;

/// The kinds of objects that a diagnosis uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ObjectKind {
    /// The mirrored Shoot.
    Cluster,
    /// Machine deployments.
    MachineDeployment,
    /// Machine sets.
    MachineSet,
    /// Machines.
    Machine,
    /// Machine classes.
    MachineClass,
    /// Secrets, of which only the names are read.
    Secret,
    /// The Deployment of machine-controller-manager.
    Deployment,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Cluster,
        Self::MachineDeployment,
        Self::MachineSet,
        Self::Machine,
        Self::MachineClass,
        Self::Secret,
        Self::Deployment,
    ];

    /// The kind as Kubernetes names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::MachineDeployment => "MachineDeployment",
            Self::MachineSet => "MachineSet",
            Self::Machine => "Machine",
            Self::MachineClass => "MachineClass",
            Self::Secret => "Secret",
            Self::Deployment => "Deployment",
        }
    }
}

pub(super) const MACHINE_CONTROLLER_MANAGER: &str = "machine-controller-manager";

/// How its finalizers begin.
const FINALIZER_PREFIX: &str = "machine.sapcloud.io/";

/// What there is around a Worker.
pub(super) struct Facts<'a> {
    pub(super) worker: Worker,
    pub(super) cluster: Option<Cluster>,
    pub(super) deployments: BTreeMap<String, LiveDeployment>,
    pub(super) machine_sets: Vec<MachineSet>,
    pub(super) machines: Vec<MachineDocument>,
    /// Kind, namespace and name of every object.
    names: BTreeSet<(&'a str, &'a str, &'a str)>,
    pub(super) machine_controller_manager: Option<Deployment>,
    /// Machine objects that are being deleted and wait for machine-controller-manager to remove its finalizer.
    pub(super) held: Vec<String>,
    provider: Option<&'static dyn Provider>,
    documents: &'a [Value],
    known: &'a BTreeSet<ObjectKind>,
    pub(super) now: Timestamp,
}

/// Decodes a document from the text that an API server would send for it.
pub(super) fn read<T: DeserializeOwned>(document: &Value) -> Result<T, DecodeError> {
    decode_lenient(&to_go_json(document))
}

/// Whether an object is being deleted and has a finalizer of machine-controller-manager.
fn is_held(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    !metadata["deletionTimestamp"].is_null()
        && finalizers.into_iter().any(|finalizer| finalizer.starts_with(FINALIZER_PREFIX))
}

impl<'a> Facts<'a> {
    /// Decodes the objects, and reports those that can't be decoded as findings.
    pub(super) fn of(worker: Worker, surroundings: Surroundings<'a>) -> (Self, Vec<Finding>) {
        let mut facts = Self {
            provider: surroundings.providers.for_worker_type(&worker.spec.worker_type).ok(),
            cluster: None,
            deployments: BTreeMap::new(),
            machine_sets: Vec::new(),
            machines: Vec::new(),
            names: BTreeSet::new(),
            machine_controller_manager: None,
            held: Vec::new(),
            documents: surroundings.objects,
            known: surroundings.known,
            now: surroundings.now,
            worker,
        };
        let mut malformed = Vec::new();
        for object in surroundings.objects {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let kind = text("/kind");
            let name = text("/metadata/name");
            facts.names.insert((kind, text("/metadata/namespace"), name));
            if is_held(object) {
                facts.held.push(format!("{kind} {name}"));
            }
            if let Err(error) = facts.take(kind, name, object) {
                malformed.push(FindingKind::Malformed.found(format!("{kind} {name}"), error.to_string()));
            }
        }
        (facts, malformed)
    }

    fn take(&mut self, kind: &str, name: &str, object: &Value) -> Result<(), DecodeError> {
        match kind {
            "Cluster" => self.cluster = Some(read(object)?),
            "MachineDeployment" => {
                self.deployments.insert(name.to_owned(), LiveDeployment::read_without_codes(object.clone())?);
            }
            "MachineSet" => self.machine_sets.push(decode_value(object)?),
            "Machine" => self.machines.push(decode_value(object)?),
            "Deployment" if name == MACHINE_CONTROLLER_MANAGER => {
                self.machine_controller_manager = Some(decode_value(object)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The objects as they were read.
    pub(super) fn documents(&self) -> &'a [Value] {
        self.documents
    }

    /// Namespace and name of the Shoot. Without a Cluster they are derived from the namespace, as Gardener forms it.
    pub(super) fn shoot_key(&self) -> (String, String) {
        let of_cluster = self.documents.iter().find(|object| object["kind"] == "Cluster").and_then(|cluster| {
            let metadata = &cluster["spec"]["shoot"]["metadata"];
            Some((metadata["namespace"].as_str()?.to_owned(), metadata["name"].as_str()?.to_owned()))
        });
        let of_namespace = || {
            let (project, shoot) = self.namespace().strip_prefix("shoot--")?.split_once("--")?;
            Some((format!("garden-{project}"), shoot.to_owned()))
        };
        let of_worker = || ("PROJECT-NAMESPACE".to_owned(), self.worker.metadata.name.clone().unwrap_or_default());
        of_cluster.or_else(of_namespace).unwrap_or_else(of_worker)
    }

    /// The last time at which a machine changed, as far as machines are known.
    pub(super) fn last_machine_change(&self) -> Option<Timestamp> {
        self.machines.iter().filter_map(MachineDocument::last_change).filter(|change| *change <= self.now).max()
    }

    pub(super) fn namespace(&self) -> &str {
        self.worker.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Whether an object in the Worker's namespace is known not to exist.
    pub(super) fn is_absent(&self, kind: ObjectKind, name: &str) -> bool {
        self.is_known(kind) && !self.names.contains(&(kind.as_str(), self.namespace(), name))
    }

    /// Whether all objects of the kind were read.
    pub(super) fn is_known(&self, kind: ObjectKind) -> bool {
        self.known.contains(&kind)
    }

    /// The number of objects of a kind.
    pub(super) fn count(&self, kind: ObjectKind) -> usize {
        self.names.iter().filter(|(of_kind, ..)| *of_kind == kind.as_str()).count()
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.worker.metadata.deletion_timestamp.is_some()
    }

    /// Whether the shoot is to have no machines. Without the Cluster, it is if no machine deployment is to have one.
    pub(super) fn is_hibernated(&self) -> bool {
        let is_empty = |live: &LiveDeployment| live.object.spec.replicas == 0 && live.object.status.replicas == 0;
        match self.cluster.as_ref().and_then(|cluster| cluster.spec.shoot.as_ref()) {
            Some(shoot) => shoot.should_hibernate(),
            None if self.is_known(ObjectKind::Cluster) => false,
            None => !self.deployments.is_empty() && self.machines.is_empty() && self.deployments.values().all(is_empty),
        }
    }

    /// Gardener's error codes for an error of the driver.
    pub(super) fn codes(&self, driver_code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        self.provider.map(|provider| provider.error_codes(driver_code, text)).unwrap_or_default()
    }

    /// The pool of a machine deployment.
    pub(super) fn pool_of(&self, deployment: &str) -> Option<&str> {
        self.deployments.get(deployment)?.pool()
    }
}
