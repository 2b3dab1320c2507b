//! Requests for scale sets of one resource group.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_core::http::{RawResponse, Request, Url};
use serde::Deserialize;

use super::error::AzureError;
use super::resource_manager::ResourceManager;
use decisions::provider::azure::scale_sets::{ScaleSet, ScaleSetScope};

/// Version of the API.
const API_VERSION: &str = "2024-03-01";

/// Client for the scale sets of one resource group.
#[derive(Clone)]
pub(super) struct ScaleSets {
    pub(super) resource_manager: ResourceManager,
    pub(super) location: Arc<ScaleSetScope>,
    /// Dry run: reports changes as successful without making them.
    pub(super) pretends: bool,
}

/// A scale set in the API.
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

impl ScaleSets {
    /// Lists all scale sets of the group.
    pub(super) async fn list(&self) -> Result<Vec<ScaleSet>, AzureError> {
        let documents = self.resource_manager.list("listing scale sets", self.url(None, &[])?).await?;
        Ok(documents.into_iter().map(|document| self.scale_set(document)).collect())
    }

    /// Reads a scale set; `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> Result<Option<ScaleSet>, AzureError> {
        let url = self.url(Some(name), &[("$expand", "userData")])?;
        match self.resource_manager.get(&format!("reading scale set {name}"), url).await {
            Ok(document) => Ok(Some(self.scale_set(document))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request; a status other than success is an error.
    pub(super) async fn send(&self, doing: &str, request: &mut Request) -> Result<RawResponse, AzureError> {
        self.resource_manager.send(doing, request).await
    }

    pub(super) fn scale_set(&self, document: Document) -> ScaleSet {
        let properties = document.properties.unwrap_or_default();
        ScaleSet {
            resource_group: self.location.resource_group.clone(),
            name: document.name,
            id: document.id,
            platform_fault_domain_count: properties.platform_fault_domain_count,
            provisioning_state: properties.provisioning_state,
            tags: document.tags.unwrap_or_default(),
        }
    }

    /// Converts an address from a response to one that may be requested.
    pub(super) fn link(&self, doing: &str, given: &str) -> Result<Url, AzureError> {
        self.resource_manager.link(doing, given)
    }

    /// URL of the group's scale sets, or of one of them.
    pub(super) fn url(&self, name: Option<&str>, query: &[(&str, &str)]) -> Result<Url, AzureError> {
        let group = &self.location.resource_group;
        let path = ["resourceGroups", group, "providers", "Microsoft.Compute", "virtualMachineScaleSets"];
        let query: Vec<(&str, &str)> = query.iter().copied().chain([("api-version", API_VERSION)]).collect();
        self.resource_manager.url(&self.location.credentials.subscription, path.into_iter().chain(name), &query)
    }
}
