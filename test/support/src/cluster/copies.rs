//! Creates thousands of shoots within minutes by copying a namespace's keys in etcd. All namespaces have names of the
//! same length, so that protobuf values stay valid.

use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::ControlPlane;

/// Namespaces copied concurrently.
const SIDE_BY_SIDE: usize = 4;
/// Limit of etcd for the operations of a transaction.
const OPERATIONS: usize = 100;
/// Pattern of the API server's UIDs: `x` is any hexadecimal digit.
const UID: &[u8; 36] = b"xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
/// Digits of a UID that distinguish copies.
const DIGITS_OF_COPY: usize = 8;

/// A key and value in etcd, with the positions of namespace and UIDs.
struct Stored {
    key: Text,
    value: Text,
}

struct Text {
    bytes: Vec<u8>,
    namespaces: Vec<Range<usize>>,
    uids: Vec<Range<usize>>,
}

impl Text {
    fn of(bytes: Vec<u8>, namespace: &str) -> Self {
        let locations = |length: usize, is_it: &dyn Fn(&[u8]) -> bool| {
            let windows = bytes.windows(length).enumerate();
            windows.filter(|(_, window)| is_it(window)).map(|(start, _)| start..start + length).collect::<Vec<_>>()
        };
        let namespaces = locations(namespace.len(), &|window| window == namespace.as_bytes());
        let uids = locations(UID.len(), &is_uid);
        let uids = uids.into_iter().map(|location| location.start..location.start + DIGITS_OF_COPY).collect();
        Self { namespaces, uids, bytes }
    }

    /// The copy for another namespace.
    fn copied(&self, namespace: &str, copy: &str) -> String {
        let mut bytes = self.bytes.clone();
        for location in &self.namespaces {
            bytes[location.clone()].copy_from_slice(namespace.as_bytes());
        }
        for location in &self.uids {
            bytes[location.clone()].copy_from_slice(copy.as_bytes());
        }
        STANDARD.encode(bytes)
    }
}

fn is_uid(text: &[u8]) -> bool {
    text.iter().zip(UID).all(|(byte, form)| match form {
        b'x' => byte.is_ascii_hexdigit(),
        other => byte == other,
    })
}

impl ControlPlane {
    /// Copies a namespace with all objects except events, and its Cluster, to namespaces that do not exist yet.
    pub async fn copy_namespace(&self, from: &str, to: &[String]) -> Result<()> {
        ensure!(to.iter().all(|namespace| namespace.len() == from.len()), "names are not of the same length");
        let etcd = Etcd { server: self.etcd_server(), client: Client::builder(TokioExecutor::new()).build_http() };
        let stored = etcd.of_namespace(from).await?;
        ensure!(!stored.is_empty(), "nothing is in {from}");
        let copies = to.iter().zip(1_u32..).map(|(namespace, number)| etcd.write(&stored, namespace, number));
        stream::iter(copies).buffer_unordered(SIDE_BY_SIDE).try_collect().await
    }
}

/// etcd's JSON API.
struct Etcd<'a> {
    server: &'a str,
    client: Client<HttpConnector, Body>,
}

impl Etcd<'_> {
    async fn of_namespace(&self, namespace: &str) -> Result<Vec<Stored>> {
        let all = json!({"key": STANDARD.encode("/registry/"), "range_end": STANDARD.encode("/registry0")});
        let response = self.request("range", &all).await?;
        let mut stored = Vec::new();
        for held in response["kvs"].as_array().into_iter().flatten() {
            let [key, value] =
                ["key", "value"].map(|member| STANDARD.decode(held[member].as_str().unwrap_or_default()));
            let (key, value) = (String::from_utf8(key?)?, value?);
            if key.split('/').any(|part| part == namespace) && !key.starts_with("/registry/events/") {
                stored.push(Stored { key: Text::of(key.into(), namespace), value: Text::of(value, namespace) });
            }
        }
        Ok(stored)
    }

    async fn write(&self, stored: &[Stored], namespace: &str, number: u32) -> Result<()> {
        let copy = format!("{number:0DIGITS_OF_COPY$x}");
        for stored in stored.chunks(OPERATIONS) {
            let puts = stored.iter().map(|Stored { key, value }| {
                json!({"request_put": {"key": key.copied(namespace, &copy), "value": value.copied(namespace, &copy)}})
            });
            let written = self.request("txn", &json!({"success": puts.collect::<Vec<_>>()})).await?;
            ensure!(written["succeeded"] == true, "{namespace}: {written}");
        }
        Ok(())
    }

    async fn request(&self, what: &str, query: &Value) -> Result<Value> {
        let request = Request::builder().method(Method::POST).uri(format!("{}/v3/kv/{what}", self.server));
        let response =
            self.client.request(request.body(Body::from(query.to_string()))?).await.context("asking etcd")?;
        let status = response.status();
        let text = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX).await?;
        ensure!(status.is_success(), "etcd answers {status}: {}", String::from_utf8_lossy(&text));
        Ok(serde_json::from_slice(&text)?)
    }
}
