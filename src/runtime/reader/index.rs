//! Objects of a file by namespace and kind, as text, because trees need ten times the memory.

use std::collections::HashMap;

use serde_json::Value;

use decisions::worker::machines::machine_objects::PURPOSE_LABEL;

use super::objects::{Entry, ObjectsError, ROLES, flattened, for_each_object, parsed};

/// Objects by namespace and kind, in input order.
#[derive(Default)]
pub struct ObjectIndex {
    /// The JSON text of each object.
    objects: Vec<Box<str>>,
    workers: Vec<IndexedWorker>,
    by_kind: HashMap<String, HashMap<String, Vec<usize>>>,
    /// Objects that others refer to by name.
    clusters: HashMap<String, usize>,
    secrets: HashMap<String, HashMap<String, usize>>,
    class_secrets: HashMap<String, Vec<usize>>,
    cloud: Option<Value>,
}

/// A Worker in an index.
#[derive(Clone, Debug)]
pub struct IndexedWorker {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    location: usize,
}

impl ObjectIndex {
    /// Indexes the objects of a text. A missing namespace is the empty one.
    ///
    /// # Errors
    /// If the text is neither YAML nor JSON, or contains only one page of a list.
    pub fn of_text(text: &str) -> Result<Self, ObjectsError> {
        let mut index = Self::default();
        for_each_object(text, &mut |entry| match entry {
            Entry::Document(document) => index.describe_cloud(document),
            Entry::Object(object) => index.insert(&object),
        })?;
        Ok(index)
    }

    /// Indexes the objects of documents.
    #[must_use]
    pub fn of_documents(documents: Vec<Value>) -> Self {
        let mut index = Self::default();
        documents.iter().for_each(|document| index.describe_cloud(document));
        flattened(documents).iter().for_each(|object| index.insert(object));
        index
    }

    fn describe_cloud(&mut self, document: &Value) {
        if self.cloud.is_none() {
            self.cloud = described_cloud(document);
        }
    }

    fn insert(&mut self, object: &Value) {
        let location = self.objects.len();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let (namespace, name, kind) = (text(&metadata["namespace"]), text(&metadata["name"]), text(&object["kind"]));
        match kind.as_str() {
            "Worker" => self.workers.push(IndexedWorker { namespace: namespace.clone(), name, location }),
            "Cluster" => drop(self.clusters.entry(name).or_insert(location)),
            // The last Secret wins, as if all were applied in order.
            "Secret" => {
                if metadata["labels"][PURPOSE_LABEL.0] == PURPOSE_LABEL.1 {
                    self.class_secrets.entry(namespace.clone()).or_default().push(location);
                }
                self.secrets.entry(namespace.clone()).or_default().insert(name, location);
            }
            _ => {}
        }
        self.by_kind.entry(namespace).or_default().entry(kind).or_default().push(location);
        self.objects.push(object.to_string().into());
    }

    /// All Workers, in input order.
    #[must_use]
    pub fn workers(&self) -> &[IndexedWorker] {
        &self.workers
    }

    /// The Worker itself.
    ///
    /// # Errors
    /// If it is of another index.
    pub fn worker(&self, worker: &IndexedWorker) -> Result<Value, ObjectsError> {
        self.object(worker.location)
    }

    fn object(&self, location: usize) -> Result<Value, ObjectsError> {
        parsed(self.objects.get(location).map_or("", |text| text))
    }

    /// The objects of a kind in a namespace.
    pub fn of(&self, namespace: &str, kind: &str) -> impl Iterator<Item = Result<Value, ObjectsError>> {
        self.all(self.by_kind.get(namespace).and_then(|kinds| kinds.get(kind)))
    }

    /// The Secrets of machine classes in a namespace.
    pub fn class_secrets(&self, namespace: &str) -> impl Iterator<Item = Result<Value, ObjectsError>> {
        self.all(self.class_secrets.get(namespace))
    }

    fn all(&self, locations: Option<&Vec<usize>>) -> impl Iterator<Item = Result<Value, ObjectsError>> {
        locations.into_iter().flatten().map(|location| self.object(*location))
    }

    /// The Cluster of a shoot namespace; the first wins.
    ///
    /// # Errors
    /// Never, for an index made by this program.
    pub fn cluster(&self, namespace: &str) -> Result<Option<Value>, ObjectsError> {
        self.clusters.get(namespace).map(|location| self.object(*location)).transpose()
    }

    /// The Secret with that namespace and name; the last wins.
    ///
    /// # Errors
    /// As [`Self::cluster`].
    pub fn secret(&self, namespace: &str, name: &str) -> Result<Option<Value>, ObjectsError> {
        let location = self.secrets.get(namespace).and_then(|secrets| secrets.get(name));
        location.map(|location| self.object(*location)).transpose()
    }

    /// The cloud state in the first bundle. The provider interprets it.
    #[must_use]
    pub fn cloud(&self) -> Option<&Value> {
        self.cloud.as_ref()
    }
}

/// The cloud state in a bundle: every member that is not an object role.
fn described_cloud(document: &Value) -> Option<Value> {
    let members = document.as_object()?;
    if !members.contains_key("worker") {
        return None;
    }
    let is_role = |name: &str| ROLES.iter().any(|(role, _)| *role == name);
    let others = members.iter().filter(|(name, _)| !is_role(name));
    Some(others.map(|(name, value)| (name.clone(), value.clone())).collect())
}
