//! Detects when a watch has started. kube resumes failed watches silently, and waiting for the next event is not
//! enough: a kind may have no changes or no objects. So a successful response to the watch request is the signal,
//! because from then on the API server sends all missed and new events.
//!
//! A watch with a streamed list does not resume; it is complete when the list ends. kube accepts a list from any point
//! in time. Here the newest one is requested, because missing objects are treated as deleted.
//!
//! A watch that ends right after its start without an event is a failure here. kube would restart it without a delay.

use std::time::Duration;

use axum::body::Body as ResponseBody;
use axum::http::{Request, Response, Uri};
use futures::{StreamExt, future, stream};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tower::service_fn;

use crate::cluster::api_request::ApiRequest;

/// A watch without events that ends earlier is a failure.
const MIN_WATCH_DURATION: Duration = Duration::from_secs(1);

/// A watch ended before its first event.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the watch ended right after its start")]
struct EndedAtOnce;

/// Wraps a client to call `begun` whenever the API server starts to respond to a watch request.
pub(crate) fn telling(client: &Client, begun: impl Fn() + Clone + Send + 'static) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let service = service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        let begun = begun.clone();
        async move {
            let is_watch =
                ApiRequest::of(request.method(), request.uri()).is_some_and(|requested| requested.verb == "watch");
            let newest = is_watch.then(|| newest_list(request.uri())).flatten();
            let begins_with_list = newest.is_some();
            if let Some(uri) = newest {
                *request.uri_mut() = uri;
            }
            let response = client.send(request).await?.map(ResponseBody::new);
            if !is_watch || !response.status().is_success() {
                return Ok(response);
            }
            if !begins_with_list {
                begun();
            }
            Ok::<_, kube::Error>(failing_if_ended_at_once(response))
        }
    });
    Client::new(service, namespace)
}

/// Rewrites a request that starts with a streamed list to return the newest list.
fn newest_list(uri: &Uri) -> Option<Uri> {
    let query = uri.query().filter(|query| query.split('&').any(|parameter| parameter == "sendInitialEvents=true"))?;
    let kept = query.split('&').filter(|parameter| !parameter.starts_with("resourceVersion="));
    let mut parts = uri.clone().into_parts();
    let query = kept.collect::<Vec<_>>().join("&");
    parts.path_and_query = Some(format!("{}?{query}", uri.path()).parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn failing_if_ended_at_once(response: Response<ResponseBody>) -> Response<ResponseBody> {
    let began = Instant::now();
    let mut is_empty = true;
    response.map(|body| {
        let pieces = body.into_data_stream().map(Some).chain(stream::once(future::ready(None)));
        ResponseBody::from_stream(pieces.filter_map(move |piece| {
            is_empty &= piece.is_none();
            let has_failed = is_empty && began.elapsed() < MIN_WATCH_DURATION;
            future::ready(piece.or_else(|| has_failed.then(|| Err(axum::Error::new(EndedAtOnce)))))
        }))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::TryStreamExt;
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::{Api, ListParams, WatchParams};

    use super::*;

    /// A client of an API server that always responds with this status and body. Counts started watches.
    fn answering(status: u16, pieces: &'static [&'static str]) -> (Api<Secret>, Arc<AtomicUsize>) {
        let service = service_fn(move |_: Request<Body>| {
            let pieces = pieces.iter().map(|piece| Ok::<_, kube::Error>(piece.as_bytes()));
            let body = ResponseBody::from_stream(stream::iter(pieces));
            future::ok::<_, kube::Error>(Response::builder().status(status).body(body).unwrap())
        });
        let begun = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&begun);
        let client = telling(&Client::new(service, "default"), move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        (Api::all(client), begun)
    }

    #[tokio::test]
    async fn reports_start_on_successful_response() {
        const BOOKMARK: &str = concat!(
            r#"{"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Secret", "#,
            r#""metadata": {"resourceVersion": "3"}}}"#,
            "\n"
        );
        let (api, begun) = answering(200, &[BOOKMARK]);
        let events = api.watch(&WatchParams::default(), "0").await.unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 1, "before the first event");
        assert_eq!(events.try_collect::<Vec<_>>().await.unwrap().len(), 1);

        let (api, begun) = answering(503, &["no healthy upstream"]);
        assert!(api.watch(&WatchParams::default(), "0").await.is_err());
        let (list, no_watch) = answering(200, &[r#"{"metadata": {}, "items": []}"#]);
        assert!(list.list(&ListParams::default()).await.is_ok());
        assert_eq!((begun.load(Ordering::Relaxed), no_watch.load(Ordering::Relaxed)), (0, 0));
    }

    #[tokio::test]
    async fn watch_ending_after_start_fails() {
        let (api, _) = answering(200, &[]);
        let events = api.watch(&WatchParams::default(), "0").await.unwrap();
        let error = events.try_collect::<Vec<_>>().await.unwrap_err();
        assert!(format!("{error:?}").contains("EndedAtOnce"), "{error:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_watch_ends_without_failure() {
        for (silent_for, is_well) in
            [(MIN_WATCH_DURATION, true), (MIN_WATCH_DURATION - Duration::from_millis(1), false)]
        {
            let (end, ended) = tokio::sync::oneshot::channel::<()>();
            let mut ended = Some(ended);
            let service = service_fn(move |_: Request<Body>| {
                let ended = ended.take().expect("watched once");
                let pieces = stream::once(ended).filter_map(|_| future::ready(None::<Result<&[u8], kube::Error>>));
                future::ok::<_, kube::Error>(Response::new(ResponseBody::from_stream(pieces)))
            });
            let api = Api::<Secret>::all(telling(&Client::new(service, "default"), || {}));
            let events = api.watch(&WatchParams::default(), "0").await.unwrap();
            tokio::time::advance(silent_for).await;
            end.send(()).unwrap();
            let events = events.try_collect::<Vec<_>>().await;
            assert_eq!(events.is_ok(), is_well, "{silent_for:?}: {events:?}");
        }
    }
}
