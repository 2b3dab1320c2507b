//! The target version of an automatic or forced update (docs/versions.md#where-to).

use wire::api::gotext::version::{Version, VersionError};
use wire::capabilities::Classification;

use super::catalog::ListedVersion;

/// A version in a list, with its current stage.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The version in the list.
    pub listed: &'a ListedVersion<'a>,
    /// Its current stage.
    pub stage: Classification,
}

/// How far an update may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Within the minor.
    Patch,
    /// Within the major.
    Minor,
    /// To any version.
    Major,
}

/// The subject of an update, for the rules and for messages.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// Kubernetes: automatic updates choose patches, forced ones the consecutive minor.
    Kubernetes,
    /// An image with its update strategy.
    Image {
        /// Name as written in the Shoot.
        name: &'a str,
        /// Strategy as written in the profile.
        strategy: &'a str,
    },
}

/// Why there is no target. The texts are Gardener's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTarget {
    /// A version in the list is invalid.
    #[error(
        "failed to determine a higher patch version for automatic update: error while parsing version '{version}': {error}"
    )]
    Unreadable {
        /// The version in the list.
        version: String,
        /// The parse error.
        error: VersionError,
    },
    /// The current version is invalid.
    #[error("failed to determine a higher patch version for automatic update: {0}")]
    CurrentUnreadable(VersionError),
    /// The newest version of an image with strategy `major` has expired.
    #[error(
        "failed to determine version for forceful update: either the machine image \"{image}\" is reaching end of life and \
         migration to another machine image is required or there is a misconfiguration in the CloudProfile. If it is the \
         latter, make sure the machine image in the CloudProfile has at least one version that is not expired, not in \
         preview and greater or equal to the current Shoot image version \"{version}\""
    )]
    EndOfLife {
        /// Name of the image.
        image: String,
        /// The expired version.
        version: String,
    },
    /// No version in the list is a possible target.
    #[error(
        "cannot perform forceful update of expired version \"{version}\". No suitable version found in CloudProfile - this \
         is most likely a misconfiguration of the CloudProfile"
    )]
    Nothing {
        /// The expired version.
        version: String,
    },
    /// Gardener's controller crashes on a version in the list.
    #[error("{0}")]
    Crash(VersionError),
}

impl Subject<'_> {
    /// How far automatic updates go.
    #[must_use]
    pub fn reach(&self) -> Reach {
        match self {
            Self::Kubernetes | Self::Image { strategy: "patch", .. } => Reach::Patch,
            Self::Image { strategy: "minor", .. } => Reach::Minor,
            Self::Image { .. } => Reach::Major,
        }
    }
}

/// Whether the stage of a version can affect the target of an update. That of an invalid version always can, because
/// Gardener ignores only previews.
#[must_use]
pub fn decides(subject: Subject<'_>, listed: &ListedVersion<'_>, current: &Version, is_forced: bool) -> bool {
    let reached = |version: &Version| is_forced || is_within(subject.reach(), version, current);
    listed.version.as_ref().map_or(true, |version| version > current && reached(version))
}

/// The target version; `None` if the current version stays. If an expired version has no automatic update, its update
/// is forced.
///
/// # Errors
/// If the current version must be updated but there is no target, or a version is invalid.
pub fn target<'a>(
    subject: Subject<'_>,
    candidates: &[Candidate<'a>],
    current: &str,
    is_expired: bool,
) -> Result<Option<&'a str>, NoTarget> {
    let version = Version::parse(current).map_err(NoTarget::CurrentUnreadable)?;
    if let Some(found) = automatic(subject.reach(), candidates, &version)? {
        return Ok(Some(found));
    }
    if !is_expired {
        return Ok(None);
    }
    let forced = match (subject, subject.reach()) {
        (Subject::Kubernetes, _) => consecutive_minor(candidates, &version)?,
        (Subject::Image { .. }, Reach::Patch) => next_higher(candidates, &version, Reach::Minor)?,
        (Subject::Image { .. }, Reach::Minor) => next_higher(candidates, &version, Reach::Major)?,
        (Subject::Image { name, .. }, Reach::Major) => {
            return Err(NoTarget::EndOfLife { image: name.to_owned(), version: current.to_owned() });
        }
    };
    forced.map(Some).ok_or_else(|| NoTarget::Nothing { version: current.to_owned() })
}

/// The target of an automatic update: the newest patch of the minor, or the newest version within the strategy's reach
/// if there is no patch. Versions that are not deprecated are preferred.
///
/// # Errors
/// If a version in the list is invalid.
pub fn automatic<'a>(
    reach: Reach,
    candidates: &[Candidate<'a>],
    current: &Version,
) -> Result<Option<&'a str>, NoTarget> {
    let within = |reach: Reach| {
        let fits = |candidate: &Candidate<'_>, version: &Version| {
            candidate.stage != Classification::Expired && version > current && is_within(reach, version, current)
        };
        let preferred = latest(candidates, |candidate, version| {
            candidate.stage != Classification::Deprecated && fits(candidate, version)
        })?;
        if preferred.is_some() { Ok(preferred) } else { latest(candidates, fits) }
    };
    let patch = within(Reach::Patch)?;
    if patch.is_some() || reach == Reach::Patch { Ok(patch) } else { within(reach) }
}

fn is_within(reach: Reach, version: &Version, current: &Version) -> bool {
    match reach {
        // Prereleases are ignored here, and 0.0.0 includes everything.
        Reach::Patch => {
            (current.major, current.minor, current.patch) == (0, 0, 0)
                || ((version.major, version.minor) == (current.major, current.minor) && version.patch >= current.patch)
        }
        Reach::Minor => version.major == current.major,
        Reach::Major => true,
    }
}

/// The target of a forced Kubernetes update: the newest patch of exactly the next minor, preferably one that has not
/// expired.
///
/// # Errors
/// If a version in the list is invalid.
pub fn consecutive_minor<'a>(candidates: &[Candidate<'a>], current: &Version) -> Result<Option<&'a str>, NoTarget> {
    let fits = |version: &Version| {
        version.major == current.major && current.minor.checked_add(1).is_some_and(|next| version.minor == next)
    };
    let living = latest(candidates, |candidate, version| candidate.stage != Classification::Expired && fits(version))?;
    if living.is_some() { Ok(living) } else { latest(candidates, |_, version| fits(version)) }
}

/// The newest version that fits and is not a preview; of equal ones the first. `0.0.0` is never found.
fn latest<'a>(
    candidates: &[Candidate<'a>],
    fits: impl Fn(&Candidate<'a>, &Version) -> bool,
) -> Result<Option<&'a str>, NoTarget> {
    let mut found: Option<(&Version, &'a str)> = None;
    for candidate in candidates.iter().filter(|candidate| candidate.stage != Classification::Preview) {
        let ListedVersion { text, version, .. } = candidate.listed;
        let version =
            version.as_ref().map_err(|error| NoTarget::Unreadable { version: (*text).to_owned(), error: *error })?;
        let is_newer = match found {
            Some((newest, _)) => version > newest,
            None => version > Version::ZERO,
        };
        if is_newer && fits(candidate, version) {
            found = Some((version, text));
        }
    }
    Ok(found.map(|(_, text)| text))
}

/// The target of a forced image update: the newest version of the next existing minor or major, even if numbers are
/// skipped.
///
/// Expired versions are used only if a group would be skipped otherwise. All versions in the list decide that,
/// including those of other majors, so an expired patch may win over an unexpired one of its group.
///
/// # Errors
/// If a version in the list is invalid: Gardener crashes on it.
pub fn next_higher<'a>(
    candidates: &[Candidate<'a>],
    current: &Version,
    group: Reach,
) -> Result<Option<&'a str>, NoTarget> {
    let mut ascending = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        ascending.push((candidate.listed.version.as_ref().map_err(|error| NoTarget::Crash(*error))?, candidate));
    }
    ascending.sort_by_key(|(version, _)| *version);
    let number = |version: &Version| if group == Reach::Minor { version.minor } else { version.major };
    let (living, next) = next_group(&ascending, current, group, false);
    let is_skipped = |(version, _): (&Version, &str)| next.is_some_and(|next| number(version) > next);
    let found = match living {
        Some(living) if !is_skipped(living) => Some(living),
        _ => next_group(&ascending, current, group, true).0,
    };
    Ok(found.map(|(_, text)| text))
}

/// The newest version of the first group with a version that fits, and the number of the first higher group seen until
/// then.
fn next_group<'a, 'v>(
    ascending: &[(&'v Version, &Candidate<'a>)],
    current: &Version,
    group: Reach,
    with_expired: bool,
) -> (Option<(&'v Version, &'a str)>, Option<u64>) {
    let number = |version: &Version| if group == Reach::Minor { version.minor } else { version.major };
    let (mut found, mut first): (Option<(&Version, &str)>, Option<u64>) = (None, None);
    for (version, candidate) in ascending {
        let of_version = number(version);
        if of_version > number(current) {
            first = Some(first.map_or(of_version, |first| first.min(of_version)));
        }
        let fits = match candidate.stage {
            Classification::Preview => false,
            Classification::Expired => with_expired,
            _ => true,
        };
        let is_higher = of_version > number(current) && (group == Reach::Major || version.major == current.major);
        if !fits || !is_higher {
            continue;
        }
        if found.is_some_and(|(found, _)| of_version > number(found)) {
            break;
        }
        found = Some((version, candidate.listed.text));
    }
    (found, first)
}
