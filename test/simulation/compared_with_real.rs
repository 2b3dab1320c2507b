//! The API server of the simulation beside the real kube-apiserver: random scripts of requests go to both, and each answer and each
//! event of a watch has to be the same but for uids, times and the numbers of versions. A number counts by when it was seen first, so
//! that what writes nothing makes no version on either side.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use test_support::cluster::{self, ADMIN};

use crate::api_server::kinds::{Kind, LEASE, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET};
use crate::api_server::request::Request;
use crate::api_server::{Answer, ApiServer};
use crate::random::Random;

/// Scripts, and requests of each.
const SCRIPTS: u64 = 60;
const REQUESTS: u64 = 60;
/// What scripts are about.
const KINDS: [&Kind; 6] = [&MACHINE_CLASS, &MACHINE_SET, &MACHINE, &MACHINE_DEPLOYMENT, &SECRET, &LEASE];
const NAMES: [&str; 2] = ["one", "two"];
const MERGE: &str = "application/merge-patch+json";

/// A request in which uids and versions are named by the object that has them.
struct Step {
    kind: &'static Kind,
    method: &'static str,
    name: Option<&'static str>,
    subresource: &'static str,
    query: String,
    content_type: &'static str,
    body: Value,
}

/// Which version or uid of an object a request names.
const NEWEST: &str = "newest";
const OLD: &str = "old";
const WRONG: &str = "wrong";

/// One of both servers, with what it has answered.
struct Side {
    namespace: String,
    /// All versions of an object that were seen, the newest last, by kind and name; and its uid.
    versions: BTreeMap<(&'static str, String), Vec<String>>,
    uids: BTreeMap<(&'static str, String), String>,
    /// Versions in the order in which they were seen.
    order: Vec<String>,
}

/// What is compared of an answer.
#[derive(Debug, PartialEq)]
struct Compared {
    code: u16,
    body: Value,
}

impl Side {
    fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), versions: BTreeMap::new(), uids: BTreeMap::new(), order: Vec::new() }
    }

    fn request(&self, step: &Step) -> Request {
        let kind = step.kind;
        let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let mut path = format!("{group}/{}/namespaces/{}/{}", kind.version, self.namespace, kind.plural);
        for part in [step.name.unwrap_or_default(), step.subresource].into_iter().filter(|part| !part.is_empty()) {
            path = format!("{path}/{part}");
        }
        let body = match &step.body {
            Value::Null => Vec::new(),
            body => self.filled(step, body.clone()).to_string().into_bytes(),
        };
        Request {
            method: step.method.to_owned(),
            path,
            query: step.query.clone(),
            content_type: step.content_type.to_owned(),
            only_metadata: false,
            body,
        }
    }

    /// The body with the versions and uids of this side.
    fn filled(&self, step: &Step, mut body: Value) -> Value {
        let name = step.name.or_else(|| body["metadata"]["name"].as_str()).unwrap_or_default().to_owned();
        let key = (step.kind.kind, name);
        let versions = self.versions.get(&key).map(Vec::as_slice).unwrap_or_default();
        let version = |which: &str| match which {
            NEWEST => versions.last().cloned(),
            OLD => versions.first().cloned(),
            _ => Some("1".to_owned()),
        };
        let uid = |which: &str| match which {
            NEWEST => self.uids.get(&key).cloned(),
            _ => Some("00000000-1111-2222-3333-444444444444".to_owned()),
        };
        for holder in ["/metadata", "/preconditions"] {
            let Some(Value::Object(members)) = body.pointer_mut(holder) else { continue };
            for (member, of) in [("resourceVersion", &version as &dyn Fn(&str) -> Option<String>), ("uid", &uid)] {
                let Some(which) = members.get(member).and_then(Value::as_str).map(str::to_owned) else { continue };
                match of(&which) {
                    Some(value) => drop(members.insert(member.to_owned(), json!(value))),
                    None => drop(members.remove(member)),
                }
            }
        }
        if let Some(operations) = body.as_array_mut() {
            for operation in operations {
                if operation["path"] == "/metadata/uid" {
                    let which = operation["value"].as_str().unwrap_or_default().to_owned();
                    operation["value"] = json!(uid(&which));
                }
            }
        }
        body
    }

    /// What is compared, and what is learnt from it.
    fn learnt(&mut self, step: &Step, code: u16, text: &str) -> Compared {
        let mut body: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        if body["kind"] == "Status" {
            let said = json!({"status": body["status"], "reason": body["reason"]});
            return Compared { code, body: said };
        }
        match body["items"].as_array_mut() {
            Some(items) => {
                items.iter_mut().for_each(|item| self.normalize(step.kind, item));
                let has_more = !body["metadata"]["continue"].as_str().unwrap_or_default().is_empty();
                body = json!({"items": body["items"], "hasMore": has_more, "left": body["metadata"]["remainingItemCount"]});
            }
            None => self.normalize(step.kind, &mut body),
        }
        Compared { code, body }
    }

    fn normalize(&mut self, kind: &'static Kind, object: &mut Value) {
        let metadata = &object["metadata"];
        let text = |member: &str| metadata[member].as_str().unwrap_or_default().to_owned();
        let (key, version, uid) = ((kind.kind, text("name")), text("resourceVersion"), text("uid"));
        let known = self.versions.entry(key.clone()).or_default();
        if self.uids.insert(key, uid.clone()).is_some_and(|before| before != uid) {
            known.clear();
        }
        if !known.contains(&version) {
            known.push(version.clone());
        }
        let place = self.order.iter().position(|seen| *seen == version).unwrap_or_else(|| {
            self.order.push(version);
            self.order.len() - 1
        });
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        metadata.insert("resourceVersion".to_owned(), json!(place));
        metadata
            .retain(|member, _| !["uid", "managedFields", "namespace", "creationTimestamp"].contains(&member.as_str()));
        if let Some(time) = metadata.get_mut("deletionTimestamp") {
            *time = json!("set");
        }
        // A list of kinds that are built in leaves these out.
        if let Some(members) = object.as_object_mut() {
            members.retain(|member, _| !["kind", "apiVersion"].contains(&member.as_str()));
        }
    }
}

fn object(random: &Random, kind: &Kind, name: &str) -> Value {
    let number = random.below(3);
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}});
    match kind.kind {
        "MachineClass" => object["providerSpec"] = json!({"number": number}),
        "Machine" => {
            object["spec"] = json!({"class": {"kind": "MachineClass", "name": "a"}, "providerID": number.to_string()})
        }
        "Secret" => object["data"] = json!({"number": random.one_of(&["MA==", "MQ==", "Mg=="])}),
        "Lease" => object["spec"] = json!({"holderIdentity": number.to_string(), "leaseDurationSeconds": 15}),
        _ => {
            let template = json!({"metadata": {"labels": {"name": "a"}}, "spec": {"class": {"kind": "MachineClass", "name": "a"}}});
            object["spec"] =
                json!({"replicas": number, "selector": {"matchLabels": {"name": "a"}}, "template": template});
        }
    }
    if random.happens(500) {
        object["metadata"]["finalizers"] = json!(["example.org/a"]);
    }
    if random.happens(500) {
        object["metadata"]["labels"] = json!({"number": number.to_string()});
    }
    // What a kind does not know is dropped by its schema, which the model has none of.
    if kind.has_status && random.happens(200) {
        object["status"] = json!({"replicas": number});
    }
    object
}

/// A patch of a part of an object.
fn merge(random: &Random, kind: &Kind) -> Value {
    let number = random.below(3);
    let mut patch = match random.below(6) {
        0 => json!({"metadata": {"labels": {"number": number.to_string()}}}),
        1 => json!({"metadata": {"labels": null}}),
        2 => json!({"metadata": {"finalizers": ["example.org/a"]}}),
        3 => json!({"metadata": {"finalizers": null}}),
        4 => {
            json!({"metadata": {"finalizers": ["example.org/a", "example.org/b"], "annotations": {"a": number.to_string()}}})
        }
        _ => {
            let mut whole = object(random, kind, "any");
            let members = whole.as_object_mut().into_iter().flatten();
            let body = members.filter(|(member, _)| ["spec", "providerSpec", "data"].contains(&member.as_str()));
            let mut patch = json!({});
            body.for_each(|(member, value)| patch[member.as_str()] = value.clone());
            patch
        }
    };
    match random.below(4) {
        0 => patch["metadata"]["resourceVersion"] = json!(NEWEST),
        1 => patch["metadata"]["resourceVersion"] = json!(OLD),
        _ => {}
    }
    patch
}

fn step(random: &Random) -> Step {
    let kind = random.one_of(&KINDS).copied().unwrap_or(&SECRET);
    let name = random.one_of(&NAMES).copied().unwrap_or("one");
    let which = random.one_of(&[NEWEST, OLD, WRONG]).copied().unwrap_or(NEWEST);
    let base = Step {
        kind,
        method: "GET",
        name: Some(name),
        subresource: "",
        query: String::new(),
        content_type: "application/json",
        body: Value::Null,
    };
    match random.below(11) {
        0 | 1 | 2 => Step { method: "POST", name: None, body: object(random, kind, name), ..base },
        3 => base,
        4 => {
            let query = random.one_of(&[
                "",
                "labelSelector=number%3D1",
                "limit=1",
                "labelSelector=number",
                "fieldSelector=metadata.name%3Done",
            ]);
            Step { name: None, query: query.copied().unwrap_or_default().to_owned(), ..base }
        }
        5 => {
            let mut body = object(random, kind, name);
            if random.happens(800) {
                body["metadata"]["resourceVersion"] = json!(which);
            }
            if random.happens(300) {
                body["metadata"]["uid"] = json!(which);
            }
            Step { method: "PUT", body, ..base }
        }
        6 | 7 => Step { method: "PATCH", content_type: MERGE, body: merge(random, kind), ..base },
        8 => {
            let body = json!([{"op": "test", "path": "/metadata/uid", "value": which},
                              {"op": "add", "path": "/metadata/annotations", "value": {"patched": random.below(3).to_string()}}]);
            Step { method: "PATCH", content_type: "application/json-patch+json", body, ..base }
        }
        9 => {
            let mut body = json!({"status": {"replicas": random.below(3)}, "metadata": {"labels": {"of": "status"}}});
            if random.happens(300) {
                body["metadata"]["resourceVersion"] = json!(which);
            }
            Step { method: "PATCH", subresource: "status", content_type: MERGE, body, ..base }
        }
        _ => {
            let body = if random.happens(500) { json!({"preconditions": {"uid": which}}) } else { Value::Null };
            Step { method: "DELETE", body, ..base }
        }
    }
}

async fn asked_real(client: &Client, request: &Request) -> Result<(u16, String)> {
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    let asked = axum::http::Request::builder()
        .method(request.method.as_str())
        .uri(format!("{}{query}", request.path))
        .header("content-type", &request.content_type)
        .body(Body::from(request.body.clone()))?;
    let answer = client.send(asked).await?;
    let code = answer.status().as_u16();
    let body = axum::body::to_bytes(axum::body::Body::new(answer.into_body()), usize::MAX).await?;
    Ok((code, String::from_utf8(body.to_vec())?))
}

fn asked_model(server: &ApiServer, request: &Request) -> (u16, String) {
    match server.answer("script", request) {
        Answer::Body { code, text } => (code, text),
        Answer::Watch(mut watching) => {
            let events = std::iter::from_fn(|| watching.next(&server.store()));
            (200, events.collect())
        }
    }
}

/// The events of all kinds since a version, as they are compared.
fn events(side: &mut Side, kind: &'static Kind, text: &str) -> Vec<(Value, Value)> {
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events
        .map(|mut event| {
            side.normalize(kind, &mut event["object"]);
            (event["type"].clone(), event["object"].clone())
        })
        .collect()
}

async fn script(client: &Client, namespace: &str, seed: u64) -> Result<Vec<String>> {
    let random = Random::of(seed);
    let server = ApiServer::new(Timestamp::now);
    let (mut real, mut model) = (Side::new(namespace), Side::new(namespace));
    let listed = Step { name: None, ..step_of(&SECRET) };
    let start = |text: &str| -> String {
        let list: Value = serde_json::from_str(text).unwrap_or_default();
        list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    };
    let starts = [
        start(&asked_real(client, &real.request(&listed)).await?.1),
        start(&asked_model(&server, &model.request(&listed)).1),
    ];
    let mut found = Vec::new();
    for number in 0..REQUESTS {
        let step = step(&random);
        let request = real.request(&step);
        let (code, text) = asked_real(client, &request).await?;
        let answered = real.learnt(&step, code, &text);
        let (code, of_model) = asked_model(&server, &model.request(&step));
        let modelled = model.learnt(&step, code, &of_model);
        if answered != modelled {
            found.push(format!(
                "script {seed}, request {number}: {} {}?{} {} {}\n  real:  {answered:?} {}\n  model: {modelled:?}",
                request.method,
                request.path,
                request.query,
                request.content_type,
                String::from_utf8_lossy(&request.body),
                if code >= 400 { text.as_str() } else { "" },
            ));
            break;
        }
    }
    if found.is_empty() {
        for kind in KINDS {
            let query = |start: &str| format!("watch=true&timeoutSeconds=1&resourceVersion={start}");
            let watch = |start: &str| Step { name: None, query: query(start), ..step_of(kind) };
            let (_, text) = asked_real(client, &real.request(&watch(&starts[0]))).await?;
            let shown = events(&mut real, kind, &text);
            let (_, text) = asked_model(&server, &model.request(&watch(&starts[1])));
            let modelled = events(&mut model, kind, &text);
            if let Some((shown, modelled)) = shown.iter().zip(&modelled).find(|(shown, modelled)| shown != modelled) {
                found.push(format!(
                    "script {seed}, watch of {}:\n  real:  {shown:?}\n  model: {modelled:?}",
                    kind.plural
                ));
            } else if shown.len() != modelled.len() {
                found.push(format!(
                    "script {seed}, watch of {}: {} events, not {}",
                    kind.plural,
                    shown.len(),
                    modelled.len()
                ));
            }
        }
    }
    Ok(found)
}

fn step_of(kind: &'static Kind) -> Step {
    Step {
        kind,
        method: "GET",
        name: None,
        subresource: "",
        query: String::new(),
        content_type: "application/json",
        body: Value::Null,
    }
}

#[tokio::test]
async fn the_api_server_answers_as_the_real_one() -> Result<()> {
    let control_plane = cluster::shared().await?;
    let client = control_plane.client(ADMIN).await?;
    let mut found = Vec::new();
    for seed in 0..SCRIPTS {
        let namespace = control_plane.namespace("compared").await?;
        found.extend(script(&client, &namespace, seed).await.with_context(|| format!("script {seed}"))?);
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    Ok(())
}
