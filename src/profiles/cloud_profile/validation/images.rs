//! Validates images and their versions (docs/contract.md#versions).

use std::collections::HashSet;

use jiff::Timestamp;

use super::versions::{validate_lifecycle, validate_one_supported};
use super::{FeatureGates, name};
use wire::api::gardener::{CapabilityDefinition, ImageContainerRuntime, ProfileImage, ProfileImageVersion};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::version::Version;
use wire::api::gotext::version_constraint::VersionConstraint;
use wire::capabilities::{Life, not_a_name, validate_image_version as validate_flavors_and_architectures};

/// Supported ranges of automatic updates.
const UPDATE_STRATEGIES: [&str; 3] = ["major", "minor", "patch"];

/// Settings for the validation of images.
pub struct ImageRules<'a> {
    /// Capabilities of the profile.
    pub definitions: &'a [CapabilityDefinition],
    /// Whether at least one image, and at least one version of each image, is required; `false` for a
    /// NamespacedCloudProfile.
    pub versions_required: bool,
    /// Features of the API server.
    pub gates: FeatureGates,
    /// Current time.
    pub now: Timestamp,
}

/// Validates `spec.machineImages`.
pub fn validate_images(images: &[ProfileImage], rules: &ImageRules<'_>, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if images.is_empty() && rules.versions_required {
        errors.required(path, "must provide at least one machine image");
    }
    validate_latest(images, path, errors);
    let mut names = HashSet::new();
    let mut versions = HashSet::new();
    for (index, image) in images.iter().enumerate() {
        let path = path.index(index);
        if !names.insert(image.name.as_str()) {
            errors.duplicate(path, &image.name);
        }
        validate_image(image, rules, path, errors);
        let versions_path = path.child("versions");
        for (index, version) in image.versions.iter().enumerate() {
            let path = versions_path.index(index);
            if !versions.insert((image.name.as_str(), version.version.as_str())) {
                errors.duplicate(path, format!("{}-{}", image.name, version.version));
            }
            validate_image_version(version, rules, path, errors);
        }
        let lives = image.versions.iter().map(|version| (version.version.as_str(), Life::from(version)));
        validate_one_supported(lives, rules.now, versions_path, errors);
    }
}

/// Gardener determines the latest version of each image and stops at the first invalid version.
fn validate_latest(images: &[ProfileImage], path: FieldPath<'_>, errors: &mut FieldErrors) {
    let versions = images.iter().flat_map(|image| image.versions.iter().map(move |version| (image, version)));
    let mut failures =
        versions.filter_map(|(image, version)| Some((image, version, Version::parse(&version.version).err()?)));
    if let Some((image, version, error)) = failures.next() {
        let detail = format!(
            "failed to determine latest machine image version for image '{}': error while parsing expirable version \
             '{}': {error}",
            image.name, version.version
        );
        errors.invalid(path, (), detail);
    }
}

pub(in crate::cloud_profile) fn validate_image(
    image: &ProfileImage,
    rules: &ImageRules<'_>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    name(&image.name, path.child("name"), errors);
    if image.versions.is_empty() && rules.versions_required {
        let detail = format!("must provide at least one version for the machine image '{}'", image.name);
        errors.required(path.child("versions"), detail);
    }
    match image.update_strategy.as_deref() {
        None if rules.versions_required => {
            errors.required(path.child("updateStrategy"), "must provide an update strategy");
        }
        Some(strategy) if !UPDATE_STRATEGIES.contains(&strategy) => {
            errors.not_supported(path.child("updateStrategy"), strategy, UPDATE_STRATEGIES);
        }
        _ => {}
    }
}

pub(in crate::cloud_profile) fn validate_image_version(
    version: &ProfileImageVersion,
    rules: &ImageRules<'_>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_lifecycle(Life::from(version), rules.gates, path, errors);
    if version.version.is_empty() {
        errors.required(path.child("version"), "must provide a version");
    }
    if Version::parse(&version.version).is_err() {
        errors.invalid(
            path.child("version"),
            &version.version,
            "could not parse version. Use a semantic version. In case there is no semantic version for this image use the \
             extensibility provider (define mapping in the CloudProfile) to map to the actual non semantic version",
        );
    }
    if let Some(lowest) = version.in_place_updates.as_ref().and_then(|updates| updates.min_version_for_update.as_ref())
        && Version::parse(lowest).is_err()
    {
        // Gardener uses this path, although the field has another name.
        let path = path.child("minVersionForInPlaceUpdate");
        errors.invalid(path, lowest, "could not parse version. Use a semantic version.");
    }
    if let Some(constraint) = &version.kubelet_version_constraint
        && let Err(error) = VersionConstraint::parse(constraint)
    {
        let detail = format!("cannot parse the kubeletVersionConstraint: {error}");
        errors.invalid(path.child("kubeletVersionConstraint"), constraint, detail);
    }
    validate_container_runtimes(&version.cri, path.child("cri"), errors);
    validate_flavors_and_architectures(
        &version.capability_flavors,
        &version.architectures,
        rules.definitions,
        path,
        errors,
    );
}

fn validate_container_runtimes(runtimes: &[ImageContainerRuntime], path: FieldPath<'_>, errors: &mut FieldErrors) {
    if runtimes.is_empty() {
        errors.required(path, "must provide at least one supported container runtime");
    }
    for (index, runtime) in runtimes.iter().enumerate() {
        let path = path.index(index);
        if runtimes.iter().take(index).any(|earlier| earlier.name == runtime.name) {
            errors.duplicate(path, &runtime.name);
        }
        if runtime.name != "containerd" {
            errors.not_supported(path.child("name"), &runtime.name, ["containerd"]);
        }
        let classes_path = path.child("containerRuntimes");
        for (index, class) in runtime.container_runtimes.iter().enumerate() {
            let path = classes_path.index(index);
            let mut earlier = runtime.container_runtimes.iter().take(index);
            if earlier.any(|earlier| earlier.runtime_type == class.runtime_type) {
                errors.duplicate(path.child("type"), &class.runtime_type);
            }
            if let Some(problem) = not_a_name(&class.runtime_type) {
                errors.invalid(path.child("type"), &class.runtime_type, problem);
            }
        }
    }
}
