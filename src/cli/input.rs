//! Workers and their surroundings from files: documents of objects, or bundles with one member per role.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::worker_warnings::warnings;
use crate::api::gardener::{Cluster, ProfileImage, Worker};
use crate::api::gotext::json::{decode_lenient, decode_value, to_go_json};
use crate::api::gotext::yaml;
use crate::api::secret::{SecretContent, Secrets};
use crate::worker::desired::CloudView;
use crate::worker::machine_objects::{Digested, LiveDeployment, MachineObjects, PURPOSE_LABEL};

/// One Worker with everything that lies around it.
pub struct WorkerInput {
    /// Where it comes from.
    pub source: Source,
    /// The Worker.
    pub worker: Worker,
    /// Its Cluster, if the file has one.
    pub cluster: Option<Cluster>,
    /// The images that Gardener's half of its CloudProfile lists, as far as they can be read: for advice.
    pub listed_images: Vec<ProfileImage>,
    /// All Secrets.
    pub secrets: Secrets,
    /// Machine objects in the Worker's namespace.
    pub live: MachineObjects,
    /// The cloud as a bundle describes it; a bundle without a word about it has an empty cloud.
    pub cloud: Option<Value>,
    /// What it says that no garden would let through, with paths.
    pub warnings: Vec<String>,
}

impl WorkerInput {
    /// How it is known what the pools depend on at the cloud.
    #[must_use]
    pub fn cloud_view(&self) -> CloudView<'_> {
        self.cloud.as_ref().map_or(CloudView::Context, CloudView::Described)
    }
}

/// A file, and the Worker in it where the file has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file as it was named.
    pub path: PathBuf,
    /// `namespace/name`, only where the file has several Workers.
    pub worker: Option<String>,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        self.worker.as_ref().map_or(Ok(()), |worker| write!(formatter, "#{worker}"))
    }
}

/// The files that the arguments name; folders are walked in the order of names.
///
/// # Errors
/// When a path can't be read.
pub fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<NamedFile>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            walk(path, &mut files)?;
        } else {
            files.push(NamedFile { path: path.clone(), explicit: true, text: None });
        }
    }
    Ok(files)
}

/// A file to read.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// Its path; `-` is standard input.
    pub path: PathBuf,
    /// Whether the user named it, rather than a folder that it lies in.
    pub explicit: bool,
    /// Its text, where that is known already: of a revision that is not in the working tree.
    pub text: Option<String>,
}

impl NamedFile {
    /// Its text.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        self.text.clone().map_or_else(|| text_of_file(&self.path), Ok)
    }
}

fn walk(folder: &Path, files: &mut Vec<NamedFile>) -> anyhow::Result<()> {
    let unreadable = || format!("{}: can't be read", folder.display());
    let mut entries =
        std::fs::read_dir(folder).with_context(unreadable)?.collect::<Result<Vec<_>, _>>().with_context(unreadable)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // The entry's own type: a link to a folder above would make the walk endless.
        if entry.file_type().with_context(unreadable)?.is_dir() {
            walk(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        {
            files.push(NamedFile { path, explicit: false, text: None });
        }
    }
    Ok(())
}

/// The Workers of a file. A file that a folder brought along may have none.
///
/// # Errors
/// When the file can't be read, or a document in it is not what it says.
pub fn workers_of_file(file: &NamedFile) -> anyhow::Result<Vec<WorkerInput>> {
    let text = file.text()?;
    let of_file = || file.path.display().to_string();
    let documents = yaml::documents(&text).with_context(of_file)?;
    let workers = workers_of_documents(&file.path, documents).with_context(of_file)?;
    if workers.is_empty() && file.explicit {
        bail!("{}: no Worker in it", file.path.display());
    }
    Ok(workers)
}

/// The machine deployments of a file, whatever else is in it.
pub(super) fn machine_deployments_of_file(path: &Path) -> anyhow::Result<Vec<LiveDeployment>> {
    let text = text_of_file(path)?;
    let of_file = || path.display().to_string();
    let deployments =
        objects(&text).with_context(of_file)?.into_iter().filter(|object| object["kind"] == "MachineDeployment");
    let deployments = deployments
        .map(|object| LiveDeployment::read_without_codes(object).context("a MachineDeployment is malformed"));
    let deployments = deployments.collect::<anyhow::Result<Vec<_>>>().with_context(of_file)?;
    if deployments.is_empty() {
        bail!("{}: no MachineDeployment in it", path.display());
    }
    Ok(deployments)
}

/// The text of a file; `-` is standard input.
pub(super) fn text_of_file(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        return std::io::read_to_string(std::io::stdin()).context("standard input can't be read");
    }
    std::fs::read_to_string(path).with_context(|| format!("{}: can't be read", path.display()))
}

/// All objects of a text, whatever they are.
pub(super) fn objects(text: &str) -> anyhow::Result<Vec<Value>> {
    Ok(flattened(yaml::documents(text)?))
}

/// One Worker as documents, so that parts of it can be compared and shared.
pub(super) struct WorkerDocuments {
    pub(super) worker: Value,
    pub(super) cluster: Option<Value>,
    /// All Secrets, and machine objects in the Worker's namespace; or which of them is not what it says.
    pub(super) surroundings: anyhow::Result<(Secrets, MachineObjects)>,
}

/// The Workers of a text as documents.
pub(super) fn worker_documents(text: &str) -> anyhow::Result<Vec<WorkerDocuments>> {
    let (workers, objects): (Vec<_>, Vec<_>) =
        objects(text)?.into_iter().partition(|object| object["kind"] == "Worker");
    let documents = workers.into_iter().map(|worker| {
        let namespace = worker["metadata"]["namespace"].as_str().unwrap_or_default();
        let is_cluster = |object: &&Value| object["kind"] == "Cluster" && object["metadata"]["name"] == *namespace;
        let surroundings = || Ok((secrets(&objects)?, live_objects(&objects, namespace)?));
        WorkerDocuments { cluster: objects.iter().find(is_cluster).cloned(), surroundings: surroundings(), worker }
    });
    Ok(documents.collect())
}

/// The Workers among the documents of one file; `path` is the file's name.
///
/// # Errors
/// When a document is not what it says.
pub fn workers_of_documents(path: &Path, documents: Vec<Value>) -> anyhow::Result<Vec<WorkerInput>> {
    let cloud = documents.iter().find_map(described_cloud);
    let objects = flattened(documents);
    let of_kind = |kind: &str| objects.iter().filter(|object| object["kind"] == *kind).cloned().collect::<Vec<_>>();
    let worker_documents = of_kind("Worker");
    let warnings: Vec<Vec<String>> = worker_documents.iter().map(warnings).collect();
    let workers: Vec<Worker> = decode_all(worker_documents, "Worker")?;
    let clusters: Vec<Cluster> = decode_all(of_kind("Cluster"), "Cluster")?;
    let several = workers.len() > 1;
    let mut inputs = Vec::with_capacity(workers.len());
    for (worker, warnings) in workers.into_iter().zip(warnings) {
        let namespace = worker.metadata.namespace.clone().unwrap_or_default();
        let cluster = clusters.iter().find(|cluster| cluster.metadata.name.as_deref() == Some(&namespace)).cloned();
        let name = worker.metadata.name.as_deref().unwrap_or_default();
        inputs.push(WorkerInput {
            source: Source { path: path.to_owned(), worker: several.then(|| format!("{namespace}/{name}")) },
            listed_images: listed_images(&objects, &namespace),
            secrets: secrets(&objects)?,
            live: live_objects(&objects, &namespace)?,
            cloud: cloud.clone(),
            warnings,
            worker,
            cluster,
        });
    }
    Ok(inputs)
}

fn listed_images(objects: &[Value], namespace: &str) -> Vec<ProfileImage> {
    let cluster = objects.iter().find(|object| object["kind"] == "Cluster" && object["metadata"]["name"] == namespace);
    let images = cluster.and_then(|cluster| cluster.pointer("/spec/cloudProfile/spec/machineImages"));
    images.and_then(|images| decode_lenient(&to_go_json(images)).ok()).unwrap_or_default()
}

/// What a bundle says of the cloud: everything in it but its objects. Its provider knows how a cloud is described.
fn described_cloud(document: &Value) -> Option<Value> {
    let members = document.as_object().filter(|members| members.contains_key("worker"))?;
    let is_role = |name: &str| ROLES.iter().any(|(role, _)| *role == name);
    let others = members.iter().filter(|(name, _)| !is_role(name));
    Some(others.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The roles of a bundle, with the kind of objects that need not name theirs.
const ROLES: [(&str, Option<&str>); 5] = [
    ("worker", Some("Worker")),
    ("cluster", Some("Cluster")),
    ("secrets", Some("Secret")),
    ("existing", None),
    ("existingMachineDeployments", Some("MachineDeployment")),
];

fn flattened(documents: Vec<Value>) -> Vec<Value> {
    let mut objects = Vec::new();
    documents.into_iter().for_each(|document| flatten(document, None, &mut objects));
    objects
}

/// The objects of a document: itself, the items of a list, or the members of a bundle.
fn flatten(document: Value, kind: Option<&str>, objects: &mut Vec<Value>) {
    match document {
        Value::Array(items) => items.into_iter().for_each(|item| flatten(item, kind, objects)),
        Value::Object(mut members) => {
            if let Some(kind) = kind {
                members.entry("kind").or_insert_with(|| kind.into());
            }
            let is_list = members.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
            if members.contains_key("kind") && !is_list {
                objects.push(Value::Object(members));
            } else if let Some(items) = members.remove("items") {
                flatten(items, None, objects);
            } else {
                for (role, kind) in ROLES {
                    if let Some(member) = members.remove(role) {
                        flatten(member, kind, objects);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Decodes objects from the text that an API server would send for them, because hashes run over its bytes.
fn decode_all<T: DeserializeOwned>(objects: Vec<Value>, kind: &str) -> anyhow::Result<Vec<T>> {
    objects
        .into_iter()
        .map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            decode_lenient(&to_go_json(&object)).with_context(|| format!("{kind} {name:?}"))
        })
        .collect()
}

fn secrets(objects: &[Value]) -> anyhow::Result<Secrets> {
    let mut secrets = Secrets::default();
    for secret in secret_objects(objects)? {
        let namespace = secret.metadata.namespace.clone().unwrap_or_default();
        let name = secret.metadata.name.clone().unwrap_or_default();
        secrets.insert(&namespace, &name, SecretContent::from(secret));
    }
    Ok(secrets)
}

fn secret_objects(objects: &[Value]) -> anyhow::Result<Vec<Secret>> {
    let objects = objects.iter().filter(|object| object["kind"] == "Secret");
    objects
        .map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            // Not the cause: it could quote what is secret.
            let secret: Secret =
                serde_json::from_value(object.clone()).map_err(|_| anyhow::anyhow!("Secret {name:?} is malformed"))?;
            Ok(as_stored(secret))
        })
        .collect()
}

/// An API server turns `stringData`, which only files carry, into `data`.
fn as_stored(mut secret: Secret) -> Secret {
    for (key, text) in secret.string_data.take().unwrap_or_default() {
        secret.data.get_or_insert_default().insert(key, ByteString(text.into_bytes()));
    }
    secret
}

fn live_objects(objects: &[Value], namespace: &str) -> anyhow::Result<MachineObjects> {
    let mut live = MachineObjects::default();
    let in_namespace = objects.iter().filter(|object| object["metadata"]["namespace"] == *namespace);
    for object in in_namespace {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let malformed = || format!("{kind} {name:?}");
        match kind {
            "MachineDeployment" => {
                let deployment = LiveDeployment::read_without_codes(object.clone()).with_context(malformed)?;
                live.deployments.insert(name.to_owned(), deployment);
            }
            "MachineClass" => {
                live.classes.insert(name.to_owned(), Digested::class(object.clone()).with_context(malformed)?);
            }
            "MachineSet" => live.machine_sets.push(decode_value(object).with_context(malformed)?),
            "Machine" => live.machines.push(decode_value(object).with_context(malformed)?),
            _ => {}
        }
    }
    for secret in secret_objects(objects)? {
        let metadata = &secret.metadata;
        let has_purpose = metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(PURPOSE_LABEL.0))
            .is_some_and(|purpose| purpose == PURPOSE_LABEL.1);
        if has_purpose && metadata.namespace.as_deref() == Some(namespace) {
            live.class_secrets.insert(metadata.name.clone().unwrap_or_default(), Digested::secret(secret));
        }
    }
    Ok(live)
}
