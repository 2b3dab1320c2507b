//! The image versions that a pool can be updated to (docs/versions.md#which-images).

use crate::api::gardener::{ImageContainerRuntime, VersionedPool};
use crate::api::gotext::version::Version;
use crate::capabilities::{DEFAULT_ARCHITECTURE, architectures_of_version, is_supported_by_image};

use super::catalog::{ListedImage, ListedImageVersion, VersionCatalog};

/// The versions of an image that fit a pool, without the conditions that depend on the pool's versions.
#[derive(Clone, Debug)]
pub struct FittingVersions<'c> {
    /// The image in the profile.
    pub image: &'c ListedImage<'c>,
    versions: Vec<&'c ListedImageVersion<'c>>,
}

/// Why a pool can't be evaluated. Gardener then leaves the images of this pool and of all later ones unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPool {
    /// The profile lacks the machine type.
    #[error("machine type {machine_type:?} of worker {pool:?} does not exist in cloudprofile")]
    MachineType {
        /// Name of the machine type.
        machine_type: String,
        /// Name of the pool.
        pool: String,
    },
    /// The profile lacks the image.
    #[error(
        "failure while determining the default machine image in the CloudProfile: no machineImage with name {image:?} \
         (specified in shoot) could be found in the cloudProfile {profile:?}"
    )]
    Image {
        /// Name of the image.
        image: String,
        /// Name of the profile.
        profile: String,
    },
    /// A Kubernetes version of the shoot is invalid.
    #[error("{0}")]
    Version(crate::api::gotext::version::VersionError),
}

impl<'c> FittingVersions<'c> {
    /// The versions with the architecture, the capabilities and the container runtimes of a pool.
    ///
    /// # Errors
    /// If the profile lacks its machine type or image.
    pub fn new(catalog: &'c VersionCatalog<'c>, pool: &VersionedPool) -> Result<Self, UnknownPool> {
        let machine = &pool.machine;
        let unknown_type =
            || UnknownPool::MachineType { machine_type: machine.machine_type.clone(), pool: pool.name.clone() };
        let machine_type = catalog.machine_type(&machine.machine_type).ok_or_else(unknown_type)?;
        let name = machine.image.as_ref().map_or("", |image| image.name.as_str());
        let unknown_image = || UnknownPool::Image { image: name.to_owned(), profile: catalog.name.to_owned() };
        let image = catalog.image(name).ok_or_else(unknown_image)?;
        let definitions = &catalog.spec.machine_capabilities;
        let architecture = machine.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
        let fits = |version: &&ListedImageVersion<'_>| {
            architectures_of_version(version.entry, definitions).contains(&architecture)
                && (definitions.is_empty()
                    || is_supported_by_image(
                        &machine_type.capabilities,
                        &version.entry.capability_flavors,
                        definitions,
                    ))
                && has_runtimes(&version.entry.cri, pool.cri.as_ref())
        };
        Ok(Self { image, versions: image.versions.iter().filter(fits).collect() })
    }

    /// Those that support a kubelet version and, for a pool with in-place updates, an in-place update of its nodes.
    pub fn at(
        &self,
        kubelet: &Version,
        in_place_from: Option<&str>,
    ) -> impl Iterator<Item = &'c ListedImageVersion<'c>> {
        let current = in_place_from.map(|text| (text, Version::parse(numbers(text))));
        self.versions.iter().copied().filter(move |version| {
            let runs = match &version.kubelet {
                None => true,
                Some(constraint) => constraint.as_ref().is_some_and(|constraint| constraint.allows(kubelet)),
            };
            runs && current.as_ref().is_none_or(|(text, current)| {
                version.entry.in_place_updates.as_ref().is_some_and(|updates| {
                    let minimum = updates.min_version_for_update.as_deref();
                    let minimum = minimum.and_then(|minimum| Version::parse(numbers(minimum)).ok());
                    let is_above =
                        || current.as_ref().is_ok_and(|current| minimum.is_some_and(|minimum| minimum <= *current));
                    updates.supported && (version.listed.text == *text || is_above())
                })
            })
        })
    }
}

/// Whether an image version has the container runtime of a pool with all its runtime types.
fn has_runtimes(offered: &[ImageContainerRuntime], wanted: Option<&ImageContainerRuntime>) -> bool {
    let name = wanted.map_or("containerd", |wanted| wanted.name.as_str());
    let Some(found) = offered.iter().find(|offered| offered.name == name) else { return false };
    let mut wanted = wanted.iter().flat_map(|wanted| &wanted.container_runtimes);
    wanted.all(|wanted| found.container_runtimes.iter().any(|found| found.runtime_type == wanted.runtime_type))
}

/// The three numbers of a version without suffixes, because Gardener compares some versions like that.
pub(super) fn numbers(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.split(['-', '+', '~']).next().unwrap_or(version)
}
