//! Implements [`ProfileConfig`] for the documents of all providers, based on their images.

use std::borrow::Cow;

use super::images::{ImageDocument, ImageIndex, ImageVersions, VersionEntry, listed_flavors, listed_versions};
use super::mapping::validate_mapping;
use super::repeated::repeated_flavors;
use super::{GenericFlavors, ListedFlavor, ListedVersion, ProfileConfig, RepeatedFlavor, UncoveredRegion, namespaced};
use wire::api::gardener::{CapabilityDefinition, NamespacedProfileSpec, ProfileImage, ProfileSpec, Region, ShootPool};
use wire::api::gotext::field::{FieldErrors, FieldPath};

impl<Document: ImageDocument> ProfileConfig for Document {
    fn images(&self) -> Vec<ListedVersion<'_>> {
        listed_versions(self.machine_images())
    }

    fn flavors(
        &self,
        image: [&str; 2],
        region: Option<&str>,
        declared: &[CapabilityDefinition],
    ) -> Vec<ListedFlavor<'_>> {
        listed_flavors(self.machine_images(), image, region, declared)
    }

    fn validate_into(&self, profile: &ProfileSpec, errors: &mut FieldErrors) {
        let spec = FieldPath::new("spec");
        let path = spec.child("providerConfig");
        self.validate_settings(path, errors);
        let images = self.machine_images();
        if images.is_empty() {
            errors.required(path.child("machineImages"), "must provide at least one machine image");
        }
        validate_images(images, &profile.machine_capabilities, path.child("machineImages"), errors);
        if errors.is_empty() || Self::MAPPING_AFTER_ERRORS {
            validate_mapping(&ImageIndex::new(images), profile, spec.child("machineImages"), errors);
        }
    }

    fn validate_pool(&self, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
        ImageDocument::validate_pool(self, pool, path, errors);
    }

    fn validate_namespaced_into(
        &self,
        changes: &NamespacedProfileSpec,
        parent: &ProfileSpec,
        errors: &mut FieldErrors,
    ) {
        let path = FieldPath::new("spec.providerConfig");
        self.validate_namespaced_settings(changes, parent, path, errors);
        let images_path = path.child("machineImages");
        validate_images(self.machine_images(), &parent.machine_capabilities, images_path, errors);
        namespaced::validate(self, changes, parent, images_path, errors);
    }

    fn core_flavors(&self, images: &[ProfileImage]) -> Vec<GenericFlavors<'_>> {
        let index = ImageIndex::new(self.machine_images());
        let mut listed = Vec::new();
        for (image, core) in images.iter().enumerate() {
            for (version, core_version) in core.versions.iter().enumerate() {
                let entries = index.entries(&core.name, &core_version.version);
                if entries.is_empty() {
                    continue;
                }
                let flavors = match entries.iter().find(|entry| entry.has_flavors()) {
                    Some(entry) => entry.listed_capabilities().map(Cow::Borrowed).collect(),
                    None => Document::Version::core_flavors(entries).into_iter().map(Cow::Owned).collect(),
                };
                listed.push(GenericFlavors { image, version, flavors });
            }
        }
        listed
    }

    fn uncovered_regions<'a>(&self, regions: &'a [Region]) -> Vec<UncoveredRegion<'a>> {
        ImageDocument::uncovered_regions(self, regions)
    }

    fn repeated_flavors(&self, definitions: &[CapabilityDefinition]) -> Vec<RepeatedFlavor<'_>> {
        repeated_flavors(self.machine_images(), definitions)
    }
}

/// Validates the images without comparing them with the rest of the profile.
fn validate_images<Version: VersionEntry>(
    images: &[ImageVersions<Version>],
    definitions: &[CapabilityDefinition],
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, image) in images.iter().enumerate() {
        let path = path.index(index);
        if image.name.is_empty() {
            errors.required(path.child("name"), "must provide a name");
        }
        let versions = path.child("versions");
        if image.versions.is_empty() {
            let detail = format!("must provide at least one version for machine image {:?}", image.name);
            errors.required(versions, detail);
        }
        for (index, version) in image.versions.iter().enumerate() {
            if errors.is_stopped() {
                return;
            }
            let path = versions.index(index);
            if version.version().is_empty() {
                errors.required(path.child("version"), "must provide a version");
            }
            version.validate(&image.name, definitions, path, errors);
        }
    }
}
