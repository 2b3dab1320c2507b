//! Reports why a task is delayed, because the pipeline retries silently.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::headers::RETRY_AFTER;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};

use crate::cloud::background_task::Report;
use wire::api::gardener::ErrorCode;

/// Receives the causes of retries.
pub(super) trait RetryListener: Send + Sync {
    /// Called when a request failed and will be retried.
    fn delayed(&self, cause: RetryCause);
}

/// A listener, in the context of a request.
pub(super) struct ListenerOfRequest(pub(super) Arc<dyn RetryListener>);

/// Why a request is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RetryCause {
    /// A response with that status and `Retry-After`.
    Reply {
        /// The status.
        status: u16,
        /// `Retry-After`, verbatim.
        retry_after: Option<String>,
    },
    /// No response.
    ResponseTimeout,
}

/// A policy that reports every failed try to the listener of a request.
#[derive(Debug)]
pub(super) struct RetryNotifier;

#[async_trait]
impl Policy for RetryNotifier {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let Some((following, rest)) = next.split_first() else {
            return Err(azure_core::Error::with_message(azure_core::error::ErrorKind::Other, "no transport"));
        };
        let result = following.send(context, request, rest).await;
        if let Some(ListenerOfRequest(listener)) = context.value::<ListenerOfRequest>() {
            match &result {
                Ok(response) if response.status().is_success() => {}
                Ok(response) => listener.delayed(RetryCause::Reply {
                    status: response.status().into(),
                    retry_after: response.headers().get_optional_str(&RETRY_AFTER).map(str::to_owned),
                }),
                Err(_) => listener.delayed(RetryCause::ResponseTimeout),
            }
        }
        result
    }
}

impl<T: Send + Sync + 'static> RetryListener for Report<T> {
    fn delayed(&self, cause: RetryCause) {
        let (text, code) = match cause {
            RetryCause::Reply { status: 429, retry_after } => {
                let wait = retry_after.map(|seconds| format!(" and asks to wait {seconds} s")).unwrap_or_default();
                (format!("Azure limits the rate of requests{wait}"), Some(ErrorCode::InfraRateLimitsExceeded))
            }
            RetryCause::Reply { status, .. } => (format!("Azure answers with status {status}"), None),
            RetryCause::ResponseTimeout => ("Azure or its login authority can't be reached".to_owned(), None),
        };
        Report::delayed(self, text, code);
    }
}
