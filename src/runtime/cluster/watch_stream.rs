//! An watch_forever watch: the initial list, retries after failures, and a relist when resuming is not enough.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, warn};

use crate::cluster::retry_layer::RESPONSE_TIMEOUT;
use crate::cluster::watch_start::telling;
use crate::process::failure_reason::reason;
use crate::process::jitter::random_half;
use wire::api::bounded_text::shortened;

/// Objects per page of a list. Secrets are large, and a whole page is held in memory.
const PAGE_SIZE: u32 = 100;
/// How often the store is checked for unconfirmed objects.
const UNCONFIRMED_CHECK_PERIOD: Duration = Duration::from_secs(5);
/// Seconds after which the API server ends a watch, which then resumes. A watch whose connection is silently lost is
/// closed a little later.
const WATCH_TIMEOUT_SECONDS: u32 = 120;
/// A streamed list that is cut off after this time would be cut off again: by the watch timeout of a busy API server,
/// or by a proxy.
const SLOW_LIST_THRESHOLD: Duration = Duration::from_secs(10);
/// Longest failure text in bytes.
const MAX_FAILURE_BYTES: usize = 512;

/// Watches all objects of a kind indefinitely. Calls `resumed` whenever the watch has started, and relists when
/// `is_unconfirmed` returns true.
pub(crate) fn watch_forever<K>(
    client: &Client,
    kind: &K::DynamicType,
    config: watcher::Config,
    resumed: impl Fn() + Clone + Send + 'static,
    is_unconfirmed: impl Fn() -> bool + Send + 'static,
) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let api = Api::<K>::all_with(telling(client, resumed), kind);
    let kind = K::kind(kind).into_owned();
    let mut refused = None;
    let events = relist_when_needed(watching(api, config), is_unconfirmed).backoff(Pause::default());
    events.inspect(move |event| log_failure(&kind, event, &mut refused)).boxed()
}

/// Text for the failure of a watch. Bounded, because an API server may have written it.
pub(crate) fn failure(error: &watcher::Error) -> String {
    let text = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => reason(error),
        watcher::Error::WatchError(status) => reason(&kube::Error::Api(status.clone())),
        watcher::Error::NoResourceVersion => reason(error),
    };
    shortened(&text, MAX_FAILURE_BYTES)
}

/// Logs a failure. Most are transient. Missing permissions persist until the operator grants them, and the watch
/// retries every second, so each distinct rejection is logged as a warning only once.
fn log_failure<K>(kind: &str, event: &watcher::Result<Event<K>>, refused: &mut Option<String>) {
    match event {
        Ok(Event::Init) => {}
        Ok(_) => *refused = None,
        Err(error) if is_forbidden(error) => {
            let response = Some(failure(error));
            if *refused != response {
                warn!(kind, reason = response, "a watch is not allowed");
                *refused = response;
            }
        }
        Err(error) => debug!(kind, %error, "a watch has failed"),
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status,
        _ => return false,
    };
    matches!(status.code, 401 | 403)
}

/// How a watch gets its initial list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitialList {
    /// As events, so the list is never held in memory as a whole.
    Streamed,
    /// In pages, for an API server that does not stream lists or takes too long for a single one.
    Paged,
}

/// Returns a function that starts a new watch.
fn watching<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let paged = config.page_size(PAGE_SIZE).timeout(WATCH_TIMEOUT_SECONDS);
    move |initial_list| {
        let config = match initial_list {
            InitialList::Streamed => paged.clone().streaming_lists(),
            InitialList::Paged => paged.clone(),
        };
        watcher(api.clone(), config).boxed()
    }
}

/// Whether the API server rejects streaming lists or does not support the parameter.
fn refuses_to_stream(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    matches!(status.code, 400 | 422)
}

/// Relists in cases that kube does not handle. kube relists if a watch ends with 410, but if its start fails with 410
/// it repeats the same request forever. Unconfirmed objects, rejected, stalled and repeatedly cut streamed lists are
/// handled here too.
fn relist_when_needed<K: 'static>(
    watch: impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>,
    is_unconfirmed: impl Fn() -> bool,
) -> impl Stream<Item = watcher::Result<Event<K>>> {
    let streamed = InitialList::Streamed;
    let watching = Watching {
        events: watch(streamed),
        initial_list: streamed,
        list: None,
        check_at: Instant::now() + UNCONFIRMED_CHECK_PERIOD,
    };
    stream::unfold((watching, watch, is_unconfirmed), async |(mut watching, watch, is_unconfirmed)| {
        let event = loop {
            let Ok(event) = timeout_at(watching.check_at, watching.events.next()).await else {
                watching.check(&watch, &is_unconfirmed);
                continue;
            };
            let event = event?;
            if watching.initial_list == InitialList::Streamed && event.as_ref().is_err_and(refuses_to_stream) {
                debug!("the API server does not stream lists; they are read in pages");
                watching.begin(InitialList::Paged, &watch);
            } else {
                break event;
            }
        };
        let is_slow = watching.is_slow_list_cut(&event);
        watching.list = List::after(watching.list, &event);
        if is_slow {
            warn!("a list was cut before it was complete; it is read in pages");
            watching.begin(InitialList::Paged, &watch);
        }
        if matches!(&event, Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410) {
            watching.begin(watching.initial_list, &watch);
        }
        if watching.check_at <= Instant::now() {
            watching.check(&watch, &is_unconfirmed);
        }
        Some((event, (watching, watch, is_unconfirmed)))
    })
}

struct Watching<K> {
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    initial_list: InitialList,
    list: Option<List>,
    /// Time of the next check for unconfirmed objects.
    check_at: Instant,
}

/// An incomplete list.
#[derive(Clone, Copy)]
struct List {
    began: Instant,
    /// When its last object arrived.
    latest: Instant,
}

impl List {
    fn after<K>(before: Option<Self>, event: &watcher::Result<Event<K>>) -> Option<Self> {
        let now = Instant::now();
        match event {
            Ok(Event::Init) => Some(Self { began: now, latest: now }),
            Ok(Event::InitApply(_)) => Some(Self { began: before.map_or(now, |list| list.began), latest: now }),
            _ => None,
        }
    }
}

impl<K> Watching<K> {
    fn begin(
        &mut self,
        initial_list: InitialList,
        watch: impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>,
    ) {
        (self.initial_list, self.list, self.events) = (initial_list, None, watch(initial_list));
    }

    /// Whether a long streamed list has failed or restarted.
    fn is_slow_list_cut(&self, event: &watcher::Result<Event<K>>) -> bool {
        self.initial_list == InitialList::Streamed
            && matches!(event, Ok(Event::Init) | Err(_))
            && self.list.is_some_and(|list| list.began.elapsed() >= SLOW_LIST_THRESHOLD)
    }

    /// Relists if the list has stalled or objects are unconfirmed.
    fn check(
        &mut self,
        watch: impl Fn(InitialList) -> BoxStream<'static, watcher::Result<Event<K>>>,
        is_unconfirmed: impl Fn() -> bool,
    ) {
        self.check_at = Instant::now() + UNCONFIRMED_CHECK_PERIOD;
        // Page requests have deadlines of their own.
        let is_streamed = self.initial_list == InitialList::Streamed;
        let has_stopped = is_streamed && self.list.is_some_and(|list| list.latest.elapsed() > RESPONSE_TIMEOUT);
        if has_stopped {
            warn!("a list ended early; relisting");
        } else if is_unconfirmed() {
            warn!("no watch confirmed a deletion in time; relisting");
        } else {
            return;
        }
        self.begin(self.initial_list, watch);
    }
}

/// Delays between attempts of a failing watch. They are short, because no events arrive meanwhile: with kube's delays
/// of up to half a minute, Workers would wait that long after an outage. Jitter of up to 50% keeps many controllers
/// from reconnecting at the same time.
#[derive(Default)]
struct Pause {
    failures: u32,
}

impl Pause {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(1);
}

impl Iterator for Pause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = Self::FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        Some(pause + pause.mul_f64(random_half()))
    }
}

impl Backoff for Pause {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::Body as ResponseBody;
    use axum::http::{Request, Response};
    use futures::future;
    use k8s_openapi::api::core::v1::Secret;
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// First objects of a new watch, and the queries sent, with or without an API server that streams lists.
    async fn observed_first(streams: bool) -> (Vec<String>, Vec<String>) {
        let requested = Arc::<Mutex<Vec<String>>>::default();
        let queries = Arc::clone(&requested);
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let is_watch = query.contains("watch=true");
            let begins_with_list = query.contains("sendInitialEvents=true");
            queries.lock().unwrap().push(query);
            let object = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "3"}});
            let (status, text) = match (is_watch, begins_with_list && streams) {
                (true, true) => {
                    let end = json!({"k8s.io/initial-events-end": "true"});
                    let bookmark = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"resourceVersion": "7", "annotations": end}});
                    let events =
                        [json!({"type": "ADDED", "object": object}), json!({"type": "BOOKMARK", "object": bookmark})];
                    (200, events.map(|event| format!("{event}\n")).concat())
                }
                (true, false) => {
                    let refusal = json!({"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422,
                        "message": "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"});
                    (422, refusal.to_string())
                }
                _ => (200, json!({"metadata": {"resourceVersion": "7"}, "items": [object]}).to_string()),
            };
            let pieces = stream::iter([Ok::<_, kube::Error>(text)]).chain(stream::pending());
            let body = if is_watch && status == 200 { ResponseBody::from_stream(pieces) } else { text_of(pieces) };
            future::ok::<_, kube::Error>(Response::builder().status(status).body(body).unwrap())
        });
        let client = kube::Client::new(service, "default");
        let events = watch_forever::<Secret>(&client, &(), watcher::Config::default(), || {}, || false);
        let first: Vec<_> = events.take(3).map(|event| event.unwrap().to_string()).collect().await;
        let requested = requested.lock().unwrap().clone();
        (first, requested)
    }

    fn text_of(pieces: impl Stream<Item = Result<String, kube::Error>> + Send + 'static) -> ResponseBody {
        ResponseBody::from_stream(pieces.take(1))
    }

    #[tokio::test]
    async fn streams_newest_list_if_supported() {
        for streams in [true, false] {
            let (first, requested) = observed_first(streams).await;
            assert_eq!(first, ["Init", "InitApply(a)", "InitDone"], "streams: {streams}");
            assert!(
                requested.iter().all(|query| !query.contains("resourceVersion=0")),
                "not of any age: {requested:?}"
            );
            assert_eq!(requested.len(), if streams { 1 } else { 2 }, "{requested:?}");
        }
    }

    fn event(kind: &str, name: &str, annotations: &serde_json::Value) -> String {
        let metadata = json!({"name": name, "resourceVersion": "7", "annotations": annotations});
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
        format!("{}\n", json!({"type": kind, "object": object}))
    }

    /// Requests sent for a list that the API server streams at one object per second, and the seconds until it is
    /// complete. A proxy may cut off each response.
    async fn complete_after(objects: u32, proxy: Option<u64>) -> (u64, Vec<&'static str>) {
        let requested = Arc::<Mutex<Vec<&str>>>::default();
        let seen = Arc::clone(&requested);
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let seconds = query.split('&').find_map(|parameter| parameter.strip_prefix("timeoutSeconds="));
            let body = if query.contains("sendInitialEvents=true") {
                seen.lock().unwrap().push("stream");
                let end = event("BOOKMARK", "", &json!({"k8s.io/initial-events-end": "true"}));
                let list = (0..objects).map(|number| event("ADDED", &format!("s{number}"), &json!({}))).chain([end]);
                let slowly = stream::iter(list).then(async |piece| {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(piece)
                });
                let ended = tokio::time::sleep(Duration::from_secs(proxy.unwrap_or(seconds.unwrap().parse().unwrap())));
                let cut = proxy.map(|_| Err(std::io::Error::other("the proxy has ended it")));
                ResponseBody::from_stream(
                    slowly.chain(stream::pending()).take_until(Box::pin(ended)).chain(stream::iter(cut)),
                )
            } else if query.contains("watch=true") {
                ResponseBody::from_stream(stream::pending::<std::io::Result<String>>())
            } else {
                seen.lock().unwrap().push("page");
                let is_last = query.contains("continue=next");
                let next = if is_last { "" } else { "next" };
                let list = json!({"metadata": {"resourceVersion": "7", "continue": next}, "items": []});
                ResponseBody::from(list.to_string())
            };
            future::ok::<_, kube::Error>(Response::new(body))
        });
        let client = kube::Client::new(service, "default");
        let began = Instant::now();
        let events = watch_forever::<Secret>(&client, &(), watcher::Config::default(), || {}, || false);
        let is_complete = |event: &watcher::Result<Event<Secret>>| future::ready(matches!(event, Ok(Event::InitDone)));
        let mut complete = Box::pin(events.filter(is_complete));
        tokio::time::timeout(Duration::from_secs(7_200), complete.next()).await.expect("each wait ends");
        let requested = requested.lock().unwrap().clone();
        (began.elapsed().as_secs(), requested)
    }

    #[tokio::test(start_paused = true)]
    async fn falls_back_to_pages_after_cut_lists() {
        assert_eq!(complete_after(100, None).await, (101, vec!["stream"]));
        let restarted_by_kube = vec!["stream", "stream", "page", "page"];
        assert_eq!(complete_after(500, None).await, (120, restarted_by_kube), "longer than a watch lasts");
        assert_eq!(complete_after(100, Some(50)).await, (50, vec!["stream", "page", "page"]), "a proxy ends it");
    }

    type Events = Vec<watcher::Result<Event<Secret>>>;

    /// Lists started within five minutes by a watch that reports `events` one second apart and then nothing.
    async fn begun(events: impl Fn(usize) -> Events, is_unconfirmed: impl Fn() -> bool) -> Vec<InitialList> {
        let begun = Arc::<Mutex<Vec<InitialList>>>::default();
        let watch = |list: InitialList| {
            let number = begun.lock().unwrap().len();
            begun.lock().unwrap().push(list);
            let slowly = stream::iter(events(number)).then(async |event| {
                tokio::time::sleep(Duration::from_secs(1)).await;
                event
            });
            slowly.chain(stream::pending()).boxed()
        };
        let observed = relist_when_needed(watch, is_unconfirmed).for_each(async |_| {});
        assert!(tokio::time::timeout(Duration::from_secs(300), observed).await.is_err(), "a watch never ends");
        begun.lock().unwrap().clone()
    }

    fn refused(code: u16) -> watcher::Result<Event<Secret>> {
        let status = kube::core::Status { code, ..kube::core::Status::default() };
        Err(watcher::Error::WatchStartFailed(kube::Error::Api(Box::new(status))))
    }

    #[tokio::test(start_paused = true)]
    async fn relists_only_if_necessary() {
        use InitialList::{Paged, Streamed};
        let listed = || vec![Ok(Event::Init), Ok(Event::InitDone)];
        assert_eq!(begun(|_| listed(), || false).await, [Streamed], "a quiet watch is left alone");
        let long_ago = |number| if number == 0 { vec![refused(410)] } else { listed() };
        assert_eq!(begun(long_ago, || false).await, [Streamed; 2], "what it goes on from is forgotten");
        assert_eq!(begun(|_| vec![refused(500)], || false).await, [Streamed], "kube tries that again by itself");
        let stops = |number| if number == 0 { vec![Ok(Event::Init)] } else { listed() };
        assert_eq!(begun(stops, || false).await, [Streamed; 2], "a streamed list has stopped");
        let in_pages = |number| if number == 0 { vec![refused(422)] } else { vec![Ok(Event::Init)] };
        assert_eq!(begun(in_pages, || false).await, [Streamed, Paged], "pages have deadlines of their own");
        let cut_after = |seconds: usize| {
            move |number| {
                let objects = (0..seconds).map(|_| Ok(Event::InitApply(Secret::default())));
                let cut = [Ok(Event::Init)].into_iter().chain(objects).chain([Ok(Event::Init), Ok(Event::InitDone)]);
                if number == 0 { cut.collect() } else { listed() }
            }
        };
        assert_eq!(begun(cut_after(5), || false).await, [Streamed], "kube begins the list again by itself");
        assert_eq!(begun(cut_after(60), || false).await, [Streamed, Paged], "it would be cut again");
        assert!(begun(|_| listed(), || true).await.len() > 2, "in doubt");
        // Busy watches are checked too.
        let busy = |_| (0..300).map(|_| Ok(Event::Apply(Secret::default()))).collect();
        assert!(begun(busy, || true).await.len() > 2, "in doubt");
        assert_eq!(begun(busy, || false).await, [Streamed]);
        let long_list = |_| {
            let objects = (0..200).map(|_| Ok(Event::InitApply(Secret::default())));
            [Ok(Event::Init)].into_iter().chain(objects).chain([Ok(Event::InitDone)]).collect()
        };
        assert_eq!(begun(long_list, || false).await, [Streamed], "a list goes on however long it takes");
        let start = Instant::now();
        assert_eq!(
            begun(|_| listed(), || start.elapsed() < UNCONFIRMED_CHECK_PERIOD).await,
            [Streamed],
            "it has only begun"
        );
    }

    #[test]
    fn watch_backoff_is_at_most_two_seconds() {
        let mut pause = Pause::default();
        let pauses: Vec<Duration> = pause.by_ref().take(100).collect();
        assert!(pauses[0] < Duration::from_millis(200), "{:?}", pauses[0]);
        assert!(pauses.iter().all(|pause| *pause < Duration::from_secs(2)), "{pauses:?}");
        assert!(pauses[50..].iter().all(|pause| *pause >= Pause::LONGEST), "an API server needs peace: {pauses:?}");
        assert!(pauses[50..].windows(2).any(|two| two[0] != two[1]), "not all at the same time");
        pause.reset();
        assert!(pause.next().is_some_and(|pause| pause < Duration::from_millis(200)));
    }
}
