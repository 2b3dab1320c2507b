//! Counts every request to the API server and traces those of reconciles. It is a layer of the client, so no request is
//! missed.

use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::{Request, Response};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use crate::cluster::api_request::ApiRequest;
use crate::process::traces;

/// Called for each request with its verb, its resource, and the status of the response if there was one.
pub type RequestObserver = Arc<dyn Fn(&'static str, &str, Option<u16>) + Send + Sync>;

#[derive(Clone)]
pub struct RequestCount(pub RequestObserver);

impl<S> Layer<S> for RequestCount {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Counted { inner, observer: Arc::clone(&self.0) }
    }
}

/// A client's service that counts requests.
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    observer: RequestObserver,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let requested = ApiRequest::of(request.method(), request.uri());
        let (verb, resource) =
            requested.map_or(("other", String::new()), |requested| (requested.verb, requested.resource.to_owned()));
        let observer = Arc::clone(&self.observer);
        let span = traces::of_request(verb, &resource);
        let response = self.inner.call(request);
        async move {
            let response = response.await;
            let code = response.as_ref().ok().map(|response| response.status().as_u16());
            observer(verb, &resource, code);
            traces::responded(&span, code);
            response
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;
    use crate::cluster::test_support::Unready;

    #[tokio::test]
    async fn waits_for_inner_service() {
        let observer: RequestObserver = Arc::new(|verb: &'static str, resource: &str, _: Option<u16>| {
            panic!("{verb} {resource} was not sent");
        });
        let error = RequestCount(observer).layer(Unready).oneshot(Request::new(Body::empty())).await.unwrap_err();
        assert_eq!(error.to_string(), "the connection is gone");
    }
}
