//! Regional images, as several clouds list them: per architecture in the old format, otherwise per flavor.

use serde::Deserialize;

use super::images::validate_architecture;
use super::{EntryFlavor, ListedIn, ListedReference, Repeated, VersionEntry};
use wire::api::gardener::Capabilities;
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::json::null_as_default;
use wire::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};

/// One version of an image, in the old format with regions or with flavors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound = "Image: Deserialize<'de>")]
pub struct RegionalVersion<Image> {
    /// Version of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Old format: images by region and architecture.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub regions: Vec<Image>,
    /// Images by capabilities and region. If any are listed, `regions` is ignored.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub capability_flavors: Vec<RegionalFlavor<Image>>,
}

/// Images for machines with certain capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound = "Image: Deserialize<'de>")]
pub struct RegionalFlavor<Image> {
    /// Capabilities that a machine must support.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: Capabilities,
    /// Image of each region.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub regions: Vec<Image>,
}

/// The image of one region.
pub trait RegionImage: Send + Sync {
    /// API version of the document that lists the image.
    const API_VERSION: &'static str;

    /// The member that holds the reference, such as `ami`.
    const MEMBER: &'static str;

    /// Which entries validation uses if a version is listed several times.
    const REPEATED_VERSIONS: Repeated;

    /// Which entries Workers use; see [`VersionEntry::CANDIDATES`].
    const CANDIDATES: Repeated = Repeated::All;

    /// See [`VersionEntry::DISTINGUISHES_ARCHITECTURES`].
    const DISTINGUISHES_ARCHITECTURES: bool = true;

    /// Whether both images are kept if the old format lists a region twice, so that
    /// [`ListedFlavor::in_region`](super::ListedFlavor::in_region) can select one.
    const KEEPS_REPEATED_REGIONS: bool = false;

    /// Name of the region.
    fn region(&self) -> &str;

    /// Reference to the image.
    fn image(&self) -> &str;

    /// CPU architecture in the old format; `None` means `amd64`.
    fn architecture(&self) -> Option<&str> {
        None
    }
}

impl<Image: RegionImage> ListedIn for RegionalVersion<Image> {
    const API_VERSION: &'static str = Image::API_VERSION;
}

impl<Image: RegionImage> VersionEntry for RegionalVersion<Image> {
    const REPEATED: Repeated = Image::REPEATED_VERSIONS;
    const CANDIDATES: Repeated = Image::CANDIDATES;
    const DISTINGUISHES_ARCHITECTURES: bool = Image::DISTINGUISHES_ARCHITECTURES;

    fn version(&self) -> &str {
        &self.version
    }

    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities> {
        self.capability_flavors.iter().map(|flavor| &flavor.capabilities)
    }

    fn architectures(&self) -> Vec<&str> {
        architectures(&self.regions)
    }

    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let mut flavors = if self.has_flavors() {
            let flavors = self.capability_flavors.iter();
            EntryFlavor::listed(flavors.map(|flavor| (&flavor.capabilities, references(&flavor.regions, region))))
        } else {
            flavors_by_architecture(&self.regions, region)
        };
        flavors.retain(|flavor| !flavor.references.is_empty());
        flavors
    }

    fn old_format_members(&self) -> Vec<&'static str> {
        if self.regions.is_empty() { vec![] } else { vec!["regions"] }
    }

    fn validate_old_format(&self, image: &str, _has_choice: bool, path: FieldPath<'_>, errors: &mut FieldErrors) {
        validate_some_regions(&self.regions, ArchitectureOf::Entry, (image, &self.version), path, errors);
    }

    fn validate_flavor(&self, index: usize, image: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
        let Some(flavor) = self.capability_flavors.get(index) else { return };
        validate_some_regions(&flavor.regions, ArchitectureOf::Flavor, (image, &self.version), path, errors);
    }
}

/// References to the images of a region, or of all regions. If a region is listed twice, the last entry wins.
pub fn references<'a, Image: RegionImage>(images: &'a [Image], region: Option<&str>) -> Vec<ListedReference<'a>> {
    let mut references = Vec::new();
    images.iter().for_each(|image| add_reference(&mut references, image, region, false));
    references
}

/// Converts images in the old format to one flavor per architecture, in document order.
pub fn flavors_by_architecture<'a, Image: RegionImage>(
    images: &'a [Image],
    region: Option<&str>,
) -> Vec<EntryFlavor<'a>> {
    let mut flavors: Vec<(&str, Vec<ListedReference<'a>>)> = Vec::new();
    for image in images {
        let architecture = image.architecture().unwrap_or(DEFAULT_ARCHITECTURE);
        let position = flavors.iter().position(|(known, _)| *known == architecture).unwrap_or_else(|| {
            flavors.push((architecture, Vec::new()));
            flavors.len() - 1
        });
        if let Some((_, references)) = flavors.get_mut(position) {
            add_reference(references, image, region, Image::KEEPS_REPEATED_REGIONS);
        }
    }
    let flavors = flavors.into_iter();
    flavors.map(|(architecture, of)| EntryFlavor::old_format(only_architecture(architecture), of)).collect()
}

/// The distinct architectures of images in the old format, sorted by name.
pub fn architectures<Image: RegionImage>(images: &[Image]) -> Vec<&str> {
    let mut architectures: Vec<&str> =
        images.iter().map(|image| image.architecture().unwrap_or(DEFAULT_ARCHITECTURE)).collect();
    architectures.sort_unstable();
    architectures.dedup();
    architectures
}

/// The place that lists the architecture of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchitectureOf {
    /// In the entry of the region, in the old format.
    Entry,
    /// In the capabilities of the flavor.
    Flavor,
}

/// Validates regional images; `path` is that of the list.
pub fn validate_regions<Image: RegionImage>(
    images: &[Image],
    architecture: ArchitectureOf,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, image) in images.iter().enumerate() {
        let path = path.index(index);
        if image.region().is_empty() {
            errors.required(path.child("name"), "must provide a name");
        }
        if image.image().is_empty() {
            errors.required(path.child(Image::MEMBER), format!("must provide an {}", Image::MEMBER));
        }
        match (architecture, image.architecture()) {
            (_, None) => {}
            (ArchitectureOf::Entry, Some(named)) => validate_architecture(named, path, errors),
            (ArchitectureOf::Flavor, Some(_)) => {
                errors.forbidden(path.child("architecture"), "must be defined in .capabilities.architecture");
            }
        }
    }
}

/// Validates regional images and requires at least one.
fn validate_some_regions<Image: RegionImage>(
    images: &[Image],
    architecture: ArchitectureOf,
    (image, version): (&str, &str),
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.child("regions");
    if images.is_empty() {
        let detail = format!("must provide at least one region for machine image {image:?} and version {version:?}");
        errors.required(path, detail);
    }
    validate_regions(images, architecture, path, errors);
}

fn add_reference<'a, Image: RegionImage>(
    references: &mut Vec<ListedReference<'a>>,
    image: &'a Image,
    region: Option<&str>,
    keeps_repeated: bool,
) {
    if region.is_some_and(|region| region != image.region()) {
        return;
    }
    let reference = ListedReference { region: Some(image.region()), member: Image::MEMBER, value: image.image() };
    match references.iter_mut().find(|known| known.region == reference.region) {
        Some(known) if !keeps_repeated => *known = reference,
        _ => references.push(reference),
    }
}
