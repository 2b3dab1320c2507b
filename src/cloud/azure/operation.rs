//! Long-running operations: what Azure has accepted and goes on with (ARM's rules for asynchronous operations).
//!
//! An answer that is not the end names an address to ask at: `Azure-AsyncOperation`, else `Location`, else the resource
//! itself, whose `provisioningState` tells. `Retry-After` says when.

use std::sync::Arc;

use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, Headers, RETRY_AFTER};
use azure_core::http::poller::{
    PollerContinuation, PollerOptions, PollerResult, PollerState, PollerStatus, StatusMonitor, get_retry_after,
};
use azure_core::http::{JsonFormat, Method, Poller, RawResponse, Request, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

use super::client::{Document, ScaleSets};
use super::error::AzureError;
use crate::provider::azure::scale_sets::ScaleSet;

const ASYNC_OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");
const LOCATION: HeaderName = HeaderName::from_static("location");
/// How long to wait before asking again where Azure does not say; scale sets without machines take seconds.
const PAUSE: azure_core::time::Duration = azure_core::time::Duration::seconds(5);

/// What Azure has answered to a PUT or DELETE.
pub(super) enum Begun {
    /// It is done; the scale set, unless it is gone.
    Done(Option<ScaleSet>),
    /// It goes on.
    Running(Operation),
}

/// An operation that goes on.
pub(super) struct Operation {
    scale_sets: ScaleSets,
    doing: String,
    /// Where to ask.
    address: Url,
    /// Whether only the status of the answer tells, not its body.
    by_status_code: bool,
    /// Where the scale set is when it is made.
    resource: Option<Url>,
    pause: azure_core::time::Duration,
}

/// What is read of an answer about an operation, or of the resource itself.
#[derive(Debug, Default, Deserialize)]
pub(super) struct State {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    properties: Option<ProvisioningState>,
    #[serde(default)]
    error: Option<OperationError>,
}

#[derive(Debug, Default, Deserialize)]
struct ProvisioningState {
    #[serde(default, rename = "provisioningState")]
    provisioning_state: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OperationError {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl State {
    fn of(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// An answer that says nothing about an end says that there was one. Words that nobody knows are on the way to it.
    fn progress(&self) -> PollerStatus {
        let provisioning = self.properties.as_ref().and_then(|properties| properties.provisioning_state.as_deref());
        match self.status.as_deref().or(provisioning).map(PollerStatus::from) {
            None => PollerStatus::Succeeded,
            Some(PollerStatus::UnknownValue(_)) => PollerStatus::InProgress,
            Some(known) => known,
        }
    }
}

impl StatusMonitor for State {
    type Output = Value;
    type Format = JsonFormat;

    fn status(&self) -> PollerStatus {
        self.progress()
    }
}

/// Reads the answer to a PUT (with the address of its `resource`) or DELETE.
pub(super) fn begun(
    scale_sets: &ScaleSets,
    doing: String,
    response: RawResponse,
    resource: Option<Url>,
) -> Result<Begun, AzureError> {
    let (status, headers, body) = response.deconstruct();
    let header = |name: &HeaderName| headers.get_optional_str(name).filter(|value| !value.is_empty());
    let state = State::of(&body);
    let (address, by_status_code) = match (header(&ASYNC_OPERATION), header(&LOCATION)) {
        (Some(address), _) => (Some(scale_sets.link(&doing, address)?), false),
        (None, Some(address)) if status == StatusCode::Accepted => (Some(scale_sets.link(&doing, address)?), true),
        _ => (None, false),
    };
    let goes_on = match (&address, &resource) {
        (Some(_), _) => true,
        (None, Some(_)) => !matches!(state.progress(), PollerStatus::Succeeded),
        (None, None) => false,
    };
    let Some(address) = address.or_else(|| resource.clone()).filter(|_| goes_on) else {
        let made = resource.is_some().then(|| read(&doing, &body)).transpose()?;
        return Ok(Begun::Done(made.map(|document| scale_sets.scale_set(document))));
    };
    Ok(Begun::Running(Operation {
        scale_sets: scale_sets.clone(),
        doing,
        address,
        by_status_code,
        resource,
        pause: pause(&headers),
    }))
}

fn read(doing: &str, body: &[u8]) -> Result<Document, AzureError> {
    serde_json::from_slice(body)
        .map_err(|error| AzureError::senseless(doing, &format!("the answer can't be read: {error}")))
}

fn pause(headers: &Headers) -> azure_core::time::Duration {
    get_retry_after(headers, &[RETRY_AFTER], &PollerOptions { frequency: PAUSE, ..PollerOptions::default() })
}

impl Operation {
    /// Asks until it has ended; the scale set, unless it is gone. This takes as long as it takes.
    pub(super) async fn finished(self) -> Result<Option<ScaleSet>, AzureError> {
        let (scale_sets, doing) = (self.scale_sets.clone(), self.doing.clone());
        let operation = Arc::new(self);
        let ask = move |state: PollerState, _: PollerOptions<'static>| {
            let operation = Arc::clone(&operation);
            Box::pin(async move {
                if state == PollerState::Initial {
                    // The answer that the operation began with was the first one.
                    azure_core::sleep::sleep(operation.pause).await;
                }
                operation.ask().await
            }) as azure_core::http::poller::PollerResultFuture<State, JsonFormat>
        };
        let options = PollerOptions { frequency: PAUSE, ..PollerOptions::default() };
        let ended = Poller::new(ask, Some(options)).await.map_err(|error| AzureError::of(&doing, error))?;
        let document: Value = ended.into_model().map_err(|error| AzureError::of(&doing, error))?;
        if document.is_null() {
            return Ok(None);
        }
        let document = read(&doing, document.to_string().as_bytes())?;
        Ok(Some(scale_sets.scale_set(document)))
    }

    async fn ask(&self) -> azure_core::Result<PollerResult<State, JsonFormat>> {
        let mut request = Request::new(self.address.clone(), Method::Get);
        let response = self.scale_sets.send_raw(&mut request).await;
        let (status, headers, body) = match response {
            // The scale set is gone, and with it what was asked about.
            Err(error) if self.resource.is_none() && error.http_status() == Some(StatusCode::NotFound) => {
                return Ok(self.succeeded());
            }
            other => other?.deconstruct(),
        };
        let state = State::of(&body);
        let progress = match status {
            StatusCode::Accepted if self.by_status_code => PollerStatus::InProgress,
            _ if self.by_status_code => PollerStatus::Succeeded,
            _ => state.progress(),
        };
        match progress {
            PollerStatus::InProgress | PollerStatus::UnknownValue(_) => Ok(PollerResult::InProgress {
                response: monitor("InProgress"),
                retry_after: pause(&headers),
                continuation: PollerContinuation::Links { next_link: self.address.clone(), final_link: None },
            }),
            PollerStatus::Succeeded => Ok(self.succeeded()),
            PollerStatus::Failed | PollerStatus::Canceled => Err(failed(&state)),
        }
    }

    fn succeeded(&self) -> PollerResult<State, JsonFormat> {
        let (scale_sets, resource) = (self.scale_sets.clone(), self.resource.clone());
        let read = async move {
            let Some(resource) = resource else { return Ok(json_response("null")) };
            let mut request = Request::new(resource, Method::Get);
            Ok(scale_sets.send_raw(&mut request).await?.into())
        };
        PollerResult::Succeeded { response: monitor("Succeeded"), target: Box::new(move || Box::pin(read)) }
    }
}

fn failed(state: &State) -> azure_core::Error {
    let error = state.error.as_ref();
    let code = error.and_then(|error| error.code.clone()).unwrap_or_else(|| "OperationFailed".to_owned());
    let message =
        error.and_then(|error| error.message.clone()).unwrap_or_else(|| "the operation has failed".to_owned());
    // An operation's end has no status of its own; a wrong request is the nearest.
    let kind = ErrorKind::HttpResponse { status: StatusCode::BadRequest, error_code: Some(code), raw_response: None };
    azure_core::Error::with_message(kind, message)
}

fn monitor(status: &str) -> Response<State> {
    json_response(&format!(r#"{{"status":"{status}"}}"#))
}

fn json_response<T>(text: &str) -> Response<T> {
    RawResponse::from_bytes(StatusCode::Ok, Headers::new(), text.to_owned()).into()
}
