//! Reads and writes of actors, which bypass the network and take effect immediately.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api_server::kinds::Kind;
use crate::api_server::selector::Selector;
use crate::api_server::store::{Object, Part};
use crate::network::Network;
use crate::signal::Listener;

/// A client with a name that reads and writes in one namespace.
#[derive(Clone)]
pub(crate) struct Actor {
    network: Network,
    author: &'static str,
    namespace: &'static str,
}

impl Actor {
    pub(crate) fn new(network: &Network, author: &'static str, namespace: &'static str) -> Self {
        Self { network: network.clone(), author, namespace }
    }

    /// Adds a note to the trace.
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.network.trace.note(self.author, what);
    }

    /// Notifies about each write.
    pub(crate) fn writes(&self) -> Listener {
        self.network.server.writes()
    }

    pub(crate) fn list(&self, kind: &'static Kind) -> Vec<Arc<Object>> {
        let store = self.network.server.store();
        let namespace = kind.is_namespaced.then_some(self.namespace);
        store.list(kind, &Selector::new(namespace, "", ""), store.revision)
    }

    pub(crate) fn get(&self, kind: &'static Kind, name: &str) -> Option<Arc<Object>> {
        self.network.server.store().get(kind, self.within(kind), name).ok()
    }

    /// Creates an object unless it exists.
    pub(crate) fn create(&self, kind: &'static Kind, object: Value) {
        self.written(|actor| drop(actor.network.server.store().create(actor.author, kind, actor.within(kind), object)));
    }

    /// Changes an object if it exists.
    pub(crate) fn change(&self, kind: &'static Kind, name: &str, change: impl FnOnce(&mut Value)) {
        self.change_part(kind, name, Part::All, change);
    }

    pub(crate) fn change_status(&self, kind: &'static Kind, name: &str, change: impl FnOnce(&mut Value)) {
        self.change_part(kind, name, Part::Status, change);
    }

    fn change_part(&self, kind: &'static Kind, name: &str, part: Part, change: impl FnOnce(&mut Value)) {
        let changed = |before: &Value| {
            let mut after = before.clone();
            change(&mut after);
            Ok(after)
        };
        self.written(|actor| {
            let object = (kind, actor.within(kind), name);
            drop(actor.network.server.store().update(actor.author, object, (part, false), changed));
        });
    }

    /// Adds or removes a finalizer.
    pub(crate) fn set_finalizer(&self, kind: &'static Kind, object: &Value, finalizer: &str, is_set: bool) {
        let has = has_finalizer(object, finalizer);
        if has == is_set {
            return;
        }
        self.change(kind, name_of(object), |object| {
            let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            if is_set {
                finalizers.push(json!(finalizer))
            } else {
                finalizers.retain(|one| one != finalizer)
            }
            object["metadata"]["finalizers"] = json!(finalizers);
        });
    }

    pub(crate) fn delete(&self, kind: &'static Kind, name: &str) {
        self.written(|actor| {
            let object = (kind, actor.within(kind), name);
            drop(actor.network.server.store().delete(actor.author, object, [&Value::Null; 2]));
        });
    }

    fn within(&self, kind: &Kind) -> &'static str {
        if kind.is_namespaced { self.namespace } else { "" }
    }

    fn written(&self, write: impl FnOnce(&Self)) {
        self.network.written(self.author, || write(self));
    }
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.iter().any(|one| one == finalizer))
}

pub(crate) fn is_vanishing(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
