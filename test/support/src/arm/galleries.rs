//! Community and shared galleries of a region: images and their versions, one per page.
//!
//! `GET …/locations/{location}/communityGalleries/{name}/images[/{image}/versions]`, and the same below
//! `sharedGalleries`. A resource is `{name, location, identifier: {uniqueId}, properties}`. A missing one is a 404
//! `ResourceNotFound`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::{Reply, Requested};

/// A gallery that a test creates.
#[derive(Clone, Debug)]
pub struct Gallery {
    /// The region, `communityGalleries` or `sharedGalleries`, and the name.
    position: [String; 3],
    images: BTreeMap<String, (Value, BTreeMap<String, Value>)>,
}

impl Gallery {
    /// An empty gallery.
    pub fn new(location: &str, kind: &str, name: &str) -> Self {
        Self { position: [location, kind, name].map(str::to_owned), images: BTreeMap::new() }
    }

    /// Adds an image and its versions, with their properties.
    pub fn with_image(mut self, name: &str, properties: Value, versions: &[(&str, Value)]) -> Self {
        let versions = versions.iter().map(|(version, properties)| ((*version).to_owned(), properties.clone()));
        self.images.insert(name.to_owned(), (properties, versions.collect()));
        self
    }

    fn resource(&self, name: &str, path: &str, properties: &Value) -> Value {
        let [location, kind, gallery] = &self.position;
        let kind = if kind == "sharedGalleries" { "SharedGalleries" } else { "CommunityGalleries" };
        json!({
            "name": name, "location": location, "properties": properties,
            "identifier": {"uniqueId": format!("/{kind}/{gallery}/Images/{path}")},
        })
    }

    /// The items at a path below the gallery.
    fn list(&self, path: &[&str]) -> Option<Vec<Value>> {
        match path {
            ["images"] => {
                let of_image = |(name, (properties, _)): (&String, &(Value, _))| self.resource(name, name, properties);
                Some(self.images.iter().map(of_image).collect())
            }
            ["images", image, "versions"] => {
                let (_, versions) = self.images.get(*image)?;
                let of_version = |(version, properties): (&String, &Value)| {
                    self.resource(version, &format!("{image}/Versions/{version}"), properties)
                };
                Some(versions.iter().map(of_version).collect())
            }
            _ => None,
        }
    }
}

/// Answers a call below `…/locations/` if it is for a gallery.
pub(super) fn response(galleries: &[Gallery], requested: &Requested, path: &[&str]) -> Reply {
    let not_found = || Reply::error(404, "ResourceNotFound", "The gallery or its image was not found.");
    let [location, kind, name, rest @ ..] = path else { return not_found() };
    let is_meant = |gallery: &&Gallery| {
        gallery.position.iter().zip([location, kind, name]).all(|(own, requested)| own.eq_ignore_ascii_case(requested))
    };
    let Some(listed) = galleries.iter().find(is_meant).and_then(|gallery| gallery.list(rest)) else {
        return not_found();
    };
    let start: usize = requested.query.get("$skiptoken").and_then(|token| token.parse().ok()).unwrap_or_default();
    let mut response = json!({"value": listed.get(start..=start).unwrap_or_default()});
    if start + 1 < listed.len() {
        let next = format!("{}{}?api-version=2023-07-03&$skiptoken={}", requested.origin, requested.path, start + 1);
        response["nextLink"] = next.into();
    }
    Reply::json(200, response)
}
