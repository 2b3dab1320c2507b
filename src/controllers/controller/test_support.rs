//! A controller for tests, with an API server that is a function of the test.

use std::sync::{Arc, Mutex};

use axum::body::Body as ResponseBody;
use axum::http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::controller::reconcile::reconcile_context::ReconcileContext;
use crate::controller::report::metrics::Metrics;
use crate::controller::run::context::ControllerContext;
use crate::controller::run::memory::Memory;
use crate::controller::run::served::Served;
use crate::controller::run::start::access_through;
use decisions::provider::{Provider, Providers};
use decisions::worker::plan::class_images::ImagePolicy;
use decisions::worker::request::Operation;
use decisions::worker::request::reconcile_state::ReconcileState;
use decisions::worker::status::every_node_ready::HealthCheck;
use runtime::cloud::Clouds;
use runtime::cluster::cache::SeedCache;
use runtime::cluster::connection::Access;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::events::EventRecorder;
use runtime::cluster::garden::Garden;
use runtime::cluster::identity::Identity;
use runtime::cluster::write_fence::WriteFence;
use runtime::process::clock::Clock;
use runtime::process::shard::Shard;
use wire::api::gardener::Worker;

/// A Worker with a requested reconcile.
pub(crate) fn worker(labels: &Value, version: u64) -> Value {
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
        "metadata": {
            "namespace": "ns", "name": "w", "uid": "u", "resourceVersion": version.to_string(), "labels": labels,
            "annotations": {"gardener.cloud/operation": "reconcile"},
        },
        "spec": {"type": "azure", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": "ns"}, "pools": []},
    })
}

/// The same Worker in that namespace.
pub(crate) fn worker_in(namespace: &str) -> Worker {
    let mut document = worker(&json!({}), 7);
    document["metadata"]["namespace"] = json!(namespace);
    serde_json::from_value(document).unwrap()
}

/// Requests to an API server, each with its body.
pub(crate) type Requested = Arc<Mutex<Vec<(String, Value)>>>;

pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    /// The method and the last part of the path.
    fn line(&self) -> String {
        format!("{} {}", self.method, self.path.rsplit('/').next().unwrap_or_default())
    }
}

/// A controller of shard `a`, or without shards, with an API server that responds with the result of `answer`.
pub(crate) fn controller(
    shard: Option<Shard>,
    response: impl Fn(&str, &SeedCache) -> (u16, Value) + Clone + Send + 'static,
) -> (Arc<ControllerContext>, Requested) {
    controller_over(shard, move |received, cached| response(&received.line(), cached))
}

/// Like [`controller`], but `answer` gets the whole request.
pub(crate) fn controller_over(
    shard: Option<Shard>,
    response: impl Fn(&ReceivedRequest, &SeedCache) -> (u16, Value) + Clone + Send + 'static,
) -> (Arc<ControllerContext>, Requested) {
    let requested = Requested::default();
    let metrics = Arc::<Metrics>::default();
    let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
    let seen = Arc::clone(&requested);
    let cached = Arc::clone(&cache);
    let service = service_fn(move |request: Request<Body>| {
        let seen = Arc::clone(&seen);
        let cached = Arc::clone(&cached);
        let response = response.clone();
        async move {
            let [path, query] = [request.uri().path(), request.uri().query().unwrap_or_default()].map(str::to_owned);
            let method = request.method().to_string();
            let body = request.into_body().collect_bytes().await?;
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let received = ReceivedRequest { method, path, query, body };
            seen.lock().unwrap().push((received.line(), received.body.clone()));
            let (code, object) = response(&received, &cached);
            let response = Response::builder().status(code).header("content-type", "application/json");
            Ok(response.body(ResponseBody::from(object.to_string())).unwrap())
        }
    });
    let Access { client, responses, .. } = access_through(service, "default".to_owned(), &metrics, WriteFence::Open);
    let context = ControllerContext {
        events: EventRecorder::new(client.clone(), Clock::default()),
        garden: Garden::default(),
        clouds: Clouds::default(),
        node_counts: None,
        client,
        responses,
        clock: Clock::default(),
        served: Served::new(Providers::SHIPPED, &[], &[Served::DEFAULT_CLASS.to_owned()]).unwrap(),
        metrics,
        memory: Memory::default(),
        cache,
        ignores_operation_annotation: false,
        health_check: HealthCheck::OfWriter,
        image_policy: ImagePolicy::Follow,
        roll_slots: None,
        is_dry_run: false,
        shard,
    };
    (Arc::new(context), requested)
}

/// A reconcile in the middle of an operation of the Worker.
pub(crate) fn reconcile_of<'a>(
    controller: &'a ControllerContext,
    worker: &Worker,
    provider: &'static dyn Provider,
    operation: Operation,
) -> ReconcileContext<'a> {
    let identity = Identity::of(worker).unwrap();
    let request = decisions::worker::request::Request::of(worker, controller.clock.now());
    let state = ReconcileState::Continued(operation);
    ReconcileContext::new(controller, identity, provider, request, operation, state)
}

/// Delivers a watch event with the Worker.
pub(crate) fn observed(worker: Value, context: &ControllerContext) {
    let worker: LazyObject<Worker> = serde_json::from_value(worker).unwrap();
    context.cache.workers.0.event(Identity::of(&worker).unwrap(), || worker);
}

/// Marks the watches of machine objects as synced.
pub(crate) fn watched(context: &ControllerContext) {
    let objects = &context.cache.machine_objects;
    objects.deployments.mark_resumed();
    objects.classes.mark_resumed();
    objects.class_secrets.mark_resumed();
    objects.machine_sets.mark_resumed();
    objects.machines.mark_resumed();
}

/// The API server's answer to a refused request.
pub(crate) fn refusal(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
}

/// Requests without bodies.
pub(crate) fn lines(requested: &Requested) -> Vec<String> {
    requested.lock().unwrap().iter().map(|(line, _)| line.clone()).collect()
}
