//! Endpoints for operators: liveness, readiness, metrics and the log level.

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::process::http_server::{BodyMemory, Server, listen};
use crate::process::logs::LogSwitch;
use crate::process::readiness::Readiness;

/// Maximum number of connections per port, far more than kubelet, some metrics collectors and a person need.
const CONNECTIONS: usize = 128;
/// Maximum size of a new log level, and memory for all such requests together.
const LARGEST_DIRECTIVES: usize = 16 << 10;
const DIRECTIVES: usize = 256 << 10;

/// Source of the metrics.
pub trait MetricsText: Send + Sync {
    /// All metrics in the OpenMetrics format.
    fn text(&self) -> String;
}

/// State behind the endpoints.
#[derive(Clone)]
pub struct Operations {
    pub readiness: Readiness,
    pub metrics: Arc<dyn MetricsText>,
    pub logs: LogSwitch,
}

/// Listens immediately, so that a port in use ends the process. The returned future serves and only ends with an
/// error.
pub fn serve(
    health_port: Option<u16>,
    metrics_port: Option<u16>,
    operations: Operations,
) -> anyhow::Result<impl Future<Output = anyhow::Error>> {
    let health = health_port.map(|port| listen(port).context("--health-port")).transpose()?;
    let metrics = metrics_port.map(|port| listen(port).context("--metrics-port")).transpose()?;
    Ok(async move {
        let measured = Arc::clone(&operations.metrics);
        let serve = async |listener: Option<TcpListener>, server: Server| match listener {
            None => pending().await,
            Some(listener) => server.serve(listener, pending()).await,
        };
        tokio::select! {
            () = serve(health, health_server(operations)) => {}
            () = serve(metrics, metrics_server(measured)) => {}
        }
        anyhow::anyhow!("a server has ended")
    })
}

/// Serves `/healthz`, `/readyz` and `/log-level`.
fn health_server(operations: Operations) -> Server {
    let bodies = BodyMemory::new(LARGEST_DIRECTIVES, DIRECTIVES);
    let set_log_level =
        async move |State(operations), peer, request| set_log_level(operations, &bodies, peer, request).await;
    let router = Router::new()
        // Liveness never depends on the API server.
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/log-level", get(log_level).put(set_log_level))
        .with_state(operations);
    Server::new("health", CONNECTIONS, router)
}

/// Serves `/metrics`.
fn metrics_server(metrics: Arc<dyn MetricsText>) -> Server {
    let router = Router::new().route("/metrics", get(metrics_text)).with_state(metrics);
    Server::new("metrics", CONNECTIONS, router)
}

async fn readyz(State(operations): State<Operations>) -> Response {
    match operations.readiness.report() {
        Ok(text) => text.into_response(),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing).into_response(),
    }
}

async fn metrics_text(State(metrics): State<Arc<dyn MetricsText>>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.text()).into_response()
}

async fn log_level(State(operations): State<Operations>) -> String {
    format!("{}\n", operations.logs.directives())
}

/// Only allowed from the pod itself (`kubectl exec`, `kubectl port-forward`), because a verbose log can fill a disk.
async fn set_log_level(
    operations: Operations,
    bodies: &Arc<BodyMemory>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if !peer.ip().to_canonical().is_loopback() {
        return (StatusCode::FORBIDDEN, "the log level is changed from the pod itself only\n").into_response();
    }
    let directives = match bodies.read(request).await {
        Ok((directives, _memory)) => directives,
        Err(error) => return (error.status(), format!("{error}\n")).into_response(),
    };
    let Ok(directives) = std::str::from_utf8(&directives) else {
        return (StatusCode::BAD_REQUEST, "a log level is text\n").into_response();
    };
    match operations.logs.change(directives.trim()) {
        Ok(()) => format!("{}\n", operations.logs.directives()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}\n")).into_response(),
    }
}
