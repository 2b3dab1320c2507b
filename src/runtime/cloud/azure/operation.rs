//! Long-running operations of Azure (ARM's rules for asynchronous operations).
//!
//! An unfinished response names an address to poll: `Azure-AsyncOperation`, else `Location`, else the resource
//! itself, which has a `provisioningState`. `Retry-After` is the polling interval.

use std::time::Duration;

use azure_core::http::headers::{HeaderName, Headers, RETRY_AFTER};
use azure_core::http::poller::{PollerOptions, PollerStatus, get_retry_after};
use azure_core::http::{Method, RawResponse, Request, StatusCode, Url};
use serde::Deserialize;
use serde_json::json;
use tracing::info;

use super::client::{Document, ScaleSets};
use super::error::AzureError;
use decisions::provider::azure::scale_sets::{ScaleSet, tags};

const ASYNC_OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");
const LOCATION: HeaderName = HeaderName::from_static("location");
/// Default polling interval. Operations on scale sets without machines take seconds.
const PAUSE: azure_core::time::Duration = azure_core::time::Duration::seconds(5);

/// First and maximum delay while another operation on a scale set is in progress.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Time limit for another operation on a scale set.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);

/// Result of a PUT or DELETE.
pub(super) enum Begun {
    /// Finished. Has the scale set, unless it was deleted.
    Done(Option<ScaleSet>),
    /// Still running.
    Running(Operation),
}

/// A running operation.
pub(super) struct Operation {
    scale_sets: ScaleSets,
    doing: String,
    /// Address to poll.
    address: Url,
    /// Whether the state is in the status code rather than in the body.
    by_status_code: bool,
    /// Address of the created scale set.
    resource: Option<Url>,
    pause: azure_core::time::Duration,
}

/// The parts of a response that describe an operation or resource.
#[derive(Debug, Default, Deserialize)]
struct State {
    status: Option<String>,
    properties: Option<ProvisioningState>,
    error: Option<OperationError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProvisioningState {
    provisioning_state: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct OperationError {
    code: Option<String>,
    message: Option<String>,
}

impl State {
    /// Decodes a response; an empty body has no state. Invalid content, such as the page of a proxy, must not be
    /// mistaken for an empty one.
    fn of(body: &[u8]) -> Result<Self, serde_json::Error> {
        if body.trim_ascii().is_empty() { Ok(Self::default()) } else { serde_json::from_slice(body) }
    }

    /// A response without a state means success, unknown states mean that the operation is running.
    fn progress(&self) -> PollerStatus {
        let provisioning = self.properties.as_ref().and_then(|properties| properties.provisioning_state.as_deref());
        match self.status.as_deref().or(provisioning).map(PollerStatus::from) {
            None => PollerStatus::Succeeded,
            Some(PollerStatus::UnknownValue(_)) => PollerStatus::InProgress,
            Some(cached) => cached,
        }
    }
}

impl ScaleSets {
    /// Creates a scale set. Does nothing if the same one exists.
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
            "location": self.location.region,
            "properties": {"platformFaultDomainCount": fault_domains, "singlePlacementGroup": false},
            "tags": tags(pool),
        });
        request.set_body(body.to_string());
        let response = self.send(&doing, &mut request).await?;
        begun(self, doing, response, Some(resource))
    }

    /// Deletes a scale set. Succeeds if it does not exist.
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

/// Reads the response to a PUT (with the URL of its `resource`) or DELETE.
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
    let address = match address {
        Some(address) => Some(address),
        // A proxy may answer with an HTML page.
        None => {
            let state = State::of(&body).map_err(|error| unreadable(&doing, &error))?;
            if matches!(state.progress(), PollerStatus::Succeeded) { None } else { resource.clone() }
        }
    };
    let Some(address) = address else {
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
    /// Polls until the operation has ended, without a time limit. Returns the scale set, unless it was deleted.
    pub(super) async fn finished(self) -> Result<Option<ScaleSet>, AzureError> {
        // The initial response was the first poll.
        let mut next = Some(self.pause);
        while let Some(pause) = next {
            azure_core::sleep::sleep(pause).await;
            next = self.query().await?;
        }
        let Some(resource) = self.resource else { return Ok(None) };
        let response = self.scale_sets.send(&self.doing, &mut Request::new(resource, Method::Get)).await?;
        Ok(Some(self.scale_sets.scale_set(read(&self.doing, response.body().as_ref())?)))
    }

    /// Returns the delay until the next poll; `None` on success.
    async fn query(&self) -> Result<Option<azure_core::time::Duration>, AzureError> {
        let request = &mut Request::new(self.address.clone(), Method::Get);
        let (status, headers, body) = match self.scale_sets.send(&self.doing, request).await {
            // The scale set was deleted, and its operation with it.
            Err(error) if self.resource.is_none() && error.is_not_found() => return Ok(None),
            other => other?.deconstruct(),
        };
        if self.by_status_code {
            return Ok((status == StatusCode::Accepted).then(|| pause(&headers)));
        }
        let state = State::of(&body).map_err(|error| unreadable(&self.doing, &error))?;
        match state.progress() {
            PollerStatus::InProgress | PollerStatus::UnknownValue(_) => Ok(Some(pause(&headers))),
            PollerStatus::Succeeded => Ok(None),
            PollerStatus::Failed | PollerStatus::Canceled => {
                let OperationError { code, message } = state.error.unwrap_or_default();
                let code = code.unwrap_or_else(|| "OperationFailed".to_owned());
                let message = message.as_deref().unwrap_or("the operation has failed");
                Err(AzureError::of_operation(&self.doing, code, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_responses_without_content_have_no_message() {
        let progress = |body: &str| State::of(body.as_bytes()).map(|state| state.progress()).map_err(drop);
        assert_eq!(progress(""), Ok(PollerStatus::Succeeded));
        assert_eq!(progress(r#"{"status":"InProgress"}"#), Ok(PollerStatus::InProgress));
        for page in ["<html>Sign in</html>", r#"{"status":"#, r#"{"status":{}}"#] {
            assert_eq!(progress(page), Err(()), "{page}");
        }
    }
}
