//! All images that the sources know, each once.

use std::collections::HashMap;

use super::record::{ImageRecord, ImageState};
use super::reference::ImageReference;
use super::sources::Listing;

/// Most images: a public cloud has some hundred thousand.
const MOST_IMAGES: usize = 2_000_000;

/// More images than one catalogue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sources list more than {MOST_IMAGES} images; leave out those of accounts that you don't use")]
pub struct TooManyImages;

/// The images of all sources, in the order in which they were listed.
#[derive(Debug, Default)]
pub struct Catalogue {
    images: Vec<ImageRecord>,
    places: HashMap<Place, usize>,
}

/// An image is the same if realm, region and name at the cloud are.
type Place = (&'static str, String, Option<String>, ImageReference);

impl Catalogue {
    /// Puts listings together. Of an image that several list, the first one counts and the others fill its gaps; but an image
    /// that one of them calls unavailable or deprecated is.
    ///
    /// # Errors
    /// When they are too many.
    pub fn new(listings: Vec<Listing>) -> Result<Self, TooManyImages> {
        let mut catalogue = Self::default();
        let mut galleries: HashMap<String, Vec<(&'static str, String)>> = HashMap::new();
        for listing in listings {
            galleries.extend(listing.galleries.into_iter().map(|image| (image.path, image.facts)));
            for image in listing.images {
                catalogue.add(image)?;
            }
        }
        if !galleries.is_empty() {
            catalogue.images.iter_mut().for_each(|image| complete(image, &galleries));
        }
        Ok(catalogue)
    }

    fn add(&mut self, image: ImageRecord) -> Result<(), TooManyImages> {
        let place = (image.provider, image.realm.clone(), image.region.clone(), image.reference.clone());
        let known = self.places.get(&place).copied();
        if let Some(known) = known.and_then(|position| self.images.get_mut(position)) {
            merge(known, image);
            return Ok(());
        }
        if self.images.len() >= MOST_IMAGES {
            return Err(TooManyImages);
        }
        self.places.insert(place, self.images.len());
        self.images.push(image);
        Ok(())
    }

    /// All images.
    #[must_use]
    pub fn images(&self) -> &[ImageRecord] {
        &self.images
    }

    /// An image by its name at the cloud, in a region or everywhere.
    #[must_use]
    pub fn find(
        &self,
        provider: &'static str,
        realm: &str,
        region: Option<&str>,
        reference: &ImageReference,
    ) -> Option<&ImageRecord> {
        let at = |region: Option<&str>| {
            let place = (provider, realm.to_owned(), region.map(str::to_owned), reference.clone());
            self.places.get(&place).and_then(|position| self.images.get(*position))
        };
        at(region).or_else(|| at(None))
    }
}

/// Fills the gaps of what is known of an image; but one that is unavailable or deprecated is.
pub(super) fn merge(known: &mut ImageRecord, other: ImageRecord) {
    for (name, values) in other.facts.0 {
        known.facts.0.entry(name).or_insert(values);
    }
    for (name, value) in other.tags {
        known.tags.entry(name).or_insert(value);
    }
    for (text, more) in [(&mut known.name, other.name), (&mut known.owner, other.owner)] {
        if text.is_empty() {
            *text = more;
        }
    }
    known.created = known.created.or(other.created);
    known.deprecated = [known.deprecated, other.deprecated].into_iter().flatten().min();
    known.encrypted |= other.encrypted;
    known.release = known.release.take().or(other.release);
    if known.state == ImageState::Available {
        known.state = other.state;
    }
}

/// Adds what the gallery says of the image that this is a version of.
fn complete(image: &mut ImageRecord, galleries: &HashMap<String, Vec<(&'static str, String)>>) {
    let path = image.reference.value.to_lowercase();
    let facts = path.find("/versions/").and_then(|end| galleries.get(path.get(..end)?));
    for (name, value) in facts.into_iter().flatten() {
        image.facts.0.entry((*name).to_owned()).or_insert_with(|| vec![value.clone()]);
    }
}
