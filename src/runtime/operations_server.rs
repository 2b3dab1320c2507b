//! What an operator asks the running process: is it alive, is it ready, its metrics, and another log level.

use std::future::{Future, pending};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::logs::LogSwitch;
use super::readiness::Readiness;

/// Whoever has metrics to show.
pub(crate) trait MetricsText: Send + Sync {
    /// All of them, in the OpenMetrics format.
    fn text(&self) -> String;
}

/// What the endpoints tell.
#[derive(Clone)]
pub(crate) struct Operations {
    /// For `/readyz`.
    pub(crate) readiness: Readiness,
    /// For `/metrics`.
    pub(crate) metrics: Arc<dyn MetricsText>,
    /// For `/log-level`.
    pub(crate) logs: LogSwitch,
}

/// Listens on a port of all addresses; port 0 lets the system choose.
///
/// # Errors
/// When the port is taken.
pub(crate) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    // Both families where the system has IPv6, else IPv4.
    let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    match TcpListener::bind(any).await {
        Ok(listener) => Ok(listener),
        Err(_) => {
            TcpListener::bind(("0.0.0.0", port)).await.with_context(|| format!("port {port} can't be listened on"))
        }
    }
}

/// Listens at once, so that a port that is taken ends the process; the future serves, and ends only with an error.
///
/// # Errors
/// When a port is taken.
pub(crate) async fn serve(
    health_port: Option<u16>,
    metrics_port: Option<u16>,
    operations: Operations,
) -> anyhow::Result<impl Future<Output = anyhow::Error>> {
    let health = match health_port {
        None => None,
        Some(port) => Some(listen(port).await.context("--health-port")?),
    };
    let metrics = match metrics_port {
        None => None,
        Some(port) => Some(listen(port).await.context("--metrics-port")?),
    };
    let measured = Arc::clone(&operations.metrics);
    Ok(async move {
        let health = async {
            match health {
                None => pending().await,
                Some(listener) => serve_health(listener, operations).await,
            }
        };
        let metrics = async {
            match metrics {
                None => pending().await,
                Some(listener) => serve_metrics(listener, measured).await,
            }
        };
        let result = tokio::select! {
            result = health => result,
            result = metrics => result,
        };
        result
            .err()
            .map_or_else(|| anyhow::anyhow!("a server has ended"), |error| anyhow::anyhow!(error).context("server"))
    })
}

/// Serves `/healthz`, `/readyz` and `/log-level`.
async fn serve_health(listener: TcpListener, operations: Operations) -> std::io::Result<()> {
    let router = Router::new()
        // Alive means that this answers; it never depends on the API server.
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/log-level", get(log_level).put(set_log_level))
        .with_state(operations)
        .into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, router).await
}

/// Serves `/metrics`.
async fn serve_metrics(listener: TcpListener, metrics: Arc<dyn MetricsText>) -> std::io::Result<()> {
    let router = Router::new().route("/metrics", get(metrics_text)).with_state(metrics);
    axum::serve(listener, router).await
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

/// Only from the pod itself (`kubectl exec`, `kubectl port-forward`): whoever may log everything may fill a disk.
async fn set_log_level(
    State(operations): State<Operations>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    directives: String,
) -> Response {
    if !peer.ip().to_canonical().is_loopback() {
        return (StatusCode::FORBIDDEN, "the log level is changed from the pod itself only\n").into_response();
    }
    match operations.logs.change(directives.trim()) {
        Ok(()) => format!("{}\n", operations.logs.directives()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}\n")).into_response(),
    }
}
