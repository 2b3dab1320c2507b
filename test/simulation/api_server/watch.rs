//! Watches, event by event.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::Kind;
use super::refusal::Refusal;
use super::selector::Selector;
use super::store::{Change, Object, Store};

/// A watch in progress, with the revision up to which it has sent events.
pub(crate) struct Watching {
    pub(crate) kind: &'static Kind,
    selector: Selector,
    only_metadata: bool,
    /// Whether the client requested bookmarks.
    pub(crate) requests_bookmarks: bool,
    pub(crate) output: u64,
    /// Initial events.
    beginning: VecDeque<String>,
    /// Timeout in seconds.
    pub(crate) timeout: u64,
    failed: bool,
}

impl Watching {
    /// Starts after a known revision. `initial`: sends existing objects first.
    pub(crate) fn begin(
        store: &Store,
        kind: &'static Kind,
        selector: Selector,
        (only_metadata, requests_bookmarks): (bool, bool),
        (from, initial): (u64, bool),
        timeout: u64,
    ) -> Self {
        let mut watching = Self {
            kind,
            selector,
            only_metadata,
            requests_bookmarks,
            output: from,
            beginning: VecDeque::new(),
            timeout,
            failed: false,
        };
        if initial {
            let objects = store.list(kind, &watching.selector, store.revision);
            watching.output = store.revision;
            let added = objects.iter().map(|object| watching.line("ADDED", object));
            watching.beginning = added.collect();
            if requests_bookmarks {
                let end = json!({"k8s.io/initial-events-end": "true"});
                watching.beginning.push_back(watching.bookmark_with(&end));
            }
        }
        watching
    }

    /// The next event, or `None` if the watch has to wait.
    pub(crate) fn next(&mut self, store: &Store) -> Option<String> {
        if let Some(line) = self.beginning.pop_front() {
            return Some(line);
        }
        // The API server ends the watches of a kind when it reinitializes its cache.
        self.failed |= !store.is_watchable(self.kind);
        if self.failed {
            return None;
        }
        let oldest = store.watchable_from(self.kind);
        if self.output < oldest {
            self.failed = true;
            let refusal = Refusal::expired(self.output, oldest).status();
            return Some(format!("{}\n", json!({"type": "ERROR", "object": refusal})));
        }
        for change in store.since(self.output) {
            self.output = change.revision;
            if let Some(line) = self.event(change) {
                return Some(line);
            }
        }
        None
    }

    /// Whether it must end.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// A bookmark with the current revision.
    pub(crate) fn bookmark(&self) -> String {
        self.bookmark_with(&Value::Null)
    }

    fn bookmark_with(&self, annotations: &Value) -> String {
        let mut metadata = json!({"resourceVersion": self.output.to_string(), "creationTimestamp": null});
        if !annotations.is_null() {
            metadata["annotations"] = annotations.clone();
        }
        let object = json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        format!("{}\n", json!({"type": "BOOKMARK", "object": object}))
    }

    fn event(&self, change: &Change) -> Option<String> {
        if change.kind != self.kind {
            return None;
        }
        let before = change.before.as_ref().is_some_and(|before| self.selector.matches(&before.value));
        let after = !change.is_deleted && self.selector.matches(&change.after.value);
        let kind = match (before, after) {
            (false, false) => return None,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        Some(self.line(kind, &change.after))
    }

    fn line(&self, event: &str, object: &Arc<Object>) -> String {
        match self.only_metadata {
            true => format!("{{\"type\":\"{event}\",\"object\":{}}}\n", metadata_of(&object.value)),
            false => format!("{{\"type\":\"{event}\",\"object\":{}}}\n", object.text()),
        }
    }
}

/// An object's metadata, for a client that requested only that.
pub(crate) fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
