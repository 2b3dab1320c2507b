//! The network between clients and the API server. Everything takes time, and depending on the seed requests are lost,
//! duplicated or rejected. A request in transit arrives even if its sender has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anyhow::bail;
use axum::Router;
use axum::body::{Body as ResponseBody, to_bytes};
use axum::http::{Request as HttpRequest, Response, header};
use futures::future::BoxFuture;
use futures::{FutureExt, stream};
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, Service, ServiceExt as _};

use crate::api_server::request::Request;
use crate::api_server::watch::Watching;
use crate::api_server::{ApiServer, Reply};
use crate::dependency::{Way, user_of};
use crate::random::Random;
use crate::signal::{Listener, Signal};
use crate::trace::Trace;

/// A request to a cloud, and its response.
type CloudRequest = reqwest::Request;
type CloudResponse = anyhow::Result<reqwest::Response>;

/// How long a client waits for a cloud's response.
const CLOUD_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of bookmarks in watches.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// Frequencies of faults per thousand requests, and latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Maximum latency in each direction, in milliseconds.
    pub(crate) way: u64,
    /// Maximum delay of watch events, in milliseconds.
    pub(crate) lag: u64,
    pub(crate) lost_requests: u64,
    pub(crate) lost_responses: u64,
    /// No response at all.
    pub(crate) silences: u64,
    /// Errors 500, 503 or 429.
    pub(crate) refusals: u64,
    /// A truncated response, or the page of a proxy.
    pub(crate) foreign: u64,
    /// The request arrives twice.
    pub(crate) doubled: u64,
    /// Deletions that report success without effect.
    pub(crate) lies: u64,
    /// Watches that end, per delivery of events.
    pub(crate) cuts: u64,
}

/// The treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    ResponseLost,
    Silence,
    Refused(u16),
    Half,
    Page,
    Doubled,
    Lie,
}

/// The network. Clones share it.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) server: ApiServer,
    pub(crate) trace: Trace,
    random: Random,
    faults: Arc<Mutex<Faults>>,
    /// Clients that receive no responses.
    cut_off: Arc<Mutex<BTreeSet<&'static str>>>,
    /// Whether reads of Secrets are denied to all.
    are_secrets_closed: Arc<AtomicBool>,
    /// Suspended processes, with the tasks that wait for them.
    suspended: Arc<Mutex<BTreeMap<&'static str, Vec<Waker>>>>,
    /// Counts how often all watches were closed.
    cuts: Signal,
    /// Counts requests that stop machine-controller-manager.
    stops: Signal,
    unnoticed: Arc<Mutex<Unnoticed>>,
    /// Rules that were broken at clouds.
    found: Arc<Mutex<Vec<String>>>,
}

/// Events that only the currently running process can notice: a deletion that was reported but not executed, or a late
/// watch event that arrives only after the operation that needs it.
#[derive(Default)]
struct Unnoticed {
    last: Option<Instant>,
    is_forgotten: bool,
}

/// Time after which the process has noticed.
const NOTICED_AFTER: Duration = Duration::from_secs(30);

impl Network {
    pub(crate) fn new(server: ApiServer, trace: Trace, random: Random) -> Self {
        let (faults, cut_off, are_secrets_closed, suspended, unnoticed, found) = Default::default();
        let (cuts, stops) = Default::default();
        Self { server, trace, random, faults, cut_off, are_secrets_closed, suspended, cuts, stops, unnoticed, found }
    }

    /// A connection for this client.
    pub(crate) fn connection(&self, author: &'static str) -> Connection {
        Connection { network: self.clone(), author }
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        *locked(&self.faults) = faults;
    }

    /// Closes all watches.
    pub(crate) fn cut_watches(&self) {
        self.cuts.count();
    }

    /// Notifies about requests that stop machine-controller-manager, when they are sent. They arrive a moment later.
    pub(crate) fn stops(&self) -> Listener {
        self.stops.listen()
    }

    /// Sets whether this client receives no responses.
    pub(crate) fn set_cut_off(&self, author: &'static str, is_cut_off: bool) {
        let mut cut_off = locked(&self.cut_off);
        if is_cut_off {
            cut_off.insert(author)
        } else {
            cut_off.remove(author)
        };
    }

    /// Sets whether reads of Secrets are denied, as by an authorizer that is still starting.
    pub(crate) fn close_secrets(&self, are_closed: bool) {
        let by = if are_closed { "nobody" } else { "controllers" };
        self.trace.note("world", format!("Secrets can be read by {by}"));
        self.are_secrets_closed.store(are_closed, Ordering::Relaxed);
    }

    fn is_closed(&self, request: &Request) -> bool {
        self.are_secrets_closed.load(Ordering::Relaxed) && request.method == "GET" && request.path.contains("/secrets")
    }

    /// Suspends a process. Requests that it has sent still arrive. It may have to exit when resumed, before it can
    /// notice anything.
    pub(crate) fn suspend(&self, author: &'static str) {
        self.forget();
        locked(&self.suspended).entry(author).or_default();
    }

    /// Resumes the process where it was suspended.
    pub(crate) fn resume(&self, author: &'static str) {
        let waiting = locked(&self.suspended).remove(author).unwrap_or_default();
        waiting.into_iter().for_each(Waker::wake);
    }

    fn is_suspended(&self, author: &'static str) -> bool {
        locked(&self.suspended).contains_key(author)
    }

    /// Whether the process is running. If not, wakes the task when it is resumed.
    fn continues(&self, author: &'static str, task: &Context<'_>) -> bool {
        let mut suspended = locked(&self.suspended);
        let waiting = suspended.get_mut(author);
        waiting.is_none_or(|waiting| {
            waiting.push(task.waker().clone());
            false
        })
    }

    /// Waits while the process is suspended.
    async fn resumed(&self, author: &'static str) {
        poll_fn(|task| if self.continues(author, task) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Runs the process's future while it is not suspended.
    pub(crate) async fn unless_suspended<T>(&self, author: &'static str, process: impl Future<Output = T>) -> T {
        let mut process = pin!(process);
        poll_fn(|task| if self.continues(author, task) { process.as_mut().poll(task) } else { Poll::Pending }).await
    }

    /// All rules that were broken at clouds.
    pub(crate) fn violations(&self) -> Vec<String> {
        locked(&self.found).clone()
    }

    /// Records an event that only the currently running process can notice.
    pub(crate) fn is_to_be_noticed(&self) {
        locked(&self.unnoticed).last = Some(Instant::now());
    }

    /// A process ends without having noticed recent events.
    pub(crate) fn forget(&self) {
        let mut unnoticed = locked(&self.unnoticed);
        unnoticed.is_forgotten |= unnoticed.last.is_some_and(|last| last.elapsed() < NOTICED_AFTER);
    }

    /// Whether, since the last call, events may have been lost that only the next operation will notice.
    pub(crate) fn take_forgotten(&self) -> bool {
        mem::take(&mut locked(&self.unnoticed).is_forgotten)
    }

    fn fate(&self, author: &'static str, is_deletion: bool) -> (Fate, [Duration; 2]) {
        let faults = *locked(&self.faults);
        let random = &self.random;
        let ways = [random.millis(1, 1 + faults.way), random.millis(0, faults.way)];
        if locked(&self.cut_off).contains(author) {
            return (Fate::Silence, ways);
        }
        let fates = [
            (faults.lost_requests, Fate::Lost),
            (faults.lost_responses, Fate::ResponseLost),
            (faults.silences, Fate::Silence),
            (faults.refusals, Fate::Refused(*random.one_of(&[500, 503, 429]).unwrap_or(&500))),
            (faults.foreign, *random.one_of(&[Fate::Half, Fate::Page]).unwrap_or(&Fate::Half)),
            (faults.doubled, Fate::Doubled),
            (if is_deletion { faults.lies } else { 0 }, Fate::Lie),
        ];
        let fate = fates.into_iter().find(|(in_a_thousand, _)| random.happens(*in_a_thousand));
        (fate.map_or(Fate::Arrives, |(_, fate)| fate), ways)
    }

    async fn deliver(
        self,
        author: &'static str,
        request: HttpRequest<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        if self.is_suspended(author) {
            // A task of the suspended process sent it, which is impossible in reality. Its retry passes the write
            // fence.
            self.resumed(author).await;
            return Err("connection reset".into());
        }
        let request = read(request).await?;
        let (fate, [outward, back]) = self.fate(author, request.method == "DELETE");
        let fate = if self.is_closed(&request) { Fate::Refused(403) } else { fate };
        if request.path.ends_with("/scale") && request.body.ends_with(br#"{"replicas":0}}"#) {
            self.stops.count();
        }
        sleep(outward).await;
        let path =
            if request.query.is_empty() { request.path.clone() } else { format!("{}?{}", request.path, request.query) };
        let reported = |fate: String| self.trace.request(author, &request.method, &path, fate);
        match fate {
            Fate::Lost => {
                reported("lost on its way".to_owned());
                return Err("connection reset".into());
            }
            Fate::Silence => {
                reported("no answer".to_owned());
                return std::future::pending().await;
            }
            Fate::Refused(code) => {
                reported(format!("refused with {code}"));
                return Ok(refusal(code));
            }
            Fate::Page => {
                reported("a page of a proxy".to_owned());
                return Ok(Response::builder().status(404).body("<html>no such host</html>".into())?);
            }
            Fate::Lie => {
                reported("answered and not done".to_owned());
                self.is_to_be_noticed();
                let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
                return Ok(json(200, text.to_owned()));
            }
            Fate::Arrives | Fate::ResponseLost | Fate::Half | Fate::Doubled => {}
        }
        if fate == Fate::Doubled {
            self.done(author, &request, &path, " (the first of two)");
        }
        let note = match fate {
            Fate::ResponseLost => ", and the answer is lost",
            Fate::Half => ", and half of the answer",
            _ => "",
        };
        let reply = self.done(author, &request, &path, note);
        sleep(back).await;
        self.resumed(author).await;
        match (reply, fate) {
            (_, Fate::ResponseLost) => Err("connection reset".into()),
            (Reply::Watch(watching), _) => Ok(Response::new(self.output(author, watching))),
            (Reply::Body { code, mut text }, Fate::Half) => {
                let half = (0..=text.len() / 2).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
                text.truncate(half);
                Ok(json(code, text))
            }
            (Reply::Body { code, text }, _) => Ok(json(code, text)),
        }
    }

    async fn cloud_requests(self, author: &'static str, cloud: Router, request: CloudRequest) -> CloudResponse {
        if self.is_suspended(author) {
            self.resumed(author).await;
            bail!("connection reset");
        }
        let (fate, [outward, back]) = self.fate(author, false);
        sleep(outward).await;
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let reported = |fate: String| self.trace.request(author, &method, &path, fate);
        let page = |code: u16, text: &'static str| Ok(Response::builder().status(code).body(text)?.into());
        match fate {
            Fate::Lost => {
                reported("lost on its way".to_owned());
                bail!("connection reset");
            }
            Fate::Silence => {
                reported("no answer".to_owned());
                sleep(CLOUD_TIMEOUT).await;
                bail!("operation timed out");
            }
            Fate::Refused(code) => {
                reported(format!("refused with {code}"));
                return page(code, r#"{"error": {"code": "Busy", "message": "not now"}}"#);
            }
            Fate::Page => {
                reported("a page of a proxy".to_owned());
                return page(404, "<html>no such host</html>");
            }
            Fate::Doubled => {
                reported("done twice".to_owned());
                of_cloud(&cloud, &request).await?;
            }
            Fate::Arrives | Fate::ResponseLost | Fate::Half | Fate::Lie => {}
        }
        let mut reply = of_cloud(&cloud, &request).await?;
        let is_deleted = request.method() == "DELETE" && reply.status().is_success();
        if let Some(user) = is_deleted.then(|| user_of(&self.server.store(), &path)).flatten() {
            let found = format!("{author} deletes what {user} refers to");
            locked(&self.found).push(found);
        }
        reported(reply.status().to_string());
        sleep(back).await;
        self.resumed(author).await;
        match fate {
            Fate::ResponseLost => bail!("connection reset"),
            Fate::Half => {
                let half = reply.body().len() / 2;
                reply.body_mut().truncate(half);
            }
            _ => {}
        }
        Ok(reply.into())
    }

    /// Executes a request and records it in the trace.
    fn done(&self, author: &'static str, request: &Request, path: &str, note: &str) -> Reply {
        let before = self.server.store().revision;
        let reply = self.server.response(author, request);
        let code = match &reply {
            Reply::Body { code, .. } => *code,
            Reply::Watch(_) => 200,
        };
        self.trace.request(author, &request.method, path, format!("{code}{note}"));
        self.keep_writes(author, before);
        reply
    }

    /// Writes directly to the server, and records it in the trace.
    pub(crate) fn written(&self, author: &'static str, write: impl FnOnce()) {
        let before = self.server.store().revision;
        write();
        self.server.report_writes();
        self.keep_writes(author, before);
    }

    fn keep_writes(&self, author: &'static str, before: u64) {
        let after = self.server.store().revision;
        (before..after).for_each(|revision| self.trace.wrote(author, revision + 1));
    }

    /// The events of a watch as a response body.
    fn output(&self, author: &'static str, watching: Watching) -> ResponseBody {
        let end = Instant::now() + Duration::from_secs(watching.timeout);
        let (writes, cuts) = (self.server.writes(), self.cuts.listen());
        let stream = Displayed {
            network: self.clone(),
            author,
            watching,
            writes,
            cuts,
            end,
            bookmark: Instant::now() + BOOKMARKS,
        };
        ResponseBody::from_stream(stream::unfold(Some(stream), |output| async move {
            let mut output = output?;
            match output.next().await {
                Ok(Some(text)) => Some((Ok(text), Some(output))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }
}

/// A watch in transit to a client.
struct Displayed {
    network: Network,
    author: &'static str,
    watching: Watching,
    writes: Listener,
    cuts: Listener,
    end: Instant,
    bookmark: Instant,
}

impl Displayed {
    /// The next events; `None` at the end of the watch.
    async fn next(&mut self) -> Result<Option<String>, BoxError> {
        loop {
            let mut text = String::new();
            while let Some(line) = self.watching.next(&self.network.server.store()) {
                text.push_str(&line);
            }
            if !text.is_empty() {
                let faults = *locked(&self.network.faults);
                sleep(self.network.random.millis(0, faults.lag)).await;
                self.network.resumed(self.author).await;
                if self.network.random.happens(faults.cuts) {
                    self.network.trace.note(self.author, format!("the watch of {} is cut", self.watching.kind.plural));
                    return Err("connection reset".into());
                }
                return Ok(Some(text));
            }
            if self.watching.has_failed() || Instant::now() >= self.end {
                return Ok(None);
            }
            if locked(&self.network.cut_off).contains(self.author) {
                sleep(Duration::from_secs(1)).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.cuts.changed() => return Err("connection reset".into()),
                () = self.writes.changed() => {}
                () = sleep_until(self.end.min(self.bookmark)) => {
                    if Instant::now() >= self.bookmark {
                        self.bookmark = Instant::now() + BOOKMARKS;
                        if self.watching.requests_bookmarks {
                            return Ok(Some(self.watching.bookmark()));
                        }
                    }
                }
            }
        }
    }
}

impl Way {
    /// Sends a request to the cloud and returns its response. A request in transit arrives even if the process has
    /// ended.
    pub(crate) async fn carry(self, request: CloudRequest) -> CloudResponse {
        let Self { network, author, router } = self;
        let (responded, reply) = oneshot::channel();
        tokio::spawn(async move {
            // The receiver may have ended.
            let _ = responded.send(network.cloud_requests(author, router, request).await);
        });
        reply.await?
    }
}

/// A client's connection to the API server.
#[derive(Clone)]
pub(crate) struct Connection {
    network: Network,
    author: &'static str,
}

impl Service<HttpRequest<Body>> for Connection {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let (responded, reply) = oneshot::channel();
        let delivery = self.network.clone().deliver(self.author, request);
        tokio::spawn(async move {
            // The receiver may have ended.
            let _ = responded.send(delivery.await);
        });
        async move { reply.await.unwrap_or_else(|_| Err("the network is gone".into())) }.boxed()
    }
}

/// Calls the fake cloud. Preserves headers, because Keystone returns its token in one.
async fn of_cloud(cloud: &Router, request: &CloudRequest) -> anyhow::Result<Response<Vec<u8>>> {
    let mut requested = HttpRequest::builder().method(request.method()).uri(request.url().as_str());
    for (name, value) in request.headers() {
        requested = requested.header(name, value);
    }
    requested = requested.header(header::HOST, request.url().authority());
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default().to_vec();
    let (parts, body) = cloud.clone().oneshot(requested.body(ResponseBody::from(body))?).await?.into_parts();
    Ok(Response::from_parts(parts, to_bytes(body, usize::MAX).await?.to_vec()))
}

async fn read(request: HttpRequest<Body>) -> Result<Request, BoxError> {
    let (parts, body) = request.into_parts();
    let text = |name: header::HeaderName| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    Ok(Request {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: text(header::CONTENT_TYPE),
        only_metadata: text(header::ACCEPT).contains("as=PartialObjectMetadata"),
        body: to_bytes(ResponseBody::new(body), usize::MAX).await?.to_vec(),
    })
}

fn json(code: u16, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(text));
    *response.status_mut() = code.try_into().unwrap_or_default();
    response
}

fn refusal(code: u16) -> Response<ResponseBody> {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"not now","reason":"Unknown","code":{code}}}"#
    );
    let mut response = json(code, text);
    if code == 429 {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    response
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
