//! Test support for this room: an API server implemented by a function, and captured logs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::Body as ResponseBody;
use axum::http::header::ACCEPT;
use axum::http::{Request, Response};
use futures::future::Ready;
use futures::{StreamExt, stream};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service, service_fn};
use tracing::instrument::WithSubscriber;

/// A request as the API server receives it.
#[derive(Clone, Debug)]
pub(super) struct Requested {
    pub(super) line: String,
    /// Query string; empty without one.
    pub(super) query: String,
    pub(super) accept: String,
    /// JSON body; `null` without one.
    pub(super) body: Value,
}

impl Requested {
    /// Last segment of the path: the name of an object, or the plural of a kind.
    pub(super) fn last(&self) -> &str {
        self.line.rsplit('/').next().unwrap_or_default()
    }
}

pub(super) struct ApiServer {
    pub(super) client: Client,
    requested: Arc<Mutex<Vec<Requested>>>,
}

impl ApiServer {
    pub(super) fn new(response: impl Fn(&Requested) -> Response<ResponseBody> + Send + Sync + 'static) -> Self {
        let requested = Arc::<Mutex<Vec<Requested>>>::default();
        let response = Arc::new(response);
        let seen = Arc::clone(&requested);
        let service = service_fn(move |request: Request<Body>| {
            let seen = Arc::clone(&seen);
            let response = Arc::clone(&response);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let accept = head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
                let requested = Requested {
                    line: format!("{} {}", head.method, head.uri.path()),
                    query: head.uri.query().unwrap_or_default().to_owned(),
                    accept: accept.unwrap_or_default().to_owned(),
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                };
                let response = response(&requested);
                seen.lock().unwrap().push(requested);
                Ok::<_, kube::Error>(response)
            }
        });
        Self { client: Client::new(service, "default"), requested }
    }

    /// Requests since the last call.
    pub(super) fn requested(&self) -> Vec<Requested> {
        std::mem::take(&mut *self.requested.lock().unwrap())
    }

    /// Methods and paths of the requests since the last call.
    pub(super) fn lines(&self) -> Vec<String> {
        self.requested().into_iter().map(|requested| requested.line).collect()
    }
}

pub(super) fn document(document: &Value) -> Response<ResponseBody> {
    response(200, document)
}

/// A `Status` response for a failed request.
pub(super) fn refusal(code: u16, reason: &str) -> Response<ResponseBody> {
    response(code, &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
}

fn response(code: u16, document: &Value) -> Response<ResponseBody> {
    Response::builder().status(code).body(ResponseBody::from(document.to_string())).unwrap()
}

/// A list of these objects.
pub(super) fn list(items: &[Value]) -> Response<ResponseBody> {
    document(&json!({"metadata": {"resourceVersion": "7"}, "items": items}))
}

/// A watch that starts with a streamed list of these objects and then stays idle.
pub(super) fn streamed(objects: &[Value]) -> Response<ResponseBody> {
    let end = json!({"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}});
    let end = json!({"apiVersion": "v1", "kind": "Secret", "metadata": end});
    let events = objects.iter().map(|object| ("ADDED", object)).chain([("BOOKMARK", &end)]);
    // As an API server writes it, with the type first.
    let text: String =
        events.map(|(kind, object)| format!("{{\"type\": \"{kind}\", \"object\": {object}}}\n")).collect();
    let pieces = stream::iter([Ok::<_, kube::Error>(text)]).chain(stream::pending());
    Response::new(ResponseBody::from_stream(pieces))
}

/// Bytes that don't compress.
pub(super) fn incompressible(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// A service that is never ready, because its connection is lost.
pub(super) struct Unready;

impl Service<Request<Body>> for Unready {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Err("the connection is gone".into()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        panic!("a request is sent although the connection is gone");
    }
}

/// The output of a future and its log.
pub(super) async fn logged<F: Future>(work: F) -> (F::Output, String) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let output = work.with_subscriber(subscriber).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    (output, text)
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
