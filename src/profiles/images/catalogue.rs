//! Merges the images of all sources, each image once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::coverage::Coverage;
use super::record::{ImageRecord, ImageState, Release, fact};
use super::reference::ImageReference;
use super::shared::Shared;
use super::sources::Listing;

/// Maximum number of images. A public cloud has some hundred thousand.
const MOST_IMAGES: usize = 2_000_000;

/// The sources list too many images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sources list more than {MOST_IMAGES} images; leave out those of accounts that you don't use")]
pub struct TooManyImages;

/// The images of all sources, in the order of their listings.
#[derive(Debug, Default)]
pub struct Catalogue {
    images: Vec<ImageRecord>,
    /// Indexes of the images, sorted by place.
    by_location: Vec<u32>,
    coverage: Vec<Coverage>,
}

/// Identity of an image: realm, region, and name at the cloud.
type Location<'a> = (&'static str, &'a str, Option<&'a str>, &'a ImageReference);

fn location(image: &ImageRecord) -> Location<'_> {
    (image.provider, &image.realm, image.region.as_deref(), &image.reference)
}

impl Catalogue {
    /// Merges listings. For an image in several listings, the first one has precedence and the others fill its gaps.
    /// But the image is unavailable or deprecated if any of them marks it so.
    ///
    /// # Errors
    /// If there are too many images.
    pub fn new(listings: Vec<Listing>) -> Result<Self, TooManyImages> {
        let mut images = Images::default();
        let mut shared = Shared::default();
        let mut galleries: HashMap<String, Vec<(&'static str, String)>> = HashMap::new();
        let mut coverage = Vec::new();
        for listing in listings {
            coverage.extend(listing.coverage);
            galleries.extend(listing.galleries.into_iter().map(|image| (image.path, image.facts)));
            for image in listing.images {
                images.add(image, &mut shared)?;
            }
        }
        let mut images = images.images;
        if !galleries.is_empty() {
            images.iter_mut().for_each(|image| complete(image, &galleries));
            images.iter_mut().for_each(|image| shared.share(image));
        }
        distinguish_virtual_machines(&mut images, &mut shared);
        images.shrink_to_fit();
        let mut by_location: Vec<u32> = (0_u32..).take(images.len()).collect();
        by_location.sort_by_key(|position| images.get(*position as usize).map(location));
        coverage.sort_unstable();
        coverage.dedup();
        Ok(Self { images, by_location, coverage })
    }

    /// The parts of clouds that the listings cover completely, sorted.
    #[must_use]
    pub fn coverage(&self) -> &[Coverage] {
        &self.coverage
    }

    /// All images.
    #[must_use]
    pub fn images(&self) -> &[ImageRecord] {
        &self.images
    }

    /// Finds an image by its name at the cloud, in a region or in all regions.
    #[must_use]
    pub fn find(
        &self,
        provider: &'static str,
        realm: &str,
        region: Option<&str>,
        reference: &ImageReference,
    ) -> Option<&ImageRecord> {
        let at = |region: Option<&str>| {
            let image = |position: &u32| self.images.get(*position as usize);
            let required = Some((provider, realm, region, reference));
            let found =
                self.by_location.binary_search_by(|position| image(position).map(location).cmp(&required)).ok()?;
            self.by_location.get(found).and_then(image)
        };
        at(region).or_else(|| at(None))
    }
}

/// Images without duplicates, while listings are merged.
#[derive(Default)]
struct Images {
    images: Vec<ImageRecord>,
    locations: HashMap<(&'static str, String, Option<String>, ImageReference), usize>,
}

impl Images {
    fn add(&mut self, mut image: ImageRecord, shared: &mut Shared) -> Result<(), TooManyImages> {
        let location = (image.provider, image.realm.clone(), image.region.clone(), image.reference.clone());
        let known = self.locations.get(&location).copied();
        if let Some(known) = known.and_then(|position| self.images.get_mut(position)) {
            merge(known, &image);
            shared.share(known);
            return Ok(());
        }
        if self.images.len() >= MOST_IMAGES {
            return Err(TooManyImages);
        }
        self.locations.insert(location, self.images.len());
        shared.share(&mut image);
        self.images.push(image);
        Ok(())
    }
}

/// If a release has images for physical machines, marks its other images as those for virtual machines. Other releases
/// have no such mark, so their locks stay.
fn distinguish_virtual_machines(images: &mut [ImageRecord], shared: &mut Shared) {
    let is_physical =
        |image: &&ImageRecord| image.facts.values(fact::HYPERVISOR).is_some_and(|known| known == [fact::BARE_METAL]);
    let releases = images.iter().filter(is_physical).filter_map(|image| Some((image.provider, image.release.clone()?)));
    let releases: HashSet<(&'static str, Arc<Release>)> = releases.collect();
    if releases.is_empty() {
        return;
    }
    for image in images.iter_mut().filter(|image| image.facts.values(fact::HYPERVISOR).is_none()) {
        let Some(release) = image.release.clone() else { continue };
        if releases.contains(&(image.provider, release)) {
            let facts = &mut Arc::make_mut(&mut image.facts).0;
            facts.insert(fact::HYPERVISOR.to_owned(), vec![fact::VIRTUALIZED.to_owned()]);
            shared.share(image);
        }
    }
}

/// Fills gaps in the data of an image. It becomes unavailable or deprecated if the other one is.
pub(super) fn merge(known: &mut ImageRecord, other: &ImageRecord) {
    for (name, values) in &other.facts.0 {
        if !known.facts.0.contains_key(name) {
            Arc::make_mut(&mut known.facts).0.insert(name.clone(), values.clone());
        }
    }
    known.attributes.fill(&other.attributes);
    for (name, value) in &*other.tags {
        if !known.tags.contains_key(name) {
            Arc::make_mut(&mut known.tags).insert(name.clone(), value.clone());
        }
    }
    for (text, more) in [(&mut known.name, &other.name), (&mut known.owner, &other.owner)] {
        if text.is_empty() {
            text.clone_from(more);
        }
    }
    // Each listing only covers the regions that it was requested for.
    match (&mut known.replicated_to, &other.replicated_to) {
        (Some(regions), Some(more)) if !more.is_subset(regions) => Arc::make_mut(regions).extend(more.iter().cloned()),
        (Some(_), _) => {}
        (regions @ None, more) => regions.clone_from(more),
    }
    known.created = known.created.or(other.created);
    known.deprecated = [known.deprecated, other.deprecated].into_iter().flatten().min();
    known.encrypted |= other.encrypted;
    known.release = known.release.take().or_else(|| other.release.clone());
    if known.state == ImageState::Available {
        known.state.clone_from(&other.state);
    }
}

/// Adds the data that the gallery has about the image of this version.
fn complete(image: &mut ImageRecord, galleries: &HashMap<String, Vec<(&'static str, String)>>) {
    let path = image.reference.value.to_lowercase();
    let facts = path.find("/versions/").and_then(|end| galleries.get(path.get(..end)?));
    for (name, value) in facts.into_iter().flatten() {
        Arc::make_mut(&mut image.facts).0.entry((*name).to_owned()).or_insert_with(|| vec![value.clone()]);
    }
}
