//! Reads Workers from files, each with the objects of its namespace.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::evidence::Evidence;
use super::worker_warnings::warnings;
use decisions::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects, PURPOSE_LABEL};
use decisions::worker::plan::desired::CloudView;
use runtime::reader::files::{NamedFile, files, name_of};
use runtime::reader::index::ObjectIndex;
use runtime::reader::objects::{ROLES, flattened, objects};
use wire::api::gardener::{Cluster, ProfileImage, Worker};
use wire::api::gotext::json::{decode_lenient, decode_value, to_go_json};
use wire::api::secret::{SecretContent, Secrets};

/// One Worker with all related objects.
pub struct WorkerInput {
    /// The file, and the Worker in it.
    pub source: Source,
    /// The Worker.
    pub worker: Worker,
    /// Its Cluster, if the file contains one.
    pub cluster: Option<Cluster>,
    /// Readable images in the generic part of the CloudProfile (`spec.machineImages`), used for advice.
    pub listed_images: Vec<ProfileImage>,
    /// Secrets that the Worker may read.
    pub secrets: Secrets,
    /// Machine objects in the Worker's namespace.
    pub live: MachineObjects,
    /// The cloud state in a bundle. A bundle without cloud data describes an empty cloud.
    pub cloud: Option<Value>,
    /// Values that Gardener's API server would reject, with their paths.
    pub warnings: Vec<String>,
}

impl WorkerInput {
    /// Where to find the cloud resources that the pools depend on.
    #[must_use]
    pub fn cloud_view(&self) -> CloudView<'_> {
        self.cloud.as_ref().map_or(CloudView::Context, CloudView::Described)
    }
}

/// A file, and which Worker in it if there are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as given by the user.
    pub path: PathBuf,
    /// `namespace/name`, only if the file contains several Workers.
    pub worker: Option<String>,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        self.worker.as_ref().map_or(Ok(()), |worker| write!(formatter, "#{worker}"))
    }
}

/// Reads the Workers of a file. Only a file named by the user must contain one; a file found in a folder need not.
///
/// # Errors
/// If the file cannot be read or a document does not match its kind.
pub fn workers_of_file(file: &NamedFile) -> anyhow::Result<Vec<WorkerInput>> {
    let documents = file.documents()?;
    let workers = workers_of_documents(&file.path, documents).with_context(|| file.name())?;
    if workers.is_empty() && file.explicit {
        bail!("{}: no Worker in it", file.name());
    }
    Ok(workers)
}

/// Reads the MachineDeployments of a file or folder and ignores other objects.
pub(super) fn machine_deployments_of_path(path: &Path, evidence: &mut Evidence) -> anyhow::Result<Vec<LiveDeployment>> {
    let mut deployments = Vec::new();
    for file in evidence.note_skipped(files(&[path.to_owned()])) {
        for object in file.objects()? {
            if object["kind"] == "MachineDeployment" {
                let deployment = LiveDeployment::read_without_codes(object);
                deployments.push(deployment.context("a MachineDeployment is malformed").with_context(|| file.name())?);
            }
        }
    }
    if deployments.is_empty() {
        bail!("{}: no MachineDeployment in it", name_of(path));
    }
    Ok(deployments)
}

/// One Worker as documents, so that parts can be compared and shared.
pub(super) struct WorkerDocuments {
    pub(super) worker: Value,
    pub(super) cluster: Option<Value>,
    /// Its Secrets and machine objects, or the one that cannot be decoded.
    pub(super) surroundings: anyhow::Result<(Secrets, MachineObjects)>,
}

pub(super) fn worker_documents(text: &str) -> anyhow::Result<Vec<WorkerDocuments>> {
    let objects = objects(text)?;
    let index = ObjectIndex::new(&objects);
    let workers = objects.iter().filter(|object| object["kind"] == "Worker");
    let documents = workers.map(|worker| WorkerDocuments {
        cluster: index.cluster(namespace_of(worker)).cloned(),
        surroundings: surroundings(worker, &index),
        worker: worker.clone(),
    });
    Ok(documents.collect())
}

/// Extracts the Workers from the documents of one file; `path` is that file.
///
/// # Errors
/// If a document does not match its kind.
pub fn workers_of_documents(path: &Path, documents: Vec<Value>) -> anyhow::Result<Vec<WorkerInput>> {
    let cloud = documents.iter().find_map(described_cloud);
    let objects = flattened(documents);
    let index = ObjectIndex::new(&objects);
    let workers: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Worker").collect();
    let has_several = workers.len() > 1;
    let mut inputs = Vec::with_capacity(workers.len());
    for document in workers {
        let namespace = namespace_of(document);
        let name = name_in(document);
        let cluster = index.cluster(namespace);
        let (secrets, live) = surroundings(document, &index)?;
        inputs.push(WorkerInput {
            source: Source { path: path.to_owned(), worker: has_several.then(|| format!("{namespace}/{name}")) },
            worker: decode(document, "Worker")?,
            cluster: cluster.map(|cluster| decode(cluster, "Cluster")).transpose()?,
            listed_images: cluster.map(listed_images).unwrap_or_default(),
            secrets,
            live,
            cloud: cloud.clone(),
            warnings: warnings(document),
        });
    }
    Ok(inputs)
}

fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn name_in(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn listed_images(cluster: &Value) -> Vec<ProfileImage> {
    let images = cluster.pointer("/spec/cloudProfile/spec/machineImages");
    images.and_then(|images| decode_lenient(&to_go_json(images)).ok()).unwrap_or_default()
}

/// The cloud state in a bundle: every member that is not an object role. The provider interprets it.
fn described_cloud(document: &Value) -> Option<Value> {
    let members = document.as_object()?;
    if !members.contains_key("worker") {
        return None;
    }
    let is_role = |name: &str| ROLES.iter().any(|(role, _)| *role == name);
    let others = members.iter().filter(|(name, _)| !is_role(name));
    Some(others.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Decodes from the JSON that an API server would send, because hashes depend on its exact bytes.
fn decode<T: DeserializeOwned>(object: &Value, kind: &str) -> anyhow::Result<T> {
    decode_lenient(&to_go_json(object)).with_context(|| format!("{kind} {:?}", name_in(object)))
}

/// The Secrets that a Worker may read, and the machine objects in its namespace.
fn surroundings<'a>(worker: &'a Value, index: &ObjectIndex<'a>) -> anyhow::Result<(Secrets, MachineObjects)> {
    let namespace = namespace_of(worker);
    let mut secrets = Secrets::default();
    let mut live = machine_objects(namespace, index)?;
    let user_data = worker["spec"]["pools"].as_array().into_iter().flatten();
    let user_data: BTreeSet<&str> =
        user_data.filter_map(|pool| pool.pointer("/userDataSecretRef/name")?.as_str()).collect();
    for document in index.of(namespace, "Secret") {
        let name = name_in(document);
        let secret = secret(document)?;
        if is_class_secret(&secret) {
            // Secrets of machine classes are large and rarely used as user data.
            if user_data.contains(name) {
                secrets.insert(namespace, name, SecretContent::from(secret.clone()));
            }
            live.class_secrets.insert(name.to_owned(), DigestedObject::secret(secret));
        } else {
            secrets.insert(namespace, name, SecretContent::from(secret));
        }
    }
    let reference = &worker["spec"]["secretRef"];
    let reference = [&reference["namespace"], &reference["name"]].map(|part| part.as_str().unwrap_or_default());
    if secrets.get(reference[0], reference[1]).is_none()
        && let Some(credentials) = index.secret(reference[0], reference[1])
    {
        secrets.insert(reference[0], reference[1], SecretContent::from(secret(credentials)?));
    }
    Ok((secrets, live))
}

fn secret(document: &Value) -> anyhow::Result<Secret> {
    // Drops the cause, because it could quote secret data.
    let mut secret: Secret = serde_json::from_value(document.clone())
        .map_err(|_| anyhow::anyhow!("Secret {:?} is malformed", name_in(document)))?;
    // `stringData` occurs only in files. The API server converts it to `data`.
    for (key, text) in secret.string_data.take().unwrap_or_default() {
        secret.data.get_or_insert_default().insert(key, ByteString(text.into_bytes()));
    }
    Ok(secret)
}

fn is_class_secret(secret: &Secret) -> bool {
    let purpose = secret.metadata.labels.as_ref().and_then(|labels| labels.get(PURPOSE_LABEL.0));
    purpose.is_some_and(|purpose| purpose == PURPOSE_LABEL.1)
}

/// The machine objects of a namespace, without class Secrets.
fn machine_objects<'a>(namespace: &'a str, index: &ObjectIndex<'a>) -> anyhow::Result<MachineObjects> {
    let mut live = MachineObjects::default();
    for object in index.of(namespace, "MachineDeployment") {
        let deployment = LiveDeployment::read_without_codes((*object).clone());
        live.deployments.insert(name_in(object).to_owned(), deployment.with_context(|| malformed(object))?);
    }
    for object in index.of(namespace, "MachineClass") {
        let class = DigestedObject::class((*object).clone());
        live.classes.insert(name_in(object).to_owned(), class.with_context(|| malformed(object))?);
    }
    for object in index.of(namespace, "MachineSet") {
        live.machine_sets.push(decode_value(object).with_context(|| malformed(object))?);
    }
    for object in index.of(namespace, "Machine") {
        live.machines.push(decode_value(object).with_context(|| malformed(object))?);
    }
    Ok(live)
}

fn malformed(object: &Value) -> String {
    format!("{} {:?}", object["kind"].as_str().unwrap_or_default(), name_in(object))
}
