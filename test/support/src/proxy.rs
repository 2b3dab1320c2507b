//! Between one controller and the API server: forwards each request, unless a fault is to happen there.
//!
//! ```text
//!  controller ──HTTP──► proxy ──HTTPS, the controller's user──► kube-apiserver
//!                         │
//!                         └─ asks its faults, for each request: forward, delay, refuse, lose the answer, stop the world …
//! ```
//!
//! A controller watches the whole seed. Here it sees only one namespace: lists and watches over all of them are narrowed on
//! the way, so that many controllers work side by side on one control plane, each killed at another moment.

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

/// The largest request that a controller makes is far below what etcd takes.
const LARGEST_REQUEST: usize = 4 << 20;

/// A request as its faults see it.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// The path to the object, with `NAMESPACE` for the name of the namespace: the same in each namespace.
    pub path: String,
    /// By which labels and members objects are chosen.
    pub selectors: String,
    /// Whether it is a watch.
    pub watches: bool,
}

impl Call {
    /// Whether it may change something. Leases don't count: who renews them says nothing about Workers.
    pub fn writes(&self) -> bool {
        self.method != Method::GET && !self.path.starts_with("/apis/coordination.k8s.io/")
    }

    /// Whether it may change an object that is there.
    pub fn changes(&self) -> bool {
        self.writes() && self.method != Method::POST
    }
}

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Treatment {
    Forward,
    /// Forwarded after a while.
    Delay(Duration),
    /// Answered here; the API server never hears of it.
    Refuse(Refusal),
    /// Forwarded; the connection is cut when the answer is there.
    LoseAnswer,
    /// Forwarded; the answer, a watch, is cut off after a while.
    CutOff(Duration),
    /// Forwarded; the answer never begins, and the connection stays.
    NeverAnswer,
    /// Forwarded; half of the answer comes, or no event of a watch, and the connection stays.
    Stall,
    /// Forwarded; half of the answer comes as if it were all.
    Truncate,
    /// Forwarded; this is said to be the answer.
    Replace(Refusal),
    /// Not forwarded, nor anything after it: see [`Proxy::stopped`].
    StopBefore,
    /// Forwarded, and nothing after it: see [`Proxy::stopped`].
    StopAfter,
}

/// An answer that the API server or something before it could give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else has written since.
    Conflict,
    /// Too many requests; seconds to wait.
    TooMany(u32),
    /// The API server has failed.
    Internal,
    /// There is no API server, says a load balancer, and not in JSON.
    Unavailable,
    /// What was to be watched from is too old.
    Expired,
    /// A watch that begins and then only tells of an error with this code.
    WatchError(u16),
    /// A good answer without a byte.
    Empty,
    /// A good answer, of somebody who does not know what was asked.
    Page,
    /// A good answer, and no object: to a deletion, that it is done.
    OtherKind,
    /// There is no such object.
    NotThere,
    /// Not found, says somebody who does not know what there is.
    NoPage,
}

/// Decides about each request.
pub type Faults = Box<dyn FnMut(&Call) -> Treatment + Send>;

/// A running proxy. Dropping it ends it and its connections.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    upstream: Client,
    /// What the controller sees; without it, everything.
    namespace: Option<String>,
    faults: Mutex<Faults>,
    /// Requests that write, in the order of their arrival, since [`Proxy::take_writes`].
    writes: Mutex<Vec<Call>>,
    gate: watch::Sender<Gate>,
    /// Counts how often all connections were reset.
    resets: watch::Sender<u32>,
    /// Requests that were forwarded and have no answer yet, watches aside.
    under_way: watch::Sender<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gate {
    /// How many controllers have talked through it; connections of those before are cut.
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
    /// One last request is at the API server.
    Closing,
    Closed,
}

impl Proxy {
    /// Starts one for a namespace. It forwards everything until told otherwise.
    pub async fn start(control_plane: &ControlPlane, namespace: &str) -> Result<Self> {
        Self::start_for(control_plane, Some(namespace.to_owned())).await
    }

    /// The same for all namespaces.
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

    /// Where it listens: `http://127.0.0.1:<port>`.
    pub fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// With what the controller that is started now has to say who it is.
    pub fn token(&self) -> String {
        self.shared.gate.borrow().token()
    }

    /// From now on these happen.
    pub fn set_faults(&self, faults: impl FnMut(&Call) -> Treatment + Send + 'static) {
        *lock(&self.shared.faults) = Box::new(faults);
    }

    /// From now on everything is forwarded.
    pub fn clear_faults(&self) {
        self.set_faults(|_| Treatment::Forward);
    }

    /// The requests that write which have arrived since the last call of this.
    pub fn take_writes(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.shared.writes))
    }

    /// Waits until a fault has stopped the world: everything that the controller sends from now on is held, and what it sent
    /// before is answered by the API server. Only [`Proxy::resume`] goes on.
    pub async fn stopped(&self) {
        let mut gate = self.shared.gate.subscribe();
        let mut under_way = self.shared.under_way.subscribe();
        // The senders live as long as we do.
        let _ = gate.wait_for(|gate| gate.state == GateState::Closed).await;
        let _ = under_way.wait_for(|count| *count == 0).await;
    }

    /// Whether the world stops or has stopped.
    pub fn stops(&self) -> bool {
        self.shared.gate.borrow().state != GateState::Open
    }

    /// Resets all connections, as a network does that has lost its state. New ones are as good as before.
    pub fn reset_connections(&self) {
        self.shared.resets.send_modify(|resets| *resets += 1);
    }

    /// Cuts all connections, those that are held too, and forwards again.
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

/// One connection: until the controller ends it, a fault does, or the controller's life is over.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut gate = shared.gate.subscribe();
    let life = gate.borrow_and_update().lives;
    let mut resets = shared.resets.subscribe();
    let cut = Arc::new(Notify::new());
    let router = Router::new().fallback(handle).with_state(Connection { shared, cut: Arc::clone(&cut) });
    let _ = stream.set_nodelay(true);
    // Whatever cuts a connection resets it: an end in good order is less of a fault.
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
    /// Ends the connection without an answer.
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
        Treatment::Refuse(refusal) => return refusal.answer(),
        Treatment::StopBefore => held(under_way).await,
        Treatment::LoseAnswer
        | Treatment::StopAfter
        | Treatment::CutOff(_)
        | Treatment::NeverAnswer
        | Treatment::Stall
        | Treatment::Truncate
        | Treatment::Replace(_) => {}
    }
    let answer = Shared::forward(shared, Request::from_parts(parts, body), &call, under_way).await;
    match treatment {
        Treatment::StopAfter => {
            shared.gate.send_modify(|gate| gate.state = GateState::Closed);
            future::pending().await
        }
        Treatment::LoseAnswer => connection.cut().await,
        Treatment::CutOff(after) => answered(answer.map(|answer| cut_off(answer, after))),
        Treatment::NeverAnswer => future::pending().await,
        Treatment::Stall if call.watches => answered(answer.map(|answer| begun(answer, Bytes::new()))),
        Treatment::Stall => answered(halved(answer).await.map(|(answer, half)| begun(answer, half))),
        Treatment::Truncate => answered(halved(answer).await.map(|(answer, half)| answer.map(|_| Body::from(half)))),
        Treatment::Replace(refusal) => refusal.answer(),
        _ => answered(answer),
    }
}

fn answered(answer: Result<Response>) -> Response {
    answer.unwrap_or_else(Refusal::of_error)
}

/// An answer and the first half of its body.
async fn halved(answer: Result<Response>) -> Result<(Response, Bytes)> {
    let (parts, body) = answer?.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    Ok((Response::from_parts(parts, Body::empty()), body.slice(..body.len() / 2)))
}

/// The answer, of which this comes and then nothing.
fn begun(answer: Response, piece: Bytes) -> Response {
    let pieces = stream::once(future::ready(Ok::<_, axum::Error>(piece))).chain(stream::pending());
    answer.map(|_| Body::from_stream(pieces))
}

/// Never goes on.
async fn held(under_way: UnderWay) -> ! {
    drop(under_way);
    future::pending().await
}

/// The answer, whose end is that of the connection.
fn cut_off(answer: Response, after: Duration) -> Response {
    let (parts, body) = answer.into_parts();
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

    /// Asks the faults. While the gate is not open, everything is held. So is for ever what a dead controller has left in a
    /// connection that is accepted only now: nobody must take it for a request of the new one.
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

    /// Sends a request on. It arrives even if the controller ends meanwhile, as it would from the network's buffers.
    async fn forward(
        shared: &Arc<Self>,
        request: Request<Bytes>,
        call: &Call,
        under_way: UnderWay,
    ) -> Result<Response> {
        let request = shared.narrowed(request)?;
        if call.watches {
            let mut answer = shared.upstream.send(request).await?.map(Body::new);
            without_hop_headers(answer.headers_mut());
            return Ok(answer);
        }
        let (send, answer) = oneshot::channel();
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let answer = shared.answer(request).await;
            drop(under_way);
            let _ = send.send(answer);
        });
        answer.await?
    }

    /// The whole answer of the API server.
    async fn answer(&self, request: Request<kube::client::Body>) -> Result<Response> {
        let (mut parts, body) = self.upstream.send(request).await?.into_parts();
        without_hop_headers(&mut parts.headers);
        let bytes = body.collect_bytes().await?;
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }

    /// The request as it is sent on: by the controller's user, and about one namespace.
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

/// What is read of an object that is to be created.
#[derive(Deserialize)]
struct Created {
    metadata: ObjectMeta,
}

/// A request between its arrival and the API server's answer. Watches don't count.
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

/// Those that hold only between two neighbours: each side makes its own.
fn without_hop_headers(headers: &mut HeaderMap) {
    let own =
        [header::HOST, header::AUTHORIZATION, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    for name in own {
        headers.remove(name);
    }
}

/// A list or watch of all namespaces becomes one of this namespace; of kinds without namespaces, one of the object that is
/// named like it.
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
    fn answer(self) -> Response {
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
        let mut answer = (code, axum::Json(status)).into_response();
        if let Self::TooMany(seconds) = self {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }

    /// What a load balancer answers when it does not reach the API server.
    fn of_error(_: anyhow::Error) -> Response {
        Self::Unavailable.answer()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done while one is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
