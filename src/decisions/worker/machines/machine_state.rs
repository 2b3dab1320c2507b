//! Pure: the machine state that gardenlet stores during a control plane migration (docs/contract.md).
//!
//! The document is `{"state": "<base64 of gzip>"}`. The gzip contains the replicas, machine sets and machines of each
//! MachineDeployment by name. It comes from another cluster, and a small gzip may unpack to a huge document. So it is
//! parsed while it is unpacked, each machine is kept as text, and size and number of objects are bounded.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::Resource;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::worker::machines::machine_objects::document_of;
use wire::api::bounded_unpacking::unpacked_json;
use wire::api::gotext::json::null_as_default;
use wire::api::machine::{Machine, MachineSet};

/// Maximum size of a machine or machine set in bytes. An API server would not accept a larger one.
const MOST_BYTES_OF_OBJECT: usize = 2 << 20;

/// Machine state of all deployments, by name of the deployment.
#[derive(Debug, Default)]
pub struct MachineState(BTreeMap<String, DeploymentState>);

/// Machine state of one MachineDeployment.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentState {
    /// Target number of machines.
    #[serde(default, deserialize_with = "null_as_default")]
    pub replicas: i32,
    #[serde(default, deserialize_with = "null_as_default")]
    machine_sets: Vec<ObjectText>,
    #[serde(default, deserialize_with = "null_as_default")]
    machines: Vec<ObjectText>,
}

/// Text of an object. Other values are rejected right away, before millions of them are stored.
#[derive(Debug)]
struct ObjectText(Box<RawValue>);

impl<'de> Deserialize<'de> for ObjectText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if text.get().starts_with('{') { Ok(Self(text)) } else { Err(serde::de::Error::custom("expected an object")) }
    }
}

/// The restored parts of a machine set or machine: no status, owners, finalizers or versions.
#[derive(Debug, Default, Deserialize)]
struct SavedObject {
    #[serde(default, deserialize_with = "null_as_default")]
    metadata: SavedMetadata,
    #[serde(default)]
    spec: Value,
}

#[derive(Debug, Default, Deserialize)]
struct SavedMetadata {
    #[serde(default, deserialize_with = "null_as_default")]
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: BTreeMap<String, String>,
}

/// Why a machine state can't be read.
#[derive(Debug, thiserror::Error)]
pub enum MachineStateError {
    /// The document is invalid. The decoder's message could contain parts of it, so only the position is reported.
    #[error("machine state can't be decoded at line {line} column {column}")]
    Document {
        /// Line, starting at 1.
        line: usize,
        /// Column, starting at 1.
        column: usize,
    },
    /// The packed part is not base64.
    #[error("machine state is not base64: {0}")]
    Base64(base64::DecodeError),
    /// The packed part is not gzip.
    #[error("failed decompressing machine state: {0}")]
    Gzip(std::io::Error),
    /// A machine or machine set is invalid.
    #[error("a {kind} in the machine state can't be decoded at its column {column}")]
    Object {
        /// Kind of the object.
        kind: &'static str,
        /// Column, starting at 1.
        column: usize,
    },
    /// A machine or machine set is too large.
    #[error("a {kind} in the machine state has {bytes} bytes; at most {MOST_BYTES_OF_OBJECT} are read")]
    TooLarge {
        /// Kind of the object.
        kind: &'static str,
        /// Size in bytes.
        bytes: usize,
    },
    /// The unpacked part is invalid; only the position is reported.
    #[error("decompressed machine state can't be decoded at line {line} column {column}")]
    Content {
        /// Line, starting at 1.
        line: usize,
        /// Column, starting at 1.
        column: usize,
    },
}

/// A document to create, or why it is invalid.
pub type KeptDocument = Result<Value, MachineStateError>;

#[derive(Deserialize)]
struct Packed {
    #[serde(default, deserialize_with = "null_as_default")]
    state: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unpacked {
    #[serde(default, deserialize_with = "null_as_default")]
    machine_deployments: BTreeMap<String, DeploymentState>,
}

impl MachineState {
    /// Parses the document; an empty one has no machines.
    ///
    /// # Errors
    /// When it is not valid JSON, base64 or gzip, or does not have the expected content.
    pub fn read(document: &str) -> Result<Self, MachineStateError> {
        let packed: Option<Packed> = serde_json::from_str(document)
            .map_err(|error| MachineStateError::Document { line: error.line(), column: error.column() })?;
        let Some(packed) = packed.filter(|packed| !packed.state.is_empty()) else { return Ok(Self::default()) };
        let bytes = STANDARD.decode(packed.state).map_err(MachineStateError::Base64)?;
        let unpacked: Option<Unpacked> = serde_json::from_reader(unpacked_json(&bytes)).map_err(unpack_error)?;
        let deployments = unpacked.map(|unpacked| unpacked.machine_deployments).unwrap_or_default();
        for state in deployments.values() {
            // Validate all objects before the first one is created.
            state.machine_sets("").chain(state.machines("")).try_for_each(|document| document.map(drop))?;
        }
        Ok(Self(deployments))
    }

    /// The state of a deployment. One without machine sets is treated as missing, so the deployment is created as
    /// usual.
    #[must_use]
    pub fn of_deployment(&self, name: &str) -> Option<&DeploymentState> {
        self.0.get(name).filter(|state| !state.machine_sets.is_empty())
    }
}

fn unpack_error(error: serde_json::Error) -> MachineStateError {
    match error.is_io() {
        true => MachineStateError::Gzip(error.into()),
        false => MachineStateError::Content { line: error.line(), column: error.column() },
    }
}

impl DeploymentState {
    /// The machine sets as documents to create in `namespace`.
    pub fn machine_sets<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = KeptDocument> + 'a {
        self.machine_sets.iter().map(move |kept| SavedObject::document::<MachineSet>(&kept.0, namespace))
    }

    /// The machines as documents to create in `namespace`.
    pub fn machines<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = KeptDocument> + 'a {
        self.machines.iter().map(move |kept| SavedObject::document::<Machine>(&kept.0, namespace))
    }

    /// The classes of machines labelled with `deployment`; machine-controller-manager adopts no others. A machine that
    /// was not replaced yet or was updated in place has another class than its pool.
    #[must_use]
    pub fn classes(&self, deployment: &str) -> BTreeSet<String> {
        let name = |kept: &ObjectText| {
            let SavedObject { metadata, spec } = serde_json::from_str(kept.0.get()).ok()?;
            if metadata.labels.get("name").is_none_or(|of| of != deployment) {
                return None;
            }
            spec["class"]["name"].as_str().map(str::to_owned)
        };
        self.machines.iter().filter_map(name).collect()
    }
}

impl SavedObject {
    /// Omits owners: their UIDs are from another seed, so the garbage collector would delete the object.
    /// machine-controller-manager matches objects by labels and sets new owners.
    fn document<T: Resource>(kept: &RawValue, namespace: &str) -> KeptDocument {
        let kind = T::KIND;
        let bytes = kept.get().len();
        if bytes > MOST_BYTES_OF_OBJECT {
            return Err(MachineStateError::TooLarge { kind, bytes });
        }
        let location = |error: serde_json::Error| MachineStateError::Object { kind, column: error.column() };
        let Self { metadata, spec } = serde_json::from_str(kept.get()).map_err(location)?;
        let SavedMetadata { name, labels, annotations } = metadata;
        let mut metadata = json!({"name": name, "namespace": namespace});
        if !labels.is_empty() {
            metadata["labels"] = json!(labels);
        }
        if !annotations.is_empty() {
            metadata["annotations"] = json!(annotations);
        }
        Ok(document_of::<T>(json!({"metadata": metadata, "spec": spec})))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use wire::api::bounded_unpacking::{MOST_BYTES, MOST_OBJECTS};

    fn packed(content: &str) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content.as_bytes()).unwrap();
        json!({"state": STANDARD.encode(encoder.finish().unwrap())}).to_string()
    }

    #[test]
    fn restores_machine_without_owner_and_status() {
        let content = json!({"machineDeployments": {"d": {"replicas": 3, "machineSets": [{"metadata": {"name": "s"}}], "machines": [{
            "metadata": {
                "name": "m", "namespace": "elsewhere", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
                "labels": {"node": "n"}, "annotations": {"a": "b"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "MachineSet", "name": "s", "uid": "u"}],
            },
            "spec": {"providerID": "azure:///m", "class": {"name": "c"}},
            "status": {"currentStatus": {"phase": "Running"}},
        }]}}});
        let state = MachineState::read(&packed(&content.to_string())).unwrap();
        let deployment = state.of_deployment("d").unwrap();
        assert_eq!(deployment.replicas, 3);
        assert_eq!(
            deployment.machines("ns").map(Result::unwrap).collect::<Vec<_>>(),
            [json!({
                "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
                "metadata": {"name": "m", "namespace": "ns", "labels": {"node": "n"}, "annotations": {"a": "b"}},
                "spec": {"providerID": "azure:///m", "class": {"name": "c"}},
            })]
        );
    }

    #[test]
    fn returns_classes_of_labelled_machines() {
        let machine = |deployment: Value, class: &str| json!({"metadata": {"labels": {"name": deployment}}, "spec": {"class": {"name": class}}});
        let machines = [machine(json!("d"), "new"), machine(json!("d"), "old"), machine(json!("d"), "old")];
        let others = [machine(json!("e"), "of-another"), json!({"spec": {"class": {"name": "of-nobody"}}})];
        let machines = [&machines[..], &others].concat();
        let content = json!({"machineDeployments": {"d": {"machineSets": [{}], "machines": machines}}});
        let state = MachineState::read(&packed(&content.to_string())).unwrap();
        assert_eq!(state.of_deployment("d").unwrap().classes("d"), ["new".to_owned(), "old".to_owned()].into());
    }

    #[test]
    fn accepts_empty_state() {
        for document in ["null", "{}", r#"{"state":""}"#, r#"{"state":null}"#] {
            assert!(MachineState::read(document).unwrap().0.is_empty(), "{document}");
        }
        for content in ["null", "{}", r#"{"machineDeployments":null}"#] {
            assert!(MachineState::read(&packed(content)).unwrap().0.is_empty(), "{content}");
        }
        let without_sets = r#"{"machineDeployments":{"d":{"replicas":2,"machineSets":null}}}"#;
        assert!(MachineState::read(&packed(without_sets)).unwrap().of_deployment("d").is_none());
    }

    #[test]
    fn errors_contain_no_state_content() {
        for document in ["7", r#"{"state":7}"#, r#"{"state":"no base64!"}"#, r#"{"state":"bm90IGd6aXA="}"#] {
            assert!(MachineState::read(document).is_err(), "{document}");
        }
        let error = MachineState::read(&packed(r#"{"machineDeployments":"secret-of-a-user"}"#)).unwrap_err();
        assert!(matches!(error, MachineStateError::Content { .. }) && !error.to_string().contains("secret-of-a-user"));
    }

    #[test]
    fn rejects_oversized_state() {
        let machines = |machines: &str| {
            format!(r#"{{"machineDeployments":{{"d":{{"machineSets":[{{}}],"machines":[{machines}]}}}}}}"#)
        };
        let large = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "m".repeat(MOST_BYTES_OF_OBJECT));
        let blank = " ".repeat(MOST_BYTES as usize);
        for (content, text) in [
            (machines(&["{}"; MOST_OBJECTS as usize].join(",")), "objects"),
            (machines(&blank), "larger than 134217728 bytes"),
            (machines(&large), "a Machine in the machine state has"),
        ] {
            let error = MachineState::read(&packed(&content)).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let largest = format!(r#"{{"kind":"{}"}}"#, "k".repeat(MOST_BYTES_OF_OBJECT - r#"{"kind":""}"#.len()));
        assert!(MachineState::read(&packed(&machines(&largest))).is_ok(), "such a machine could have been written");
    }
}
