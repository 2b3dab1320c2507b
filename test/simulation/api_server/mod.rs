//! An in-process API server, as strict as the real one wherever the controller could notice. `compared_with_real`
//! verifies that. Its clock is passed in, and it handles one request at a time.
//!
//! ```text
//! request  ─► path, query ─► store: versions, conflicts, finalizers, generations ─► object, list, Status
//!                              └─► log ─► watch: events, bookmarks, 410
//! ```

pub(crate) mod kinds;
pub(crate) mod patch;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod selector;
pub(crate) mod store;
pub(crate) mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};

use kinds::{DEPLOYMENT, Kind};
use patch::patched;
use refusal::{Refusal, deleted};
use request::{Path, Query, Request, group_of};
use selector::Selector;
use store::{Deleted, Object, Part, Store};
use watch::{Watching, metadata_of};

use crate::signal::{Listener, Signal};

/// The API server. Clones share it.
#[derive(Clone)]
pub(crate) struct ApiServer {
    store: Arc<Mutex<Store>>,
    /// The revision of the last write.
    written: Signal,
}

/// A response.
pub(crate) enum Reply {
    Body { code: u16, text: String },
    Watch(Watching),
}

/// A status code and body, or a failure.
type Outcome = Result<(u16, String), Refusal>;

impl ApiServer {
    pub(crate) fn new(now: impl Fn() -> Timestamp + Send + 'static) -> Self {
        Self { store: Arc::new(Mutex::new(Store::new(now))), written: Signal::default() }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies about each write.
    pub(crate) fn writes(&self) -> Listener {
        self.written.listen()
    }

    /// Notifies listeners after a write to the store.
    pub(crate) fn report_writes(&self) {
        let revision = self.store().revision;
        self.written.set(revision);
    }

    /// Compacts the history: watches from earlier revisions must relist.
    pub(crate) fn compact(&self) {
        let mut store = self.store();
        store.compacted = store.revision;
    }

    /// Handles a request.
    pub(crate) fn response(&self, author: &'static str, request: &Request) -> Reply {
        let response = self.done(author, request);
        self.report_writes();
        response.unwrap_or_else(|refusal| Reply::Body { code: refusal.code, text: refusal.status().to_string() })
    }

    fn done(&self, author: &'static str, request: &Request) -> Result<Reply, Refusal> {
        let query = Query::of(&request.query);
        if let Some(kinds) = group_of(&request.path) {
            return Ok(Reply::Body { code: 200, text: served(&kinds).to_string() });
        }
        let path = Path::of(&request.path).ok_or_else(Refusal::no_such_path)?;
        let body = |(code, text)| Reply::Body { code, text };
        match (request.method.as_str(), path.name.as_deref()) {
            ("GET", None) if query.is_true("watch") => {
                self.watch(&path, &query, request.only_metadata).map(Reply::Watch)
            }
            ("GET", None) => self.list(&path, &query, request.only_metadata).map(body),
            ("GET", Some(name)) => self.get(&path, name, request.only_metadata).map(body),
            ("POST", None) => self.create(author, &path, &request.body).map(body),
            ("PUT", Some(name)) => self.replace(author, &path, name, &request.body).map(body),
            ("PATCH", Some(name)) => self.patch(author, &path, name, request).map(body),
            ("DELETE", Some(name)) => self.delete(author, &path, name, &request.body).map(body),
            _ => Err(Refusal::not_allowed()),
        }
    }

    fn get(&self, path: &Path, name: &str, only_metadata: bool) -> Outcome {
        let object = self.store().get(path.kind, path.namespace(), name)?;
        Ok((200, path.output(&object, only_metadata)))
    }

    fn list(&self, path: &Path, query: &Query, only_metadata: bool) -> Outcome {
        let store = self.store();
        let selector = path.selector(query);
        let (revision, after) = match query.get("continue").split_once(':') {
            Some((revision, after)) => (revision.parse().map_err(|_| Refusal::bad_request("continue"))?, after),
            None => (store.revision, ""),
        };
        if revision < store.compacted && !after.is_empty() {
            return Err(Refusal::expired_list());
        }
        let mut objects = store.list(path.kind, &selector, revision);
        objects.retain(|object| after.is_empty() || location_of(&object.value).as_str() > after);
        let limit = query.get("limit").parse().ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if objects.len() > limit {
            let rest = objects.split_off(limit);
            let last = objects.last().map(|object| location_of(&object.value)).unwrap_or_default();
            metadata["continue"] = json!(format!("{revision}:{last}"));
            if selector.is_plain() {
                metadata["remainingItemCount"] = json!(rest.len());
            }
        }
        let (kind, api_version) = match only_metadata {
            true => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            false => (path.kind.kind, path.kind.api_version()),
        };
        let items: Vec<String> = objects.iter().map(|object| output(object, only_metadata)).collect();
        let items =
            if only_metadata && items.is_empty() { "null".to_owned() } else { format!("[{}]", items.join(",")) };
        Ok((
            200,
            format!(
                "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":{items}}}"
            ),
        ))
    }

    fn watch(&self, path: &Path, query: &Query, only_metadata: bool) -> Result<Watching, Refusal> {
        let store = self.store();
        let requested = query.get("resourceVersion");
        let from: u64 = if requested.is_empty() {
            0
        } else {
            requested.parse().map_err(|_| Refusal::bad_request("resourceVersion"))?
        };
        if !store.is_watchable(path.kind) {
            return Err(Refusal::initializing());
        }
        let oldest = store.watchable_from(path.kind);
        // The real server reports this either before the watch begins or as its first event.
        if 0 < from && from < oldest && from.is_multiple_of(2) {
            return Err(Refusal::expired(from, oldest));
        }
        if from > store.revision {
            return Err(Refusal::ahead(from, store.revision));
        }
        let sends_initial = query.is_true("sendInitialEvents");
        if sends_initial && query.get("resourceVersionMatch") != "NotOlderThan" {
            let why = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return Err(Refusal::invalid(path.kind, "", why));
        }
        let requests = (only_metadata, query.is_true("allowWatchBookmarks"));
        let timeout = query.get("timeoutSeconds").parse().unwrap_or(1800);
        // Without a resource version, a watch begins with all existing objects.
        let initial = sends_initial || from == 0;
        Ok(Watching::begin(&store, path.kind, path.selector(query), requests, (from, initial), timeout))
    }

    fn create(&self, author: &'static str, path: &Path, body: &[u8]) -> Outcome {
        let object = self.store().create(author, path.kind, path.namespace(), decoded(body)?)?;
        Ok((201, object.text().to_owned()))
    }

    fn replace(&self, author: &'static str, path: &Path, name: &str, body: &[u8]) -> Outcome {
        let new = decoded(body)?;
        let (object, part, mut store) = ((path.kind, path.namespace(), name), path.part()?, self.store());
        let (code, object) = match store.get(path.kind, path.namespace(), name) {
            Ok(_) => (200, store.update(author, object, (part, true), |_| Ok(new))?),
            Err(_) => (201, store.create_by_replacement(author, object, new)?),
        };
        Ok((code, object.text().to_owned()))
    }

    fn patch(&self, author: &'static str, path: &Path, name: &str, request: &Request) -> Outcome {
        if path.subresource.as_deref() == Some("scale") {
            return self.scale(author, path, name, request);
        }
        let (object, part) = ((path.kind, path.namespace(), name), path.part()?);
        let change = |before: &Value| patched(path.kind, &request.content_type, &request.body, before);
        let object = self.store().update(author, object, (part, false), change)?;
        Ok((200, object.text().to_owned()))
    }

    fn scale(&self, author: &'static str, path: &Path, name: &str, request: &Request) -> Outcome {
        let change = |before: &Value| {
            let patched = patched(path.kind, &request.content_type, &request.body, &scale_of(before))?;
            let mut after = before.clone();
            after["metadata"]["resourceVersion"] = patched["metadata"]["resourceVersion"].clone();
            after["spec"]["replicas"] = patched["spec"]["replicas"].clone();
            Ok(after)
        };
        if path.kind != &DEPLOYMENT {
            return Err(Refusal::no_such_path());
        }
        let object = (path.kind, path.namespace(), name);
        let object = self.store().update(author, object, (Part::All, false), change)?;
        Ok((200, scale_of(&object.value).to_string()))
    }

    fn delete(&self, author: &'static str, path: &Path, name: &str, body: &[u8]) -> Outcome {
        let options = if body.is_empty() { Value::Null } else { decoded(body)? };
        let preconditions = ["uid", "resourceVersion"].map(|member| &options["preconditions"][member]);
        let object = (path.kind, path.namespace(), name);
        Ok(match self.store().delete(author, object, preconditions)? {
            Deleted::Held(object) => (200, object.text().to_owned()),
            Deleted::Removed(object) => (200, deleted(path.kind, name, &object.value["metadata"]["uid"]).to_string()),
        })
    }
}

impl Path {
    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    fn selector(&self, query: &Query) -> Selector {
        Selector::new(self.namespace.as_deref(), query.get("labelSelector"), query.get("fieldSelector"))
    }

    fn part(&self) -> Result<Part, Refusal> {
        match self.subresource.as_deref() {
            None => Ok(Part::All),
            Some("status") if self.kind.has_status => Ok(Part::Status),
            Some(_) => Err(Refusal::no_such_path()),
        }
    }

    fn output(&self, object: &Arc<Object>, only_metadata: bool) -> String {
        match self.subresource.as_deref() {
            Some("scale") => scale_of(&object.value).to_string(),
            _ => output(object, only_metadata),
        }
    }
}

fn output(object: &Arc<Object>, only_metadata: bool) -> String {
    if only_metadata { metadata_of(&object.value).to_string() } else { object.text().to_owned() }
}

/// Sort key of an object in a list.
fn location_of(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn decoded(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(&error.to_string()))
}

fn scale_of(deployment: &Value) -> Value {
    let metadata = &deployment["metadata"];
    let [name, namespace, uid, version] =
        ["name", "namespace", "uid", "resourceVersion"].map(|member| &metadata[member]);
    let replicas = &deployment["spec"]["replicas"];
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version},
        "spec": if *replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) },
        "status": {"replicas": deployment["status"]["replicas"].as_i64().unwrap_or_default()},
    })
}

fn served(kinds: &[&'static Kind]) -> Value {
    let resource = |kind: &&Kind| {
        json!({"name": kind.plural, "singularName": "", "namespaced": kind.is_namespaced, "kind": kind.kind,
               "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]})
    };
    let group_version = kinds.first().map(|kind| kind.api_version());
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}
