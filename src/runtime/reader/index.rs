//! Indexes objects by namespace and kind, so that finding a Worker's objects does not scan all of them.

use std::collections::HashMap;

use serde_json::Value;

/// Objects by namespace and kind, in input order.
pub struct ObjectIndex<'a> {
    by_kind: HashMap<(&'a str, &'a str), Vec<&'a Value>>,
    /// Objects that others refer to by name.
    clusters: HashMap<&'a str, &'a Value>,
    secrets: HashMap<(&'a str, &'a str), &'a Value>,
}

impl<'a> ObjectIndex<'a> {
    /// Indexes the objects. A missing namespace is the empty one.
    pub fn new(objects: &'a [Value]) -> Self {
        let mut index = Self { by_kind: HashMap::new(), clusters: HashMap::new(), secrets: HashMap::new() };
        for object in objects {
            let metadata = &object["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let name = metadata["name"].as_str().unwrap_or_default();
            let kind = object["kind"].as_str().unwrap_or_default();
            match kind {
                "Cluster" => drop(index.clusters.entry(name).or_insert(object)),
                // The last Secret wins, as if all were applied in order.
                "Secret" => drop(index.secrets.insert((namespace, name), object)),
                _ => {}
            }
            index.by_kind.entry((namespace, kind)).or_default().push(object);
        }
        index
    }

    /// The objects of a kind in a namespace.
    pub fn of(&self, namespace: &'a str, kind: &'a str) -> &[&'a Value] {
        self.by_kind.get(&(namespace, kind)).map_or(&[], Vec::as_slice)
    }

    /// The Cluster of a shoot namespace; the first wins.
    pub fn cluster(&self, namespace: &str) -> Option<&'a Value> {
        self.clusters.get(namespace).copied()
    }

    pub fn secret(&self, namespace: &'a str, name: &'a str) -> Option<&'a Value> {
        self.secrets.get(&(namespace, name)).copied()
    }
}
