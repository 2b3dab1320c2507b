//! A client layer that retries failed requests a few times within seconds.
//!
//! Only complete responses of an API server are accepted. Truncated responses and responses from proxies are failures,
//! so a 404 from a login page is not mistaken for a deleted object. Event streams of watches have no deadline, because
//! kube ends idle watches itself.
//!
//! kube's own retry layer retries for minutes: a reconcile would still be waiting after the API server is back, and a
//! write could be sent after another process became leader. Here each attempt passes the write fence again. After a few
//! attempts the reconcile fails and is requeued, so it starts from current data.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body as ResponseBody, Bytes, HttpBody, to_bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::client::Body;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, Layer, Service};

use crate::cluster::api_request::ApiRequest;
use crate::cluster::responses::Responses;
use crate::cluster::slot;
use crate::cluster::write_fence::BlockedWrite;
use crate::process::jitter::random_half;

/// Attempts per request.
const MAX_ATTEMPTS: u32 = 5;
/// Delay before the second attempt. It doubles with each attempt, with up to 50% jitter.
const INITIAL_DELAY: Duration = Duration::from_millis(50);
/// Longest `Retry-After` to wait for. With a longer one, the request fails and the next reconcile retries it.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Deadline for the whole response, or for the headers of a watch. Large lists take seconds; without a deadline, an
/// unreachable API server would block forever.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 256 << 20;

/// Request extension that disables retries, for requests decided from data that may be stale by the second attempt.
#[derive(Clone, Copy, Debug)]
pub struct SentOnce;

/// No complete response arrived before the deadline.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no answer of the API server within {0:?}")]
pub struct ResponseTimeout(Duration);

/// A response that does not come from an API server.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("an answer that is not of an API server: {status}, {why}")]
struct UnexpectedResponse {
    status: StatusCode,
    why: &'static str,
}

#[derive(Clone)]
pub struct RetryLayer {
    deadline: Duration,
    responses: Responses,
}

impl RetryLayer {
    /// Creates a layer that records responses in `answers`.
    pub fn new(responses: Responses) -> Self {
        Self { deadline: RESPONSE_TIMEOUT, responses }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retried<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Retried { inner: Arc::new(Mutex::new(inner)), layer: self.clone() }
    }
}

/// A client's service with retries.
pub struct Retried<S> {
    inner: Arc<Mutex<S>>,
    layer: RetryLayer,
}

impl<S, B> Service<Request<Body>> for Retried<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Each attempt waits for the inner service itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        let layer = self.layer.clone();
        let attempt = async move |request| layer.attempt(&inner, request).await;
        async move {
            for number in 1..MAX_ATTEMPTS {
                let Some(copy) = copy(&request) else { break };
                let response = attempt(std::mem::replace(&mut request, copy)).await;
                match pause(&response, number) {
                    Some(pause) => sleep(pause).await,
                    None => return response,
                }
            }
            attempt(request).await
        }
        .boxed()
    }
}

impl RetryLayer {
    async fn attempt<S, B>(&self, inner: &Mutex<S>, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let began = Instant::now();
        let expected = Expected::of(&request);
        let response = timeout(self.deadline, response(inner, request, expected)).await;
        let response = response.unwrap_or_else(|_| Err(ResponseTimeout(self.deadline).into()));
        match &response {
            Ok(response) if is_proxy_error(response.status()) => self.responses.unanswered(began),
            // The start of a watch does not show that other requests succeed.
            Ok(_) if expected == Expected::Events => {}
            Ok(_) => {
                self.responses.responded(Instant::now());
                slot::responded(tokio::time::Instant::now());
            }
            Err(error) if error.is::<BlockedWrite>() => {}
            Err(_) => self.responses.unanswered(began),
        }
        response
    }
}

/// Expected kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// A stream of watch events.
    Events,
    List,
    /// A single object.
    Object,
    /// The result of a write.
    Write,
    /// Discovery, which may answer 404 with plain text.
    Kinds,
}

impl Expected {
    fn of(request: &Request<Body>) -> Self {
        match ApiRequest::of(request.method(), request.uri()).map(|requested| requested.verb) {
            Some("watch") => Self::Events,
            Some("list") => Self::List,
            Some("get") => Self::Object,
            Some(_) => Self::Write,
            None => Self::Kinds,
        }
    }

    /// Checks that the response comes from an API server.
    fn check(self, status: StatusCode, body: &[u8]) -> Result<(), UnexpectedResponse> {
        #[derive(Deserialize)]
        struct Reply {
            #[serde(default)]
            kind: String,
        }
        if !status.is_success() && status != StatusCode::NOT_FOUND {
            return Ok(());
        }
        let kind = serde_json::from_slice(body).map(|Reply { kind }| kind).map_err(|_| "no object");
        let why = match (self, kind) {
            (Self::Kinds, _) if status == StatusCode::NOT_FOUND => return Ok(()),
            (_, Err(why)) => why,
            (_, Ok(kind)) if status == StatusCode::NOT_FOUND && kind != "Status" => "no status",
            (Self::List, Ok(kind)) if status.is_success() && !kind.ends_with("List") => "no list",
            (Self::Object, Ok(kind)) if status.is_success() && kind == "Status" => "no object but a status",
            _ => return Ok(()),
        };
        Err(UnexpectedResponse { status, why })
    }
}

/// Returns the whole response, or the start of a watch.
async fn response<S, B>(
    inner: &Mutex<S>,
    request: Request<Body>,
    expected: Expected,
) -> Result<Response<ResponseBody>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let response = send(inner, request).await?.map(ResponseBody::new);
    if expected == Expected::Events && response.status().is_success() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_RESPONSE_BYTES).await?;
    expected.check(parts.status, &body)?;
    Ok(Response::from_parts(parts, body.into()))
}

async fn send<S, B>(inner: &Mutex<S>, request: Request<Body>) -> Result<Response<B>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
{
    let response = {
        let mut service = inner.lock().await;
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(request)
    };
    response.await
}

/// Clones a request for a retry; `None` if its body can't be cloned or it is `SentOnce`.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    if request.extensions().get::<SentOnce>().is_some() {
        return None;
    }
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// Delay before the next attempt; `None` if the result is final.
///
/// Retrying a write that has already succeeded is safe: it is a no-op, or it conflicts and the caller rereads the
/// object.
fn pause<B>(response: &Result<Response<B>, BoxError>, number: u32) -> Option<Duration> {
    let requested = match response {
        Ok(response) if is_retriable(response.status()) => requested_pause(response.headers()),
        Err(error) if !error.is::<ResponseTimeout>() && !error.is::<BlockedWrite>() => None,
        _ => return None,
    };
    match requested {
        Some(requested) => (requested <= MAX_RETRY_AFTER).then_some(requested),
        None => {
            let pause = INITIAL_DELAY * 2_u32.saturating_pow(number - 1);
            Some(pause + pause.mul_f64(random_half()))
        }
    }
}

fn is_retriable(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Status codes that a proxy returns when it can't reach the API server.
fn is_proxy_error(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

/// The `Retry-After` header in seconds.
fn requested_pause(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures::{StreamExt, stream};
    use tower::ServiceExt;

    use super::*;
    use crate::cluster::slot::Slot;

    const SECRET: &str = r#"{"kind": "Secret", "metadata": {"name": "s"}}"#;
    const NOT_FOUND: &str = r#"{"kind": "Status", "status": "Failure", "code": 404}"#;

    /// How a response continues after its headers.
    #[derive(Clone, Copy, Debug)]
    enum Continuation {
        /// The body is complete.
        Whole(&'static str),
        /// Half of the body arrives, then nothing.
        Stalls,
        /// Half of the body arrives, then the connection breaks.
        Breaks,
        /// The response never starts.
        Never,
    }

    fn layer(deadline: Duration) -> RetryLayer {
        RetryLayer { deadline, responses: Responses::default() }
    }

    fn request(method: &str, path: &str) -> Request<Body> {
        Request::builder().method(method).uri(path).body(Body::from(b"{}".to_vec())).unwrap()
    }

    /// Responds with these statuses in order; 0 breaks the connection.
    async fn attempts(method: &str, statuses: &[u16]) -> (Option<u16>, usize) {
        let left = Arc::new(std::sync::Mutex::new(VecDeque::from(statuses.to_vec())));
        let given = Arc::clone(&left);
        let service = tower::service_fn(move |_: Request<Body>| {
            let status = given.lock().unwrap().pop_front().expect("no more tries");
            async move {
                if status == 0 {
                    return Err(BoxError::from("connection reset"));
                }
                let mut response = Response::builder().status(status);
                if status == 429 {
                    response = response.header(header::RETRY_AFTER, "60");
                }
                Ok(response.body(ResponseBody::from("{}")).unwrap())
            }
        });
        let response = layer(RESPONSE_TIMEOUT).layer(service).oneshot(request(method, "/api")).await;
        let tries = statuses.len() - left.lock().unwrap().len();
        (response.ok().map(|response| response.status().as_u16()), tries)
    }

    #[tokio::test]
    async fn retries_server_errors() {
        for (method, statuses, expected) in [
            ("GET", [500, 0, 503, 200].as_slice(), (Some(200), 4)),
            ("PATCH", &[502, 504, 500, 0, 500], (Some(500), 5)),
            ("GET", &[404], (Some(404), 1)),
            ("POST", &[0, 409], (Some(409), 2)),
            // `Retry-After` is a minute, which is too long.
            ("GET", &[429], (Some(429), 1)),
        ] {
            assert_eq!(attempts(method, statuses).await, expected, "{method} {statuses:?}");
        }
    }

    /// Sends a request to a server that always responds like this. Returns the response or its error, whether it counts
    /// as a response, and whether it extends the slot.
    async fn responded(
        requested: Request<Body>,
        status: u16,
        deleted: Continuation,
    ) -> (Result<u16, String>, bool, bool) {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let half = stream::once(std::future::ready(Ok(&SECRET[..SECRET.len() / 2])));
            let body = match deleted {
                Continuation::Whole(text) => ResponseBody::from(text),
                Continuation::Stalls => ResponseBody::from_stream(half.chain(stream::pending::<Result<_, BoxError>>())),
                Continuation::Breaks => {
                    let broken = stream::once(std::future::ready(Err(BoxError::from("connection reset"))));
                    ResponseBody::from_stream(half.chain(broken))
                }
                Continuation::Never => std::future::pending().await,
            };
            Ok::<_, BoxError>(Response::builder().status(status).body(body).unwrap())
        });
        let layer = layer(Duration::from_millis(50));
        let counts = layer.responses.clone();
        let slot = Slot::taken(tokio::time::Instant::now());
        let ends = slot.ends();
        let response = slot.clone().reconcile(layer.layer(service).oneshot(requested)).await;
        let response = response.map(|response| response.status().as_u16()).map_err(|error| error.to_string());
        (response, counts.missing_for(Instant::now()).is_none(), slot.ends() > ends)
    }

    #[tokio::test]
    async fn rejects_truncated_and_foreign_responses() {
        const GET: (&str, &str) = ("GET", "/api/v1/namespaces/a/secrets/s");
        const LIST: (&str, &str) = ("GET", "/api/v1/namespaces/a/secrets");
        const DELETE: (&str, &str) = ("DELETE", "/api/v1/namespaces/a/secrets/s");
        const KINDS: (&str, &str) = ("GET", "/apis/machine.sapcloud.io/v1alpha1");
        const PAGE_SIZE: Continuation = Continuation::Whole("<html>Please log in</html>");
        const STATUS: Continuation = Continuation::Whole(r#"{"kind": "Status", "status": "Success"}"#);
        for ((method, path), status, deleted, expected) in [
            (GET, 200, Continuation::Whole(SECRET), Ok(200)),
            (GET, 404, Continuation::Whole(NOT_FOUND), Ok(404)),
            (LIST, 200, Continuation::Whole(r#"{"kind": "SecretList", "items": []}"#), Ok(200)),
            (DELETE, 200, STATUS, Ok(200)),
            (KINDS, 404, Continuation::Whole("404 page not found"), Ok(404)),
            (GET, 200, Continuation::Never, Err("no answer of the API server within 50ms")),
            (GET, 200, Continuation::Stalls, Err("no answer of the API server within 50ms")),
            (LIST, 500, Continuation::Stalls, Err("no answer of the API server within 50ms")),
            (DELETE, 200, Continuation::Stalls, Err("no answer of the API server within 50ms")),
            (GET, 200, Continuation::Breaks, Err("connection reset")),
            (GET, 200, Continuation::Whole(""), Err("an answer that is not of an API server: 200 OK, no object")),
            (GET, 200, Continuation::Whole(r#"{"kind": "Secret", "#), Err("200 OK, no object")),
            (GET, 200, PAGE_SIZE, Err("200 OK, no object")),
            (GET, 200, STATUS, Err("200 OK, no object but a status")),
            (GET, 404, PAGE_SIZE, Err("404 Not Found, no object")),
            (GET, 404, Continuation::Whole(SECRET), Err("404 Not Found, no status")),
            (LIST, 200, Continuation::Whole(SECRET), Err("200 OK, no list")),
            (DELETE, 404, PAGE_SIZE, Err("404 Not Found, no object")),
            (DELETE, 200, Continuation::Whole(""), Err("200 OK, no object")),
            (KINDS, 200, PAGE_SIZE, Err("200 OK, no object")),
        ] {
            let (response, counts, extends) = responded(request(method, path), status, deleted).await;
            let what = format!("{method} {path}: {status} {deleted:?}");
            match (&response, expected) {
                (Err(error), Err(text)) => assert!(error.ends_with(text), "{what}: {error}"),
                _ => assert_eq!(response, expected.map_err(str::to_owned), "{what}"),
            }
            assert_eq!((counts, extends), (response.is_ok(), response.is_ok()), "{what}");
        }
    }

    #[tokio::test]
    async fn returns_watch_without_waiting_for_body() {
        let watch = || request("GET", "/api/v1/secrets?watch=true");
        let (response, _, extends) = responded(watch(), 200, Continuation::Stalls).await;
        assert_eq!((response, extends), (Ok(200), false));
        let (response, counts, _) = responded(watch(), 200, Continuation::Never).await;
        assert!(response.is_err() && !counts, "{response:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn proxy_errors_count_as_no_response() {
        for (status, is_of_api_server) in [(502, false), (503, false), (504, false), (500, true)] {
            let (response, counts, extends) =
                responded(request("GET", "/api/v1/secrets"), status, Continuation::Whole("{}")).await;
            assert_eq!((response, counts, extends), (Ok(status), is_of_api_server, is_of_api_server), "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_delay_grows() {
        let start = Instant::now();
        assert_eq!(attempts("GET", &[0; 5]).await, (None, 5));
        let pauses = INITIAL_DELAY * (1 + 2 + 4 + 8);
        let longest = pauses.mul_f64(1.5) + Duration::from_millis(10);
        assert!((pauses..longest).contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn does_not_retry_timeouts_or_blocked_writes() {
        for (error, counts) in
            [(BoxError::from(BlockedWrite::Shadow), true), (ResponseTimeout(RESPONSE_TIMEOUT).into(), false)]
        {
            let text = error.to_string();
            let mut left = Some(error);
            let service = tower::service_fn(move |_: Request<Body>| {
                let error = left.take().expect("no more tries");
                async move { Err::<Response<ResponseBody>, _>(error) }
            });
            let layer = layer(RESPONSE_TIMEOUT);
            let responses = layer.responses.clone();
            let requested = request("PATCH", "/api/v1/namespaces/a/secrets/s");
            let response = layer.layer(service).oneshot(requested).await;
            assert_eq!(response.unwrap_err().to_string(), text);
            assert_eq!(responses.missing_for(Instant::now()).is_none(), counts, "{text}");
        }
    }
}
