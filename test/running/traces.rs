//! Traces of reconciles as received by a collector, and a collector that does not respond.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

use crate::controller::Controller;
use test_support::cluster::{CONTROLLER, ControlPlane, eventually};
use test_support::shoot::{SOON, Shoot};

/// Secrets of the shoot (test/live/shoot.yaml).
const SECRETS: [&str; 2] = ["clientsecret-of-the-live-tests", "userdata-of-the-live-tests"];

/// Request bodies that a collector received.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Bytes>>>);

impl Collector {
    /// Receives spans over HTTP. Also returns its URL.
    async fn start() -> Result<(Self, String)> {
        let collector = Self::default();
        let take = async |State(collector): State<Self>, body: Bytes| collector.bodies(|bodies| bodies.push(body));
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok((collector, address))
    }

    fn bodies<T>(&self, take: impl FnOnce(&mut Vec<Bytes>) -> T) -> T {
        take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn spans(&self) -> Result<Vec<Span>> {
        let mut spans = Vec::new();
        for body in self.bodies(|bodies| bodies.clone()) {
            let request = ExportTraceServiceRequest::decode(body)?;
            for of_resource in request.resource_spans {
                let attributes = of_resource.resource.unwrap_or_default().attributes;
                let service = attributes.iter().find(|attribute| attribute.key == "service.name");
                ensure!(
                    service.is_some_and(|name| format!("{name:?}").contains("gardener-extension-worker")),
                    "{service:?}"
                );
                spans.extend(of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        Ok(spans)
    }
}

/// An attribute of a span as text.
fn attribute(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    Some(match value {
        Attribute::StringValue(text) => text,
        Attribute::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}

#[tokio::test]
async fn a_collector_gets_the_trace_of_a_reconcile() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let (collector, address) = Collector::start().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, format!("otlp-endpoint: {address}\n"))?;
    // The log level does not affect traces.
    let controller = Controller::start(&control_plane, "traced", CONTROLLER, |program| {
        program.flag("config", &file).flag("log-level", "error").env("OTEL_BSP_SCHEDULE_DELAY", "200")
    })?;
    controller.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "shoot").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;

    eventually(SOON, "the collector has the first reconcile of the Worker, with all that belongs to it", async || {
        let spans = collector.spans()?;
        let reconciles = || spans.iter().filter(|span| span.name == "reconcile");
        let is_end = |span: &&Span| attribute(span, "outcome").as_deref() == Some("succeeded");
        reconciles().find(is_end).context("no reconcile has succeeded")?;
        let first = reconciles().min_by_key(|span| span.start_time_unix_nano).context("no reconcile")?;
        for (key, expected) in [
            ("operation", "Create"),
            ("namespace", shoot.namespace.as_str()),
            ("name", "fleet"),
            ("worker_type", "azure"),
            ("outcome", "waiting"),
        ] {
            let value = attribute(first, key);
            ensure!(value.as_deref() == Some(expected), "{key}: {value:?} of {first:?}");
        }
        ensure!(first.parent_span_id.is_empty(), "it is a trace of its own: {first:?}");
        let within = |parent: &Span, name: &str| {
            let found = spans.iter().find(|span| span.parent_span_id == parent.span_id && span.name == name);
            found.cloned().with_context(|| format!("no {name} within {}: {:#?}", parent.name, spans.len()))
        };
        let perform = within(first, "perform")?;
        for step in ["observe", "dependencies", "plan", "apply", "clean-up"] {
            let step = within(&perform, step)?;
            let lasts = perform.start_time_unix_nano <= step.start_time_unix_nano
                && step.start_time_unix_nano <= step.end_time_unix_nano;
            ensure!(lasts && step.trace_id == first.trace_id, "{step:?} of {perform:?}");
        }
        let request = within(&perform, "create machineclasses")?;
        let code = attribute(&request, "http.response.status_code");
        ensure!(code.as_deref() == Some("201"), "{request:?}");
        within(first, "patch workers").map(drop)
    })
    .await?;
    let requests = collector.spans()?.into_iter().filter(|span| attribute(span, "verb").is_some());
    for request in requests {
        ensure!(!request.parent_span_id.is_empty(), "a request of no reconcile, such as a watch: {request:?}");
    }
    for secret in SECRETS {
        let contains_it = |body: &Bytes| body.windows(secret.len()).any(|part| part == secret.as_bytes());
        ensure!(!collector.bodies(|bodies| bodies.iter().any(contains_it)), "{secret} was sent");
    }

    // The last spans are sent when the process ends, even if the next batch is not due.
    controller.process.stop(Duration::from_secs(10)).await?;
    let slow = Controller::start(&control_plane, "last-words", CONTROLLER, |program| {
        program.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address).env("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    })?;
    slow.ready("ready\n").await?;
    let before = collector.spans()?.len();
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    slow.process.signal("TERM")?;
    ensure!(slow.process.wait(SOON).await?.success(), "{}", slow.process.last_lines(15));
    let last = collector.spans()?;
    let reconciles = last[before..].iter().filter(|span| span.name == "reconcile").count();
    ensure!(reconciles > 0, "nothing was sent at the end");

    // A collector that accepts connections and never responds delays neither the work nor the exit.
    let silent = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = format!("http://reader:planted-password@{}", silent.local_addr()?);
    let patient = Controller::start(&control_plane, "silent", CONTROLLER, |program| {
        program.flag("otlp-endpoint", &address).env("OTEL_BSP_SCHEDULE_DELAY", "200")
    })?;
    patient.ready("ready\n").await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    let began = Instant::now();
    patient.process.signal("TERM")?;
    let status = patient.process.wait(SOON).await?;
    let took = began.elapsed();
    ensure!(status.success(), "{status}\n{}", patient.process.last_lines(15));
    // The process ends within a second; the rest is for busy machines. The timeout of a request to a collector is five
    // seconds.
    ensure!(took < Duration::from_secs(4), "it took {took:?}");
    let log = std::fs::read_to_string(patient.process.log())?;
    ensure!(log.contains("the last spans are lost"), "{log}");
    ensure!(log.contains("traces are sent") && !log.contains("planted-password"), "{log}");
    control_plane.stop().await
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_refused() -> Result<()> {
    let mut program = tokio::process::Command::from(test_support::program::command());
    let output = program.args(["controller", "--otlp-endpoint", "collector:4318"]).output().await?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && words.contains("expected http:// or https://"), "{output:?}");
    Ok(())
}
