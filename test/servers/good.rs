//! The client that everybody else must not hold up.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{HttpConnector, HttpInfo};
use hyper_util::rt::TokioExecutor;
use serde_json::json;

use test_support::garden_objects;
use test_support::http;
use test_support::https::{Answer, Connection, client_config};

pub(crate) const JSON: &str = "application/json";

/// A question that is answered without a cluster.
pub(crate) fn question() -> Vec<u8> {
    garden_objects::review("pods", &json!({"metadata": {"name": "x", "namespace": "y"}}))
}

/// A request with a new connection.
pub(crate) async fn get(port: u16, path: &str) -> Result<()> {
    let (status, answer) = http::get(port, path).await?;
    ensure!(status == 200, "{path}: {status} {answer:?}");
    Ok(())
}

/// A review with a new connection.
pub(crate) async fn review(port: u16, path: &str) -> Result<()> {
    let answer = Connection::open(port).await?.post(path, JSON, &question()).await?;
    is_allowed(&answer)
}

/// Whether that is the answer to a review.
pub(crate) fn is_allowed(answer: &Answer) -> Result<()> {
    ensure!(answer.status == 200 && answer.body.contains(r#""allowed":true"#), "{answer:?}");
    Ok(())
}

/// Asks as an API server does: over HTTP/2, with one connection as long as it lasts.
pub(crate) struct ApiServer {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    url: String,
}

impl ApiServer {
    pub(crate) fn new(port: u16, path: &str) -> Result<Self> {
        let config = client_config(&[], Arc::default())?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http2().build();
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
        Ok(Self { client, url: format!("https://127.0.0.1:{port}{path}") })
    }

    /// Asks; returns the own address of the connection that was taken.
    pub(crate) async fn review(&self) -> Result<SocketAddr> {
        let request = Request::post(&self.url).header(header::CONTENT_TYPE, JSON).body(Body::from(question()))?;
        let answer = self.client.request(request).await.context("HTTP/2")?;
        let status = answer.status().as_u16();
        let address = answer.extensions().get::<HttpInfo>().context("no connection")?.local_addr();
        let body = to_bytes(Body::new(answer.into_body()), 1 << 20).await?;
        is_allowed(&Answer { status, body: String::from_utf8(body.to_vec())? })?;
        Ok(address)
    }
}
