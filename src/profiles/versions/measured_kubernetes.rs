//! The Kubernetes versions that the measured Gardener supports. A newer Gardener may support more, with rules that this
//! program does not know (docs/compatibility.md#newest-gardener).

use wire::api::gotext::version::Version;

/// The newest minor in `pkg/utils/validation/kubernetesversion` of Gardener 1.150.0.
const NEWEST_SUPPORTED_MINOR: (u64, u64) = (1, 36);

/// Whether the measured Gardener rejects a version of Kubernetes because it is too new.
#[must_use]
pub fn is_too_new(version: &Version) -> bool {
    (version.major, version.minor) > NEWEST_SUPPORTED_MINOR
}

/// Why a version that is too new is reported.
#[must_use]
pub fn why_too_new() -> String {
    let (major, minor) = NEWEST_SUPPORTED_MINOR;
    format!(
        "Gardener 1.150, the newest one that was measured, supports Kubernetes up to {major}.{minor}. A newer Gardener may \
         support this version; rules for its settings are not known here."
    )
}
