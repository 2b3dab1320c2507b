//! Traces of reconciles for an OpenTelemetry collector. Optional: without the feature `otlp`, only empty spans are
//! compiled.
//!
//! ```text
//!  reconcile: one of a Worker             operation, namespace, name, worker type, outcome
//!    ├─ perform                           then its steps: observe, dependencies, plan, apply, clean-up
//!    │    ├─ observe, dependencies, plan, …
//!    │    └─ patch machinedeployments, …  requests to the API server: verb, resource, status
//!    └─ patch workers                     writes before and after it
//! ```
//!
//! Attributes are constants of this program, namespaces and names, never contents of objects such as Secrets.

use std::time::{Duration, SystemTime};

use tracing::field::Empty;
use tracing::{Span, trace_span};

use decisions::worker::request::Operation;

#[cfg(feature = "otlp")]
mod export;
#[cfg(not(feature = "otlp"))]
mod nowhere;

#[cfg(feature = "otlp")]
pub use export::Traces;
#[cfg(not(feature = "otlp"))]
pub use nowhere::Traces;

/// Target of exported spans. Their level is below the log level, so logs don't contain them.
const TARGET: &str = "gardener_extension_worker::traces";

/// Span of a reconcile of a Worker.
pub fn of_reconcile(namespace: &str, name: &str, worker_type: &str, operation: Operation, begins: bool) -> Span {
    if cfg!(not(feature = "otlp")) {
        return Span::none();
    }
    trace_span!(
        target: TARGET,
        "reconcile",
        operation = operation.as_str(),
        begins,
        namespace,
        name,
        worker_type,
        outcome = Empty,
        otel.status_code = Empty,
    )
}

/// The span `perform` within the span of the current reconcile.
pub fn of_perform() -> Span {
    if is_traced() { trace_span!(target: TARGET, "perform") } else { Span::none() }
}

/// Span of a request to the API server, if it belongs to a reconcile.
pub(crate) fn of_request(verb: &'static str, resource: &str) -> Span {
    if !is_traced() {
        return Span::none();
    }
    trace_span!(
        target: TARGET,
        "request",
        otel.name = format!("{verb} {resource}"),
        otel.kind = "client",
        verb,
        resource,
        http.response.status_code = Empty,
        otel.status_code = Empty,
    )
}

pub(crate) fn responded(request: &Span, code: Option<u16>) {
    if let Some(code) = code {
        request.record("http.response.status_code", code);
    }
    if code.is_none_or(|code| code >= 500 || code == 429) {
        request.record("otel.status_code", "ERROR");
    }
}

/// Adds the steps of `perform`, which began at `began`, as spans of their own.
pub fn passed(pass_span: &Span, began: SystemTime, steps: &[(&'static str, Duration)]) {
    if !pass_span.is_none() {
        Traces::steps(pass_span, began, steps);
    }
}

/// Records the outcome of the current reconcile.
pub fn ended(outcome: &'static str, is_failure: bool) {
    if !is_traced() {
        return;
    }
    let reconcile = Span::current();
    reconcile.record("outcome", outcome);
    if is_failure {
        reconcile.record("otel.status_code", "ERROR");
    }
}

/// Whether the current span is exported.
fn is_traced() -> bool {
    cfg!(feature = "otlp") && Span::current().metadata().is_some_and(|metadata| metadata.target() == TARGET)
}
