//! Long-running operations: what Azure has accepted and goes on with (ARM's rules for asynchronous operations).
//!
//! An answer that is not the end names an address to ask at: `Azure-AsyncOperation`, else `Location`, else the resource
//! itself, whose `provisioningState` tells. `Retry-After` says when.

use std::sync::Arc;
use std::time::Duration;

use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, Headers, RETRY_AFTER};
use azure_core::http::poller::{
    PollerContinuation, PollerOptions, PollerResult, PollerState, PollerStatus, StatusMonitor, get_retry_after,
};
use azure_core::http::{JsonFormat, Method, Poller, RawResponse, Request, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::info;

use super::client::{Document, ScaleSets};
use super::error::AzureError;
use crate::provider::azure::scale_sets::{ScaleSet, tags};

const ASYNC_OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");
const LOCATION: HeaderName = HeaderName::from_static("location");
/// How long to wait before asking again where Azure does not say; scale sets without machines take seconds.
const PAUSE: azure_core::time::Duration = azure_core::time::Duration::seconds(5);

/// The first wait for something else that goes on with a scale set, and the longest.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long something else may go on with a scale set.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);

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
    /// What an answer says; one without a body says nothing. What is no document (a page of a proxy) must not pass for
    /// that.
    fn of(body: &[u8]) -> Result<Self, serde_json::Error> {
        if body.trim_ascii().is_empty() { Ok(Self::default()) } else { serde_json::from_slice(body) }
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

impl ScaleSets {
    /// Makes a scale set, or nothing if the same is there.
    pub(super) async fn create(&self, name: &str, pool: &str, fault_domains: i32) -> Result<Begun, AzureError> {
        let doing = format!("creating scale set {name}");
        let resource = self.url(Some(name), &[])?;
        if self.pretends {
            info!(scale_set = name, pool, "would create a scale set");
            let id = resource.path().to_owned();
            return Ok(Begun::Done(Some(ScaleSet { name: name.to_owned(), id, ..ScaleSet::default() })));
        }
        let mut request = Request::new(resource.clone(), Method::Put);
        request.insert_header("content-type", "application/json");
        let body = json!({
            "location": self.place.region,
            "properties": {"platformFaultDomainCount": fault_domains, "singlePlacementGroup": false},
            "tags": tags(pool),
        });
        request.set_body(body.to_string());
        let response = self.send(&doing, &mut request).await?;
        begun(self, doing, response, Some(resource))
    }

    /// Removes a scale set; one that is not there is removed.
    pub(super) async fn delete(&self, name: &str) -> Result<Begun, AzureError> {
        let doing = format!("deleting scale set {name}");
        if self.pretends {
            info!(scale_set = name, "would delete a scale set");
            return Ok(Begun::Done(None));
        }
        let url = self.url(Some(name), &[("forceDeletion", "false")])?;
        match self.send(&doing, &mut Request::new(url, Method::Delete)).await {
            Ok(response) => begun(self, doing, response, None),
            Err(error) if error.is_not_found() => Ok(Begun::Done(None)),
            Err(error) => Err(error),
        }
    }
}

/// Reads the answer to a PUT (with the address of its `resource`) or DELETE.
fn begun(
    scale_sets: &ScaleSets,
    doing: String,
    response: RawResponse,
    resource: Option<Url>,
) -> Result<Begun, AzureError> {
    let (status, headers, body) = response.deconstruct();
    let header = |name: &HeaderName| headers.get_optional_str(name).filter(|value| !value.is_empty());
    let (address, by_status_code) = match (header(&ASYNC_OPERATION), header(&LOCATION)) {
        (Some(address), _) => (Some(scale_sets.link(&doing, address)?), false),
        (None, Some(address)) if status == StatusCode::Accepted => (Some(scale_sets.link(&doing, address)?), true),
        _ => (None, false),
    };
    let goes_on = match (&address, &resource) {
        (Some(_), _) => true,
        (None, Some(_)) => {
            let state = State::of(&body).map_err(|error| unreadable(&doing, &error))?;
            !matches!(state.progress(), PollerStatus::Succeeded)
        }
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
    serde_json::from_slice(body).map_err(|error| unreadable(doing, &error))
}

fn unreadable(doing: &str, error: &serde_json::Error) -> AzureError {
    AzureError::senseless(doing, &format!("the answer can't be read: {error}"))
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
            // The scale set is gone, and with it what was request about.
            Err(error) if self.resource.is_none() && error.http_status() == Some(StatusCode::NotFound) => {
                return Ok(self.succeeded());
            }
            other => other?.deconstruct(),
        };
        let state = if self.by_status_code { Ok(State::default()) } else { State::of(&body) };
        let state = state.map_err(|error| azure_core::Error::new(ErrorKind::DataConversion, error))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_without_content_says_nothing() {
        let progress = |body: &str| State::of(body.as_bytes()).map(|state| state.progress()).map_err(drop);
        assert_eq!(progress(""), Ok(PollerStatus::Succeeded));
        assert_eq!(progress(r#"{"status":"InProgress"}"#), Ok(PollerStatus::InProgress));
        for page in ["<html>Sign in</html>", r#"{"status":"#, r#"{"status":{}}"#] {
            assert_eq!(progress(page), Err(()), "{page}");
        }
    }
}
