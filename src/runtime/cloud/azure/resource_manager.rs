//! Requests to Azure's resource manager with one account: errors, returned addresses, pages of lists.

use std::sync::Arc;

use azure_core::http::{Context, Method, RawResponse, Request, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::accounts::{Account, Accounts};
use super::addresses::resource_manager;
use super::error::AzureError;
use super::retry_listener::{ListenerOfRequest, RetryListener};
use decisions::provider::azure::cloud::AzureCloud;

/// Maximum number of pages of a list, because an address could refer to itself.
const MOST_PAGES: usize = 1000;

/// Client of the resource manager of a cloud with one account.
#[derive(Clone)]
pub(super) struct ResourceManager {
    pub(super) accounts: Arc<Accounts>,
    pub(super) account: Account,
    pub(super) cloud: AzureCloud,
    /// Receives the causes of retries.
    pub(super) listener: Option<Arc<dyn RetryListener>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    #[serde(default = "Vec::new")]
    value: Vec<T>,
    next_link: Option<String>,
}

impl ResourceManager {
    /// URL of a resource in a subscription. Names are escaped.
    pub(super) fn url<'a>(
        &self,
        subscription: &str,
        path: impl IntoIterator<Item = &'a str>,
        query: &[(&str, &str)],
    ) -> Result<Url, AzureError> {
        let invalid = || AzureError::senseless("making a request", "there is no address for it");
        let mut url = Url::parse(resource_manager(self.cloud)).map_err(|_| invalid())?;
        url.path_segments_mut().map_err(|()| invalid())?.extend(["subscriptions", subscription]).extend(path);
        url.query_pairs_mut().extend_pairs(query);
        Ok(url)
    }

    /// Sends a request; a status other than success is an error.
    pub(super) async fn send(&self, doing: &str, request: &mut Request) -> Result<RawResponse, AzureError> {
        let context = match &self.listener {
            Some(listener) => Context::new().with_value(ListenerOfRequest(Arc::clone(listener))),
            None => Context::new(),
        };
        let sent = self.account.pipeline.send(&context, request, None).await;
        if sent.as_ref().is_err_and(|error| error.http_status() == Some(StatusCode::Unauthorized)) {
            self.accounts.drop_account(&self.account);
        }
        sent.map_err(|error| AzureError::of(doing, error))
    }

    /// Reads a resource.
    pub(super) async fn get<T: DeserializeOwned>(&self, doing: &str, url: Url) -> Result<T, AzureError> {
        let response = self.send(doing, &mut Request::new(url, Method::Get)).await?;
        // The content may be anything, so the error does not quote it.
        serde_json::from_slice(response.body().as_ref())
            .map_err(|error| AzureError::senseless(doing, &format!("the answer can't be read: {error}")))
    }

    /// Reads all pages of a list.
    pub(super) async fn list<T: DeserializeOwned>(&self, doing: &str, first: Url) -> Result<Vec<T>, AzureError> {
        let mut found = Vec::new();
        let mut next = first;
        for _ in 0..MOST_PAGES {
            let page: Page<T> = self.get(doing, next).await?;
            found.extend(page.value);
            match page.next_link.filter(|link| !link.is_empty()) {
                None => return Ok(found),
                Some(link) => next = self.link(doing, &link)?,
            }
        }
        Err(AzureError::senseless(doing, &format!("more than {MOST_PAGES} pages")))
    }

    /// Converts an address from a response to one that may be requested.
    pub(super) fn link(&self, doing: &str, given: &str) -> Result<Url, AzureError> {
        let url = self.accounts.addresses.official(self.cloud, given);
        url.ok_or_else(|| AzureError::senseless(doing, "Azure answers with an address that is not its own"))
    }
}
