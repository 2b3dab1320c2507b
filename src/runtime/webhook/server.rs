//! The HTTPS server: connections, limits, deadlines. Nobody who talks slowly, much or nonsense holds up the others.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::live_certificate::LiveCertificate;
use super::review::{Denial, ReviewRequest, Verdict};

/// Largest body: two objects of 3 MiB, the most that an API server takes in, and what is around them.
const LARGEST_BODY: usize = 7 << 20;
/// Memory for bodies that are under way, in KiB. Who comes later waits.
const BODY_MEMORY: u32 = 64 << 10;
/// Connections at a time. An API server needs one or two.
const CONNECTIONS: usize = 512;
/// What a client may take for the handshake, for the head of a request, and for its body.
const PATIENCE: Duration = Duration::from_secs(5);
/// What a review may take, unless the API server says less. Its own limit is ten seconds; an answer in time says more than none.
const DEADLINE: Duration = Duration::from_secs(9);
/// How much sooner than the API server's deadline the answer is sent.
const MARGIN: Duration = Duration::from_millis(500);
/// What open requests get to end when the server stops.
const GRACE: Duration = Duration::from_secs(8);
/// Pause after a failed accept, for example when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Judges or changes objects.
pub(crate) trait Reviewer: Send + Sync {
    /// What becomes of a request. Whatever blocks for more than a few milliseconds belongs on a thread for it.
    fn review(&self, request: Arc<ReviewRequest>) -> BoxFuture<'_, Verdict>;
}

/// Hears of every review.
pub(crate) trait Observer: Send + Sync {
    /// A review has been answered.
    fn reviewed(&self, path: &str, request: &ReviewRequest, verdict: &Verdict, took: Duration);
    /// A request was none that can be answered.
    fn refused(&self, path: &str, why: &str);
}

/// Reviewers by path.
pub(crate) type Routes = BTreeMap<String, Arc<dyn Reviewer>>;

#[derive(Clone)]
struct Endpoint {
    path: Arc<str>,
    reviewer: Arc<dyn Reviewer>,
    observer: Arc<dyn Observer>,
    memory: Arc<Semaphore>,
}

/// Serves until told to stop; then open requests get to end.
///
/// # Errors
/// When no TLS server can be made.
pub(crate) async fn serve(
    listener: TcpListener,
    live: &LiveCertificate,
    routes: Routes,
    observer: Arc<dyn Observer>,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(live.server_config()?));
    let memory = Arc::new(Semaphore::new(BODY_MEMORY as usize));
    let mut router = Router::new();
    for (path, reviewer) in routes {
        let (observer, memory) = (Arc::clone(&observer), Arc::clone(&memory));
        let endpoint = Endpoint { path: path.as_str().into(), reviewer, observer, memory };
        router = router.route(&path, post(answer).with_state(endpoint));
    }
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let permit = Arc::clone(&connections).acquire_owned().await.context("the server has ended")?;
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told_to_stop(&mut stopped) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "a connection can't be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, router, stopped) = (acceptor.clone(), router.clone(), stopped.clone());
        tokio::spawn(async move {
            connection(stream, acceptor, router, stopped).await;
            drop(permit);
        });
    }
    // Every connection gives its permit back at its end.
    let all = connections.acquire_many(u32::try_from(CONNECTIONS).unwrap_or(u32::MAX));
    if timeout(GRACE, all).await.is_err() {
        warn!("requests are cut off");
    }
    Ok(())
}

/// Returns when it is time to stop, also when nobody is there any more who could say so.
async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let told = stopped.wait_for(|stopped| *stopped).await;
    drop(told);
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router, mut stopped: watch::Receiver<bool>) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let stream = match timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "no TLS connection"),
        Err(_) => return debug!("no TLS connection: too slow"),
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(256);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        debug!(error = &*error, "a connection has failed");
    }
}

/// Answers one request. What is no review gets a plain text, which ends up in the API server's log and message.
async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let began = Instant::now();
    let limit = deadline(request.uri().query().unwrap_or_default());
    let review = match read(&endpoint, request).await {
        Ok(review) => review,
        Err((status, why)) => {
            endpoint.observer.refused(&endpoint.path, &why);
            return (status, format!("{why}\n")).into_response();
        }
    };
    let (review, _memory) = review;
    let left = limit.saturating_sub(began.elapsed());
    // A task of its own: a panic in it is an answer, not a broken connection.
    let judged = tokio::spawn({
        let (reviewer, review) = (Arc::clone(&endpoint.reviewer), Arc::clone(&review));
        async move { reviewer.review(review).await }
    });
    let verdict = match timeout(left, judged).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) => {
            Verdict::Denied(Denial::internal("the review has failed; the log of the webhook says why".to_owned()))
        }
        Err(_) => {
            Verdict::Denied(Denial::timeout(format!("no verdict within {:.1} s; try again", limit.as_secs_f32())))
        }
    };
    endpoint.observer.reviewed(&endpoint.path, &review, &verdict, began.elapsed());
    ([(header::CONTENT_TYPE, "application/json")], review.answer(verdict)).into_response()
}

type Memory = tokio::sync::OwnedSemaphorePermit;

/// Reads the body, waiting for memory if many are under way.
async fn read(endpoint: &Endpoint, request: Request) -> Result<(Arc<ReviewRequest>, Memory), (StatusCode, String)> {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_none_or(|value| value.split(';').next() != Some("application/json")) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json".to_owned()));
    }
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced: Option<usize> = announced.and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
    let size = announced.unwrap_or(LARGEST_BODY);
    let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {} MiB", LARGEST_BODY >> 20));
    if size > LARGEST_BODY {
        return Err(too_large());
    }
    let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(BODY_MEMORY).max(1);
    let memory = Arc::clone(&endpoint.memory).acquire_many_owned(kib).await;
    let memory = memory.map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "the server is ending".to_owned()))?;
    let body = timeout(PATIENCE, body(request.into_body())).await;
    let body = body.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the body took too long".to_owned()))?;
    let body = body.map_err(|error| match error {
        BodyError::TooLarge => too_large(),
        BodyError::Broken => (StatusCode::BAD_REQUEST, "the body ended early".to_owned()),
    })?;
    let review = ReviewRequest::parse(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok((Arc::new(review), memory))
}

enum BodyError {
    TooLarge,
    Broken,
}

async fn body(body: Body) -> Result<Bytes, BodyError> {
    to_bytes(body, LARGEST_BODY).await.map_err(|error| {
        let is_limit = std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("limit"));
        if is_limit { BodyError::TooLarge } else { BodyError::Broken }
    })
}

/// The API server tells in the query how long it waits: `timeout=10s`, in whole seconds and at most 30.
fn deadline(query: &str) -> Duration {
    let told = query.split('&').find_map(|pair| pair.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    told.map_or(DEADLINE, |seconds| Duration::from_secs(seconds).saturating_sub(MARGIN).min(DEADLINE))
}
