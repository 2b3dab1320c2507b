//! The write fence: blocks all writes to the API server while another process is leader or owns the Worker, and always
//! in shadow mode. It is a layer of the client, so no code can bypass it.

use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::Request;
use futures::future::{Either, Ready, ready};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use crate::cloud::{WriteAccess, WriteCheck};
use crate::cluster::api_request::ApiRequest;
use crate::cluster::assignment;
use crate::process::leadership::Leadership;

/// When this process may write.
#[derive(Clone, Debug)]
pub enum WriteFence {
    /// Always.
    Open,
    /// While this process is leader.
    Leader(Leadership),
    /// Never: shadow mode.
    Shut,
}

/// A write blocked by the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockedWrite {
    /// Another process is or may be leader.
    #[error("not written: this process doesn't lead")]
    NotLeading,
    /// The Worker belongs or may belong to another shard.
    #[error("not written: the Worker belongs to another shard")]
    NotAssigned,
    #[error("not written: dry run")]
    Shadow,
}

impl WriteFence {
    fn check(&self, now: Instant) -> Result<(), BlockedWrite> {
        if !assignment::is_held() {
            return Err(BlockedWrite::NotAssigned);
        }
        match self {
            Self::Open => Ok(()),
            Self::Leader(leadership) if leadership.is_held(now) => Ok(()),
            Self::Leader(_) => Err(BlockedWrite::NotLeading),
            Self::Shut => Err(BlockedWrite::Shadow),
        }
    }
}

impl WriteFence {
    /// The same fence for writes to clouds, which don't use this client.
    pub fn before_clouds(&self) -> WriteCheck {
        let gate = self.clone();
        Arc::new(move || match gate.check(Instant::now()) {
            Ok(()) => WriteAccess::Allowed,
            Err(BlockedWrite::NotLeading | BlockedWrite::NotAssigned) => WriteAccess::Denied,
            Err(BlockedWrite::Shadow) => WriteAccess::DryRun,
        })
    }
}

impl<S> Layer<S> for WriteFence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Fenced { inner, gate: self.clone() }
    }
}

/// A client's service behind the fence.
#[derive(Clone)]
pub struct Fenced<S> {
    inner: S,
    gate: WriteFence,
}

impl<S> Service<Request<Body>> for Fenced<S>
where
    S: Service<Request<Body>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<Ready<Result<S::Response, BoxError>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Requests that can't be parsed are treated as writes unless their method is safe.
        let is_read = ApiRequest::of(request.method(), request.uri())
            .map_or_else(|| request.method().is_safe(), |request| !request.is_write());
        match if is_read { Ok(()) } else { self.gate.check(Instant::now()) } {
            Ok(()) => Either::Right(self.inner.call(request)),
            Err(held_back) => Either::Left(ready(Err(held_back.into()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tower::ServiceExt;

    use super::*;
    use crate::cluster::assignment::{Assignment, while_assigned};
    use crate::cluster::test_support::Unready;

    async fn send(gate: WriteFence, method: &str, path: &str) -> Result<(), BlockedWrite> {
        let response = tower::service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(()) });
        let service = gate.layer(response.map_err(|never| match never {}));
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        service.oneshot(request).await.map_err(|error| *error.downcast::<BlockedWrite>().unwrap())
    }

    const SECRETS: &str = "/api/v1/namespaces/a/secrets";

    #[tokio::test]
    async fn shadow_mode_blocks_writes() {
        assert_eq!(send(WriteFence::Shut, "GET", SECRETS).await, Ok(()));
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert_eq!(send(WriteFence::Shut, method, SECRETS).await, Err(BlockedWrite::Shadow), "{method}");
            assert_eq!(send(WriteFence::Shut, method, "/somewhere/else").await, Err(BlockedWrite::Shadow), "{method}");
        }
    }

    #[tokio::test]
    async fn blocks_writes_of_unassigned_worker() {
        let assigned = Arc::new(AtomicBool::new(true));
        let assignment: Assignment = {
            let assigned = Arc::clone(&assigned);
            Arc::new(move || assigned.load(Ordering::Relaxed))
        };
        let write = || while_assigned(Arc::clone(&assignment), send(WriteFence::Open, "PATCH", SECRETS));
        assert_eq!(write().await, Ok(()));
        assigned.store(false, Ordering::Relaxed);
        assert_eq!(write().await, Err(BlockedWrite::NotAssigned));
        assert_eq!(while_assigned(assignment, send(WriteFence::Open, "GET", SECRETS)).await, Ok(()), "it may read");
        assert_eq!(send(WriteFence::Open, "PATCH", SECRETS).await, Ok(()), "others are not concerned");
    }

    #[tokio::test]
    async fn blocks_writes_without_leadership() {
        let leadership = Leadership::default();
        let gate = WriteFence::Leader(leadership.clone());
        assert_eq!(send(gate.clone(), "PATCH", SECRETS).await, Err(BlockedWrite::NotLeading));
        leadership.extend(Instant::now() + Duration::from_secs(60));
        assert_eq!(send(gate.clone(), "PATCH", SECRETS).await, Ok(()));
        leadership.extend(Instant::now());
        assert_eq!(send(gate, "PATCH", SECRETS).await, Err(BlockedWrite::NotLeading));
    }

    #[tokio::test]
    async fn waits_for_inner_service() {
        let error = WriteFence::Open.layer(Unready).oneshot(Request::new(Body::empty())).await.unwrap_err();
        assert_eq!(error.to_string(), "the connection is gone");
    }
}
