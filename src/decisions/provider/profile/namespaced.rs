//! Validates the images of a NamespacedCloudProfile against its core fields and its parent.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::images::{ImageDocument, ImageIndex, VersionEntry};
use super::mapping::{Flavor, MissingArchitectures, MissingFlavors, architectures};
use wire::api::gardener::{
    Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileImage, ProfileImageVersion, ProfileSpec,
};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{Meaning, Meanings};

/// The place that messages refer to.
const LOCATION: &str = "the NamespacedCloudProfile providerConfig";

/// Validates the images at `spec.providerConfig.machineImages`.
pub(super) fn validate<Document: ImageDocument>(
    document: &Document,
    changes: &NamespacedProfileSpec,
    parent: &ProfileSpec,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let index = ImageIndex::new(document.machine_images());
    let parent_images = CoreImages::new(&parent.machine_images);
    let definitions = &parent.machine_capabilities;
    let meanings = Meanings::new(definitions);
    for image in &changes.machine_images {
        if !parent_images.has_image(&image.name) && !index.has_image(&image.name) {
            let detail = format!("machine image {} is not defined in {LOCATION}: list it there", image.name);
            errors.required(path, detail);
            continue;
        }
        for version in &image.versions {
            if errors.is_stopped() {
                return;
            }
            let missing = Missing { image, version, parent: &parent_images, definitions, meanings: &meanings };
            missing.find::<Document>(index.entries(&image.name, &version.version), path, errors);
        }
    }
    report_unneeded(document, changes, &parent_images, &parent.machine_capabilities, path, errors);
}

/// A version of the NamespacedCloudProfile that may lack images.
struct Missing<'a> {
    image: &'a ProfileImage,
    version: &'a ProfileImageVersion,
    parent: &'a CoreImages<'a>,
    definitions: &'a [CapabilityDefinition],
    meanings: &'a Meanings<'a>,
}

impl Missing<'_> {
    fn find<Document: ImageDocument>(
        &self,
        entries: &[&Document::Version],
        path: FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        let Self { image, version, parent, definitions, meanings: _ } = self;
        let in_parent = parent.version(&image.name, &version.version).is_some();
        if in_parent && Document::SKIPS_VERSIONS_OF_PARENT {
            return;
        }
        if definitions.is_empty() {
            if !(Document::UNMAPPED_VERSIONS_OF_PARENT && parent.has_image(&image.name)) {
                let missing = MissingArchitectures::find(version, entries);
                for architecture in missing.iter() {
                    errors.required_with(path, || missing.text(architecture, &image.name, version, LOCATION));
                }
            }
        } else if entries.is_empty() {
            if !in_parent {
                let detail = format!(
                    "machine image version {}@{} is not defined in {LOCATION}: list it there",
                    image.name, version.version
                );
                errors.required(path, detail);
            }
        } else {
            let missing = MissingFlavors::find(version, entries, definitions, self.meanings);
            for (_, flavor) in missing.iter() {
                errors.required_with(path, || missing.text(flavor, &image.name, version, LOCATION));
            }
        }
    }
}

/// Reports images that the parent already has, or that the core fields don't list.
fn report_unneeded<Document: ImageDocument>(
    document: &Document,
    changes: &NamespacedProfileSpec,
    parent: &CoreImages<'_>,
    definitions: &[CapabilityDefinition],
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let target = CoreImages::new(&changes.machine_images);
    let meanings = Meanings::new(definitions);
    for (position, image) in document.machine_images().iter().enumerate() {
        let image_path = path.index(position);
        let versions = image_path.child("versions");
        for (position, entry) in image.versions.iter().enumerate() {
            if parent.version(&image.name, entry.version()).is_some() {
                let name = &image.name;
                let version = entry.version();
                let detail =
                    format!("machine image version {name}@{version} is already defined in the parent CloudProfile");
                errors.forbidden(versions.index(position), detail);
            }
        }
        if !target.has_image(&image.name) {
            let name = &image.name;
            let detail =
                format!("machine image {name} is not defined in the NamespacedCloudProfile .spec.machineImages");
            errors.required(image_path, detail);
            continue;
        }
        for (position, entry) in image.versions.iter().enumerate() {
            if errors.is_stopped() {
                return;
            }
            let Some(version) = target.version(&image.name, entry.version()) else {
                let detail = "machine image version is not defined in the NamespacedCloudProfile";
                errors.invalid(versions.index(position), entry.version(), detail);
                continue;
            };
            report_excess(&image.name, entry, version, (definitions, &meanings), path, errors);
        }
    }
}

/// Reports images of an entry for architectures or capabilities that the version does not list.
fn report_excess(
    image: &str,
    entry: &impl VersionEntry,
    version: &ProfileImageVersion,
    (definitions, meanings): (&[CapabilityDefinition], &Meanings<'_>),
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut excess = |what: String| {
        let detail = format!(
            "machine image version {image}@{} has an excess {what}, which is not defined in the machineImages spec",
            entry.version()
        );
        errors.forbidden(path, detail);
    };
    if definitions.is_empty() {
        let target: HashSet<&str> = version.architectures.iter().map(String::as_str).collect();
        for architecture in entry.architectures() {
            if !target.contains(architecture) {
                excess(format!("entry for architecture {architecture:?}"));
            }
        }
        return;
    }
    // A version without flavors has one that runs everything.
    let everything = [Capabilities::default()];
    let target = if version.capability_flavors.is_empty() { &everything[..] } else { &version.capability_flavors[..] };
    if entry.has_flavors() {
        let known: BTreeSet<Meaning<'_>> = target.iter().map(|flavor| meanings.of(flavor)).collect();
        for flavor in entry.listed_capabilities() {
            if !known.contains(&meanings.of(flavor)) {
                excess(format!("capabilityFlavor {}", Flavor(flavor)));
            }
        }
        return;
    }
    let named: HashSet<&str> =
        target.iter().flat_map(|target| architectures(target, definitions)).map(String::as_str).collect();
    for architecture in entry.architectures() {
        if !named.contains(architecture) {
            excess(format!("architecture {architecture:?}"));
        }
    }
}

/// Images and versions in `spec.machineImages` by name.
struct CoreImages<'a> {
    images: HashSet<&'a str>,
    versions: HashMap<(&'a str, &'a str), &'a ProfileImageVersion>,
}

impl<'a> CoreImages<'a> {
    fn new(images: &'a [ProfileImage]) -> Self {
        let versions = images.iter().flat_map(|image| {
            image.versions.iter().map(move |version| ((image.name.as_str(), version.version.as_str()), version))
        });
        Self { images: images.iter().map(|image| image.name.as_str()).collect(), versions: versions.collect() }
    }

    fn has_image(&self, image: &str) -> bool {
        self.images.contains(image)
    }

    fn version(&self, image: &str, version: &str) -> Option<&'a ProfileImageVersion> {
        self.versions.get(&(image, version)).copied()
    }
}
