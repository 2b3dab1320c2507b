//! Images of galleries, as the resource manager lists them in a region: community galleries, and those that others share.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::accounts::Accounts;
use super::addresses::Addresses;
use super::error::AzureError;
use super::resource_manager::ResourceManager;
use crate::cloud::WriteAccess;
use crate::cloud::image_source::{ImageSource, ImageSourceError};
use crate::images::query::ImageQuery;
use crate::images::sources::{Listing, read};
use crate::provider::azure::cloud::AzureCloud;
use crate::provider::azure::credentials::Credentials;

/// The version of the API that requests are made in.
const API_VERSION: &str = "2023-07-03";

/// Whose galleries are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GalleryKind {
    /// Open to everybody, by their public name.
    Community,
    /// Shared with the subscription or its tenant, by their unique name.
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

/// Galleries of a kind in a region. The owners of a query are their names.
pub struct Galleries {
    resource_manager: ResourceManager,
    subscription: String,
    location: String,
    kind: GalleryKind,
}

impl Galleries {
    /// Galleries in a region, as who has these credentials sees them. Nobody is asked yet.
    ///
    /// # Errors
    /// When the credentials can't be used at all.
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

    /// A list below the gallery.
    async fn list(&self, gallery: &str, path: &[&str]) -> Result<Vec<Value>, AzureError> {
        let doing = format!("listing {} of gallery {gallery}", path.join("/"));
        let of_gallery = ["providers", "Microsoft.Compute", "locations", &self.location, self.kind.segment(), gallery];
        let path = of_gallery.into_iter().chain(path.iter().copied());
        let url = self.resource_manager.url(&self.subscription, path, &[("api-version", API_VERSION)])?;
        self.resource_manager.list(&doing, url).await
    }

    /// The images of a gallery, which say architecture and generation, with their versions, which say the rest.
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

/// A resource as the command-line tool prints it: its properties beside its names, and the region that was asked.
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
