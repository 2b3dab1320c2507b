//! The client that other clients must not block.

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
use test_support::https::{Connection, Reply, client_config};

pub(crate) const JSON: &str = "application/json";

/// A review that needs no cluster for its response.
pub(crate) fn query() -> Vec<u8> {
    garden_objects::review("pods", &json!({"metadata": {"name": "x", "namespace": "y"}}))
}

/// A request with a new connection.
pub(crate) async fn get(port: u16, path: &str) -> Result<()> {
    let (status, response) = http::get(port, path).await?;
    ensure!(status == 200, "{path}: {status} {response:?}");
    Ok(())
}

/// A review with a new connection.
pub(crate) async fn review(port: u16, path: &str) -> Result<()> {
    let response = Connection::open(port).await?.post(path, JSON, &query()).await?;
    is_allowed(&response)
}

/// Ensures that a response allows the review.
pub(crate) fn is_allowed(response: &Reply) -> Result<()> {
    ensure!(response.status == 200 && response.body.contains(r#""allowed":true"#), "{response:?}");
    Ok(())
}

/// Sends reviews as an API server does: over HTTP/2, with one connection as long as it lasts.
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

    /// Sends a review. Returns the local address of the connection.
    pub(crate) async fn review(&self) -> Result<SocketAddr> {
        let request = Request::post(&self.url).header(header::CONTENT_TYPE, JSON).body(Body::from(query()))?;
        let response = self.client.request(request).await.context("HTTP/2")?;
        let status = response.status().as_u16();
        let address = response.extensions().get::<HttpInfo>().context("no connection")?.local_addr();
        let body = to_bytes(Body::new(response.into_body()), 1 << 20).await?;
        is_allowed(&Reply { status, body: String::from_utf8(body.to_vec())? })?;
        Ok(address)
    }
}
