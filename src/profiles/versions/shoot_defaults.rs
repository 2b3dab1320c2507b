//! Defaults for a Shoot without Kubernetes version, architecture or image (docs/contract.md#defaults-of-a-shoot).

use jiff::Timestamp;

use wire::api::gardener::{
    CapabilityDefinition, ExpirableVersion, MachineImage, ProfileImage, ProfileImageVersion, ProfileMachineType,
};
use wire::api::gotext::version::Version;
use wire::capabilities::{
    Classification, DEFAULT_ARCHITECTURE, Life, architecture_of_machine_type, architectures_of_version,
    is_supported_by_image,
};

/// Why there is no default. The texts are Gardener's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDefault {
    /// A part of the version is not a number.
    #[error("{part:?} must be a semantic version")]
    NotAVersion {
        /// The invalid part.
        part: String,
    },
    /// No Kubernetes version fits.
    #[error(
        "couldn't find a suitable version for {requested}. Suitable versions have a non-expired expiration date and are no \
         'preview' versions. 'Preview'-classified versions have to be selected explicitly"
    )]
    NoKubernetesVersion {
        /// The requested version.
        requested: String,
    },
    /// The profile has no image with this name.
    #[error("image is not supported")]
    UnknownImage,
    /// No image supports the architecture.
    #[error("no valid machine image found that supports architecture `{architecture}`")]
    NoImage {
        /// The architecture.
        architecture: String,
    },
    /// The image has no version that fits.
    #[error(
        "failed to determine latest machine image from cloud profile: unable to determine latest expirable version"
    )]
    NoImageVersion,
}

/// The start of a version: nothing, a major, or major and minor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Prefix {
    major: Option<u64>,
    minor: Option<u64>,
}

impl Prefix {
    fn parse(text: &str) -> Result<Self, NoDefault> {
        let number = |part: Option<&&str>| match part {
            None | Some(&"") => Ok(None),
            Some(part) if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                part.parse().map(Some).map_err(|_| NoDefault::NotAVersion { part: (*part).to_owned() })
            }
            Some(part) => Err(NoDefault::NotAVersion { part: (*part).to_owned() }),
        };
        let parts: Vec<&str> = text.split('.').collect();
        // As in Gardener, the minor is parsed first, and only if it is the last part.
        let minor = if parts.len() == 2 { number(parts.get(1))? } else { None };
        Ok(Self { major: number(parts.first())?, minor })
    }

    fn fits(self, version: &Version) -> bool {
        self.major.is_none_or(|major| major == version.major) && self.minor.is_none_or(|minor| minor == version.minor)
    }
}

/// The Kubernetes version for a Shoot with only the start of a version or none; `None` if its version is complete.
///
/// # Errors
/// If the start is not a version, or no supported version has it.
pub fn default_kubernetes_version<'a>(
    versions: &'a [ExpirableVersion],
    requested: &str,
    now: Timestamp,
) -> Result<Option<&'a str>, NoDefault> {
    if requested.split('.').count() == 3 {
        return Ok(None);
    }
    let prefix = Prefix::parse(requested)?;
    let supported = versions.iter().filter(|version| Life::from(*version).at(now) == Classification::Supported);
    let fitting = supported.filter_map(|version| Some((Version::parse(&version.version).ok()?, version)));
    let highest = fitting.filter(|(version, _)| prefix.fits(version)).max_by(|a, b| a.0.cmp(&b.0));
    match highest {
        Some((_, version)) => Ok(Some(&version.version)),
        None => Err(NoDefault::NoKubernetesVersion { requested: requested.to_owned() }),
    }
}

/// The architecture of a pool: its own, that of its machine type, or `amd64`.
#[must_use]
pub fn default_architecture<'a>(
    requested: Option<&'a str>,
    machine_type: Option<&'a ProfileMachineType>,
    definitions: &'a [CapabilityDefinition],
) -> &'a str {
    let of_type = || architecture_of_machine_type(machine_type?, definitions);
    requested.or_else(of_type).unwrap_or(DEFAULT_ARCHITECTURE)
}

/// A pool that needs an image.
#[derive(Clone, Copy, Debug)]
pub struct PoolWithoutImage<'a> {
    /// The image in the pool; name and version may be empty.
    pub requested: Option<&'a MachineImage>,
    /// Architecture of the pool.
    pub architecture: &'a str,
    /// Machine type of the pool, if the profile has it.
    pub machine_type: Option<&'a ProfileMachineType>,
    /// Whether its machines are updated in place.
    pub in_place: bool,
}

/// The image for a pool with only a name, the start of a version, or neither.
///
/// As in Gardener, this is the first image with a version for the architecture *or* for the capabilities. The version
/// must then fit both, so a later image that fits is not found. Expired versions are included.
///
/// # Errors
/// If the profile has no such image or version.
pub fn default_image(
    images: &[ProfileImage],
    definitions: &[CapabilityDefinition],
    pool: PoolWithoutImage<'_>,
    now: Timestamp,
) -> Result<MachineImage, NoDefault> {
    let requested = pool.requested.filter(|requested| !requested.name.is_empty());
    let version = requested.map_or("", |requested| requested.version.as_str());
    let image = match requested {
        Some(requested) => {
            let image = images.iter().find(|image| image.name == requested.name).ok_or(NoDefault::UnknownImage)?;
            if image.versions.iter().any(|listed| listed.version == version) || version.split('.').count() == 3 {
                return Ok(requested.clone());
            }
            image
        }
        None => images
            .iter()
            .find(|image| image.versions.iter().any(|version| pool.might_run(version, definitions)))
            .ok_or_else(|| NoDefault::NoImage { architecture: pool.architecture.to_owned() })?,
    };
    let prefix = Prefix::parse(version.strip_prefix('v').unwrap_or(version))?;
    let candidates = image.versions.iter().filter(|version| pool.can_run(version, definitions));
    let candidates: Vec<(Version, &ProfileImageVersion)> = candidates
        .filter_map(|version| Some((Version::parse(&version.version).ok()?, version)))
        .filter(|(version, _)| prefix.fits(version))
        .collect();
    let highest = |requested: fn(&Classification) -> bool| {
        let fitting = candidates.iter().filter(|(_, version)| requested(&Life::from(*version).at(now)));
        fitting.max_by(|a, b| a.0.cmp(&b.0)).map(|(_, version)| version)
    };
    let is_preferred = |classification: &Classification| {
        !matches!(classification, Classification::Preview | Classification::Deprecated)
    };
    let found =
        highest(is_preferred).or_else(|| highest(|classification| *classification == Classification::Deprecated));
    let found = found.ok_or(NoDefault::NoImageVersion)?;
    Ok(MachineImage { name: image.name.clone(), version: found.version.clone() })
}

impl PoolWithoutImage<'_> {
    fn has_architecture(self, version: &ProfileImageVersion, definitions: &[CapabilityDefinition]) -> bool {
        architectures_of_version(version, definitions).contains(&self.architecture)
    }

    fn fits_capabilities(self, version: &ProfileImageVersion, definitions: &[CapabilityDefinition]) -> Option<bool> {
        let machine_type = self.machine_type?;
        Some(is_supported_by_image(&machine_type.capabilities, &version.capability_flavors, definitions))
    }

    fn might_run(self, version: &ProfileImageVersion, definitions: &[CapabilityDefinition]) -> bool {
        self.has_architecture(version, definitions) || self.fits_capabilities(version, definitions) == Some(true)
    }

    fn can_run(self, version: &ProfileImageVersion, definitions: &[CapabilityDefinition]) -> bool {
        let fits = definitions.is_empty() || self.fits_capabilities(version, definitions) != Some(false);
        let in_place = || version.in_place_updates.as_ref().is_some_and(|updates| updates.supported);
        self.has_architecture(version, definitions) && fits && (!self.in_place || in_place())
    }
}
