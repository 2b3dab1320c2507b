//! The versions of a CloudProfile, parsed once for many shoots and times.

use std::collections::HashMap;

use jiff::Timestamp;

use wire::api::gardener::{ExpirableVersion, ProfileImage, ProfileImageVersion, ProfileMachineType, ProfileSpec};
use wire::api::gotext::version::{Version, VersionError};
use wire::api::gotext::version_constraint::VersionConstraint;
use wire::capabilities::{Classification, Life};

/// A version in a list, with its stages.
#[derive(Clone, Debug)]
pub struct ListedVersion<'a> {
    /// The version as written in the profile.
    pub text: &'a str,
    /// The parsed version.
    pub version: Result<Version, VersionError>,
    /// Its stages in list order; the last one that has begun is current.
    stages: Vec<(Option<Timestamp>, Classification)>,
    expires: Option<Timestamp>,
}

/// An image with its versions.
#[derive(Clone, Debug)]
pub struct ListedImage<'a> {
    /// The image in the profile.
    pub image: &'a ProfileImage,
    /// Its versions in list order.
    pub versions: Vec<ListedImageVersion<'a>>,
}

/// A version of an image.
#[derive(Clone, Debug)]
pub struct ListedImageVersion<'a> {
    /// The version and its stages.
    pub listed: ListedVersion<'a>,
    /// The version in the profile.
    pub entry: &'a ProfileImageVersion,
    /// The kubelet versions that it supports; `Some(None)` is an invalid constraint, which allows none.
    pub kubelet: Option<Option<VersionConstraint>>,
    /// The position of the first version of the image with the same architectures, capabilities and container runtimes.
    /// Versions with an equal kind fit the same pools.
    pub kind: usize,
}

/// All versions of a profile, and the times at which they enter another stage.
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
        let expires = life.expires();
        let stages = life.stages().filter_map(|(start, stage)| match start {
            None => Some((None, stage)),
            Some(start) => Some((Some(start.parse().ok()?), stage)),
        });
        Self { text, version: Version::parse(text), stages: stages.collect(), expires }
    }

    /// Its stage at the time `now`.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Classification {
        let reached = self.stages.iter().rfind(|(start, _)| start.is_none_or(|start| start < now));
        reached.map_or(Classification::Unavailable, |(_, stage)| *stage)
    }

    /// When it expires or has expired, if the profile has a time.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    /// The first time at or after `from` at which it enters another stage.
    #[must_use]
    pub fn next_change(&self, from: Timestamp) -> Option<Timestamp> {
        self.stages.iter().filter_map(|(start, _)| *start).filter(|start| *start >= from).min()
    }

    /// Its stages in list order, with their start.
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
        // `Debug` escapes the separators in values, so the text is unique.
        let fit = |entry: &ProfileImageVersion| {
            format!("{:?} {:?} {:?}", entry.architectures, entry.capability_flavors, entry.cri)
        };
        let mut kinds: HashMap<String, usize> = HashMap::new();
        let versions = image.versions.iter().enumerate().map(|(position, entry)| ListedImageVersion {
            listed: ListedVersion::from(entry),
            entry,
            kubelet: entry.kubelet_version_constraint.as_deref().map(|text| VersionConstraint::parse(text).ok()),
            kind: *kinds.entry(fit(entry)).or_insert(position),
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
    /// The update strategy of the image; the API server's default is `major`.
    #[must_use]
    pub fn strategy(&self) -> &str {
        self.image.update_strategy.as_deref().filter(|strategy| !strategy.is_empty()).unwrap_or("major")
    }
}

impl<'a> VersionCatalog<'a> {
    /// Parses the versions of a profile.
    #[must_use]
    pub fn new(name: &'a str, spec: &'a ProfileSpec) -> Self {
        let kubernetes: Vec<ListedVersion<'a>> = spec.kubernetes.versions.iter().map(ListedVersion::from).collect();
        let images: Vec<ListedImage<'a>> = spec.machine_images.iter().map(ListedImage::from).collect();
        let of_images = images.iter().flat_map(|image| &image.versions).map(|version| &version.listed);
        let stages = kubernetes.iter().chain(of_images).flat_map(ListedVersion::stages);
        let mut changes: Vec<Timestamp> = stages.filter_map(|(start, _)| start).collect();
        changes.sort_unstable();
        changes.dedup();
        // Of machine types with the same name, the first one is used.
        let machine_types =
            spec.machine_types.iter().rev().map(|machine_type| (machine_type.name.as_str(), machine_type));
        Self { name, spec, kubernetes, images, machine_types: machine_types.collect(), changes }
    }

    /// The machine type with this name.
    #[must_use]
    pub fn machine_type(&self, name: &str) -> Option<&'a ProfileMachineType> {
        self.machine_types.get(name).copied()
    }

    /// The image with this name, which is case-insensitive.
    #[must_use]
    pub fn image(&self, name: &str) -> Option<&ListedImage<'a>> {
        let is_same = |image: &&ListedImage<'_>| {
            let folded = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
            image.image.name.eq_ignore_ascii_case(name) || folded(&image.image.name) == folded(name)
        };
        self.images.iter().find(is_same)
    }

    /// When a version expires or has expired. Without an image, it is a version of Kubernetes.
    #[must_use]
    pub fn expires(&self, image: Option<&str>, version: &str) -> Option<Timestamp> {
        match image {
            None => self.kubernetes.iter().find(|listed| listed.text == version)?.expires(),
            Some(image) => {
                let mut versions = self.image(image)?.versions.iter();
                versions.find(|known| known.listed.text == version)?.listed.expires()
            }
        }
    }

    /// The times at which a version enters another stage, in order.
    #[must_use]
    pub fn changes(&self) -> &[Timestamp] {
        &self.changes
    }
}
