//! The versions of a CloudProfile, read once for many shoots and many moments.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::api::gardener::{ExpirableVersion, ProfileImage, ProfileImageVersion, ProfileMachineType, ProfileSpec};
use crate::api::gotext::version::{Version, VersionError};
use crate::api::gotext::version_constraint::VersionConstraint;
use crate::capabilities::{Classification, Life};

/// A version of a list, with its life.
#[derive(Clone, Debug)]
pub struct ListedVersion<'a> {
    /// As the profile writes it.
    pub text: &'a str,
    /// What it reads as.
    pub version: Result<Version, VersionError>,
    /// Its stages in list order; the last one that has begun counts.
    stages: Vec<(Option<Timestamp>, Classification)>,
}

/// An image with its versions.
#[derive(Clone, Debug)]
pub struct ListedImage<'a> {
    /// As the profile writes it.
    pub image: &'a ProfileImage,
    /// Its versions in list order.
    pub versions: Vec<ListedImageVersion<'a>>,
}

/// A version of an image.
#[derive(Clone, Debug)]
pub struct ListedImageVersion<'a> {
    /// The version and its life.
    pub listed: ListedVersion<'a>,
    /// As the profile writes it.
    pub entry: &'a ProfileImageVersion,
    /// Which kubelets it can run; one that can't be read allows none.
    pub kubelet: Option<Option<VersionConstraint>>,
}

/// All versions of a profile, and when one of them enters another stage.
#[derive(Clone, Debug)]
pub struct VersionCatalog<'a> {
    /// Name of the profile, for messages.
    pub name: &'a str,
    /// The profile.
    pub spec: &'a ProfileSpec,
    /// Kubernetes versions in list order.
    pub kubernetes: Vec<ListedVersion<'a>>,
    /// Images in list order.
    pub images: Vec<ListedImage<'a>>,
    machine_types: HashMap<&'a str, &'a ProfileMachineType>,
    changes: Vec<Timestamp>,
}

impl<'a> ListedVersion<'a> {
    fn new(text: &'a str, life: Life<'a>) -> Self {
        let stages = life.stages().filter_map(|(start, stage)| match start {
            None => Some((None, stage)),
            Some(start) => Some((Some(start.parse().ok()?), stage)),
        });
        Self { text, version: Version::parse(text), stages: stages.collect() }
    }

    /// Its stage at a moment.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Classification {
        let reached = self.stages.iter().rfind(|(start, _)| start.is_none_or(|start| start < now));
        reached.map_or(Classification::Unavailable, |(_, stage)| *stage)
    }

    /// When it expires or has expired, as far as the profile says it.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        let mut expirations = self.stages.iter().filter(|(_, stage)| *stage == Classification::Expired);
        expirations.find_map(|(start, _)| *start)
    }

    /// The first moment, not before this one, at which it enters another stage.
    #[must_use]
    pub fn next_change(&self, from: Timestamp) -> Option<Timestamp> {
        self.stages.iter().filter_map(|(start, _)| *start).filter(|start| *start >= from).min()
    }

    /// Its stages in list order, with their begin.
    pub fn stages(&self) -> impl Iterator<Item = (Option<Timestamp>, Classification)> {
        self.stages.iter().copied()
    }
}

impl<'a> From<&'a ExpirableVersion> for ListedVersion<'a> {
    fn from(version: &'a ExpirableVersion) -> Self {
        Self::new(&version.version, Life::from(version))
    }
}

impl<'a> From<&'a ProfileImageVersion> for ListedVersion<'a> {
    fn from(version: &'a ProfileImageVersion) -> Self {
        Self::new(&version.version, Life::from(version))
    }
}

impl<'a> From<&'a ProfileImage> for ListedImage<'a> {
    fn from(image: &'a ProfileImage) -> Self {
        let versions = image.versions.iter().map(|entry| ListedImageVersion {
            listed: ListedVersion::from(entry),
            entry,
            kubelet: entry.kubelet_version_constraint.as_deref().map(|text| VersionConstraint::parse(text).ok()),
        });
        Self { image, versions: versions.collect() }
    }
}

impl ListedImageVersion<'_> {
    /// Whether nodes can be updated to it in place at all.
    #[must_use]
    pub fn is_updated_in_place(&self) -> bool {
        self.entry.in_place_updates.as_ref().is_some_and(|updates| updates.supported)
    }
}

impl ListedImage<'_> {
    /// How far updates of the image go; the API server sets `major` where the profile says nothing.
    #[must_use]
    pub fn strategy(&self) -> &str {
        self.image.update_strategy.as_deref().filter(|strategy| !strategy.is_empty()).unwrap_or("major")
    }
}

impl<'a> VersionCatalog<'a> {
    /// Reads the versions of a profile.
    #[must_use]
    pub fn new(name: &'a str, spec: &'a ProfileSpec) -> Self {
        let kubernetes: Vec<ListedVersion<'a>> = spec.kubernetes.versions.iter().map(ListedVersion::from).collect();
        let images: Vec<ListedImage<'a>> = spec.machine_images.iter().map(ListedImage::from).collect();
        let of_images = images.iter().flat_map(|image| &image.versions).map(|version| &version.listed);
        let stages = kubernetes.iter().chain(of_images).flat_map(ListedVersion::stages);
        let mut changes: Vec<Timestamp> = stages.filter_map(|(start, _)| start).collect();
        changes.sort_unstable();
        changes.dedup();
        // Of two types of the same name the first counts.
        let machine_types =
            spec.machine_types.iter().rev().map(|machine_type| (machine_type.name.as_str(), machine_type));
        Self { name, spec, kubernetes, images, machine_types: machine_types.collect(), changes }
    }

    /// The machine type of that name.
    #[must_use]
    pub fn machine_type(&self, name: &str) -> Option<&'a ProfileMachineType> {
        self.machine_types.get(name).copied()
    }

    /// The image of that name, in whatever letters.
    #[must_use]
    pub fn image(&self, name: &str) -> Option<&ListedImage<'a>> {
        let is_same = |image: &&ListedImage<'_>| {
            let folded = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
            image.image.name.eq_ignore_ascii_case(name) || folded(&image.image.name) == folded(name)
        };
        self.images.iter().find(is_same)
    }

    /// The moments at which a version enters another stage, in order.
    #[must_use]
    pub fn changes(&self) -> &[Timestamp] {
        &self.changes
    }
}
