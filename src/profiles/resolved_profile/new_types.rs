//! Which images a new machine type gets: of each image, the newest version that a new pool can select.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Serialize;

use super::resolution::{Resolution, ResolvedVersion, TypeGroup};
use decisions::provider::explanation::ImageName;
use wire::api::gotext::version::Version;

/// A new machine type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewMachineType {
    /// Its name.
    pub name: String,
    /// Its images, in the order of the profile; empty if no image fits.
    pub images: Vec<NewestImage>,
}

/// The newest version of an image that a machine type gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewestImage {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// The image at the cloud; that of the first region, if regions have their own.
    pub reference: ImageName,
}

/// The images of machine types by name.
pub(super) fn new_machine_types(names: &[String], resolution: &Resolution<'_>) -> Vec<NewMachineType> {
    let images = |name: &String| {
        let group = resolution.types().find(|(machine_type, _)| machine_type.name == *name).map(|(_, group)| group);
        group.map(|group| newest_images(resolution, group)).unwrap_or_default()
    };
    names.iter().map(|name| NewMachineType { name: name.clone(), images: images(name) }).collect()
}

fn newest_images(resolution: &Resolution<'_>, group: &TypeGroup<'_>) -> Vec<NewestImage> {
    let mut versions: Vec<&ResolvedVersion<'_>> =
        resolution.versions().iter().filter(|version| version.selectable.classification.is_active()).collect();
    let location = |name: &str| resolution.versions().iter().position(|version| version.selectable.image == name);
    versions.sort_by_key(|version| {
        (location(&version.selectable.image), Reverse(Version::parse(&version.selectable.version).ok()))
    });
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut images = Vec::new();
    for version in versions.into_iter().filter(|version| resolution.admits(version, group)) {
        if known.contains(version.selectable.image.as_str()) {
            continue;
        }
        if let Some(reference) = reference(resolution, group, version) {
            known.insert(&version.selectable.image);
            let [image, version] = [&version.selectable.image, &version.selectable.version].map(String::clone);
            images.push(NewestImage { image, version, reference });
        }
    }
    images
}

fn reference(resolution: &Resolution<'_>, group: &TypeGroup<'_>, version: &ResolvedVersion<'_>) -> Option<ImageName> {
    version.availability.iter().find_map(|available| {
        let flavor = version.selectable.flavors.get(resolution.chosen(group, available)?)?;
        match available.regions.first() {
            Some(region) => flavor.in_region(region).cloned(),
            None => flavor.anywhere.clone(),
        }
    })
}
