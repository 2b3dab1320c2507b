//! The image versions that a pool can be updated to (docs/versions.md#which-images).

use wire::api::gardener::{ImageContainerRuntime, ProfileMachineType, VersionedPool};
use wire::api::gotext::version::Version;
use wire::capabilities::{DEFAULT_ARCHITECTURE, architectures_of_version, is_supported_by_image};

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
    Version(wire::api::gotext::version::VersionError),
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
        // Profiles have few kinds of versions, and comparing capabilities takes long.
        let mut known: Vec<Option<bool>> = vec![None; image.versions.len()];
        let mut versions = Vec::new();
        for version in &image.versions {
            let fits = || unfit_machine(catalog, machine_type, pool, version).is_none();
            let is_fitting = match known.get_mut(version.kind) {
                Some(known) => *known.get_or_insert_with(fits),
                None => fits(),
            };
            if is_fitting {
                versions.push(version);
            }
        }
        Ok(Self { image, versions })
    }

    /// Those that support a kubelet version and, for a pool with in-place updates, an in-place update of its nodes.
    pub fn at(
        &self,
        kubelet: &Version,
        in_place_from: Option<&str>,
    ) -> impl Iterator<Item = &'c ListedImageVersion<'c>> {
        let current = in_place_from.map(InPlaceFrom::new);
        self.versions.iter().copied().filter(move |version| is_at(version, kubelet, current.as_ref()))
    }

    /// The first of [`Self::at`] with this text. It compares texts first, because that is cheaper than the conditions.
    #[must_use]
    pub fn named_at(
        &self,
        text: &str,
        kubelet: &Version,
        in_place_from: Option<&str>,
    ) -> Option<&'c ListedImageVersion<'c>> {
        let current = in_place_from.map(InPlaceFrom::new);
        let mut named = self.versions.iter().copied().filter(|version| version.listed.text == text);
        named.find(|version| is_at(version, kubelet, current.as_ref()))
    }

    /// The versions, regardless of the kubelet versions that they support.
    #[must_use]
    pub fn versions(&self) -> &[&'c ListedImageVersion<'c>] {
        &self.versions
    }
}

/// Why a version of the profile is not available to a pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Another CPU architecture.
    #[error("it is not for architecture {0}")]
    Architecture(String),
    /// Other capabilities than those of the machine type.
    #[error("it does not fit the capabilities of machine type {0}")]
    Capabilities(String),
    /// It lacks the container runtime.
    #[error("it lacks the container runtime of the pool")]
    ContainerRuntime,
    /// It does not run the kubelet.
    #[error("its kubeletVersionConstraint does not allow kubelet {0}")]
    Kubelet(Version),
    /// The pool is updated in place, which the version does not support.
    #[error("it does not support inPlaceUpdates, which the pool needs")]
    NotInPlace,
    /// The pool is updated in place, and the version has no minimum version for that.
    #[error("it has no minVersionForUpdate, and the pool is updated in place")]
    NoMinimum,
    /// The pool is updated in place, and its nodes are too old for that.
    #[error("it can be reached in place only from {0} on (minVersionForUpdate)")]
    TooOld(String),
}

/// Why a version of its image is not available to a pool; `None` if it is, or if the profile lacks the machine type.
#[must_use]
pub fn unfit(
    catalog: &VersionCatalog<'_>,
    pool: &VersionedPool,
    version: &ListedImageVersion<'_>,
    kubelet: &Version,
) -> Option<Unfit> {
    let machine_type = catalog.machine_type(&pool.machine.machine_type)?;
    if let Some(unfit) = unfit_machine(catalog, machine_type, pool, version) {
        return Some(unfit);
    }
    if !runs_kubelet(version, kubelet) {
        return Some(Unfit::Kubelet(kubelet.clone()));
    }
    if !pool.is_updated_in_place() {
        return None;
    }
    let current = pool.machine.image.as_ref()?;
    unfit_in_place(version, &current.version)
}

/// Why a version does not fit machine type and container runtimes of a pool.
fn unfit_machine(
    catalog: &VersionCatalog<'_>,
    machine_type: &ProfileMachineType,
    pool: &VersionedPool,
    version: &ListedImageVersion<'_>,
) -> Option<Unfit> {
    let definitions = &catalog.spec.machine_capabilities;
    let architecture = pool.machine.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
    if !architectures_of_version(version.entry, definitions).contains(&architecture) {
        return Some(Unfit::Architecture(architecture.to_owned()));
    }
    let capabilities = &machine_type.capabilities;
    let flavors = &version.entry.capability_flavors;
    if !definitions.is_empty() && !is_supported_by_image(capabilities, flavors, definitions) {
        return Some(Unfit::Capabilities(machine_type.name.clone()));
    }
    (!has_runtimes(&version.entry.cri, pool.cri.as_ref())).then_some(Unfit::ContainerRuntime)
}

fn is_at(version: &ListedImageVersion<'_>, kubelet: &Version, current: Option<&InPlaceFrom<'_>>) -> bool {
    runs_kubelet(version, kubelet) && current.is_none_or(|current| unfit_from(version, current).is_none())
}

fn runs_kubelet(version: &ListedImageVersion<'_>, kubelet: &Version) -> bool {
    match &version.kubelet {
        None => true,
        Some(constraint) => constraint.as_ref().is_some_and(|constraint| constraint.allows(kubelet)),
    }
}

/// The version from which nodes are updated in place.
struct InPlaceFrom<'a> {
    text: &'a str,
    version: Option<Version>,
}

impl<'a> InPlaceFrom<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, version: Version::parse(numbers(text)).ok() }
    }
}

/// Why nodes can't be updated in place to a version. If it supports in-place updates, it is always possible for nodes
/// that already have it.
fn unfit_from(version: &ListedImageVersion<'_>, current: &InPlaceFrom<'_>) -> Option<Unfit> {
    let Some(updates) = version.entry.in_place_updates.as_ref().filter(|updates| updates.supported) else {
        return Some(Unfit::NotInPlace);
    };
    if version.listed.text == current.text {
        return None;
    }
    let Some(text) = updates.min_version_for_update.as_deref() else { return Some(Unfit::NoMinimum) };
    let minimum = Version::parse(numbers(text)).ok();
    let is_reached = minimum.zip(current.version.as_ref()).is_some_and(|(minimum, current)| minimum <= *current);
    (!is_reached).then(|| Unfit::TooOld(text.to_owned()))
}

/// Why nodes with one version can't be updated in place to another one.
#[must_use]
pub fn unfit_in_place(version: &ListedImageVersion<'_>, from: &str) -> Option<Unfit> {
    unfit_from(version, &InPlaceFrom::new(from))
}

/// Whether an image version has the container runtime of a pool with all its runtime types.
fn has_runtimes(selectable: &[ImageContainerRuntime], requested: Option<&ImageContainerRuntime>) -> bool {
    let name = requested.map_or("containerd", |requested| requested.name.as_str());
    let Some(found) = selectable.iter().find(|selectable| selectable.name == name) else { return false };
    let mut requested = requested.iter().flat_map(|requested| &requested.container_runtimes);
    requested.all(|requested| found.container_runtimes.iter().any(|found| found.runtime_type == requested.runtime_type))
}

/// A version without prerelease and build metadata, as Gardener compares some versions.
#[must_use]
pub fn numbers(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.split(['-', '+', '~']).next().unwrap_or(version)
}
