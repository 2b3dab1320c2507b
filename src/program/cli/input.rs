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
use decisions::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use decisions::worker::plan::desired::CloudView;
use runtime::reader::files::{NamedFile, files};
use runtime::reader::index::{IndexedWorker, ObjectIndex};
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

/// The Workers of a file, which are decoded one by one, so that their objects need not fit in memory at the same time.
pub struct FileWorkers {
    path: PathBuf,
    objects: ObjectIndex,
}

impl FileWorkers {
    /// Reads a file. Only a file named by the user must contain Workers; a file found in a folder need not.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_file(file: &NamedFile) -> anyhow::Result<Self> {
        let objects = ObjectIndex::of_text(&file.text()?).with_context(|| file.name())?;
        if objects.workers().is_empty() && file.explicit {
            bail!("{}: no Worker in it", file.name());
        }
        Ok(Self { path: file.path.clone(), objects })
    }

    /// Decodes each Worker with the objects of its namespace. The error of one does not affect the others.
    pub fn decoded(&self) -> impl Iterator<Item = anyhow::Result<WorkerInput>> {
        let decode = |worker: &IndexedWorker| self.worker(worker).with_context(|| self.path.display().to_string());
        self.objects.workers().iter().map(decode)
    }

    fn worker(&self, worker: &IndexedWorker) -> anyhow::Result<WorkerInput> {
        let document = self.objects.worker(worker)?;
        let namespace = namespace_of(&document);
        let cluster = self.objects.cluster(namespace)?;
        let (secrets, live) = surroundings(&document, &self.objects)?;
        let name = (self.objects.workers().len() > 1).then(|| format!("{namespace}/{}", name_in(&document)));
        Ok(WorkerInput {
            source: Source { path: self.path.clone(), worker: name },
            worker: decode(&document, "Worker")?,
            listed_images: cluster.as_ref().map(listed_images).unwrap_or_default(),
            cluster: cluster.map(|cluster| decode(&cluster, "Cluster")).transpose()?,
            secrets,
            live,
            cloud: self.objects.cloud().cloned(),
            warnings: warnings(&document),
        })
    }
}

/// Passes on the Workers of files and folders one by one. What cannot be read is recorded, and affects no other Worker.
pub(super) fn for_each_worker(
    paths: &[PathBuf],
    evidence: &mut Evidence,
    take: impl FnMut(WorkerInput, &mut Evidence) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let files = evidence.note_skipped(files(paths));
    for_each_worker_of(&files, evidence, take)
}

/// Same as [`for_each_worker`] for files that are already found.
pub(super) fn for_each_worker_of(
    files: &[NamedFile],
    evidence: &mut Evidence,
    mut take: impl FnMut(WorkerInput, &mut Evidence) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for file in files {
        let workers = match FileWorkers::of_file(file) {
            Ok(workers) => workers,
            Err(error) => {
                evidence.unread(&error);
                continue;
            }
        };
        for worker in workers.decoded() {
            match worker {
                Ok(worker) => take(worker, evidence)?,
                Err(error) => evidence.unread(&error),
            }
        }
    }
    Ok(())
}

/// Reads all Workers of a file.
///
/// # Errors
/// If the file cannot be read or a document does not match its kind.
pub fn workers_of_file(file: &NamedFile) -> anyhow::Result<Vec<WorkerInput>> {
    FileWorkers::of_file(file)?.decoded().collect()
}

/// One Worker as documents, so that parts can be compared and shared.
pub(super) struct WorkerDocuments {
    pub(super) worker: Value,
    pub(super) cluster: Option<Value>,
    /// Its Secrets and machine objects, or the one that cannot be decoded.
    pub(super) surroundings: anyhow::Result<(Secrets, MachineObjects)>,
}

impl WorkerDocuments {
    pub(super) fn new(worker: &IndexedWorker, objects: &ObjectIndex) -> anyhow::Result<Self> {
        let worker = objects.worker(worker)?;
        let cluster = objects.cluster(namespace_of(&worker))?;
        Ok(Self { cluster, surroundings: surroundings(&worker, objects), worker })
    }
}

/// Extracts the Workers from the documents of one file; `path` is that file.
///
/// # Errors
/// If a document does not match its kind.
pub fn workers_of_documents(path: &Path, documents: Vec<Value>) -> anyhow::Result<Vec<WorkerInput>> {
    let file = FileWorkers { path: path.to_owned(), objects: ObjectIndex::of_documents(documents) };
    file.objects.workers().iter().map(|worker| file.worker(worker)).collect()
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

/// Decodes from the JSON that an API server would send, because hashes depend on its exact bytes.
fn decode<T: DeserializeOwned>(object: &Value, kind: &str) -> anyhow::Result<T> {
    decode_lenient(&to_go_json(object)).with_context(|| format!("{kind} {:?}", name_in(object)))
}

/// The Secrets that a Worker refers to, and the machine objects in its namespace.
fn surroundings(worker: &Value, index: &ObjectIndex) -> anyhow::Result<(Secrets, MachineObjects)> {
    let namespace = namespace_of(worker);
    let mut live = machine_objects(namespace, index)?;
    for document in index.class_secrets(namespace) {
        let document = document?;
        live.class_secrets.insert(name_in(&document).to_owned(), DigestedObject::secret(secret(&document)?));
    }
    let pools = worker["spec"]["pools"].as_array().into_iter().flatten();
    let user_data = pools.filter_map(|pool| Some((namespace, pool.pointer("/userDataSecretRef/name")?.as_str()?)));
    let mut references: BTreeSet<(&str, &str)> = user_data.collect();
    let credentials = &worker["spec"]["secretRef"];
    let text = |member: &str| credentials[member].as_str().unwrap_or_default();
    references.insert((text("namespace"), text("name")));
    let mut secrets = Secrets::default();
    for (namespace, name) in references {
        if let Some(document) = index.secret(namespace, name)? {
            secrets.insert(namespace, name, SecretContent::from(secret(&document)?));
        }
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

/// The machine objects of a namespace, without class Secrets.
fn machine_objects(namespace: &str, index: &ObjectIndex) -> anyhow::Result<MachineObjects> {
    let mut live = MachineObjects::default();
    for object in index.of(namespace, "MachineDeployment") {
        let object = object?;
        let name = name_in(&object).to_owned();
        let malformed = malformed(&object);
        live.deployments.insert(name, LiveDeployment::read_without_codes(object).context(malformed)?);
    }
    for object in index.of(namespace, "MachineClass") {
        let object = object?;
        let name = name_in(&object).to_owned();
        let malformed = malformed(&object);
        live.classes.insert(name, DigestedObject::class(object).context(malformed)?);
    }
    for object in index.of(namespace, "MachineSet") {
        let object = object?;
        live.machine_sets.push(decode_value(&object).with_context(|| malformed(&object))?);
    }
    for object in index.of(namespace, "Machine") {
        let object = object?;
        live.machines.push(decode_value(&object).with_context(|| malformed(&object))?);
    }
    Ok(live)
}

fn malformed(object: &Value) -> String {
    format!("{} {:?}", object["kind"].as_str().unwrap_or_default(), name_in(object))
}
