//! Compares the simulated API server with the real kube-apiserver. Random scripts of requests are sent to both. All
//! responses and watch events must be equal except for uids, times, error texts and resource versions. Resource
//! versions are numbered in order of first appearance, so a request without effect must not create a version on either
//! side.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use test_support::cluster::{self, ADMIN};

use crate::api_server::kinds::{
    DEPLOYMENT, Kind, LEASE, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET, WORKER,
};
use crate::api_server::request::Request;
use crate::api_server::{ApiServer, Reply};
use crate::random::Random;

/// Number of scripts, concurrent scripts, and requests per script.
const SCRIPTS: u64 = 120;
const SIDE_BY_SIDE: usize = 20;
const REQUESTS: u64 = 80;
/// Kinds used in scripts.
const KINDS: [&Kind; 8] =
    [&WORKER, &MACHINE_CLASS, &MACHINE_SET, &MACHINE, &MACHINE_DEPLOYMENT, &SECRET, &LEASE, &DEPLOYMENT];
const NAMES: [&str; 3] = ["one", "two", "three"];
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
/// Placeholders for resource versions, uids and page tokens, which differ between the sides.
const NEWEST: &str = "newest";
const OLD: &str = "old";
const WRONG: &str = "wrong";
const NEXT_PAGE: &str = "NEXT_PAGE";
/// The real watch takes this many seconds. All watches of a script run concurrently.
const WATCH: &str = "watch=true&allowWatchBookmarks=true&timeoutSeconds=4";

/// A request with placeholders for uids, resource versions and page tokens.
#[derive(Clone)]
struct Step {
    kind: &'static Kind,
    method: &'static str,
    name: Option<&'static str>,
    subresource: &'static str,
    query: String,
    content_type: &'static str,
    only_metadata: bool,
    body: Value,
}

impl Step {
    /// Reads one object, or lists a kind.
    fn read(kind: &'static Kind, name: Option<&'static str>, query: &str) -> Self {
        let (subresource, content_type) = ("", JSON);
        let query = query.to_owned();
        Self { kind, method: "GET", name, subresource, query, content_type, only_metadata: false, body: Value::Null }
    }

    fn random(random: &Random) -> Self {
        let kind = random.one_of(&KINDS).copied().unwrap_or(&SECRET);
        let name = random.one_of(&NAMES).copied().unwrap_or("one");
        let which = random.one_of(&[NEWEST, OLD, WRONG]).copied().unwrap_or(NEWEST);
        let only_metadata = random.happens(200);
        let base = Self::read(kind, Some(name), "");
        match random.below(13) {
            0..3 => Self { method: "POST", name: None, body: object(random, kind, name), ..base },
            3 => Self { only_metadata, ..base },
            4..6 => {
                let next = format!("limit=1&continue={NEXT_PAGE}");
                let queries =
                    ["", "labelSelector=number%3D1", "labelSelector=number", "fieldSelector=metadata.name%3Done"];
                let mut queries: Vec<String> = queries.map(str::to_owned).to_vec();
                queries.extend([next.clone(), next, "limit=1".to_owned(), "limit=2".to_owned()]);
                let query = random.one_of(&queries).cloned().unwrap_or_default();
                Self { name: None, query, only_metadata, ..base }
            }
            6 => {
                let mut body = object(random, kind, name);
                if random.happens(800) {
                    body["metadata"]["resourceVersion"] = json!(which);
                }
                if random.happens(300) {
                    body["metadata"]["uid"] = json!(which);
                }
                Self { method: "PUT", body, ..base }
            }
            7..9 => Self { method: "PATCH", content_type: MERGE, body: merge(random, kind), ..base },
            9 => {
                let annotations = json!({"patched": random.below(3).to_string()});
                let test = json!({"op": "test", "path": "/metadata/uid", "value": which});
                let change = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
                let body = json!([test, change("/metadata/annotations", annotations)]);
                let metadata = Self { method: "PATCH", content_type: JSON_PATCH, body, ..base };
                if random.happens(500) {
                    return metadata;
                }
                // Removes a member that may not exist.
                let body = json!([test, change("/status", status(random, kind)), change("/status/gone", json!({})),
                                  {"op": "remove", "path": "/status/gone"}]);
                Self { subresource: "status", body, ..metadata }
            }
            10 => {
                let mut body = json!({"status": status(random, kind), "metadata": {"labels": {"of": "status"}}});
                if random.happens(300) {
                    body["metadata"]["resourceVersion"] = json!(which);
                }
                Self { method: "PATCH", subresource: "status", content_type: MERGE, body, ..base }
            }
            11 => {
                // Even an unchanged number would be a write in the real server, because of managed fields, which the
                // simulation lacks.
                let mut body = json!({"spec": {"replicas": 3 + random.below(1_000_000)}});
                if random.happens(500) {
                    body["metadata"]["resourceVersion"] = json!(which);
                }
                let base = Self::read(&DEPLOYMENT, Some(name), "");
                Self { method: "PATCH", subresource: "scale", content_type: MERGE, body, ..base }
            }
            _ => {
                let member = random.one_of(&["uid", "resourceVersion"]).copied().unwrap_or("uid");
                let body = if random.happens(500) { json!({"preconditions": {member: which}}) } else { Value::Null };
                Self { method: "DELETE", body, ..base }
            }
        }
    }
}

/// One of the servers, with the values learnt from its responses.
#[derive(Default)]
struct Side {
    namespace: String,
    /// Observed resource versions by kind and name, newest last, and the current uid.
    versions: BTreeMap<(&'static str, String), Vec<String>>,
    uids: BTreeMap<(&'static str, String), String>,
    /// Continue tokens of lists by kind.
    pages: BTreeMap<&'static str, String>,
    /// Resource versions in order of first appearance.
    order: Vec<String>,
}

/// The compared parts of a response.
#[derive(Debug, PartialEq)]
struct Compared {
    code: u16,
    body: Value,
}

impl Side {
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
        let query = step.query.replace(NEXT_PAGE, self.pages.get(kind.kind).map_or("", String::as_str));
        let (method, content_type) = (step.method.to_owned(), step.content_type.to_owned());
        Request { method, path, query, content_type, only_metadata: step.only_metadata, body }
    }

    /// Fills placeholders with this side's resource versions and uids.
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
        for operation in body.as_array_mut().into_iter().flatten().filter(|it| it["path"] == "/metadata/uid") {
            let which = operation["value"].as_str().unwrap_or_default().to_owned();
            operation["value"] = json!(uid(&which));
        }
        body
    }

    /// Normalizes a response, and learns its values.
    fn learnt(&mut self, step: &Step, code: u16, text: &str) -> Compared {
        let mut body: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        if body["kind"] == "Status" {
            let message = json!({"status": body["status"], "reason": body["reason"]});
            return Compared { code, body: message };
        }
        if body["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
            let items = body["items"].as_array_mut().into_iter().flatten();
            items.for_each(|item| self.normalize(step.kind, item));
            let next = body["metadata"]["continue"].as_str().unwrap_or_default().replace('=', "%3D");
            body = json!({"kind": body["kind"], "items": body["items"], "hasMore": !next.is_empty(),
                          "left": body["metadata"]["remainingItemCount"]});
            if step.query.starts_with("limit=1") {
                self.pages.insert(step.kind.kind, next);
            }
        } else {
            self.normalize(step.kind, &mut body);
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
        let location = self.order.iter().position(|seen| *seen == version).unwrap_or_else(|| {
            self.order.push(version);
            self.order.len() - 1
        });
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        metadata.insert("resourceVersion".to_owned(), json!(location));
        metadata
            .retain(|member, _| !["uid", "managedFields", "namespace", "creationTimestamp"].contains(&member.as_str()));
        if let Some(time) = metadata.get_mut("deletionTimestamp") {
            *time = json!("set");
        }
        // Lists of built-in kinds omit these members. Defaults of a Deployment are irrelevant.
        if let Some(members) = object.as_object_mut() {
            members.retain(|member, _| !["kind", "apiVersion"].contains(&member.as_str()));
            if kind == &DEPLOYMENT
                && let Some(spec) = members.get_mut("spec")
            {
                *spec = json!({"replicas": spec["replicas"]});
                members.remove("status");
            }
        }
    }
}

/// An object that conforms to the schema of its kind, because the simulation has no schemas.
fn object(random: &Random, kind: &Kind, name: &str) -> Value {
    let number = random.below(3);
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}});
    let (member, body) = body(kind, number, random);
    object[member] = body;
    if random.happens(500) {
        object["metadata"]["finalizers"] = json!(["example.org/a"]);
    }
    if random.happens(500) {
        object["metadata"]["labels"] = json!({"number": number.to_string()});
    }
    if random.happens(50) {
        object["metadata"]["resourceVersion"] = json!(WRONG);
    }
    if kind.has_status && random.happens(200) {
        object["status"] = status(random, kind);
    }
    object
}

/// The main member of a kind's objects, with its value.
fn body(kind: &Kind, number: u64, random: &Random) -> (&'static str, Value) {
    let class = json!({"kind": "MachineClass", "name": "a"});
    let spec = match kind.kind {
        "MachineClass" => return ("providerSpec", json!({"number": number})),
        "Secret" => return ("data", json!({"number": random.one_of(&["MA==", "MQ==", "Mg=="])})),
        "Machine" => json!({"class": class, "providerID": number.to_string()}),
        "Lease" => json!({"holderIdentity": number.to_string(), "leaseDurationSeconds": 15}),
        "Worker" => {
            json!({"type": "local", "region": number.to_string(), "secretRef": {"name": "a", "namespace": "b"}, "pools": []})
        }
        "Deployment" => {
            let pod = json!({"containers": [{"name": "a", "image": "b"}]});
            let template = json!({"metadata": {"labels": {"name": "a"}}, "spec": pod});
            json!({"replicas": number, "selector": {"matchLabels": {"name": "a"}}, "template": template})
        }
        _ => {
            let template = json!({"metadata": {"labels": {"name": "a"}}, "spec": {"class": class}});
            json!({"replicas": number, "selector": {"matchLabels": {"name": "a"}}, "template": template})
        }
    };
    ("spec", spec)
}

fn status(random: &Random, kind: &Kind) -> Value {
    let number = random.below(3);
    match kind.kind {
        "Worker" => json!({"observedGeneration": number}),
        "Machine" => json!({"currentStatus": {"phase": number.to_string()}}),
        // Built-in kinds omit zeros, and the controller never writes their status.
        "Deployment" => json!({"replicas": number + 1}),
        _ => json!({"replicas": number}),
    }
}

/// A merge patch for part of an object.
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
            let (member, body) = body(kind, number, random);
            json!({ member: body })
        }
    };
    match random.below(4) {
        0 => patch["metadata"]["resourceVersion"] = json!(NEWEST),
        1 => patch["metadata"]["resourceVersion"] = json!(OLD),
        _ => {}
    }
    if random.happens(100) {
        patch["metadata"]["uid"] = json!(random.one_of(&[NEWEST, WRONG]));
    }
    patch
}

async fn requested_real(client: &Client, request: Request) -> Result<(u16, String)> {
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    // Plurals of kinds end with `s`, but names of objects do not.
    let of_list = request.path.ends_with('s');
    let accepted = match (request.only_metadata, of_list) {
        (false, _) => JSON,
        (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    };
    let requested = axum::http::Request::builder()
        .method(request.method.as_str())
        .uri(format!("{}{query}", request.path))
        .header("content-type", &request.content_type)
        .header("accept", accepted)
        .body(Body::from(request.body))?;
    let response = client.send(requested).await?;
    let code = response.status().as_u16();
    let body = axum::body::to_bytes(axum::body::Body::new(response.into_body()), usize::MAX).await?;
    Ok((code, String::from_utf8(body.to_vec())?))
}

fn requested_model(server: &ApiServer, request: &Request) -> (u16, String) {
    match server.response("script", request) {
        Reply::Body { code, text } => (code, text),
        Reply::Watch(mut watching) => {
            let events = std::iter::from_fn(|| watching.next(&server.store()));
            (200, events.collect())
        }
    }
}

/// Normalized watch events. Omits bookmarks, whose timing varies, except the one after the initial events.
fn events(side: &mut Side, kind: &'static Kind, (code, text): (u16, String)) -> Vec<Value> {
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let end_of_list = |event: &Value| event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
    let events = events.filter(|event| event["type"] != "BOOKMARK" || end_of_list(event)).map(|mut event| {
        match event["type"].as_str() {
            Some("ERROR") => {
                event["object"] = json!({"reason": event["object"]["reason"], "code": event["object"]["code"]})
            }
            Some("BOOKMARK") => event["object"] = Value::Null,
            _ => side.normalize(kind, &mut event["object"]),
        }
        event
    });
    [vec![json!(code)], events.collect()].concat()
}

/// Runs a script on both sides and returns the first difference.
async fn script(client: &Client, namespace: String, seed: u64) -> Result<Option<String>> {
    let random = Random::of(seed);
    let server = ApiServer::new(Timestamp::now);
    // The real server has compacted its first revision.
    server.compact();
    let side = || Side { namespace: namespace.clone(), ..Side::default() };
    let (mut real, mut model) = (side(), side());
    let version_of = |text: &str| -> String {
        let list: Value = serde_json::from_str(text).unwrap_or_default();
        list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    };
    let list = Step::read(&SECRET, None, "");
    let starts = [
        version_of(&requested_real(client, real.request(&list)).await?.1),
        version_of(&requested_model(&server, &model.request(&list)).1),
    ];
    for number in 0..REQUESTS {
        let step = Step::random(&random);
        let request = real.request(&step);
        let requested =
            format!("{} {}?{} {}", request.method, request.path, request.query, String::from_utf8_lossy(&request.body));
        let (code, text) = requested_real(client, request).await?;
        let responded = real.learnt(&step, code, &text);
        let (code, of_model) = requested_model(&server, &model.request(&step));
        let modelled = model.learnt(&step, code, &of_model);
        if responded != modelled {
            let message = if responded.code >= 400 { text.as_str() } else { "" };
            return Ok(Some(format!(
                "script {seed}, request {number}: {requested} metadata: {}\n  real:  {responded:?} {message}\n  model: {modelled:?}",
                step.only_metadata
            )));
        }
    }
    // Watch from the beginning of the script, and with initial events.
    let queries = |start: &str| {
        let all = [
            format!("&resourceVersion={start}"),
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        ];
        all.map(|query| format!("{WATCH}{query}"))
    };
    let watches = |start: &str| -> Vec<Step> {
        let of_kind = |kind| queries(start).map(|query| Step::read(kind, None, &query));
        KINDS.into_iter().flat_map(of_kind).collect()
    };
    let requested = watches(&starts[0]);
    let output = future::try_join_all(requested.iter().map(|step| requested_real(client, real.request(step)))).await?;
    for ((step, output), same) in requested.iter().zip(output).zip(watches(&starts[1])) {
        let output = events(&mut real, step.kind, output);
        let modelled = requested_model(&server, &model.request(&same));
        let modelled = events(&mut model, same.kind, modelled);
        if output != modelled {
            let first = output.iter().zip(&modelled).position(|(output, modelled)| output != modelled);
            let at = first.unwrap_or(output.len().min(modelled.len()));
            return Ok(Some(format!(
                "script {seed}, watch of {}, {}: {} events and {}, event {at}\n  real:  {:?}\n  model: {:?}",
                step.kind.plural,
                step.query,
                output.len(),
                modelled.len(),
                output.get(at),
                modelled.get(at)
            )));
        }
    }
    Ok(None)
}

#[tokio::test]
async fn simulated_api_server_responds_as_the_real_one() -> Result<()> {
    let control_plane = cluster::shared().await?;
    let client = control_plane.client(ADMIN).await?;
    let compared = stream::iter(0..SCRIPTS).map(async |seed| {
        let namespace = control_plane.namespace("compared").await?;
        script(&client, namespace, seed).await.with_context(|| format!("script {seed}"))
    });
    let found: Vec<Option<String>> = compared.buffered(SIDE_BY_SIDE).try_collect().await?;
    let found: Vec<String> = found.into_iter().flatten().collect();
    ensure!(found.is_empty(), "{} of {SCRIPTS} scripts differ:\n{}", found.len(), found.join("\n"));
    Ok(())
}
