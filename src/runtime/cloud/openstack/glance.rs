//! Images of Glance in a region.

use async_trait::async_trait;
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::keystone::{ServiceClient, ServiceType, transport};
use crate::cloud::image_source::{ImageSource, ImageSourceError};
use decisions::provider::DependencyFailure;
use decisions::provider::openstack::credentials::Credentials;
use profiles::images::query::ImageQuery;
use profiles::images::sources::{Listing, read};

/// Images per page. Glance may send fewer.
const PAGE_SIZE: &str = "500";
/// Maximum number of pages of a list.
const MOST_PAGES: usize = 1000;
const DOING: &str = "listing images";
/// Properties that listings of images contain.
const PROPERTIES: [&str; 2] = ["architecture", "hw_firmware_type"];

/// Glance in one region. The owners of a query are ids of projects; without any, all images that the credentials can
/// see are listed, except hidden ones.
pub struct Glance {
    client: Mutex<ServiceClient>,
    region: String,
}

#[derive(Deserialize)]
struct ImagePage {
    images: Vec<Value>,
}

impl Glance {
    /// Sends no request yet.
    ///
    /// # Errors
    /// If the certificates of the credentials are invalid.
    pub fn new(credentials: Credentials, identity_url: &str, region: &str) -> Result<Self, ImageSourceError> {
        let transport = transport(&credentials).map_err(|error| ImageSourceError::new(name_of(region), error))?;
        let (identity, identity_url) = (credentials.identity, identity_url.to_owned());
        let client = ServiceClient::new(transport, ServiceType::Image, identity, identity_url, region.to_owned());
        Ok(Self { client: Mutex::new(client), region: region.to_owned() })
    }

    /// All pages of the images of an owner.
    async fn list(&self, owner: Option<&str>) -> Result<Vec<Value>, DependencyFailure> {
        let mut client = self.client.lock().await;
        let mut images: Vec<Value> = Vec::new();
        for _ in 0..MOST_PAGES {
            let last = images.last().map(|image| image["id"].as_str().unwrap_or_default().to_owned());
            let reply = client.query(DOING, |address| request(address, owner, last.as_deref()), None).await?;
            let page = reply.read::<ImagePage>(DOING)?.images;
            // Glance ends with an empty page. A server that ignores the marker repeats the first one.
            let repeats = |first: &Value| images.iter().any(|image| image["id"] == first["id"]);
            if page.first().is_none_or(repeats) {
                return Ok(images);
            }
            images.extend(page.into_iter().map(listed));
        }
        Err(DependencyFailure::without_code(format!("{DOING}: more than {MOST_PAGES} pages")))
    }
}

#[async_trait]
impl ImageSource for Glance {
    async fn images(&self, query: &ImageQuery) -> Result<Listing, ImageSourceError> {
        let failed = |error: &dyn ToString| ImageSourceError::new(name_of(&self.region), error.to_string());
        let mut images = Vec::new();
        if query.owners.is_empty() {
            images = self.list(None).await.map_err(|error| failed(&error))?;
        }
        for owner in &query.owners {
            images.extend(self.list(Some(owner)).await.map_err(|error| failed(&error))?);
        }
        read(&images.into(), Some(&self.region)).map_err(|error| failed(&error))
    }
}

fn name_of(region: &str) -> String {
    format!("Glance in {region}")
}

/// A page of images after the one with the id `marker`. The address of a catalog may end with the version.
fn request(address: &Url, owner: Option<&str>, marker: Option<&str>) -> Result<Request, DependencyFailure> {
    let mut url = address.clone();
    let has_version = url.path().trim_end_matches('/').ends_with("/v2");
    let invalid = |()| DependencyFailure::of_configuration("the image endpoint of the region can't have a path");
    let mut path = url.path_segments_mut().map_err(invalid)?;
    path.pop_if_empty().extend((!has_version).then_some("v2")).push("images");
    drop(path);
    url.query_pairs_mut().append_pair("limit", PAGE_SIZE);
    for (name, value) in [("owner", owner), ("marker", marker)] {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    Ok(Request::new(Method::GET, url))
}

/// An image in the form of `openstack image show`, which has properties in an object of their own.
fn listed(image: Value) -> Value {
    let properties: Map<String, Value> = PROPERTIES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), image.get(*name).filter(|value| value.is_string())?.clone())))
        .collect();
    let member = |name: &str| image[name].as_str().unwrap_or_default();
    let mut listed = json!({"id": member("id"), "name": member("name"), "status": member("status"),
        "owner": member("owner"), "properties": properties});
    if image["created_at"].is_string() {
        listed["created_at"] = image["created_at"].clone();
    }
    listed
}
