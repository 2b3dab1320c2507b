//! Digests of all created objects, without values that the API server or the time determines. The load with which the
//! Go extension was measured prints the same digests.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use serde::Serialize as _;
use serde_json::ser::Formatter;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::load::resource;

/// Digests for the Go extension after the whole load: 100 Workers, 3 pools, 3 zones, created, reconciled twice, rolled.
pub(crate) const OF_THE_GO_EXTENSION: [(&str, &str); 3] = [
    ("machinedeployments", "11cb0bb0e225d915"),
    ("machineclasses", "9f439464b34ee973"),
    ("secrets", "a6f2389f65e43833"),
];

const MACHINES: &str = "machine.sapcloud.io/v1alpha1";
/// Prefix of this controller's annotations, which the Go extension does not write.
const OURS: &str = "gardener-extension-worker/";

/// Digests of deployments, classes, class Secrets and Workers.
pub(crate) async fn digests(client: &Client) -> Result<BTreeMap<&'static str, String>> {
    let mut digests = BTreeMap::new();
    for (what, group_version, kind, selector) in [
        ("machinedeployments", MACHINES, "MachineDeployment", None),
        ("machineclasses", MACHINES, "MachineClass", None),
        ("secrets", "v1", "Secret", Some("gardener.cloud/purpose=machineclass")),
        ("workers", "extensions.gardener.cloud/v1alpha1", "Worker", None),
    ] {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(group_version, kind));
        let parameters = selector.map_or_else(ListParams::default, |selector| ListParams::default().labels(selector));
        let objects = api.list(&parameters).await?.items;
        let objects =
            objects.into_iter().map(|object| Ok(serde_json::to_value(object)?)).collect::<Result<Vec<_>>>()?;
        let mut cleaned: Vec<Value> =
            objects.into_iter().map(if kind == "Worker" { of_worker } else { clean }).collect();
        cleaned.sort_by_key(|object| {
            ["namespace", "name"].map(|member| object["metadata"][member].as_str().map(str::to_owned))
        });
        digests.insert(what, digest(&json!(cleaned))?);
    }
    Ok(digests)
}

fn clean(mut object: Value) -> Value {
    let metadata = object["metadata"].take();
    let mut kept = Map::new();
    for member in ["name", "namespace", "labels", "annotations"] {
        let mut value = metadata[member].clone();
        if let (true, Some(annotations)) = (member == "annotations", value.as_object_mut()) {
            annotations.retain(|key, _| !key.starts_with(OURS));
        }
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            kept.insert(member.to_owned(), value);
        }
    }
    if let Some(members) = object.as_object_mut() {
        ["status", "apiVersion", "kind"].into_iter().for_each(|member| drop(members.remove(member)));
    }
    object["metadata"] = Value::Object(kept);
    // Older versions of the Go extension write nulls here.
    for metadata in ["/spec/template/metadata", "/spec/template/spec/nodeTemplate/metadata"] {
        if let Some(members) = object.pointer_mut(metadata).and_then(Value::as_object_mut) {
            members.retain(|key, value| key != "creationTimestamp" || !value.is_null());
        }
    }
    object
}

fn of_worker(object: Value) -> Value {
    json!({
        "metadata": {"namespace": object["metadata"]["namespace"]}, "finalizers": object["metadata"]["finalizers"],
        "providerStatus": object["status"]["providerStatus"], "machineDeployments": object["status"]["machineDeployments"],
    })
}

/// The first 16 hex digits of SHA-256 over JSON with sorted members and a blank after each comma and colon.
fn digest(value: &Value) -> Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Blanks))?;
    let mut digits = hex::encode(Sha256::digest(&text));
    digits.truncate(16);
    Ok(digits)
}

struct Blanks;

impl Formatter for Blanks {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
