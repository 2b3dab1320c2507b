//! Serves reviews over HTTPS, within the API server's deadline.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::live_certificate::LiveCertificate;
use super::review::{Denial, ReviewRequest, Verdict};
use crate::process::http_server::{BodyMemory, Server, UsedMemory};

/// Maximum body size: two objects of 3 MiB, the API server's limit, plus overhead.
const MAX_BODY_BYTES: usize = 7 << 20;
/// Maximum memory for all bodies being received or reviewed.
const BODY_MEMORY: usize = 64 << 20;
/// Maximum bytes of bodies reviewed at a time. The memory of a review grows with its body (docs/reliability-evidence.md), so
/// this limits the memory of all reviews.
const REVIEWED_BYTES: usize = 8 << 20;
/// Connections at a time. An API server needs one or two.
const CONNECTIONS: usize = 256;
/// Default and upper limit for a review. The API server's default is ten seconds; an error response is more useful than
/// a timeout.
const MAX_REVIEW_DURATION: Duration = Duration::from_secs(9);
/// Time reserved for sending the response before the API server's deadline.
const RESPONSE_MARGIN: Duration = Duration::from_millis(500);

/// Validates or changes objects.
pub trait Reviewer: Send + Sync {
    /// Reviews a request. Work that blocks for more than a few milliseconds belongs on a blocking thread.
    fn review(&self, request: Arc<ReviewRequest>) -> BoxFuture<'_, Verdict>;
}

/// Receives every review, for metrics and logs.
pub trait Observer: Send + Sync {
    fn reviewed(&self, path: &str, request: &ReviewRequest, verdict: &Verdict, took: Duration);
    /// The request was not a valid review.
    fn refused(&self, path: &str, why: &str);
}

pub type Routes = BTreeMap<String, Arc<dyn Reviewer>>;

#[derive(Clone)]
struct Endpoint {
    path: Arc<str>,
    reviewer: Arc<dyn Reviewer>,
    observer: Arc<dyn Observer>,
    bodies: Arc<BodyMemory>,
    reviewed: Arc<Semaphore>,
}

/// Serves until stopped, then completes open requests.
pub async fn serve(
    listener: TcpListener,
    live: &LiveCertificate,
    routes: Routes,
    observer: Arc<dyn Observer>,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let bodies = BodyMemory::new(MAX_BODY_BYTES, BODY_MEMORY);
    let reviewed = Arc::new(Semaphore::new(REVIEWED_BYTES));
    let mut router = Router::new();
    for (path, reviewer) in routes {
        let observer = Arc::clone(&observer);
        let bodies = Arc::clone(&bodies);
        let reviewed = Arc::clone(&reviewed);
        let endpoint = Endpoint { path: path.as_str().into(), reviewer, observer, bodies, reviewed };
        router = router.route(&path, post(respond).with_state(endpoint));
    }
    // Also stops if the sender has been dropped.
    let requested_to_stop = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    Server::new("webhooks", CONNECTIONS, router)
        .with_tls(live.server_config()?)
        .serve(listener, requested_to_stop)
        .await;
    Ok(())
}

/// Answers one request. Invalid requests get a plain text, which appears in the API server's log and message.
async fn respond(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let began = Instant::now();
    let limit = deadline(request.uri().query().unwrap_or_default());
    let (mut review, memory) = match read(&endpoint, request).await {
        Ok(read) => read,
        Err((status, why)) => {
            endpoint.observer.refused(&endpoint.path, &why);
            return (status, format!("{why}\n")).into_response();
        }
    };
    let mut left = limit.saturating_sub(began.elapsed());
    // The reservation is held until the thread of the review has ended, even if the review is given up at its deadline.
    let bytes = u32::try_from(review.bytes().min(REVIEWED_BYTES)).unwrap_or(u32::MAX);
    let turn = timeout(left, Arc::clone(&endpoint.reviewed).acquire_many_owned(bytes)).await;
    review.hold((memory, turn.ok().and_then(Result::ok)));
    let review = Arc::new(review);
    left = limit.saturating_sub(began.elapsed());
    // A separate task, so that a panic results in a response instead of a broken connection.
    let reviewed = tokio::spawn({
        let reviewer = Arc::clone(&endpoint.reviewer);
        let review = Arc::clone(&review);
        async move { reviewer.review(review).await }
    });
    let running = reviewed.abort_handle();
    let verdict = match timeout(left, reviewed).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) => Verdict::Denied(Denial::internal("the review failed; see the log of the webhook".to_owned())),
        Err(_) => {
            running.abort();
            Verdict::Denied(Denial::timeout(format!("no verdict within {:.1} s; try again", limit.as_secs_f32())))
        }
    };
    endpoint.observer.reviewed(&endpoint.path, &review, &verdict, began.elapsed());
    ([(header::CONTENT_TYPE, "application/json")], review.response(verdict)).into_response()
}

async fn read(endpoint: &Endpoint, request: Request) -> Result<(ReviewRequest, UsedMemory), (StatusCode, String)> {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_none_or(|value| value.split(';').next() != Some("application/json")) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json".to_owned()));
    }
    let (body, memory) = endpoint.bodies.read(request).await.map_err(|error| (error.status(), error.to_string()))?;
    let review = ReviewRequest::parse(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok((review, memory))
}

/// Deadline of the API server in the query: `timeout=10s`, in whole seconds and at most 30.
fn deadline(query: &str) -> Duration {
    let timeout = query.split('&').find_map(|pair| pair.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    timeout.map_or(MAX_REVIEW_DURATION, |seconds| {
        Duration::from_secs(seconds).saturating_sub(RESPONSE_MARGIN).min(MAX_REVIEW_DURATION)
    })
}
