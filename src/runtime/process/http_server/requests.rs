//! Tracks the requests of a connection from head to end of response, and routes them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::Response;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use tower::{BoxError, Service, ServiceExt as _};

use super::connections::{InFlightRequest, RequestsOfConnection};

/// Service that answers the requests of one connection.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) router: Router,
    pub(super) peer: SocketAddr,
    pub(super) requests: RequestsOfConnection,
}

impl<B> Service<Request<B>> for Requests
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let in_flight = Arc::new(self.requests.begin());
        if request.body().is_end_stream() {
            in_flight.has_been_received();
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        request.extensions_mut().insert(Arc::clone(&in_flight));
        let router = self.router.clone();
        async move {
            let response = router.oneshot(request).await?;
            in_flight.is_being_sent();
            Ok(response.map(|body| Body::new(Reply { body, _in_flight: in_flight })))
        }
        .boxed()
    }
}

/// Response body. Its request is tracked until the body is sent.
struct Reply {
    body: Body,
    _in_flight: Arc<InFlightRequest>,
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
