//! Metrics of commands with webhooks. Label values come from sets that are fixed at startup.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tracing::{info, warn};

use super::{Denial, Observer, ReviewRequest, Verdict};
use crate::process::endpoints::MetricsText;

/// Upper bounds of the histogram buckets in seconds.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReview {
    webhook: String,
    resource: &'static str,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWebhook {
    webhook: String,
}

pub struct WebhookMetrics {
    paths: Vec<String>,
    resources: &'static [&'static str],
    registry: Registry,
    reviews: Family<OfReview, Counter>,
    review_seconds: Family<OfWebhook, Histogram, fn() -> Histogram>,
    malformed: Counter,
    certificate_expires: Gauge,
    certificate_refused: Gauge,
    clock_difference: Gauge,
}

impl WebhookMetrics {
    /// Metrics for webhooks at these paths for these resources. `prefix` is part of every name.
    pub fn new(prefix: &str, paths: Vec<String>, resources: &'static [&'static str]) -> Self {
        let mut registry = Registry::with_prefix(prefix);
        let reviews = Family::default();
        let review_seconds: Family<_, _, fn() -> Histogram> = Family::new_with_constructor(|| Histogram::new(SECONDS));
        let malformed = Counter::default();
        let certificate_expires = Gauge::default();
        let certificate_refused = Gauge::default();
        let clock_difference = Gauge::default();
        registry.register("reviews", "Reviews by verdict", Family::clone(&reviews));
        let help = "Time from the first byte of a request to its answer";
        registry.register_with_unit("review_duration", help, Unit::Seconds, review_seconds.clone());
        registry.register("malformed_requests", "Requests that were no review", malformed.clone());
        let help = "When the CA of the server's certificate expires; 0 with provided certificates";
        registry.register("certificate_expiry_timestamp", help, certificate_expires.clone());
        let help = "1 while the API server refuses the served certificate chain by the registered CA bundle";
        registry.register("certificate_refused", help, certificate_refused.clone());
        let help = "How far the clock of this process is ahead of that of the API server";
        registry.register_with_unit("clock_difference", help, Unit::Seconds, clock_difference.clone());
        registry.register("build", "Version of this program", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self {
            paths,
            resources,
            registry,
            reviews,
            review_seconds,
            malformed,
            certificate_expires,
            certificate_refused,
            clock_difference,
        }
    }

    /// Sets the expiry of the certificate, in seconds since 1970.
    pub fn certificate_expires(&self, seconds: i64) {
        self.certificate_expires.set(seconds);
    }

    /// Whether the API server refuses the chain that is served.
    pub fn certificate_refused(&self, is_refused: bool) {
        self.certificate_refused.set(is_refused.into());
    }

    /// The clock of this process is so many seconds ahead of that of the API server.
    pub(crate) fn clock_difference(&self, seconds: i64) {
        self.clock_difference.set(seconds);
    }
}

impl MetricsText for WebhookMetrics {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Label value for all other values.
const OTHER: &str = "other";

impl Observer for WebhookMetrics {
    fn reviewed(&self, path: &str, request: &ReviewRequest, verdict: &Verdict, took: Duration) {
        let webhook = self.paths.iter().find(|cached| *cached == path).map_or(OTHER, String::as_str);
        let resource = self.resources.iter().find(|cached| **cached == request.resource).copied().unwrap_or(OTHER);
        let object = request.object_name();
        let verdict = match verdict {
            Verdict::Allowed { patch, .. } if !patch.is_empty() => {
                info!(webhook, resource, object, steps = patch.len(), "changed");
                "changed"
            }
            Verdict::Allowed { .. } => "allowed",
            // Log only the fields, because the message may contain values that are meant for the user only.
            Verdict::Denied(Denial { code: 422, causes, .. }) => {
                let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
                info!(webhook, resource, object, ?fields, "denied");
                "denied"
            }
            Verdict::Denied(denial) => {
                warn!(webhook, resource, object, reason = denial.reason, error = denial.message, "no verdict");
                "failed"
            }
        };
        self.reviews.get_or_create(&OfReview { webhook: webhook.to_owned(), resource, verdict }).inc();
        self.review_seconds.get_or_create(&OfWebhook { webhook: webhook.to_owned() }).observe(took.as_secs_f64());
    }

    fn refused(&self, path: &str, why: &str) {
        warn!(path, why, "no review");
        self.malformed.inc();
    }
}
