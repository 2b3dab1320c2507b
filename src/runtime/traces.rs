//! Traces of what is done for a Worker, for a collector of OpenTelemetry. Optional: without the feature `otlp` nothing of it is
//! compiled but empty spans.
//!
//! ```text
//!  reconcile: one look at a Worker        operation, namespace, name, worker type, outcome
//!    ├─ pass                              then its steps: observe, dependencies, plan, apply, clean-up
//!    │    ├─ observe, dependencies, plan, …
//!    │    └─ patch machinedeployments, …  requests to the API server: verb, resource, status
//!    └─ patch workers                     what is written before and after the pass
//! ```
//!
//! Attributes are words of this program, namespaces and names; what stands in objects, such as Secrets, is not among them.

use std::time::SystemTime;

use kube::ResourceExt;
use tracing::field::Empty;
use tracing::{Span, trace_span};

use super::metrics::ReconcileResult;
use crate::api::gardener::Worker;
use crate::worker::operation::Operation;
use crate::worker::reconcile::Pass;

#[cfg(feature = "otlp")]
mod export;
#[cfg(not(feature = "otlp"))]
mod nowhere;

#[cfg(feature = "otlp")]
pub(crate) use export::Traces;
#[cfg(not(feature = "otlp"))]
pub(crate) use nowhere::Traces;

/// Target of the spans that are sent. Logs don't show them: their level is below what is logged.
const TARGET: &str = "gardener_extension_worker::traces";

/// A look at a Worker, which is everything that is done for it at a time.
pub(super) fn of_look(worker: &Worker, operation: Operation, begins: bool) -> Span {
    if cfg!(not(feature = "otlp")) {
        return Span::none();
    }
    trace_span!(
        target: TARGET,
        "reconcile",
        operation = operation.as_str(),
        begins,
        namespace = worker.namespace().unwrap_or_default(),
        name = worker.name_any(),
        worker_type = worker.spec.worker_type,
        outcome = Empty,
        otel.status_code = Empty,
    )
}

/// The pass within the current look.
pub(super) fn of_pass() -> Span {
    if is_traced() { trace_span!(target: TARGET, "pass") } else { Span::none() }
}

/// A request to the API server, where it is made for a look.
pub(super) fn of_request(verb: &'static str, resource: &str) -> Span {
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

/// The request has been answered, or not.
pub(super) fn answered(request: &Span, code: Option<u16>) {
    if let Some(code) = code {
        request.record("http.response.status_code", code);
    }
    if code.is_none_or(|code| code >= 500 || code == 429) {
        request.record("otel.status_code", "ERROR");
    }
}

/// The pass has ended, which has begun then: its steps become spans of their own.
pub(super) fn passed(pass_span: &Span, began: SystemTime, pass: &Pass) {
    if !pass_span.is_none() {
        Traces::steps(pass_span, began, &pass.steps);
    }
}

/// The current look has come to this.
pub(super) fn ended(result: ReconcileResult) {
    if !is_traced() {
        return;
    }
    let look = Span::current();
    look.record("outcome", result.as_str());
    if result == ReconcileResult::Failed {
        look.record("otel.status_code", "ERROR");
    }
}

/// Whether the current span is one that is sent.
fn is_traced() -> bool {
    cfg!(feature = "otlp") && Span::current().metadata().is_some_and(|metadata| metadata.target() == TARGET)
}
