//! Stores objects with their revisions, and enforces the rules of writes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::{Counted, Kind};
use super::refusal::Refusal;
use super::selector::Selector;

/// A version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) value: Value,
    text: OnceLock<String>,
}

impl Object {
    fn new(value: Value) -> Arc<Self> {
        Arc::new(Self { value, text: OnceLock::new() })
    }

    /// As JSON.
    pub(crate) fn text(&self) -> &str {
        self.text.get_or_init(|| self.value.to_string())
    }
}

/// A write.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) at: Timestamp,
    /// The client that wrote it.
    pub(crate) author: &'static str,
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) before: Option<Arc<Object>>,
    /// The new object. For a deletion, its last state.
    pub(crate) after: Arc<Object>,
    pub(crate) is_deleted: bool,
}

/// The written part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    Status,
}

/// The result of a deletion.
pub(crate) enum Deleted {
    /// Finalizers delay the deletion.
    Held(Arc<Object>),
    Removed(Arc<Object>),
}

type Key = (&'static str, &'static str, String, String);

fn key(kind: &'static Kind, namespace: &str, name: &str) -> Key {
    (kind.group, kind.plural, namespace.to_owned(), name.to_owned())
}

/// All objects.
pub(crate) struct Store {
    /// The revision of the last write.
    pub(crate) revision: u64,
    /// Watches cannot start from revisions before this one.
    pub(crate) compacted: u64,
    /// The same by plural, for single kinds.
    forgotten: BTreeMap<&'static str, u64>,
    /// Kinds whose watch caches are being initialized, so they cannot be watched.
    unwatched: &'static [&'static Kind],
    objects: BTreeMap<Key, Arc<Object>>,
    /// All writes. The first change has the revision after [`Store::FIRST`].
    pub(crate) log: Vec<Change>,
    now: Box<dyn Fn() -> Timestamp + Send>,
}

impl Store {
    const FIRST: u64 = 100;

    pub(crate) fn new(now: impl Fn() -> Timestamp + Send + 'static) -> Self {
        let (objects, forgotten, log) = Default::default();
        Self { revision: Self::FIRST, compacted: 0, forgotten, unwatched: &[], objects, log, now: Box::new(now) }
    }

    /// Starts to reinitialize the watch caches of some kinds.
    pub(crate) fn begin_watch_caches(&mut self, kinds: &'static [&'static Kind]) {
        self.unwatched = kinds;
    }

    /// Completes the initialization. The caches contain no earlier revisions.
    pub(crate) fn end_watch_caches(&mut self) {
        let revision = self.revision;
        self.forgotten.extend(std::mem::take(&mut self.unwatched).iter().map(|kind| (kind.plural, revision)));
    }

    /// Whether a kind can be watched now.
    pub(crate) fn is_watchable(&self, kind: &'static Kind) -> bool {
        !self.unwatched.contains(&kind)
    }

    /// The oldest revision from which a kind can be watched.
    pub(crate) fn watchable_from(&self, kind: &'static Kind) -> u64 {
        self.compacted.max(self.forgotten.get(kind.plural).copied().unwrap_or_default())
    }

    /// Writes after a revision.
    pub(crate) fn since(&self, revision: u64) -> &[Change] {
        let known = usize::try_from(revision.saturating_sub(Self::FIRST)).unwrap_or(usize::MAX);
        &self.log[known.min(self.log.len())..]
    }

    pub(crate) fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Arc<Object>, Refusal> {
        let found = self.objects.get(&key(kind, namespace, name));
        found.cloned().ok_or_else(|| Refusal::not_found(kind, name))
    }

    /// Selected objects at a revision, ordered by name.
    pub(crate) fn list(&self, kind: &'static Kind, selector: &Selector, revision: u64) -> Vec<Arc<Object>> {
        let of_kind = (kind.group, kind.plural, String::new(), String::new());
        let same_kind = |(key, _): &(&Key, &Arc<Object>)| key.0 == kind.group && key.1 == kind.plural;
        let now = self.objects.range(of_kind..).take_while(same_kind);
        if revision == self.revision {
            return now.map(|(_, object)| object).filter(|object| selector.matches(&object.value)).cloned().collect();
        }
        let mut objects: BTreeMap<Key, Arc<Object>> =
            now.map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        for change in self.since(revision).iter().rev().filter(|change| change.kind == kind) {
            let key = key(kind, &change.namespace, &change.name);
            match &change.before {
                Some(before) => objects.insert(key, Arc::clone(before)),
                None => objects.remove(&key),
            };
        }
        objects.into_values().filter(|object| selector.matches(&object.value)).collect()
    }

    pub(crate) fn create(
        &mut self,
        author: &'static str,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Object>, Refusal> {
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(Refusal::invalid(kind, "", "metadata.name: Required value: name or generateName is required"));
        }
        check_namespace(kind, namespace, &mut object)?;
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::internal("resourceVersion should not be set on objects to be created"));
        }
        if self.get(kind, namespace, &name).is_ok() {
            return Err(Refusal::already_exists(kind, &name));
        }
        defaulted(kind, &mut object);
        if kind.has_status
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
        }
        object["metadata"]["uid"] = json!(format!("00000000-0000-0000-0000-{:012}", self.revision + 1));
        object["metadata"]["creationTimestamp"] = json!(self.seconds());
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"] {
                metadata.remove(member);
            }
        }
        if kind.counted != Counted::Nothing {
            object["metadata"]["generation"] = json!(1);
        }
        Ok(self.put(author, kind, namespace, &name, None, object))
    }

    /// Creates a missing object by PUT, for kinds that allow it.
    pub(crate) fn create_by_replacement(
        &mut self,
        author: &'static str,
        (kind, namespace, name): (&'static Kind, &str, &str),
        mut object: Value,
    ) -> Result<Arc<Object>, Refusal> {
        check_name(name, &object)?;
        if !kind.is_made_by_replacement {
            return Err(Refusal::not_found(kind, name));
        }
        check_uid(kind, name, &Value::Null, &object)?;
        set(&mut object["metadata"], "resourceVersion", Value::Null);
        self.create(author, kind, namespace, object)
    }

    /// Writes the result of `change`. `is_whole` is set for a PUT.
    pub(crate) fn update(
        &mut self,
        author: &'static str,
        (kind, namespace, name): (&'static Kind, &str, &str),
        (part, is_whole): (Part, bool),
        change: impl FnOnce(&Value) -> Result<Value, Refusal>,
    ) -> Result<Arc<Object>, Refusal> {
        let before = self.get(kind, namespace, name)?;
        let mut after = change(&before.value)?;
        check_name(name, &after)?;
        check_namespace(kind, namespace, &mut after)?;
        if is_whole {
            check_uid(kind, name, &before.value, &after)?;
        }
        let version = after["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if version.is_empty() {
            if is_whole && !kind.is_replaced_blindly {
                let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
                return Err(Refusal::invalid(kind, name, why));
            }
        } else if before.value["metadata"]["resourceVersion"] != version {
            return Err(Refusal::outdated(kind, name));
        }
        let after = self.completed(kind, part, &before.value, after)?;
        if after == before.value {
            return Ok(before);
        }
        let metadata = &after["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if !metadata["deletionTimestamp"].is_null() && !is_held {
            self.remove(author, kind, namespace, name, &before);
            // The last finalizer was removed. The client receives the object that it wrote.
            return Ok(Object::new(after));
        }
        Ok(self.put(author, kind, namespace, name, Some(before), after))
    }

    /// Restores immutable metadata and sets the generation.
    fn completed(&self, kind: &'static Kind, part: Part, before: &Value, mut after: Value) -> Result<Value, Refusal> {
        let name = before["metadata"]["name"].as_str().unwrap_or_default();
        let (mut whole, status) = match part {
            Part::Status => {
                let mut whole = before.clone();
                let status = after["status"].take();
                set(&mut whole, "status", status);
                return Ok(whole);
            }
            Part::All => (after, before["status"].clone()),
        };
        if check_uid(kind, name, before, &whole).is_err() {
            return Err(Refusal::invalid(kind, name, "metadata.uid: Invalid value: field is immutable"));
        }
        if kind.has_status {
            set(&mut whole, "status", status);
        }
        for member in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
        ] {
            let kept = before["metadata"][member].clone();
            set(&mut whole["metadata"], member, kept);
        }
        for member in ["annotations", "labels", "finalizers", "ownerReferences"] {
            let is_empty = match &whole["metadata"][member] {
                Value::Object(members) => members.is_empty(),
                Value::Array(items) => items.is_empty(),
                other => other.is_null(),
            };
            if is_empty {
                set(&mut whole["metadata"], member, Value::Null);
            }
        }
        check_finalizers(kind, name, before, &whole)?;
        defaulted(kind, &mut whole);
        if is_counted(kind, before, &whole) {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
            whole["metadata"]["generation"] = json!(generation + 1);
        }
        Ok(whole)
    }

    /// Deletes an object; uid and resource version are optional preconditions.
    pub(crate) fn delete(
        &mut self,
        author: &'static str,
        (kind, namespace, name): (&'static Kind, &str, &str),
        [uid, version]: [&Value; 2],
    ) -> Result<Deleted, Refusal> {
        let before = self.get(kind, namespace, name)?;
        let metadata = &before.value["metadata"];
        if !uid.is_null() && *uid != metadata["uid"] {
            let why = format!(
                "the UID in the precondition ({}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                uid.as_str().unwrap_or_default(),
                metadata["uid"].as_str().unwrap_or_default()
            );
            return Err(Refusal::conflict(kind, name, &why));
        }
        if !version.is_null() && *version != metadata["resourceVersion"] {
            return Err(Refusal::conflict(kind, name, "the ResourceVersion in the precondition does not match"));
        }
        let is_held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if !is_held {
            return Ok(Deleted::Removed(self.remove(author, kind, namespace, name, &before)));
        }
        if !metadata["deletionTimestamp"].is_null() {
            return Ok(Deleted::Held(before));
        }
        let mut after = before.value.clone();
        after["metadata"]["deletionTimestamp"] = json!(self.seconds());
        after["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        if let Some(generation) = after["metadata"]["generation"].as_i64() {
            after["metadata"]["generation"] = json!(generation + 1);
        }
        Ok(Deleted::Held(self.put(author, kind, namespace, name, Some(before), after)))
    }

    fn put(
        &mut self,
        author: &'static str,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        before: Option<Arc<Object>>,
        mut after: Value,
    ) -> Arc<Object> {
        self.revision += 1;
        after["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let after = Object::new(after);
        self.objects.insert(key(kind, namespace, name), Arc::clone(&after));
        self.note(author, kind, (namespace, name), before, &after, false);
        after
    }

    fn remove(
        &mut self,
        author: &'static str,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        before: &Arc<Object>,
    ) -> Arc<Object> {
        self.revision += 1;
        let mut deleted = before.value.clone();
        deleted["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let deleted = Object::new(deleted);
        self.objects.remove(&key(kind, namespace, name));
        self.note(author, kind, (namespace, name), Some(Arc::clone(before)), &deleted, true);
        deleted
    }

    fn note(
        &mut self,
        author: &'static str,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        before: Option<Arc<Object>>,
        after: &Arc<Object>,
        is_deleted: bool,
    ) {
        let (revision, at, after) = (self.revision, (self.now)(), Arc::clone(after));
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.log.push(Change { revision, at, author, kind, namespace, name, before, after, is_deleted });
    }

    /// The current time in whole seconds, as in metadata.
    fn seconds(&self) -> String {
        (self.now)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

fn check_name(name: &str, object: &Value) -> Result<(), Refusal> {
    let is_same = object["metadata"]["name"] == name;
    is_same
        .then_some(())
        .ok_or_else(|| Refusal::bad_request("the name of the object does not match the name on the URL"))
}

fn check_namespace(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Refusal> {
    if !kind.is_namespaced {
        return Ok(());
    }
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !own.is_empty() && own != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(why));
    }
    object["metadata"]["namespace"] = json!(namespace);
    Ok(())
}

/// A uid in a write is a precondition.
fn check_uid(kind: &Kind, name: &str, before: &Value, after: &Value) -> Result<(), Refusal> {
    let [known, named] = [before, after].map(|object| &object["metadata"]["uid"]);
    if named.is_null() || named == known {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {named}, UID in object meta: {known}");
    Err(Refusal::conflict(kind, name, &why))
}

fn check_finalizers(kind: &Kind, name: &str, before: &Value, after: &Value) -> Result<(), Refusal> {
    if before["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let finalizers = |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let known = finalizers(before);
    match finalizers(after).iter().find(|finalizer| !known.contains(finalizer)) {
        None => Ok(()),
        Some(new) => {
            let why = format!(
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{new}}}"
            );
            Err(Refusal::invalid(kind, name, &why))
        }
    }
}

/// Defaults that the API server sets.
fn defaulted(kind: &Kind, object: &mut Value) {
    match kind.kind {
        "Secret" => {
            if object["type"].is_null() {
                object["type"] = json!("Opaque");
            }
            let texts = object.as_object_mut().and_then(|members| members.remove("stringData"));
            for (name, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
                object["data"][name] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
            }
        }
        "Deployment" if object["spec"]["replicas"].is_null() => object["spec"]["replicas"] = json!(1),
        _ => {}
    }
}

fn set(object: &mut Value, member: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        match value {
            Value::Null => drop(members.remove(member)),
            value => drop(members.insert(member.to_owned(), value)),
        }
    }
}

/// Whether a change increases the generation.
fn is_counted(kind: &Kind, before: &Value, after: &Value) -> bool {
    let counts = |member: &str| match kind.counted {
        Counted::Nothing => false,
        Counted::AllButStatus | Counted::AllButStatusAndAnnotations => member != "metadata" && member != "status",
        Counted::All => member != "metadata",
    };
    let mut members = [before, after].into_iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys);
    members.any(|member| counts(member) && before[member] != after[member])
        || kind.counted == Counted::AllButStatusAndAnnotations
            && before["metadata"]["annotations"] != after["metadata"]["annotations"]
}
