//! What one run of maintenance did.

use std::collections::BTreeMap;

use super::target::NoTarget;

/// Why a version has to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The profile does not have it, or not for this pool.
    Missing,
    /// It has expired.
    Expired,
    /// The owner wants automatic updates.
    Automatic,
}

impl Cause {
    /// For people.
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
    /// How far updates of it go.
    pub strategy: String,
}

/// The update of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The image; `None` for Kubernetes.
    pub image: Option<UpdatedImage>,
    /// The version before.
    pub from: String,
    /// The version afterwards, or why there is none.
    pub to: Result<String, NoTarget>,
    /// Why.
    pub cause: Cause,
}

impl Update {
    /// Whether the version changes. What is held back by the control plane may stay.
    #[must_use]
    pub fn is_move(&self) -> bool {
        self.to.as_ref().is_ok_and(|to| *to != self.from)
    }
}

/// What a run left in `status.lastMaintenance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMaintenance {
    /// Processing, Failed, Succeeded.
    pub state: &'static str,
    /// The first sentence of the description.
    pub summary: String,
    /// The parts of the description, joined by `, `; Gardener leaves their order open.
    pub parts: Vec<String>,
    /// The parts of the reason why it failed.
    pub failure_reasons: Vec<String>,
}

/// What one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Kubernetes of the control plane.
    pub control_plane: Option<Update>,
    /// Kubernetes of pools with a version of their own, by pool.
    pub kubernetes: BTreeMap<String, Update>,
    /// Images by pool.
    pub images: BTreeMap<String, Update>,
    /// Whether images change without a word about it, because nothing is known of a later pool.
    pub is_silent: bool,
    /// What else changes, in words.
    pub operations: Vec<String>,
    /// Whether members of the Shoot besides versions change.
    pub changes_settings: bool,
    /// What the controller asks gardenlet for, where it is not plain `reconcile`.
    pub operation: Option<String>,
    /// Why the API server refuses all of it.
    pub rejected: Option<String>,
    /// What is only in the log of the controller: text and pool.
    pub logged: Vec<String>,
    /// The controller crashes; nothing is changed.
    pub crash: Option<String>,
    /// The status, if it changes.
    pub last_maintenance: Option<LastMaintenance>,
    /// Whether the next run finds what this one found.
    pub is_stable: bool,
}

impl Run {
    /// Whether it left anything behind.
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
