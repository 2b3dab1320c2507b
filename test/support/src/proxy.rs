//! A proxy between one controller and the API server that forwards requests or injects faults.
//!
//! ```text
//!  controller ──HTTP──► proxy ──HTTPS, the controller's user──► kube-apiserver
//!                         │
//!                         └─ decides per request: forward, delay, deny, lose the response, stop the world …
//! ```
//!
//! A controller watches the whole seed. The proxy narrows lists and watches to one namespace, so that many controllers
//! run side by side on one control plane, each killed at another moment.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse as _, Response};
use futures::{StreamExt as _, future, stream};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::Deserialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use crate::cluster::{CONTROLLER, ControlPlane};

/// Maximum request size. Requests of a controller are far smaller than etcd's limit.
const LARGEST_REQUEST: usize = 4 << 20;

/// A request as passed to the fault function.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// The path, with `NAMESPACE` in place of the namespace's name, so that it is the same in all namespaces.
    pub path: String,
    /// Label and field selectors.
    pub selectors: String,
    pub watches: bool,
}

impl Call {
    /// Whether it may change something. Lease renewals are excluded, because they are unrelated to Workers.
    pub fn writes(&self) -> bool {
        self.method != Method::GET && !self.path.starts_with("/apis/coordination.k8s.io/")
    }

    /// Whether it may change an existing object.
    pub fn changes(&self) -> bool {
        self.writes() && self.method != Method::POST
    }
}

/// How to treat a request.
#[derive(Clone, Debug)]
pub enum Treatment {
    Forward,
    /// Forward after a delay.
    Delay(Duration),
    /// Answer without forwarding.
    Refuse(Refusal),
    /// Forward, but close the connection instead of sending the response.
    LoseResponse,
    /// Forward, but cut off the response (a watch) after a while.
    CutOff(Duration),
    /// Forward, but never start the response, and keep the connection open.
    NeverRespond,
    /// Forward, but stop after half of the response (or before the first watch event), and keep the connection open.
    Stall,
    /// Forward, but present half of the response as complete.
    Truncate,
    /// Forward, but replace the response.
    Replace(Refusal),
    /// Forward neither this request nor later ones, see [`Proxy::stopped`].
    StopBefore,
    /// Forward this request but no later ones, see [`Proxy::stopped`].
    StopAfter,
}

/// A response that the API server or an intermediary could send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Write conflict.
    Conflict,
    /// Too many requests; seconds to wait.
    TooMany(u32),
    /// Internal error of the API server.
    Internal,
    /// A load balancer's error without JSON, because the API server is unreachable.
    Unavailable,
    /// The resource version to watch from has expired.
    Expired,
    /// A watch that starts and only sends an error event with this code.
    WatchError(u16),
    /// Success with an empty body.
    Empty,
    /// Success with an unrelated page, from an intermediary.
    Page,
    /// Success with a different kind of object, such as a Status for a deletion.
    OtherKind,
    /// The object does not exist.
    NotThere,
    /// A 404 page of an intermediary that is unrelated to the object.
    NoPage,
}

/// Selects the treatment of each request.
pub type Faults = Box<dyn FnMut(&Call) -> Treatment + Send>;

/// A running proxy. Dropping it closes it and its connections.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    upstream: Client,
    /// The namespace that the controller sees; all if `None`.
    namespace: Option<String>,
    faults: Mutex<Faults>,
    /// Write requests in order of arrival, since [`Proxy::take_writes`].
    writes: Mutex<Vec<Call>>,
    gate: watch::Sender<Gate>,
    /// Number of times that all connections were reset.
    resets: watch::Sender<u32>,
    /// Number of forwarded requests without a response yet, except watches.
    under_way: watch::Sender<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gate {
    /// Number of controller processes so far. Connections of earlier ones are closed.
    lives: u32,
    state: GateState,
}

impl Gate {
    fn token(self) -> String {
        format!("life-{}", self.lives)
    }

    fn is_of_this_life(self, headers: &HeaderMap) -> bool {
        let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        authorization.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|token| token == self.token())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateState {
    Open,
    /// The last forwarded request is in progress.
    Closing,
    Closed,
}

impl Proxy {
    /// Starts a proxy for a namespace. It forwards everything until faults are set.
    pub async fn start(control_plane: &ControlPlane, namespace: &str) -> Result<Self> {
        Self::start_for(control_plane, Some(namespace.to_owned())).await
    }

    /// Same as [`Self::start`] for all namespaces.
    pub async fn start_for_all(control_plane: &ControlPlane) -> Result<Self> {
        Self::start_for(control_plane, None).await
    }

    async fn start_for(control_plane: &ControlPlane, namespace: Option<String>) -> Result<Self> {
        let mut config = control_plane.config(CONTROLLER).await?;
        config.default_retry = false;
        let shared = Arc::new(Shared {
            upstream: Client::try_from(config).context("making a client")?,
            namespace,
            faults: Mutex::new(Box::new(|_| Treatment::Forward)),
            writes: Mutex::default(),
            gate: watch::Sender::new(Gate { lives: 0, state: GateState::Open }),
            resets: watch::Sender::new(0),
            under_way: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// The URL: `http://127.0.0.1:<port>`.
    pub fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token that the current controller process must send.
    pub fn token(&self) -> String {
        self.shared.gate.borrow().token()
    }

    /// Sets the function that selects treatments.
    pub fn set_faults(&self, faults: impl FnMut(&Call) -> Treatment + Send + 'static) {
        *lock(&self.shared.faults) = Box::new(faults);
    }

    /// Forwards everything from now on.
    pub fn clear_faults(&self) {
        self.set_faults(|_| Treatment::Forward);
    }

    /// The write requests since the last call.
    pub fn take_writes(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.shared.writes))
    }

    /// Waits until a fault has stopped the world: further requests are held, and earlier ones have been answered by the
    /// API server.
    /// [`Proxy::resume`] ends this state.
    pub async fn stopped(&self) {
        let mut gate = self.shared.gate.subscribe();
        let mut under_way = self.shared.under_way.subscribe();
        // The senders live as long as the proxy.
        let _ = gate.wait_for(|gate| gate.state == GateState::Closed).await;
        let _ = under_way.wait_for(|count| *count == 0).await;
    }

    /// Whether the world is stopping or stopped.
    pub fn stops(&self) -> bool {
        self.shared.gate.borrow().state != GateState::Open
    }

    /// Resets all connections, as a network that lost its state. New connections work.
    pub fn reset_connections(&self) {
        self.shared.resets.send_modify(|resets| *resets += 1);
    }

    /// Closes all connections, including held ones, and forwards again.
    pub fn resume(&self) {
        self.shared.gate.send_modify(|gate| *gate = Gate { lives: gate.lives + 1, state: GateState::Open });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.resume();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

/// Serves a connection until the controller, a fault, or the end of the controller's life closes it.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut gate = shared.gate.subscribe();
    let life = gate.borrow_and_update().lives;
    let mut resets = shared.resets.subscribe();
    let cut = Arc::new(Notify::new());
    let router = Router::new().fallback(handle).with_state(Connection { shared, cut: Arc::clone(&cut) });
    let _ = stream.set_nodelay(true);
    // Closed connections are reset, because an orderly close is a lesser fault.
    let _ = stream.set_zero_linger();
    let server = auto::Builder::new(TokioExecutor::new());
    let serving = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::select! {
        _ = serving => {}
        () = cut.notified() => {}
        _ = gate.wait_for(|gate| gate.lives != life) => {}
        _ = resets.changed() => {}
    }
}

#[derive(Clone)]
struct Connection {
    shared: Arc<Shared>,
    cut: Arc<Notify>,
}

impl Connection {
    /// Closes the connection without a response.
    async fn cut(&self) -> ! {
        self.cut.notify_one();
        future::pending().await
    }
}

async fn handle(State(connection): State<Connection>, request: Request) -> Response {
    let shared = &connection.shared;
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, LARGEST_REQUEST).await else { connection.cut().await };
    let call = shared.call_of(&parts, &body);
    let (treatment, under_way) = Shared::treat(shared, &parts, &call);
    match treatment {
        Treatment::Forward => {}
        Treatment::Delay(delay) => tokio::time::sleep(delay).await,
        Treatment::Refuse(refusal) => return refusal.response(),
        Treatment::StopBefore => held(under_way).await,
        Treatment::LoseResponse
        | Treatment::StopAfter
        | Treatment::CutOff(_)
        | Treatment::NeverRespond
        | Treatment::Stall
        | Treatment::Truncate
        | Treatment::Replace(_) => {}
    }
    let reply = Shared::forward(shared, Request::from_parts(parts, body), &call, under_way).await;
    match treatment {
        Treatment::StopAfter => {
            shared.gate.send_modify(|gate| gate.state = GateState::Closed);
            future::pending().await
        }
        Treatment::LoseResponse => connection.cut().await,
        Treatment::CutOff(after) => responded(reply.map(|reply| cut_off(reply, after))),
        Treatment::NeverRespond => future::pending().await,
        Treatment::Stall if call.watches => responded(reply.map(|reply| begun(reply, Bytes::new()))),
        Treatment::Stall => responded(halved(reply).await.map(|(reply, half)| begun(reply, half))),
        Treatment::Truncate => responded(halved(reply).await.map(|(reply, half)| reply.map(|_| Body::from(half)))),
        Treatment::Replace(refusal) => refusal.response(),
        _ => responded(reply),
    }
}

fn responded(reply: Result<Response>) -> Response {
    reply.unwrap_or_else(Refusal::of_error)
}

/// A response and the first half of its body.
async fn halved(reply: Result<Response>) -> Result<(Response, Bytes)> {
    let (parts, body) = reply?.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    Ok((Response::from_parts(parts, Body::empty()), body.slice(..body.len() / 2)))
}

/// A response that stalls after this piece.
fn begun(reply: Response, piece: Bytes) -> Response {
    let pieces = stream::once(future::ready(Ok::<_, axum::Error>(piece))).chain(stream::pending());
    reply.map(|_| Body::from_stream(pieces))
}

/// Never returns.
async fn held(under_way: UnderWay) -> ! {
    drop(under_way);
    future::pending().await
}

/// A response that ends with the connection after a while.
fn cut_off(reply: Response, after: Duration) -> Response {
    let (parts, body) = reply.into_parts();
    let ended = Box::pin(tokio::time::sleep(after));
    let broken = stream::once(async { Err(axum::Error::new(std::io::Error::other("cut off"))) });
    Response::from_parts(parts, Body::from_stream(body.into_data_stream().take_until(ended).chain(broken)))
}

impl Shared {
    fn call_of(&self, parts: &Parts, body: &Bytes) -> Call {
        let query = parts.uri.query().unwrap_or_default();
        let mut path = parts.uri.path().to_owned();
        if parts.method == Method::POST
            && let Ok(Created { metadata: ObjectMeta { name: Some(name), .. } }) = serde_json::from_slice(body)
        {
            path = format!("{path}/{name}");
        }
        let selectors = query.split('&').filter(|parameter| parameter.contains("Selector="));
        Call {
            method: parts.method.clone(),
            path: self.namespace.as_ref().map_or(path.clone(), |namespace| path.replace(namespace, "NAMESPACE")),
            selectors: selectors.collect::<Vec<_>>().join("&"),
            watches: query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1")),
        }
    }

    /// Selects the treatment. Holds all requests unless the gate is open. Also holds requests of an earlier controller
    /// process whose connection is accepted late, because they must not be attributed to the new process.
    fn treat(shared: &Arc<Self>, parts: &Parts, call: &Call) -> (Treatment, UnderWay) {
        let under_way = UnderWay::new(shared, call);
        let mut treatment = Treatment::StopBefore;
        shared.gate.send_if_modified(|gate| {
            if gate.state != GateState::Open || !gate.is_of_this_life(&parts.headers) {
                return false;
            }
            if call.writes() {
                lock(&shared.writes).push(call.clone());
            }
            treatment = lock(&shared.faults)(call);
            gate.state = match treatment {
                Treatment::StopBefore => GateState::Closed,
                Treatment::StopAfter => GateState::Closing,
                _ => return false,
            };
            true
        });
        (treatment, under_way)
    }

    /// Forwards a request. It arrives even if the controller ends meanwhile, as it would from network buffers.
    async fn forward(
        shared: &Arc<Self>,
        request: Request<Bytes>,
        call: &Call,
        under_way: UnderWay,
    ) -> Result<Response> {
        let request = shared.narrowed(request)?;
        if call.watches {
            let mut reply = shared.upstream.send(request).await?.map(Body::new);
            without_hop_headers(reply.headers_mut());
            return Ok(reply);
        }
        let (send, reply) = oneshot::channel();
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let reply = shared.response(request).await;
            drop(under_way);
            let _ = send.send(reply);
        });
        reply.await?
    }

    /// The complete response of the API server.
    async fn response(&self, request: Request<kube::client::Body>) -> Result<Response> {
        let (mut parts, body) = self.upstream.send(request).await?.into_parts();
        without_hop_headers(&mut parts.headers);
        let bytes = body.collect_bytes().await?;
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }

    /// The request as forwarded: as the controller's user, narrowed to one namespace.
    fn narrowed(&self, request: Request<Bytes>) -> Result<Request<kube::client::Body>> {
        let (mut parts, body) = request.into_parts();
        if parts.method == Method::GET
            && let Some(namespace) = &self.namespace
        {
            parts.uri = narrowed(&parts.uri, namespace)?;
        }
        without_hop_headers(&mut parts.headers);
        Ok(Request::from_parts(parts, kube::client::Body::from(body)))
    }
}

/// The fields read from an object to be created.
#[derive(Deserialize)]
struct Created {
    metadata: ObjectMeta,
}

/// Counts a request from its arrival to the API server's response. Excludes watches.
struct UnderWay(Option<Arc<Shared>>);

impl UnderWay {
    fn new(shared: &Arc<Shared>, call: &Call) -> Self {
        if call.watches {
            return Self(None);
        }
        shared.under_way.send_modify(|count| *count += 1);
        Self(Some(Arc::clone(shared)))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.under_way.send_modify(|count| *count -= 1);
        }
    }
}

/// Removes hop-by-hop headers, which each side sets on its own.
fn without_hop_headers(headers: &mut HeaderMap) {
    let own =
        [header::HOST, header::AUTHORIZATION, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    for name in own {
        headers.remove(name);
    }
}

/// Narrows a list or watch of all namespaces to this namespace. For cluster-scoped kinds, narrows it to the object
/// named like the namespace.
fn narrowed(uri: &Uri, namespace: &str) -> Result<Uri> {
    let segments: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    let (base, plural) = match segments.as_slice() {
        ["api", "v1", plural] => ("/api/v1".to_owned(), *plural),
        ["apis", group, version, plural] => (format!("/apis/{group}/{version}"), *plural),
        _ => return Ok(uri.clone()),
    };
    let query = uri.query().unwrap_or_default();
    let path = match plural {
        "clusters" | "namespaces" => {
            let separator = if query.is_empty() { "" } else { "&" };
            format!("{base}/{plural}?{query}{separator}fieldSelector=metadata.name%3D{namespace}")
        }
        "customresourcedefinitions" | "nodes" => return Ok(uri.clone()),
        _ => format!("{base}/namespaces/{namespace}/{plural}?{query}"),
    };
    path.parse().with_context(|| format!("narrowing {uri}"))
}

impl Refusal {
    fn response(self) -> Response {
        let (code, reason) = match self {
            Self::Conflict => (StatusCode::CONFLICT, "Conflict"),
            Self::TooMany(_) => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Self::NotThere => (StatusCode::NOT_FOUND, "NotFound"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            Self::Unavailable => {
                return (StatusCode::SERVICE_UNAVAILABLE, "<html>no healthy upstream</html>").into_response();
            }
            Self::Expired => (StatusCode::GONE, "Expired"),
            Self::WatchError(code) => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code});
                let event = json!({"type": "ERROR", "object": status});
                return axum::Json(event).into_response();
            }
            Self::Page => return Html("<html>Please log in</html>").into_response(),
            Self::OtherKind => {
                return axum::Json(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})).into_response();
            }
            Self::NoPage => return (StatusCode::NOT_FOUND, Html("<html>Not found</html>")).into_response(),
            Self::Empty => return ([(header::CONTENT_TYPE, "application/json")], "").into_response(),
        };
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason,
            "message": "by the faults between controller and API server",
        });
        let mut reply = (code, axum::Json(status)).into_response();
        if let Self::TooMany(seconds) = self {
            reply.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        reply
    }

    /// A load balancer's response when it cannot reach the API server.
    fn of_error(_: anyhow::Error) -> Response {
        Self::Unavailable.response()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no partial state, so ignore poisoning.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
