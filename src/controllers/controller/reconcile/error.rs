//! Errors that end a reconcile.

use crate::controller::reconcile::restore::RestoreError;
use decisions::provider::WorkerError;
use decisions::worker::status::reconcile_outcome::Failure;
use decisions::worker::status::status_text::MAX_FAILURE_BYTES;
use runtime::cluster::error::ReadError;
use runtime::cluster::error::WriteError;
use runtime::cluster::retry_layer::ResponseTimeout;
use runtime::cluster::too_large::is_too_large;
use wire::api::bounded_text::shortened;
use wire::api::gardener::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// An object can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No pool can be planned.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// An object can't be deleted.
    #[error("{kind} {name:?} can't be deleted: {source}")]
    Delete {
        /// Kind of the object, such as `MachineClass`.
        kind: &'static str,
        name: String,
        source: WriteError,
    },
    /// The machines of a migrated shoot can't be found or created.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The Worker changed since this reconcile began, so its decisions may be wrong.
    #[error("the Worker was changed concurrently")]
    WorkerChanged,
    /// An object can't be changed.
    #[error("{what} can't be written: {source}")]
    Write {
        /// Kind and name of the object.
        what: String,
        source: WriteError,
    },
}

impl ReconcileError {
    /// The Worker itself can't be written.
    pub(crate) fn of_worker(source: kube::Error) -> Self {
        Self::Write { what: "Worker".to_owned(), source: source.into() }
    }

    /// Converts the error to the failure of an operation.
    #[must_use]
    pub(crate) fn failure(&self) -> Failure {
        let codes = match self {
            Self::Worker(error) => error.code().into_iter().collect(),
            Self::Read(ReadError::Cluster { .. }) => [ErrorCode::ConfigurationProblem].into(),
            Self::Read(_) | Self::Restore(_) | Self::Delete { .. } | Self::Write { .. } | Self::WorkerChanged => {
                Default::default()
            }
        };
        Failure { message: shortened(&self.to_string(), MAX_FAILURE_BYTES), codes }
    }

    /// Whether another client has written an object since it was read.
    #[must_use]
    pub(crate) fn is_outdated(&self) -> bool {
        match self {
            Self::WorkerChanged => true,
            Self::Delete { source, .. } | Self::Write { source, .. } => source.is_outdated(),
            Self::Read(_) | Self::Worker(_) | Self::Restore(_) => false,
        }
    }

    /// Whether the API server did not answer, as opposed to refusing the request.
    #[must_use]
    pub(crate) fn is_unreachable(&self) -> bool {
        match self.api_error() {
            Some(kube::Error::Api(status)) => matches!(status.code, 429 | 502 | 503 | 504),
            Some(kube::Error::Service(_) | kube::Error::HyperError(_)) => true,
            _ => false,
        }
    }

    /// Whether a request timed out.
    #[must_use]
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.api_error(), Some(kube::Error::Service(source)) if source.is::<ResponseTimeout>())
    }

    /// Whether the API server refused a write because of its size.
    #[must_use]
    pub(crate) fn is_too_large(&self) -> bool {
        self.api_error().is_some_and(is_too_large)
    }

    fn api_error(&self) -> Option<&kube::Error> {
        match self {
            Self::Read(ReadError::Api { source, .. })
            | Self::Write { source: WriteError::Api(source), .. }
            | Self::Delete { source: WriteError::Api(source), .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use axum::body::Body as ResponseBody;
    use axum::http::{Request, Response};
    use kube::api::Api;
    use kube::client::Body;
    use serde_json::json;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::controller::run::start::access_through;
    use runtime::cluster::write_fence::WriteFence;
    use wire::api::gardener::Worker;
    use wire::api::gotext::json::decode_lenient;

    fn of(source: kube::Error) -> ReconcileError {
        ReadError::Api { what: "machines".to_owned(), source }.into()
    }

    #[test]
    fn an_api_server_that_refuses_something_is_there() {
        let responded = |code: u16| {
            let status = json!({"status": "Failure", "reason": "", "message": "", "code": code});
            of(kube::Error::Api(serde_json::from_value(status).unwrap()))
        };
        for code in [429, 502, 503, 504] {
            assert!(responded(code).is_unreachable(), "{code}");
        }
        for code in [400, 403, 404, 409, 413, 422, 500] {
            assert!(!responded(code).is_unreachable(), "{code}");
        }
        assert!(of(kube::Error::Service("no connection".into())).is_unreachable());
        assert!(!of(kube::Error::LinesCodecMaxLineLengthExceeded).is_unreachable());
        assert!(!ReconcileError::WorkerChanged.is_unreachable());
    }

    fn status(code: u16) -> kube::Error {
        let status = json!({"status": "Failure", "reason": "", "message": "no", "code": code});
        kube::Error::Api(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_failure_names_what_is_wrong_and_has_the_code_of_who_has_to_act() {
        let missing = ReconcileError::from(WorkerError::ClusterMissing("shoot--p--s".to_owned()));
        let source = decode_lenient::<Vec<u8>>("{}").unwrap_err();
        let undecodable = ReconcileError::from(ReadError::Cluster { name: "shoot--p--s".to_owned(), source });
        let refused = ReconcileError::of_worker(status(403));
        let of = |error: &ReconcileError| error.failure();
        assert!(of(&missing).message.contains("shoot--p--s"), "{:?}", of(&missing));
        assert_eq!(of(&undecodable).codes, [ErrorCode::ConfigurationProblem].into());
        assert!(
            of(&undecodable).message.contains("Cluster \"shoot--p--s\" can't be decoded"),
            "{:?}",
            of(&undecodable)
        );
        assert!(of(&refused).codes.is_empty() && of(&refused).message.starts_with("Worker can't be written: "));
    }

    #[test]
    fn what_somebody_else_has_written_first_is_tried_again_and_what_is_read_is_not() {
        let delete = |source| ReconcileError::Delete { kind: "MachineClass", name: "a".to_owned(), source };
        assert!(ReconcileError::WorkerChanged.is_outdated());
        assert!(ReconcileError::of_worker(status(409)).is_outdated() && delete(WriteError::Going).is_outdated());
        assert!(!ReconcileError::of_worker(status(403)).is_outdated() && !of(status(409)).is_outdated());
    }

    #[tokio::test(start_paused = true)]
    async fn classifies_timeouts_and_oversized_requests() {
        let silent = service_fn(|_: Request<Body>| pending::<Result<Response<ResponseBody>, BoxError>>());
        let access = access_through(silent, "default".to_owned(), &Arc::default(), WriteFence::Open);
        let workers: Api<Worker> = Api::namespaced(access.client, "ns");
        assert!(of(workers.get("w").await.unwrap_err()).is_unanswered());
        assert!(!of(kube::Error::Service("no connection".into())).is_unanswered() && !of(status(504)).is_unanswered());
        assert!(ReconcileError::of_worker(status(413)).is_too_large());
        assert!(
            !ReconcileError::of_worker(status(403)).is_too_large() && !ReconcileError::WorkerChanged.is_too_large()
        );
    }
}
