//! The result of one maintenance run.

use std::collections::BTreeMap;

use super::target::NoTarget;

/// Why a version is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The profile does not have it, or not for this pool.
    Missing,
    /// It has expired.
    Expired,
    /// The owner enabled automatic updates.
    Automatic,
}

impl Cause {
    /// The text for output.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Missing => "forced: not in the CloudProfile, or not for this pool",
            Self::Expired => "forced: expired",
            Self::Automatic => "automatic",
        }
    }
}

/// The image that is updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedImage {
    /// Its name as the Shoot writes it.
    pub name: String,
    /// Its name as the CloudProfile writes it; letters may differ in case.
    pub listed_name: String,
    /// Its update strategy, which limits automatic updates.
    pub strategy: String,
}

/// The update of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The image; `None` for Kubernetes.
    pub image: Option<UpdatedImage>,
    /// The version before.
    pub from: String,
    /// The version afterwards, or why there is no target.
    pub to: Result<String, NoTarget>,
    /// Why the version is updated.
    pub cause: Cause,
}

impl Update {
    /// Whether the version changes. It stays if the control plane limits the update to it.
    #[must_use]
    pub fn is_move(&self) -> bool {
        self.to.as_ref().is_ok_and(|to| *to != self.from)
    }
}

/// The value of `status.lastMaintenance` after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMaintenance {
    /// One of `Processing`, `Failed` and `Succeeded`.
    pub state: &'static str,
    /// The first sentence of the description.
    pub summary: String,
    /// The parts of the description, joined by `, `; their order is not defined in Gardener.
    pub parts: Vec<String>,
    /// The parts of the failure reason.
    pub failure_reasons: Vec<String>,
}

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The Kubernetes update of the control plane.
    pub control_plane: Option<Update>,
    /// Kubernetes updates of pools with their own version, by pool.
    pub kubernetes: BTreeMap<String, Update>,
    /// Image updates, by pool.
    pub images: BTreeMap<String, Update>,
    /// Whether image updates are not reported, because a later pool can't be evaluated.
    pub is_silent: bool,
    /// Other changes, as text.
    pub operations: Vec<String>,
    /// Whether fields of the Shoot other than versions change.
    pub changes_settings: bool,
    /// Operations other than plain `reconcile` that the controller requests from gardenlet.
    pub operation: Option<String>,
    /// Why the API server rejects the whole update.
    pub rejected: Option<String>,
    /// Errors that appear only in the controller's log.
    pub logged: Vec<String>,
    /// The message of a crash of the controller, which then changes nothing.
    pub crash: Option<String>,
    /// The new status, if it changes.
    pub last_maintenance: Option<LastMaintenance>,
    /// Whether the next run has the same input.
    pub is_stable: bool,
}

impl Run {
    /// Whether the run wrote or logged anything.
    #[must_use]
    pub fn left_something(&self) -> bool {
        let Self { control_plane, kubernetes, images, operations, logged, last_maintenance, .. } = self;
        control_plane.is_some()
            || !(kubernetes.is_empty() && images.is_empty() && operations.is_empty() && logged.is_empty())
            || [&self.operation, &self.rejected, &self.crash].into_iter().any(Option::is_some)
            || last_maintenance.is_some()
    }

    /// Every update: of the control plane, of pools, of images.
    pub fn updates(&self) -> impl Iterator<Item = (Option<&str>, &Update)> {
        let pools = self.kubernetes.iter().chain(&self.images).map(|(pool, update)| (Some(pool.as_str()), update));
        self.control_plane.iter().map(|update| (None, update)).chain(pools)
    }

    pub(super) fn crashed(text: impl Into<String>) -> Self {
        Self { crash: Some(text.into()), ..Self::default() }
    }
}
