//! Pure: the machines of a shoot as gardenlet keeps them while the control plane moves (docs/contract.md).
//!
//! The document is `{"state": "<base64 of gzip>"}`; the gzip holds, for each MachineDeployment by name, its replicas, machine
//! sets and machines.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use k8s_openapi::Resource;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::gotext::json::null_as_default;
use crate::worker::machine_objects::document_of;

/// Most bytes that a state may unpack to. Ten thousand machines are about 30 MB; a state is at most 1.5 MB packed, and
/// what packs better than this was not made by gardenlet.
const MOST_BYTES: u64 = 128 << 20;

/// The machines of all deployments, by name of the deployment.
#[derive(Debug, Default)]
pub struct MachineState(BTreeMap<String, DeploymentState>);

/// What is kept of one MachineDeployment.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentState {
    /// Machines that it shall have.
    #[serde(default, deserialize_with = "null_as_default")]
    pub replicas: i32,
    #[serde(default, deserialize_with = "null_as_default")]
    machine_sets: Vec<KeptObject>,
    #[serde(default, deserialize_with = "null_as_default")]
    machines: Vec<KeptObject>,
}

/// A kept machine set or machine as far as it is restored: no status, no owners, no finalizers, no versions.
#[derive(Debug, Default, Deserialize)]
struct KeptObject {
    #[serde(default, deserialize_with = "null_as_default")]
    metadata: KeptMetadata,
    #[serde(default)]
    spec: Value,
}

#[derive(Debug, Default, Deserialize)]
struct KeptMetadata {
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
    /// The document is not what it should be. Texts of the decoder could hold parts of it, so only the place is told.
    #[error("machine state can't be decoded at line {line} column {column}")]
    Document {
        /// Line from one.
        line: usize,
        /// Column from one.
        column: usize,
    },
    /// The packed part is not base64.
    #[error("machine state is not base64: {0}")]
    Base64(base64::DecodeError),
    /// The packed part is not gzip.
    #[error("failed decompressing machine state: {0}")]
    Gzip(std::io::Error),
    /// It is larger than any state that gardenlet makes.
    #[error("failed decompressing machine state: it is larger than {most} bytes")]
    TooLarge {
        /// What it may be.
        most: u64,
    },
    /// The unpacked part is not what it should be; again only the place is told.
    #[error("decompressed machine state can't be decoded at line {line} column {column}")]
    Content {
        /// Line from one.
        line: usize,
        /// Column from one.
        column: usize,
    },
}

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
    /// Reads the document; an empty one has no machines.
    ///
    /// # Errors
    /// When it is no JSON, base64 or gzip, or does not hold what it should.
    pub fn read(document: &str) -> Result<Self, MachineStateError> {
        let packed: Option<Packed> = serde_json::from_str(document)
            .map_err(|error| MachineStateError::Document { line: error.line(), column: error.column() })?;
        let Some(packed) = packed.filter(|packed| !packed.state.is_empty()) else { return Ok(Self::default()) };
        let bytes = STANDARD.decode(packed.state).map_err(MachineStateError::Base64)?;
        let unpacked: Option<Unpacked> = serde_json::from_slice(&unpack(&bytes, MOST_BYTES)?)
            .map_err(|error| MachineStateError::Content { line: error.line(), column: error.column() })?;
        Ok(Self(unpacked.map(|unpacked| unpacked.machine_deployments).unwrap_or_default()))
    }

    /// What is kept of a deployment. One without machine sets counts as not kept: it is made anew.
    #[must_use]
    pub fn of_deployment(&self, name: &str) -> Option<&DeploymentState> {
        self.0.get(name).filter(|state| !state.machine_sets.is_empty())
    }
}

/// At most `most` bytes.
fn unpack(gzip: &[u8], most: u64) -> Result<Vec<u8>, MachineStateError> {
    let mut unpacked = Vec::new();
    GzDecoder::new(gzip).take(most + 1).read_to_end(&mut unpacked).map_err(MachineStateError::Gzip)?;
    if unpacked.len() as u64 > most { Err(MachineStateError::TooLarge { most }) } else { Ok(unpacked) }
}

impl DeploymentState {
    /// The machine sets as documents to create in `namespace`.
    pub fn machine_sets<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = Value> + 'a {
        self.machine_sets.iter().map(move |kept| kept.document::<crate::api::machine::MachineSet>(namespace))
    }

    /// The machines as documents to create in `namespace`.
    pub fn machines<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = Value> + 'a {
        self.machines.iter().map(move |kept| kept.document::<crate::api::machine::Machine>(namespace))
    }
}

impl KeptObject {
    /// Owners are left out: their uids are of another seed, where the garbage collector would take the object for an
    /// orphan. machine-controller-manager finds what belongs together by labels and sets new owners.
    fn document<T: Resource>(&self, namespace: &str) -> Value {
        let KeptMetadata { name, labels, annotations } = &self.metadata;
        let mut metadata = json!({"name": name, "namespace": namespace});
        if !labels.is_empty() {
            metadata["labels"] = json!(labels);
        }
        if !annotations.is_empty() {
            metadata["annotations"] = json!(annotations);
        }
        document_of::<T>(json!({"metadata": metadata, "spec": self.spec}))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(content: &str) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content.as_bytes()).unwrap();
        json!({"state": STANDARD.encode(encoder.finish().unwrap())}).to_string()
    }

    #[test]
    fn a_kept_machine_comes_back_without_what_belonged_to_its_old_seed() {
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
            deployment.machines("ns").collect::<Vec<_>>(),
            [json!({
                "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
                "metadata": {"name": "m", "namespace": "ns", "labels": {"node": "n"}, "annotations": {"a": "b"}},
                "spec": {"providerID": "azure:///m", "class": {"name": "c"}},
            })]
        );
    }

    #[test]
    fn nothing_kept_is_no_error() {
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
    fn what_gardenlet_did_not_write_is_an_error_that_tells_no_content() {
        for document in ["7", r#"{"state":7}"#, r#"{"state":"no base64!"}"#, r#"{"state":"bm90IGd6aXA="}"#] {
            assert!(MachineState::read(document).is_err(), "{document}");
        }
        let error = MachineState::read(&packed(r#"{"machineDeployments":"secret-of-a-user"}"#)).unwrap_err();
        assert!(matches!(error, MachineStateError::Content { .. }) && !error.to_string().contains("secret-of-a-user"));
    }

    #[test]
    fn what_unpacks_to_more_than_fits_is_refused() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&[b' '; 5000]).unwrap();
        let gzip = encoder.finish().unwrap();
        assert_eq!(unpack(&gzip, 5000).unwrap().len(), 5000);
        assert!(matches!(unpack(&gzip, 4999), Err(MachineStateError::TooLarge { most: 4999 })));
    }
}
