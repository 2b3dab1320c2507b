//! The calls for scale sets of one resource group.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_core::http::{Context, Method, RawResponse, Request, StatusCode, Url};
use serde::Deserialize;

use super::accounts::{Account, Accounts};
use super::addresses::resource_manager;
use super::error::AzureError;
use super::retry_listener::{ListenerOfRequest, RetryListener};
use crate::provider::azure::scale_sets::{ScaleSet, ScaleSetScope};

/// The version of the API that requests are made in.
const API_VERSION: &str = "2024-03-01";

/// The scale sets of one resource group.
#[derive(Clone)]
pub(super) struct ScaleSets {
    pub(super) accounts: Arc<Accounts>,
    pub(super) account: Account,
    pub(super) place: Arc<ScaleSetScope>,
    /// Whether what would be changed is taken for changed.
    pub(super) pretends: bool,
    /// Who is told what holds requests up.
    pub(super) listener: Arc<dyn RetryListener>,
}

/// A scale set as the API writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    tags: Option<BTreeMap<String, String>>,
    properties: Option<Properties>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    platform_fault_domain_count: Option<i32>,
    provisioning_state: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    value: Vec<Document>,
    next_link: Option<String>,
}

impl ScaleSets {
    /// All scale sets of the group, page by page.
    pub(super) async fn list(&self) -> Result<Vec<ScaleSet>, AzureError> {
        let doing = "listing scale sets";
        let mut found = Vec::new();
        let mut next = Some(self.url(None, &[])?);
        while let Some(url) = next.take() {
            let page: Page = self.read(doing, &self.send(doing, &mut Request::new(url, Method::Get)).await?)?;
            found.extend(page.value.into_iter().map(|document| self.scale_set(document)));
            if let Some(link) = page.next_link.filter(|link| !link.is_empty()) {
                next = Some(self.link(doing, &link)?);
            }
        }
        Ok(found)
    }

    /// One scale set; `None` when there is none of that name.
    pub(super) async fn get(&self, name: &str) -> Result<Option<ScaleSet>, AzureError> {
        let doing = format!("reading scale set {name}");
        let url = self.url(Some(name), &[("$expand", "userData")])?;
        match self.send(&doing, &mut Request::new(url, Method::Get)).await {
            Ok(response) => Ok(Some(self.scale_set(self.read(&doing, &response)?))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request; an answer without success is an error.
    pub(super) async fn send(&self, doing: &str, request: &mut Request) -> Result<RawResponse, AzureError> {
        let context = Context::new().with_value(ListenerOfRequest(Arc::clone(&self.listener)));
        let sent = self.account.pipeline.send(&context, request, None).await;
        if sent.as_ref().is_err_and(|error| error.http_status() == Some(StatusCode::Unauthorized)) {
            self.accounts.drop_account(&self.account);
        }
        sent.map_err(|error| AzureError::of(doing, error))
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, doing: &str, response: &RawResponse) -> Result<T, AzureError> {
        // The content may be anything, so no word of it goes on.
        serde_json::from_slice(response.body().as_ref())
            .map_err(|error| AzureError::senseless(doing, &format!("the answer can't be read: {error}")))
    }

    pub(super) fn scale_set(&self, document: Document) -> ScaleSet {
        let properties = document.properties.unwrap_or_default();
        ScaleSet {
            resource_group: self.place.resource_group.clone(),
            name: document.name,
            id: document.id,
            platform_fault_domain_count: properties.platform_fault_domain_count,
            provisioning_state: properties.provisioning_state,
            tags: document.tags.unwrap_or_default(),
        }
    }

    /// An address that Azure has given, as one that may be request.
    pub(super) fn link(&self, doing: &str, given: &str) -> Result<Url, AzureError> {
        let url = self.accounts.addresses.official(self.place.cloud, given);
        url.ok_or_else(|| AzureError::senseless(doing, "Azure answers with an address that is not its own"))
    }

    /// The address of the group's scale sets, or of one of them. Names become parts of the path, whatever is in them.
    pub(super) fn url(&self, name: Option<&str>, query: &[(&str, &str)]) -> Result<Url, AzureError> {
        let invalid = || AzureError::senseless("making a request", "there is no address for it");
        let mut url = Url::parse(resource_manager(self.place.cloud)).map_err(|_| invalid())?;
        let group = &self.place.resource_group;
        let subscription = &self.place.credentials.subscription;
        let path = ["subscriptions", subscription, "resourceGroups", group, "providers", "Microsoft.Compute"];
        url.path_segments_mut().map_err(|()| invalid())?.extend(path).push("virtualMachineScaleSets").extend(name);
        url.query_pairs_mut().extend_pairs(query).append_pair("api-version", API_VERSION);
        Ok(url)
    }
}
