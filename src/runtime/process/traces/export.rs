//! With the feature `otlp`: sends spans to a collector, in batches and in the background. An unresponsive collector
//! only costs spans.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use axum::http::Uri;
use opentelemetry::trace::{Span as _, Tracer as _, TracerProvider as _};
use opentelemetry::{KeyValue, global};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::{Level, Span, Subscriber, info, warn};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::process::traces::TARGET;

/// Name of the program for the collector.
const SERVICE: &str = "gardener-extension-worker";
/// Time limit for a request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for sending the last spans when the process stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(250);

/// Exporter of spans.
pub struct Traces {
    provider: SdkTracerProvider,
    /// Only the host name, because the URL may contain a password.
    collector: String,
}

impl Traces {
    /// Starts to collect spans for an endpoint, such as `http://collector:4318`. Needs a runtime; does not connect
    /// yet.
    pub fn begin(endpoint: Option<&str>) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = endpoint.map(|endpoint| endpoint.trim_end_matches('/')) else { return Ok(None) };
        let address: Uri = endpoint.parse().context("--otlp-endpoint")?;
        ensure!(
            matches!(address.scheme_str(), Some("http" | "https")),
            "--otlp-endpoint: expected http:// or https://"
        );
        let collector = address.host().unwrap_or_default().to_owned();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Transport::new()?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{endpoint}/v1/traces"))
            .build()
            .context("--otlp-endpoint")?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name(SERVICE).with_attribute(version).build();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        global::set_tracer_provider(provider.clone());
        Ok(Some(Self { provider, collector }))
    }

    /// Layer that receives the spans to export, independent of the log level.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(TARGET, Level::TRACE))
    }

    /// Logs that traces are enabled, once logging is set up.
    pub fn report(&self) {
        info!(collector = self.collector, "traces are sent");
    }

    /// Adds consecutive steps as child spans of the span `pass`.
    pub fn steps(pass: &Span, began: SystemTime, steps: &[(&'static str, Duration)]) {
        let context = pass.context();
        let tracer = global::tracer(SERVICE);
        let mut at = began;
        for &(step, took) in steps {
            let mut span = tracer.span_builder(step).with_start_time(at).start_with_context(&tracer, &context);
            at += took;
            span.end_with_timestamp(at);
        }
    }

    /// Sends the remaining spans, within a short time limit so that it does not delay the exit.
    pub async fn end(self) {
        // Runs in a blocking thread, because the spans are sent by this runtime.
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT));
        if !matches!(timeout(SHUTDOWN_TIMEOUT, ended).await, Ok(Ok(Ok(())))) {
            warn!("the last spans are lost: the collector did not take them in time");
        }
    }
}

/// HTTP client shared with the requests to Azure. Spans are exported from a thread without a runtime, so each request
/// runs in that of the process.
#[derive(Clone, Debug)]
struct Transport {
    client: reqwest::Client,
    runtime: Handle,
}

impl Transport {
    fn new() -> anyhow::Result<Self> {
        let client =
            reqwest::Client::builder().timeout(REQUEST_TIMEOUT).no_proxy().build().context("no HTTP client")?;
        Ok(Self { client, runtime: Handle::try_current().context("no runtime")? })
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let mut reply = client.execute(request.try_into()?).await?;
            let headers = std::mem::take(reply.headers_mut());
            let mut response = Response::builder().status(reply.status()).body(reply.bytes().await?)?;
            *response.headers_mut() = headers;
            Ok(response)
        };
        self.runtime.spawn(exchange).await?
    }
}
