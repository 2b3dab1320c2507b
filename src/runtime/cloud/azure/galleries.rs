//! Images of community and shared galleries, as the resource manager lists them in a region.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::accounts::Accounts;
use super::addresses::Addresses;
use super::error::AzureError;
use super::resource_manager::ResourceManager;
use crate::cloud::WriteAccess;
use crate::cloud::image_source::{ImageSource, ImageSourceError};
use decisions::provider::azure::cloud::AzureCloud;
use decisions::provider::azure::credentials::Credentials;
use profiles::images::query::ImageQuery;
use profiles::images::sources::{Listing, read};

/// Version of the API.
const API_VERSION: &str = "2023-07-03";

/// Kind of a gallery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GalleryKind {
    /// Public galleries, identified by their public name.
    Community,
    /// Shared with the subscription or its tenant, identified by their unique name.
    Shared,
}

impl GalleryKind {
    fn segment(self) -> &'static str {
        match self {
            Self::Community => "communityGalleries",
            Self::Shared => "sharedGalleries",
        }
    }
}

/// Galleries of a kind in a region. The owners of a query are the names of galleries.
pub struct Galleries {
    resource_manager: ResourceManager,
    subscription: String,
    location: String,
    kind: GalleryKind,
}

impl Galleries {
    /// Galleries in a region that are visible with these credentials. Sends no request yet.
    ///
    /// # Errors
    /// If the credentials are unusable.
    pub fn new(
        addresses: Addresses,
        credentials: &Credentials,
        location: &str,
        kind: GalleryKind,
    ) -> Result<Self, ImageSourceError> {
        let cloud = AzureCloud::of_region(location);
        let accounts = Arc::new(Accounts::new(addresses, Arc::new(|| WriteAccess::Denied)));
        let account =
            accounts.account(cloud, credentials).map_err(|error| ImageSourceError::new(cloud.name(), error))?;
        Ok(Self {
            resource_manager: ResourceManager { accounts, account, cloud, listener: None },
            subscription: credentials.subscription.clone(),
            location: location.to_owned(),
            kind,
        })
    }

    /// Lists a collection of the gallery.
    async fn list(&self, gallery: &str, path: &[&str]) -> Result<Vec<Value>, AzureError> {
        let doing = format!("listing {} of gallery {gallery}", path.join("/"));
        let of_gallery = ["providers", "Microsoft.Compute", "locations", &self.location, self.kind.segment(), gallery];
        let path = of_gallery.into_iter().chain(path.iter().copied());
        let url = self.resource_manager.url(&self.subscription, path, &[("api-version", API_VERSION)])?;
        self.resource_manager.list(&doing, url).await
    }

    /// The images of a gallery, which have architecture and generation, followed by their versions, which have the
    /// rest.
    async fn entries(&self, gallery: &str) -> Result<Vec<Value>, AzureError> {
        let mut entries = Vec::new();
        for image in self.list(gallery, &["images"]).await? {
            let name = image["name"].as_str().unwrap_or_default().to_owned();
            entries.push(flattened(image, &self.location));
            let versions = self.list(gallery, &["images", &name, "versions"]).await?;
            entries.extend(versions.into_iter().map(|version| flattened(version, &self.location)));
        }
        Ok(entries)
    }
}

#[async_trait]
impl ImageSource for Galleries {
    async fn images(&self, query: &ImageQuery) -> Result<Listing, ImageSourceError> {
        let name = format!("{} in {}", self.resource_manager.cloud.name(), self.location);
        let mut entries = Vec::new();
        for gallery in &query.owners {
            entries.extend(self.entries(gallery).await.map_err(|error| ImageSourceError::new(&name, error))?);
        }
        let mut listing = read(&entries.into(), None).map_err(|error| ImageSourceError::new(&name, error))?;
        listing.images.iter_mut().for_each(|image| image.realm = self.resource_manager.cloud.realm().to_owned());
        Ok(listing)
    }
}

/// Converts a resource to the output format of the command-line tool: properties next to the names, and the region.
fn flattened(mut resource: Value, location: &str) -> Value {
    let mut entry = resource["properties"].take();
    if !entry.is_object() {
        entry = Value::Object(Default::default());
    }
    entry["name"] = resource["name"].take();
    entry["location"] = location.into();
    entry["uniqueId"] = resource["identifier"]["uniqueId"].take();
    entry
}
