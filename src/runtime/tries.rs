//! Requests that the API server could not answer are tried again, a few times and within seconds. A layer of the client.
//!
//! kube's own layer tries for minutes: a Worker would sleep in a request long after the API server is back, and a write
//! could be sent when another process leads. Here each try goes through the write gate anew, and after a few the pass ends;
//! it is tried as a whole later, with what is there by then.

use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::client::Body;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, Service};

use super::write_gate::HeldBack;

/// Tries of one request.
const TRIES: u32 = 5;
/// Before the second try; then twice as long each time, and up to half of it more.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest time for which an API server may ask us to stay away. Who asks for more gets the next pass.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Until an answer begins. A large list takes seconds; an API server that is gone without a word takes for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// No answer has begun in this time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no answer of the API server within {0:?}")]
struct NoAnswer(Duration);

/// The layer.
#[derive(Clone, Copy)]
pub(super) struct Tries {
    patience: Duration,
}

impl Default for Tries {
    fn default() -> Self {
        Self { patience: PATIENCE }
    }
}

impl<S> Layer<S> for Tries {
    type Service = Tried<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Tried { inner: Arc::new(Mutex::new(inner)), patience: self.patience }
    }
}

/// A client's service whose requests are tried again.
pub(super) struct Tried<S> {
    inner: Arc<Mutex<S>>,
    patience: Duration,
}

impl<S, B> Service<Request<Body>> for Tried<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Each try waits for the service below.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (inner, patience) = (Arc::clone(&self.inner), self.patience);
        let attempt = async move |request| {
            timeout(patience, send(&inner, request)).await.unwrap_or_else(|_| Err(NoAnswer(patience).into()))
        };
        async move {
            for number in 1..TRIES {
                let Some(copy) = copy(&request) else { break };
                let answer = attempt(std::mem::replace(&mut request, copy)).await;
                match pause(&answer, number) {
                    Some(pause) => sleep(pause).await,
                    None => return answer,
                }
            }
            attempt(request).await
        }
        .boxed()
    }
}

async fn send<S, B>(inner: &Mutex<S>, request: Request<Body>) -> Result<Response<B>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
{
    let answer = {
        let mut service = inner.lock().await;
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(request)
    };
    answer.await
}

/// The request once more; `None` when its body can't be had twice.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// How long to wait before the next try; `None` when the answer stands.
///
/// A write may have been done although nobody has heard of it. To do it twice does no harm: it changes nothing, or
/// conflicts, and who conflicts looks again.
fn pause<B>(answer: &Result<Response<B>, BoxError>, number: u32) -> Option<Duration> {
    let asked = match answer {
        Ok(answer) if is_worth_another_try(answer.status()) => asked_pause(answer.headers()),
        Err(error) if !error.is::<NoAnswer>() && !error.is::<HeldBack>() => None,
        _ => return None,
    };
    match asked {
        Some(asked) => (asked <= LONGEST_PAUSE).then_some(asked),
        None => {
            let pause = FIRST_PAUSE * 2_u32.saturating_pow(number - 1);
            Some(pause + pause.mul_f64(random_half()))
        }
    }
}

fn is_worth_another_try(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// The seconds of `Retry-After`.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// From 0 to 0.5, so that many that fail together don't come back together. Its quality is no matter.
pub(super) fn random_half() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u16::try_from(random % 1000).unwrap_or_default()) / 2000.0
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tower::ServiceExt;

    use super::*;

    /// Answers with these statuses, one after the other; 0 is a connection that breaks.
    async fn answers(method: &str, statuses: &[u16]) -> (Option<u16>, usize) {
        let left = Arc::new(std::sync::Mutex::new(VecDeque::from(statuses.to_vec())));
        let given = Arc::clone(&left);
        let service = tower::service_fn(move |_: Request<Body>| {
            let status = given.lock().unwrap().pop_front().expect("no more tries");
            async move {
                if status == 0 {
                    return Err(BoxError::from("connection reset"));
                }
                let mut answer = Response::builder().status(status);
                if status == 429 {
                    answer = answer.header(header::RETRY_AFTER, "60");
                }
                Ok(answer.body(()).unwrap())
            }
        });
        let request = Request::builder().method(method).uri("/api").body(Body::from(b"{}".to_vec())).unwrap();
        let answer = Tries::default().layer(service).oneshot(request).await;
        let tries = statuses.len() - left.lock().unwrap().len();
        (answer.ok().map(|answer| answer.status().as_u16()), tries)
    }

    #[tokio::test]
    async fn what_the_api_server_could_not_answer_is_tried_again() {
        for (method, statuses, expected) in [
            ("GET", [500, 0, 503, 200].as_slice(), (Some(200), 4)),
            ("PATCH", &[502, 504, 500, 0, 500], (Some(500), 5)),
            ("GET", &[404], (Some(404), 1)),
            ("POST", &[0, 409], (Some(409), 2)),
            // A minute is too long for a pass.
            ("GET", &[429], (Some(429), 1)),
        ] {
            assert_eq!(answers(method, statuses).await, expected, "{method} {statuses:?}");
        }
    }

    #[tokio::test]
    async fn who_never_answers_is_given_up() {
        let silent = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<()>, BoxError>>());
        let tries = Tries { patience: Duration::from_millis(7) };
        let request = Request::builder().uri("/api").body(Body::empty()).unwrap();
        let error = tries.layer(silent).oneshot(request).await.unwrap_err();
        assert_eq!(error.to_string(), "no answer of the API server within 7ms");
    }
}
