//! Extracts objects from a text: YAML or JSON documents, list items, and bundle members.

use serde_json::{Map, Value};

use wire::api::gotext::yaml::{self, Part, YamlError};

/// An unusable text. The message never quotes it, because it may contain secrets.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// Neither YAML nor JSON.
    #[error(transparent)]
    Syntax(#[from] YamlError),
    /// Contains only one page of a list.
    #[error("the list is incomplete ({0}): read all of it, for example without --limit, --max-items and --no-paginate")]
    Incomplete(&'static str),
    /// An object that was packed can't be unpacked.
    #[error("an object of the text can't be unpacked again")]
    Unpacked,
}

/// The members of a bundle, with the kind of objects that may omit theirs.
pub const ROLES: [(&str, Option<&str>); 5] = [
    ("worker", Some("Worker")),
    ("cluster", Some("Cluster")),
    ("secrets", Some("Secret")),
    ("existing", None),
    ("existingMachineDeployments", Some("MachineDeployment")),
];

/// Parses the documents of a text. A list stays one document.
///
/// # Errors
/// If the text is neither YAML nor JSON, or contains only one page of a list.
pub fn documents(text: &str) -> Result<Vec<Value>, ObjectsError> {
    let documents = yaml::documents(text)?;
    documents.iter().try_for_each(ensure_complete)?;
    Ok(documents)
}

/// All objects of a text, of any kind.
///
/// # Errors
/// If the text is neither YAML nor JSON, or contains only one page of a list.
pub fn objects(text: &str) -> Result<Vec<Value>, ObjectsError> {
    Ok(flattened(documents(text)?))
}

/// Passes on all objects of a text one by one, so that their trees need not fit in memory at the same time. Before the
/// objects of a document, passes on the document itself, without its items if it is a list.
///
/// # Errors
/// As [`objects`]. Discard all objects of such a text.
pub fn for_each_object(text: &str, take: &mut dyn FnMut(Entry<'_>)) -> Result<(), ObjectsError> {
    // The kind of a list follows its items, because kubectl sorts members by name.
    let mut items: Vec<String> = Vec::new();
    let mut taken = Ok(());
    yaml::for_each_part(text, &mut |part| match part {
        Part::Item(item) => items.push(item.to_string()),
        Part::Document(document) => {
            if taken.is_ok() {
                taken = take_document(document, &mut items, take);
            }
        }
    })?;
    taken
}

/// What [`for_each_object`] passes on.
pub enum Entry<'a> {
    /// A document, without its items if it is a list.
    Document(&'a Value),
    /// An object.
    Object(Value),
}

fn take_document(
    document: Value,
    items: &mut Vec<String>,
    take: &mut dyn FnMut(Entry<'_>),
) -> Result<(), ObjectsError> {
    ensure_complete(&document)?;
    take(Entry::Document(&document));
    for_each_object_of(document, items, &mut |object| take(Entry::Object(object)))
}

/// Splits a document whose items may be separate.
fn for_each_object_of(
    mut document: Value,
    items: &mut Vec<String>,
    take: &mut dyn FnMut(Value),
) -> Result<(), ObjectsError> {
    let mut objects = Vec::new();
    if items.is_empty() {
        flatten(document, None, &mut objects);
        objects.into_iter().for_each(take);
        return Ok(());
    }
    let Some(list) = document.as_object().and_then(ListKind::of) else {
        let items = items.drain(..).map(|item| parsed(&item)).collect::<Result<Vec<_>, _>>()?;
        document["items"] = Value::Array(items);
        flatten(document, None, &mut objects);
        objects.into_iter().for_each(take);
        return Ok(());
    };
    drop(document);
    for item in items.drain(..) {
        flatten(parsed(&item)?, Some(&list), &mut objects);
        objects.drain(..).for_each(&mut *take);
    }
    Ok(())
}

/// Parses the text of a value that was written by this program.
pub(super) fn parsed(text: &str) -> Result<Value, ObjectsError> {
    serde_json::from_str(text).map_err(|_| ObjectsError::Unpacked)
}

/// Splits documents into objects. A document of unknown form is kept as an object, so that nothing is lost.
#[must_use]
pub fn flattened(documents: Vec<Value>) -> Vec<Value> {
    let mut objects = Vec::new();
    documents.into_iter().for_each(|document| flatten(document, None, &mut objects));
    objects
}

/// Rejects a partial list, because the content of the rest is unknown.
fn ensure_complete(document: &Value) -> Result<(), ObjectsError> {
    let has_text = |path: &str| document.pointer(path).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if has_text("/metadata/continue") {
        return Err(ObjectsError::Incomplete("metadata.continue is set"));
    }
    if document.pointer("/metadata/remainingItemCount").and_then(Value::as_i64).is_some_and(|count| count > 0) {
        return Err(ObjectsError::Incomplete("metadata.remainingItemCount is not 0"));
    }
    // Page markers printed by command-line tools of clouds.
    for (path, found) in [
        ("/NextToken", "NextToken is set"),
        ("/nextToken", "nextToken is set"),
        ("/nextLink", "nextLink is set"),
        ("/nextPageToken", "nextPageToken is set"),
    ] {
        if has_text(path) && document.get("kind").is_none_or(|kind| kind.as_str().is_some_and(is_cloud_list)) {
            return Err(ObjectsError::Incomplete(found));
        }
    }
    Ok(())
}

/// GCP lists have kinds such as `compute#imageList`.
fn is_cloud_list(kind: &str) -> bool {
    kind.contains('#')
}

/// Adds the document itself, the items of a list, or the members of a bundle.
fn flatten(document: Value, kind: Option<&ListKind>, objects: &mut Vec<Value>) {
    match document {
        Value::Array(items) => items.into_iter().for_each(|item| flatten(item, kind, objects)),
        Value::Object(mut members) => {
            if let Some(kind) = kind {
                kind.complete(&mut members);
            }
            match ListKind::of(&members) {
                Some(list) => {
                    if let Some(Value::Array(items)) = members.remove("items") {
                        items.into_iter().for_each(|item| flatten(item, Some(&list), objects));
                    }
                }
                None if members.contains_key("kind") => objects.push(Value::Object(members)),
                None => flatten_bundle(members, objects),
            }
        }
        _ => {}
    }
}

/// Splits a document without a kind: its members with a role are objects; without any, the document itself is kept.
fn flatten_bundle(mut members: Map<String, Value>, objects: &mut Vec<Value>) {
    let before = objects.len();
    for (role, kind) in ROLES {
        if let Some(member) = members.remove(role) {
            let list = kind.map(|kind| ListKind { kind: kind.to_owned(), api_version: None });
            flatten(member, list.as_ref(), objects);
        }
    }
    let names: Vec<String> =
        members.iter().filter(|(_, member)| has_kind(member)).map(|(name, _)| name.clone()).collect();
    for name in names {
        if let Some(member) = members.remove(&name) {
            flatten(member, None, objects);
        }
    }
    if objects.len() == before {
        objects.push(Value::Object(members));
    }
}

fn has_kind(value: &Value) -> bool {
    value.get("kind").is_some() || value.get(0).is_some_and(|first| first.get("kind").is_some())
}

/// The kind of list items that omit theirs.
struct ListKind {
    kind: String,
    api_version: Option<Value>,
}

impl ListKind {
    /// Accepts `ShootList`, `List` and lists without a kind; `None` if it is not a list.
    fn of(members: &Map<String, Value>) -> Option<Self> {
        // Go serializes an empty list as null.
        if !members.get("items").is_some_and(|items| items.is_array() || items.is_null()) {
            return None;
        }
        let kind = match members.get("kind").and_then(Value::as_str) {
            Some(kind) => kind.strip_suffix("List")?,
            None => "",
        };
        let api_version = if kind.is_empty() { None } else { members.get("apiVersion").cloned() };
        Some(Self { kind: kind.to_owned(), api_version })
    }

    fn complete(&self, members: &mut Map<String, Value>) {
        if self.kind.is_empty() || members.contains_key("kind") {
            return;
        }
        members.insert("kind".to_owned(), self.kind.as_str().into());
        if let Some(api_version) = &self.api_version {
            members.entry("apiVersion").or_insert_with(|| api_version.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kind/name` of each object.
    fn names(text: &str) -> Vec<String> {
        let objects = objects(text).unwrap();
        let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        objects
            .iter()
            .map(|object| format!("{}/{}", part(&object["kind"]), part(&object["metadata"]["name"])))
            .collect()
    }

    #[test]
    fn reads_each_form_of_a_list() {
        let a = r#"{"kind":"Shoot","metadata":{"name":"a"}}"#;
        let bare = r#"{"metadata":{"name":"b"}}"#;
        for (text, expected) in [
            (format!("{a}\n{a}"), vec!["Shoot/a", "Shoot/a"]),
            (format!("{a}{a}"), vec!["Shoot/a", "Shoot/a"]),
            (format!("[{a}]"), vec!["Shoot/a"]),
            (format!("---\n{a}\n---\nkind: Shoot\nmetadata: {{name: c}}\n"), vec!["Shoot/a", "Shoot/c"]),
            (format!(r#"{{"kind":"List","items":[{a}]}}"#), vec!["Shoot/a"]),
            (format!(r#"{{"kind":"ShootList","apiVersion":"v1","items":[{bare}]}}"#), vec!["Shoot/b"]),
            (format!(r#"{{"items":[{a}]}}"#), vec!["Shoot/a"]),
            (r#"{"kind":"ShootList","items":null}"#.to_owned(), vec![]),
            (format!(r#"{{"worker":{bare},"cluster":{bare},"other":{a}}}"#), vec!["Worker/b", "Cluster/b", "Shoot/a"]),
        ] {
            assert_eq!(names(&text), expected, "{text}");
        }
    }

    #[test]
    fn passes_on_the_same_objects_one_by_one() {
        for text in [
            r#"{"kind":"ShootList","apiVersion":"v1","items":[{"metadata":{"name":"b"}}]}{"kind":"Shoot"}"#,
            r#"{"kind":"Shoot","items":[{"a":1.0}]}"#,
            r#"{"items":[{"kind":"List","items":[{"kind":"Shoot"}]}]}"#,
            r#"{"worker":{"metadata":{}},"zones":[1],"other":{"kind":"Shoot"}}"#,
            "items:\n- metadata: {name: a}\nkind: WorkerList\n---\nkind: Shoot\n",
            r#"{"metadata":{"continue":"x"},"items":[{}]}"#,
        ] {
            let mut passed = Vec::new();
            let result = for_each_object(text, &mut |entry| match entry {
                Entry::Document(_) => {}
                Entry::Object(object) => passed.push(object),
            });
            let passed = result.map(|()| passed).map_err(|error| error.to_string());
            assert_eq!(passed, objects(text).map_err(|error| error.to_string()), "{text}");
        }
    }

    #[test]
    fn refuses_incomplete_lists() {
        for (text, reason) in [
            (r#"{"kind":"List","metadata":{"continue":"x"},"items":[]}"#, "metadata.continue is set"),
            (
                r#"{"kind":"ShootList","metadata":{"remainingItemCount":1},"items":[]}"#,
                "metadata.remainingItemCount is not 0",
            ),
            (r#"{"Images":[],"NextToken":"x"}"#, "NextToken is set"),
            (r#"{"kind":"compute#imageList","nextPageToken":"x"}"#, "nextPageToken is set"),
        ] {
            let error = objects(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert_eq!(
            names(r#"{"kind":"List","metadata":{"continue":"","remainingItemCount":0},"items":[]}"#),
            Vec::<String>::new()
        );
    }
}
