//! What lies between clients and the API server: everything takes a while, and whatever can be lost, doubled or refused is, as far as
//! the seed says so. A request that is on its way arrives although whoever has sent it is gone by then.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body as AnswerBody, to_bytes};
use axum::http::{Request as HttpRequest, Response, header};
use futures::future::BoxFuture;
use futures::{FutureExt, stream};
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, Service};

use crate::api_server::request::Request;
use crate::api_server::watch::Watching;
use crate::api_server::{Answer, ApiServer};
use crate::random::Random;
use crate::signal::{Listener, Signal};
use crate::trace::Trace;

/// How often a watch tells which version it has come to.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// What goes wrong, each so many times in a thousand requests, and how long things take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Milliseconds of a way at most.
    pub(crate) way: u64,
    /// Milliseconds until a watch shows something at most.
    pub(crate) lag: u64,
    pub(crate) lost_requests: u64,
    pub(crate) lost_answers: u64,
    /// Nothing comes at all.
    pub(crate) silences: u64,
    /// 500, 503 or 429.
    pub(crate) refusals: u64,
    /// Half an answer, or the page of a proxy.
    pub(crate) foreign: u64,
    /// The request arrives twice.
    pub(crate) doubled: u64,
    /// Deletions that are answered and not done.
    pub(crate) lies: u64,
    /// Watches that end, for each time that they show something.
    pub(crate) cuts: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    AnswerLost,
    Silence,
    Refused(u16),
    Half,
    Page,
    Doubled,
    Lie,
}

/// The network. Clones are the same.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) server: ApiServer,
    pub(crate) trace: Trace,
    random: Random,
    faults: Arc<Mutex<Faults>>,
    /// Whose requests get no answers.
    cut_off: Arc<Mutex<BTreeSet<&'static str>>>,
    /// Counts how often all watches were cut.
    cuts: Signal,
    lies: Arc<Mutex<Lies>>,
}

/// Deletions that were answered and not done.
#[derive(Default)]
struct Lies {
    last: Option<Instant>,
    are_forgotten: bool,
}

/// Whoever has believed a lie knows better after that time.
const BELIEVED: Duration = Duration::from_secs(30);

impl Network {
    pub(crate) fn new(server: ApiServer, trace: Trace, random: Random) -> Self {
        let (faults, cut_off, lies) = Default::default();
        Self { server, trace, random, faults, cut_off, cuts: Signal::default(), lies }
    }

    /// A connection of its own for whoever this is.
    pub(crate) fn connection(&self, author: &'static str) -> Connection {
        Connection { network: self.clone(), author }
    }

    /// From now on this goes wrong.
    pub(crate) fn set_faults(&self, faults: Faults) {
        *locked(&self.faults) = faults;
    }

    /// All watches end.
    pub(crate) fn cut_watches(&self) {
        self.cuts.count();
    }

    /// Whether anybody answers to that one.
    pub(crate) fn set_cut_off(&self, author: &'static str, is_cut_off: bool) {
        let mut cut_off = locked(&self.cut_off);
        if is_cut_off {
            cut_off.insert(author)
        } else {
            cut_off.remove(author)
        };
    }

    /// A process ends, and with it the doubt about a deletion that was lately answered and not done.
    pub(crate) fn forget(&self) {
        let mut lies = locked(&self.lies);
        lies.are_forgotten |= lies.last.is_some_and(|last| last.elapsed() < BELIEVED);
    }

    /// Whether something may be left since it was last asked that nobody doubts any more to be gone: the next operation finds it.
    pub(crate) fn take_forgotten_lies(&self) -> bool {
        mem::take(&mut locked(&self.lies).are_forgotten)
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
            (faults.lost_answers, Fate::AnswerLost),
            (faults.silences, Fate::Silence),
            (faults.refusals, Fate::Refused(*random.one_of(&[500, 503, 429]).unwrap_or(&500))),
            (faults.foreign, *random.one_of(&[Fate::Half, Fate::Page]).unwrap_or(&Fate::Half)),
            (faults.doubled, Fate::Doubled),
            (if is_deletion { faults.lies } else { 0 }, Fate::Lie),
        ];
        let fate = fates.into_iter().find(|(in_a_thousand, _)| random.happens(*in_a_thousand));
        (fate.map_or(Fate::Arrives, |(_, fate)| fate), ways)
    }

    async fn deliver(self, author: &'static str, request: HttpRequest<Body>) -> Result<Response<AnswerBody>, BoxError> {
        let request = read(request).await?;
        let (fate, [outward, back]) = self.fate(author, request.method == "DELETE");
        sleep(outward).await;
        let path =
            if request.query.is_empty() { request.path.clone() } else { format!("{}?{}", request.path, request.query) };
        let told = |fate: String| self.trace.request(author, &request.method, &path, fate);
        match fate {
            Fate::Lost => {
                told("lost on its way".to_owned());
                return Err("connection reset".into());
            }
            Fate::Silence => {
                told("no answer".to_owned());
                return std::future::pending().await;
            }
            Fate::Refused(code) => {
                told(format!("refused with {code}"));
                return Ok(refusal(code));
            }
            Fate::Page => {
                told("a page of a proxy".to_owned());
                return Ok(Response::builder().status(404).body("<html>no such host</html>".into())?);
            }
            Fate::Lie => {
                told("answered and not done".to_owned());
                locked(&self.lies).last = Some(Instant::now());
                let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
                return Ok(json(200, text.to_owned()));
            }
            Fate::Arrives | Fate::AnswerLost | Fate::Half | Fate::Doubled => {}
        }
        if fate == Fate::Doubled {
            self.done(author, &request, &path, " (the first of two)");
        }
        let note = match fate {
            Fate::AnswerLost => ", and the answer is lost",
            Fate::Half => ", and half of the answer",
            _ => "",
        };
        let answer = self.done(author, &request, &path, note);
        sleep(back).await;
        match (answer, fate) {
            (_, Fate::AnswerLost) => Err("connection reset".into()),
            (Answer::Watch(watching), _) => Ok(Response::new(self.shown(author, watching))),
            (Answer::Body { code, mut text }, Fate::Half) => {
                let half = (0..=text.len() / 2).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
                text.truncate(half);
                Ok(json(code, text))
            }
            (Answer::Body { code, text }, _) => Ok(json(code, text)),
        }
    }

    /// Does it, and keeps what has happened.
    fn done(&self, author: &'static str, request: &Request, path: &str, note: &str) -> Answer {
        let before = self.server.store().revision;
        let answer = self.server.answer(author, request);
        let code = match &answer {
            Answer::Body { code, .. } => *code,
            Answer::Watch(_) => 200,
        };
        self.trace.request(author, &request.method, path, format!("{code}{note}"));
        self.keep_writes(author, before);
        answer
    }

    /// Writes past the network, and keeps what has happened.
    pub(crate) fn written(&self, author: &'static str, write: impl FnOnce()) {
        let before = self.server.store().revision;
        write();
        self.server.tell_writes();
        self.keep_writes(author, before);
    }

    fn keep_writes(&self, author: &'static str, before: u64) {
        let after = self.server.store().revision;
        (before..after).for_each(|revision| self.trace.wrote(author, revision + 1));
    }

    /// The events of a watch as a body.
    fn shown(&self, author: &'static str, watching: Watching) -> AnswerBody {
        let end = Instant::now() + Duration::from_secs(watching.timeout);
        let (writes, cuts) = (self.server.writes(), self.cuts.listen());
        let stream =
            Shown { network: self.clone(), author, watching, writes, cuts, end, bookmark: Instant::now() + BOOKMARKS };
        AnswerBody::from_stream(stream::unfold(Some(stream), |shown| async move {
            let mut shown = shown?;
            match shown.next().await {
                Ok(Some(text)) => Some((Ok(text), Some(shown))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }
}

/// A watch on its way to a client.
struct Shown {
    network: Network,
    author: &'static str,
    watching: Watching,
    writes: Listener,
    cuts: Listener,
    end: Instant,
    bookmark: Instant,
}

impl Shown {
    /// The next events; `None` at its end.
    async fn next(&mut self) -> Result<Option<String>, BoxError> {
        loop {
            let mut text = String::new();
            while let Some(line) = self.watching.next(&self.network.server.store()) {
                text.push_str(&line);
            }
            if !text.is_empty() {
                let faults = *locked(&self.network.faults);
                sleep(self.network.random.millis(0, faults.lag)).await;
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
                        if self.watching.wants_bookmarks {
                            return Ok(Some(self.watching.bookmark()));
                        }
                    }
                }
            }
        }
    }
}

/// A client's way to the API server.
#[derive(Clone)]
pub(crate) struct Connection {
    network: Network,
    author: &'static str,
}

impl Service<HttpRequest<Body>> for Connection {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let (answered, answer) = oneshot::channel();
        let delivery = self.network.clone().deliver(self.author, request);
        tokio::spawn(async move {
            // Whoever has asked may be gone by now.
            let _ = answered.send(delivery.await);
        });
        async move { answer.await.unwrap_or_else(|_| Err("the network is gone".into())) }.boxed()
    }
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
        body: to_bytes(AnswerBody::new(body), usize::MAX).await?.to_vec(),
    })
}

fn json(code: u16, text: String) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::from(text));
    *response.status_mut() = code.try_into().unwrap_or_default();
    response
}

fn refusal(code: u16) -> Response<AnswerBody> {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"not now","reason":"Unknown","code":{code}}}"#
    );
    let mut response = json(code, text);
    if code == 429 {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    response
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
