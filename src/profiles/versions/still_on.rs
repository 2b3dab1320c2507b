//! Which pools still run a version of an image at a time, why, and which expiration would move them
//! (docs/versions.md#who-still-runs-a-version).

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use wire::api::gardener::{LifecycleStage, ProfileSpec, VersionedPool};
use wire::api::gotext::version::Version;
use wire::capabilities::{Classification, Life};

use super::candidates::FittingVersions;
use super::catalog::VersionCatalog;
use super::forecast::{Forecast, ForecastStep, Move, Stuck};
use super::maintenance::MaintainedShoot;
use super::window::EffectiveWindow;

/// Gardener does not reconcile a Shoot with this annotation, so its nodes stay as they are.
const IGNORE: &str = "shoot.gardener.cloud/ignore";
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A version of an image, and the time at which pools may still run it.
#[derive(Clone, Copy, Debug)]
pub struct StillOn<'q> {
    /// Name of the image.
    pub image: &'q str,
    /// The version.
    pub version: &'q str,
    /// Start of the forecast.
    pub from: Timestamp,
    /// The time of the answer.
    pub at: Timestamp,
}

/// A pool that still runs the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainingPool {
    /// Name of the pool.
    pub pool: String,
    /// Its minimum and maximum number of nodes.
    pub nodes: [u32; 2],
    /// Why it still runs the version, the most important reason first.
    pub reasons: Vec<Remains>,
}

/// Why a pool still runs a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// The Shoot is deleted, so maintenance does not update it.
    Deleted,
    /// Gardener does not reconcile the Shoot.
    Frozen,
    /// The user updates its nodes in place, one by one.
    ManualInPlace(Timestamp),
    /// The owner disabled automatic updates of images.
    OptedOut,
    /// The version must be updated but can't be.
    Stuck {
        /// Why it is stuck.
        why: String,
        /// The remedy.
        remedy: String,
    },
    /// Every newer version that fits the pool is a preview or not available yet.
    PreviewOnly,
    /// No newer version fits the pool.
    NothingNewer,
    /// The update strategy of the image allows no automatic update to a newer version.
    BeyondStrategy(String),
    /// Maintenance moves it, but in the window that starts then.
    MovesLater {
        /// Start of the window.
        window: Timestamp,
        /// The version afterwards.
        to: String,
    },
    /// The Shoot is hibernated: no node runs the version until it wakes up.
    Hibernated,
}

/// The expiration that moves a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mover {
    /// Maintenance moves the pool in the same window without another expiration.
    NotNeeded,
    /// The latest expiration that moves the pool in time, or as early as possible.
    Expiration {
        /// When the version has to expire.
        expires: Timestamp,
        /// Start of the window that moves the pool.
        window: Timestamp,
        /// The version afterwards.
        to: String,
        /// Whether the window ends before the time of the answer.
        in_time: bool,
    },
    /// No expiration moves the pool.
    None(String),
}

impl Remains {
    /// The word for JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Frozen => "frozen",
            Self::ManualInPlace(_) => "manualInPlace",
            Self::OptedOut => "optedOut",
            Self::Stuck { .. } => "stuck",
            Self::PreviewOnly => "previewOnly",
            Self::NothingNewer => "nothingNewer",
            Self::BeyondStrategy(_) => "beyondStrategy",
            Self::MovesLater { .. } => "movesLater",
            Self::Hibernated => "hibernated",
        }
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => formatter.write_str("being deleted, so maintenance does not update it"),
            Self::Frozen => write!(formatter, "frozen: Gardener does not reconcile it (annotation {IGNORE})"),
            Self::ManualInPlace(window) => {
                write!(formatter, "updated in place by its owner, node by node, after the window of {window}")
            }
            Self::OptedOut => formatter.write_str("opted out of automatic updates"),
            Self::Stuck { why, .. } => write!(formatter, "stuck: {why}"),
            Self::PreviewOnly => formatter.write_str("every newer version for it is a preview"),
            Self::NothingNewer => formatter.write_str("there is no newer version for it"),
            Self::BeyondStrategy(strategy) => {
                write!(formatter, "no newer version within the update strategy {strategy}")
            }
            Self::MovesLater { window, to } => write!(formatter, "moves to {to} in the window of {window}"),
            Self::Hibernated => formatter.write_str("hibernated: it starts with this version when it wakes up"),
        }
    }
}

/// The pools that still run the version. `forecast` begins at `from` and continues after `at`.
#[must_use]
pub fn remaining(
    shoot: &MaintainedShoot,
    forecast: &Forecast,
    catalog: &VersionCatalog<'_>,
    still_on: StillOn<'_>,
) -> Vec<RemainingPool> {
    let pools = shoot.shoot.spec.provider.workers.iter().filter(|pool| pool.maximum != Some(0));
    let pools = pools.filter(|pool| image_name(pool).is_some_and(|name| name.eq_ignore_ascii_case(still_on.image)));
    let evaluated = pools.filter_map(|pool| {
        let reasons = PoolResult { shoot, pool, forecast, catalog, still_on }.reasons();
        let nodes = [pool.minimum, pool.maximum.unwrap_or_default()];
        (!reasons.is_empty()).then(|| RemainingPool { pool: pool.name.clone(), nodes, reasons })
    });
    evaluated.collect()
}

/// The latest expiration with which a window moves a pool before the time of the answer. If no complete window is left,
/// the one with which the next window moves it.
#[must_use]
pub fn expiration(window: &EffectiveWindow, still_on: StillOn<'_>) -> Timestamp {
    let last = window.latest_start(still_on.at - window.length());
    if last >= still_on.from { last } else { next_start(window, still_on.from) }
}

fn next_start(window: &EffectiveWindow, from: Timestamp) -> Timestamp {
    let last = window.latest_start(from);
    if last == from { last } else { last + DAY }
}

/// The profile in which the version expires at a time, unless it expires earlier.
#[must_use]
pub fn expiring(profile: &ProfileSpec, still_on: StillOn<'_>, time: Timestamp) -> ProfileSpec {
    let mut profile = profile.clone();
    let images = profile.machine_images.iter_mut().filter(|image| image.name.eq_ignore_ascii_case(still_on.image));
    let versions = images.flat_map(|image| &mut image.versions).filter(|known| known.version == still_on.version);
    for version in versions {
        if Life::from(&*version).expires().is_some_and(|known| known <= time) {
            continue;
        }
        if version.lifecycle.is_empty() {
            version.expiration_date = Some(time.to_string());
            continue;
        }
        let starts_later = |stage: &LifecycleStage| {
            stage.start_time.as_deref().is_some_and(|start| start.parse().is_ok_and(|start: Timestamp| start > time))
        };
        version.lifecycle.retain(|stage| !starts_later(stage));
        let expired = Classification::Expired.word().to_owned();
        version.lifecycle.push(LifecycleStage { classification: expired, start_time: Some(time.to_string()) });
    }
    profile
}

/// Which expiration moves a pool. `forecast` is that of the profile of [`expiring`].
#[must_use]
pub fn mover(pool: &RemainingPool, forecast: &Forecast, expires: Timestamp, still_on: StillOn<'_>) -> Mover {
    for reason in &pool.reasons {
        match reason {
            Remains::Deleted | Remains::Frozen | Remains::ManualInPlace(_) => return Mover::None(reason.to_string()),
            _ => {}
        }
    }
    let Some((step, moved)) = moves_of(forecast, &pool.pool).find(|(_, moved)| moved.from == still_on.version) else {
        let stuck = forecast.stuck.iter().find(|stuck| is_of_pool(stuck, &pool.pool));
        let why = stuck.map_or_else(|| "no window moves it".to_owned(), |stuck| stuck.remedy.clone());
        return Mover::None(why);
    };
    let already = pool.reasons.iter().any(|reason| match reason {
        Remains::MovesLater { window, .. } => *window <= step.time,
        _ => false,
    });
    if already {
        return Mover::NotNeeded;
    }
    let in_time = step.latest + forecast.window.length() <= still_on.at;
    Mover::Expiration { expires, window: step.time, to: moved.to.clone(), in_time }
}

/// One pool, with everything that decides whether it still runs the version.
struct PoolResult<'a> {
    shoot: &'a MaintainedShoot,
    pool: &'a VersionedPool,
    forecast: &'a Forecast,
    catalog: &'a VersionCatalog<'a>,
    still_on: StillOn<'a>,
}

impl PoolResult<'_> {
    /// Why the pool still runs the version; empty if it does not.
    fn reasons(&self) -> Vec<Remains> {
        let initial = self.pool.machine.image.as_ref().is_some_and(|image| image.version == self.still_on.version);
        let mut reasons = Vec::new();
        if initial && self.is_frozen() {
            reasons.push(Remains::Frozen);
        } else if self.is_on_at() {
            self.explain(&mut reasons);
        } else if let Some(window) = self.left_by_hand() {
            reasons.push(Remains::ManualInPlace(window));
        }
        if !reasons.is_empty() && self.shoot.shoot.spec.hibernation.enabled {
            reasons.push(Remains::Hibernated);
        }
        reasons
    }

    fn is_frozen(&self) -> bool {
        let annotations = self.shoot.shoot.metadata.annotations.as_ref();
        let ignored = annotations.and_then(|annotations| annotations.get(IGNORE));
        ignored.is_some_and(|value| ["1", "t", "T", "TRUE", "true", "True"].contains(&value.as_str()))
    }

    /// Whether the Shoot has the version at the time. A window that is not over may not have run.
    fn is_on_at(&self) -> bool {
        let version = self.still_on.version;
        let mut is_on = self.pool.machine.image.as_ref().is_some_and(|image| image.version == version);
        for (step, moved) in moves_of(self.forecast, &self.pool.name) {
            if step.time > self.still_on.at {
                break;
            }
            if moved.to == version {
                is_on = true;
            } else if moved.from == version && self.is_over(step) {
                is_on = false;
            }
        }
        is_on
    }

    fn is_over(&self, step: &ForecastStep) -> bool {
        step.latest + self.forecast.window.length() <= self.still_on.at
    }

    /// The window in which the Shoot leaves the version, if its owner then has to update each node.
    fn left_by_hand(&self) -> Option<Timestamp> {
        if self.pool.update_strategy != "ManualInPlaceUpdate" {
            return None;
        }
        let mut left = moves_of(self.forecast, &self.pool.name).filter(|(step, _)| self.is_over(step));
        left.find(|(_, moved)| moved.from == self.still_on.version).map(|(step, _)| step.time)
    }

    fn explain(&self, reasons: &mut Vec<Remains>) {
        if self.shoot.shoot.metadata.deletion_timestamp.is_some() {
            reasons.push(Remains::Deleted);
            return;
        }
        let later = moves_of(self.forecast, &self.pool.name)
            .find(|(step, moved)| moved.from == self.still_on.version && !self.is_over(step));
        let stuck = self.forecast.stuck.iter().find(|stuck| is_of_pool(stuck, &self.pool.name));
        let is_stuck_then = stuck.filter(|stuck| stuck.since <= self.still_on.at && later.is_none());
        if let Some(Stuck { why, remedy, .. }) = is_stuck_then {
            reasons.push(Remains::Stuck { why: why.clone(), remedy: remedy.clone() });
            return;
        }
        let is_automatic = self.is_automatic();
        if !is_automatic && !self.must_move() {
            reasons.push(Remains::OptedOut);
        }
        if let Some((step, moved)) = later {
            reasons.push(Remains::MovesLater { window: step.time, to: moved.to.clone() });
        } else if is_automatic {
            reasons.push(self.without_target());
        }
        if reasons.is_empty() {
            reasons.push(Remains::NothingNewer);
        }
    }

    /// Whether Gardener updates the image without an expiration. The default is yes.
    fn is_automatic(&self) -> bool {
        let maintenance = self.shoot.shoot.spec.maintenance.as_ref();
        let auto = maintenance.and_then(|maintenance| maintenance.auto_update);
        auto.is_none_or(|auto| auto.machine_image_version != Some(false))
    }

    /// Whether the version has expired or is missing at the time.
    fn must_move(&self) -> bool {
        let image = self.catalog.image(self.still_on.image);
        let listed = image.and_then(|image| {
            image.versions.iter().map(|known| &known.listed).find(|listed| listed.text == self.still_on.version)
        });
        listed.is_none_or(|listed| listed.at(self.still_on.at) == Classification::Expired)
    }

    /// Why automatic updates find no target.
    fn without_target(&self) -> Remains {
        let spec = &self.shoot.shoot.spec;
        let kubelet = self.pool.kubernetes.version.as_ref().or(spec.kubernetes.version.as_ref());
        let kubelet = kubelet.and_then(|version| Version::parse(version).ok());
        let (Ok(fitting), Some(kubelet), Ok(current)) =
            (FittingVersions::new(self.catalog, self.pool), kubelet, Version::parse(self.still_on.version))
        else {
            return Remains::NothingNewer;
        };
        let in_place_from = self.pool.is_updated_in_place().then_some(self.still_on.version);
        let newer = fitting.at(&kubelet, in_place_from).map(|version| &version.listed);
        let newer = newer.filter(|listed| listed.version.as_ref().is_ok_and(|version| *version > current));
        let stages: Vec<Classification> = newer.map(|listed| listed.at(self.still_on.at)).collect();
        let is_target = |stage: &Classification| {
            matches!(stage, Classification::Supported | Classification::Deprecated | Classification::Unknown)
        };
        let is_coming = |stage: &Classification| matches!(stage, Classification::Preview | Classification::Unavailable);
        if stages.iter().any(is_target) {
            Remains::BeyondStrategy(fitting.image.strategy().to_owned())
        } else if stages.iter().any(is_coming) {
            Remains::PreviewOnly
        } else {
            Remains::NothingNewer
        }
    }
}

/// The moves of a pool's image.
fn moves_of<'f>(forecast: &'f Forecast, pool: &str) -> impl Iterator<Item = (&'f ForecastStep, &'f Move)> {
    let steps = forecast.steps.iter().flat_map(|step| step.moves.iter().map(move |moved| (step, moved)));
    steps.filter(move |(_, moved)| moved.image.is_some() && moved.pool.as_deref() == Some(pool))
}

/// Whether the image of a pool is stuck, or the whole Shoot.
fn is_of_pool(stuck: &Stuck, pool: &str) -> bool {
    match &stuck.pool {
        None => stuck.version.is_empty(),
        Some(name) => name == pool && stuck.image.is_some(),
    }
}

fn image_name(pool: &VersionedPool) -> Option<&str> {
    pool.machine.image.as_ref().map(|image| image.name.as_str())
}
