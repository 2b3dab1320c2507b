//! Notices about versions of a shoot that must be updated: which ones, when, and to which version. They are for
//! conditions, metrics and warnings; `forecast` has the full details.

use std::fmt;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use wire::api::gardener::{AutoUpdate, ProfileSpec, VersionedShoot};

use super::catalog::{ListedVersion, VersionCatalog};
use super::declined_updates::DeclinedUpdate;
use super::expirations::Expirations;
use super::forecast::{Forecast, ForecastStep, Move, Stuck, forecast, remedy};
use super::garden::{Garden, Validation};
use super::maintenance::MaintainedShoot;
use super::run::{Cause, Update, UpdatedImage};
use super::target::{Candidate, NoTarget, Subject, target};

/// How far to look ahead, the same as `forecast`.
const YEAR: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Time within which every shoot has a complete window.
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// Maximum of pools times versions for a forecast: with this number, a forecast of a year takes some tenths of a
/// second.
const MAX_CHOICES: usize = 20_000;

/// The forecast of a shoot would take too long next to other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pools} pools and {versions} versions are too many for a forecast")]
pub struct TooLarge {
    /// Number of pools in the shoot.
    pub pools: usize,
    /// Number of versions of Kubernetes and images in its profile.
    pub versions: usize,
}

/// A version that must be updated within a year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `pool web` or `control plane`; empty if the notice is about a shoot or a profile as a whole.
    pub whose: String,
    /// The version, such as `gardenlinux 1592.9.0` or `Kubernetes 1.33.6`; empty if the whole shoot is stuck.
    pub version: String,
    /// Why it must be updated.
    pub reason: NoticeReason,
    /// The outcome of the forced update.
    pub end: NoticeEnd,
}

/// Why a version must be updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeReason {
    /// It expires at that time.
    Expires(Timestamp),
    /// It has expired at that time.
    Expired(Timestamp),
    /// Another reason, as text.
    Other(String),
}

/// The outcome of a forced update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeEnd {
    /// Maintenance updates to this version.
    Forced(String),
    /// No target version exists; has the remedy.
    Stuck(String),
}

/// The state of a pool's versions, for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolVersions {
    /// Name of the pool.
    pub pool: String,
    /// When its image expires.
    pub image_expires: Option<Timestamp>,
    /// When the Kubernetes version of its kubelets expires.
    pub kubernetes_expires: Option<Timestamp>,
    /// Whether an automatic update would find a newer version now, even if automatic updates are disabled.
    pub update_available: bool,
    /// A newer image, if the owner opted out of automatic updates and no update of the image is forced.
    pub declined_update: Option<DeclinedUpdate>,
    /// Since which window it is stuck, which may be in the future. Also set if the whole shoot is stuck.
    pub stuck: Option<Timestamp>,
}

/// The notices of a shoot in the order in which they take effect, after those that are stuck. Pure.
///
/// # Errors
/// If the shoot is too large for a forecast.
pub fn notices(shoot: &VersionedShoot, profile: &ProfileSpec, now: Timestamp) -> Result<Vec<Notice>, TooLarge> {
    check_size(shoot, profile)?;
    let catalog = VersionCatalog::new("", profile);
    Ok(of_forecast(&forecast_span(shoot.clone(), &catalog, [now, now + YEAR]), &catalog, now))
}

fn check_size(shoot: &VersionedShoot, profile: &ProfileSpec) -> Result<(), TooLarge> {
    let pools = shoot.spec.provider.workers.len();
    let of_images: usize = profile.machine_images.iter().map(|image| image.versions.len()).sum();
    let versions = profile.kubernetes.versions.len() + of_images;
    if (pools + 1).saturating_mul(versions) <= MAX_CHOICES { Ok(()) } else { Err(TooLarge { pools, versions }) }
}

/// The notices of a shoot and the state of its pools' versions. Pure.
///
/// # Errors
/// If the shoot is too large for a forecast.
pub fn notices_and_pools(
    shoot: &VersionedShoot,
    profile: &ProfileSpec,
    now: Timestamp,
) -> Result<(Vec<Notice>, Vec<PoolVersions>), TooLarge> {
    check_size(shoot, profile)?;
    let catalog = VersionCatalog::new("", profile);
    let ahead = forecast_span(shoot.clone(), &catalog, [now, now + YEAR]);
    let mut willing = shoot.clone();
    let both = AutoUpdate { kubernetes_version: true, machine_image_version: Some(true) };
    willing.spec.maintenance.get_or_insert_default().auto_update = Some(both);
    let next = forecast_span(willing, &catalog, [now, now + TWO_DAYS]);
    let pools = shoot.spec.provider.workers.iter().enumerate().map(|(position, pool)| {
        let kubernetes = pool.kubernetes.version.as_ref().or(shoot.spec.kubernetes.version.as_ref());
        let image = pool.machine.image.as_ref();
        let is_of_pool = |named: Option<&String>| match named {
            Some(name) => *name == pool.name,
            None => pool.kubernetes.version.is_none(),
        };
        let is_stuck =
            |stuck: &&Stuck| stuck.version.is_empty() && stuck.pool.is_none() || is_of_pool(stuck.pool.as_ref());
        let of_image = |moved: &Move| moved.image.is_some() && moved.pool.as_deref() == Some(pool.name.as_str());
        let is_forced = moves(&ahead).any(|(_, moved)| of_image(moved));
        let next_image = moves(&next).map(|(_, moved)| moved).find(|moved| of_image(moved));
        let selectable = if is_forced { None } else { next_image };
        PoolVersions {
            declined_update: DeclinedUpdate::of(shoot, position, selectable),
            pool: pool.name.clone(),
            image_expires: image.and_then(|image| catalog.expires(Some(&image.name), &image.version)),
            kubernetes_expires: kubernetes.and_then(|version| catalog.expires(None, version)),
            update_available: moves(&next).any(|(_, moved)| is_of_pool(moved.pool.as_ref())),
            stuck: ahead.stuck.iter().filter(is_stuck).map(|stuck| stuck.since).min(),
        }
    });
    let pools = pools.collect();
    Ok((of_forecast(&ahead, &catalog, now), pools))
}

fn forecast_span(mut shoot: VersionedShoot, catalog: &VersionCatalog<'_>, span: [Timestamp; 2]) -> Forecast {
    // Operations that are requested by annotations don't affect versions.
    shoot.metadata.annotations = None;
    shoot.apply_defaults();
    let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
    forecast(&MaintainedShoot { shoot, settings: None }, catalog, &garden, span)
}

fn moves(forecast: &Forecast) -> impl Iterator<Item = (&ForecastStep, &Move)> {
    forecast.steps.iter().flat_map(|step| step.moves.iter().map(move |moved| (step, moved)))
}

fn of_forecast(forecast: &Forecast, catalog: &VersionCatalog<'_>, now: Timestamp) -> Vec<Notice> {
    let version = |image: Option<&String>, version: &str| match image {
        _ if version.is_empty() => String::new(),
        image => named(image.map(String::as_str), version),
    };
    let reason = |image: Option<&String>, version: &str, otherwise: &dyn Fn() -> String| {
        let time = catalog.expires(image.map(String::as_str), version);
        time.map_or_else(|| NoticeReason::Other(otherwise()), |time| NoticeReason::at(time, now))
    };
    let whose = |pool: Option<&String>| pool.map_or("control plane".to_owned(), |pool| format!("pool {pool}"));
    let stuck = forecast.stuck.iter().map(|stuck| Notice {
        whose: if stuck.version.is_empty() { String::new() } else { whose(stuck.pool.as_ref()) },
        version: version(stuck.image.as_ref(), &stuck.version),
        reason: reason(stuck.image.as_ref(), &stuck.version, &|| stuck.why.clone()),
        end: NoticeEnd::Stuck(stuck.remedy.clone()),
    });
    let mut notices: Vec<Notice> = stuck.collect();
    for (_, moved) in moves(forecast).filter(|(_, moved)| moved.is_forced()) {
        let image = moved.image.as_ref();
        let missing = || "is not in the CloudProfile, or not for this pool".to_owned();
        notices.push(Notice {
            whose: whose(moved.pool.as_ref()),
            version: version(image, &moved.from),
            reason: match moved.cause {
                Cause::Missing => NoticeReason::Other(missing()),
                Cause::Expired | Cause::Automatic => reason(image, &moved.from, &missing),
            },
            end: NoticeEnd::Forced(moved.to.clone()),
        });
    }
    notices
}

/// Notices for the versions whose expiration differs from `old`, with the forced update of a pool that fits all
/// versions. Without `old`, these are all versions that expire. Returns at most `most` notices and the number of further
/// ones. Pure.
#[must_use]
pub fn notices_of_profile(
    profile: &ProfileSpec,
    old: Option<&Expirations>,
    now: Timestamp,
    most: usize,
) -> (Vec<Notice>, usize) {
    let catalog = VersionCatalog::new("", profile);
    let kubernetes = (None, Subject::Kubernetes, catalog.kubernetes.iter().collect());
    let images = catalog.images.iter().map(|image| {
        let name = image.image.name.as_str();
        let versions = image.versions.iter().map(|version| &version.listed);
        (Some(name), Subject::Image { name, strategy: image.strategy() }, versions.collect())
    });
    let mut notices = Vec::new();
    let mut more = 0;
    for (image, subject, versions) in std::iter::once(kubernetes).chain(images) {
        let versions: Vec<&ListedVersion<'_>> = versions;
        for listed in &versions {
            let Some(time) = listed.expires() else { continue };
            if old.is_some_and(|old| old.of(image, listed.text) == Some(time)) {
                continue;
            }
            if notices.len() == most {
                more += 1;
                continue;
            }
            let then = time.max(now) + SignedDuration::from_secs(1);
            let candidates: Vec<Candidate<'_>> =
                versions.iter().map(|listed| Candidate { listed, stage: listed.at(then) }).collect();
            let found = target(subject, &candidates, listed.text, true);
            notices.push(Notice {
                whose: String::new(),
                version: named(image, listed.text),
                reason: NoticeReason::at(time, now),
                end: end_of(found, subject, listed.text),
            });
        }
    }
    (notices, more)
}

fn end_of(found: Result<Option<&str>, NoTarget>, subject: Subject<'_>, from: &str) -> NoticeEnd {
    let error = match found {
        Ok(Some(to)) => return NoticeEnd::Forced(to.to_owned()),
        Ok(None) => NoTarget::Nothing { version: from.to_owned() },
        Err(error) => error,
    };
    let image = match subject {
        Subject::Kubernetes => None,
        Subject::Image { name, strategy } => {
            let [name, listed_name] = [name.to_owned(), name.to_owned()];
            Some(UpdatedImage { name, listed_name, strategy: strategy.to_owned() })
        }
    };
    let update = Update { image, from: from.to_owned(), to: Err(error.clone()), cause: Cause::Expired };
    NoticeEnd::Stuck(remedy(&update, &error))
}

fn named(image: Option<&str>, version: &str) -> String {
    format!("{} {version}", image.unwrap_or("Kubernetes"))
}

impl NoticeReason {
    fn at(time: Timestamp, now: Timestamp) -> Self {
        if time < now { Self::Expired(time) } else { Self::Expires(time) }
    }
}

impl Notice {
    /// Whether no target version exists.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        matches!(self.end, NoticeEnd::Stuck(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { whose, version, reason, end } = self;
        if !whose.is_empty() {
            write!(formatter, "{whose}: ")?;
        }
        if !version.is_empty() {
            write!(formatter, "{version} ")?;
        }
        if let (NoticeReason::Other(why), NoticeEnd::Stuck(remedy)) = (reason, end)
            && !version.is_empty()
        {
            return write!(formatter, "is stuck: {why}. {remedy}");
        }
        let day = |time: &Timestamp| time.to_zoned(TimeZone::UTC).date();
        match reason {
            NoticeReason::Expires(time) => write!(formatter, "expires on {}", day(time))?,
            NoticeReason::Expired(time) => write!(formatter, "expired on {}", day(time))?,
            NoticeReason::Other(text) => formatter.write_str(text)?,
        }
        formatter.write_str(if matches!(reason, NoticeReason::Expires(_)) { ", then " } else { ": " })?;
        match end {
            NoticeEnd::Forced(to) => write!(formatter, "forced to {to}"),
            NoticeEnd::Stuck(remedy) => write!(formatter, "stuck. {remedy}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn profile() -> ProfileSpec {
        let profile = json!({
            "type": "azure",
            "kubernetes": {"versions": [
                {"version": "1.34.5"}, {"version": "1.33.6", "expirationDate": "2026-05-01T00:00:00Z"},
                {"version": "1.31.9", "expirationDate": "2026-01-15T00:00:00Z"},
            ]},
            "machineTypes": [{"name": "m", "architecture": "amd64"}],
            "machineImages": [{"name": "os", "updateStrategy": "major", "versions": [
                {"version": "2.0.0", "architectures": ["amd64"], "cri": [{"name": "containerd"}]},
                {"version": "1.0.0", "expirationDate": "2026-04-01T00:00:00Z", "architectures": ["amd64"], "cri": [{"name": "containerd"}]},
                {"version": "3.0.0", "expirationDate": "2026-06-15T00:00:00Z", "architectures": ["amd64"], "cri": [{"name": "containerd"}]},
            ]}],
        });
        serde_json::from_str(&profile.to_string()).unwrap()
    }

    fn shoot(kubernetes: &str, pools: Value, automatic: bool) -> VersionedShoot {
        let shoot = json!({
            "metadata": {"name": "s", "namespace": "garden-p"},
            "spec": {
                "kubernetes": {"version": kubernetes},
                "credentialsBindingName": "c",
                "maintenance": {
                    "autoUpdate": {"kubernetesVersion": automatic, "machineImageVersion": automatic},
                    "timeWindow": {"begin": "220000+0100", "end": "230000+0100"},
                },
                "provider": {"workers": pools},
            },
        });
        serde_json::from_str(&shoot.to_string()).unwrap()
    }

    fn pool(name: &str, version: &str) -> Value {
        json!({"name": name, "machine": {"type": "m", "image": {"name": "os", "version": version}, "architecture": "amd64"}})
    }

    fn notices_of(shoot: &VersionedShoot) -> Vec<String> {
        notices(shoot, &profile(), "2026-02-01T12:00:00Z".parse().unwrap())
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn notices_name_what_expires_and_where_that_leads() {
        assert_eq!(notices_of(&shoot("1.34.5", json!([pool("a", "2.0.0")]), false)), [""; 0]);
        assert_eq!(
            notices_of(&shoot("1.33.6", json!([pool("web", "1.0.0")]), false)),
            [
                "pool web: os 3.0.0 expires on 2026-06-15, then stuck. The CloudProfile needs a version of os above 3.0.0 \
                 that fits the pool and is neither preview nor expired; or the pool moves to another image",
                "pool web: os 1.0.0 expires on 2026-04-01, then forced to 3.0.0",
                "control plane: Kubernetes 1.33.6 expires on 2026-05-01, then forced to 1.34.5",
            ]
        );
        let behind = notices_of(&shoot("1.31.9", json!([pool("a", "0.9.0")]), false));
        assert!(behind[0].starts_with("control plane: Kubernetes 1.31.9 expired on 2026-01-15: stuck. The"));
        let unknown = notices_of(&shoot("1.34.9", json!([]), false));
        let stuck =
            "control plane: Kubernetes 1.34.9 is stuck: the CloudProfile does not have it. The CloudProfile needs";
        assert!(unknown[0].starts_with(stuck), "{unknown:?}");
        assert!(
            behind.iter().any(
                |text| text == "pool a: os 0.9.0 is not in the CloudProfile, or not for this pool: forced to 3.0.0"
            )
        );
    }

    #[test]
    fn a_notice_stays_in_the_same_words_from_day_to_day() {
        let shoot = shoot("1.31.9", json!([pool("a", "1.0.0")]), false);
        let at = |day: &str| {
            let now: Timestamp = format!("{day}T12:00:00Z").parse().unwrap();
            notices(&shoot, &profile(), now)
        };
        assert_eq!(at("2026-02-01"), at("2026-03-20"), "or each day would write it anew");
    }

    #[test]
    fn the_versions_of_pools_are_numbers_too() {
        let own =
            json!({"name": "own", "kubernetes": {"version": "1.31.9"}, "machine": pool("own", "3.0.0")["machine"]});
        let now: Timestamp = "2026-02-01T12:00:00Z".parse().unwrap();
        let time = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let (_, pools) =
            notices_and_pools(&shoot("1.33.6", json!([pool("a", "2.0.0"), own]), false), &profile(), now).unwrap();
        let requested = |pool: &str| PoolVersions { pool: pool.to_owned(), ..PoolVersions::default() };
        let [a, own] = &pools[..] else { panic!("{pools:?}") };
        let kubernetes_expires = time("2026-05-01T00:00:00Z");
        let declined_update = a.declined_update.clone();
        let declined = declined_update.as_ref().unwrap();
        assert_eq!((declined.from.as_str(), declined.to.as_str()), ("2.0.0", "3.0.0"));
        let target_of_a =
            PoolVersions { kubernetes_expires, update_available: true, declined_update, ..requested("a") };
        assert_eq!(*a, target_of_a, "3.0.0 is there, although nobody wants it automatically");
        let target_of_own = PoolVersions {
            image_expires: time("2026-06-15T00:00:00Z"),
            kubernetes_expires: time("2026-01-15T00:00:00Z"),
            stuck: time("2026-02-01T21:00:00Z"),
            ..requested("own")
        };
        assert_eq!(*own, target_of_own);
    }

    #[test]
    fn opted_out_pools_name_the_newer_image() {
        let now: Timestamp = "2026-02-01T12:00:00Z".parse().unwrap();
        let declined = |shoot: &VersionedShoot| -> Vec<Option<String>> {
            let (_, pools) = notices_and_pools(shoot, &profile(), now).unwrap();
            pools.iter().map(|pool| pool.declined_update.as_ref().map(ToString::to_string)).collect()
        };
        let pools = json!([pool("old", "1.0.0"), pool("web", "2.0.0"), pool("new", "3.0.0")]);
        let opted_out = declined(&shoot("1.34.5", pools.clone(), false));
        let command = "kubectl -n garden-p patch shoot s --type json -p \
            '[{\"op\":\"test\",\"path\":\"/spec/provider/workers/1/name\",\"value\":\"web\"},\
            {\"op\":\"replace\",\"path\":\"/spec/provider/workers/1/machine/image/version\",\"value\":\"3.0.0\"}]'";
        let text = format!(
            "pool web: os 3.0.0 is available after 2.0.0, and automatic updates are off; to take it: {command}"
        );
        assert_eq!(opted_out, [None, Some(text), None], "the first is forced, and the last has the newest version");
        assert_eq!(declined(&shoot("1.34.5", pools, true)), [None, None, None]);
        let hostile = declined(&shoot("1.34.5", json!([pool("a'; rm -rf", "2.0.0")]), false));
        assert!(hostile[0].as_ref().unwrap().ends_with("automatic updates are off"), "{hostile:?}");
    }

    #[test]
    fn a_hostile_size_is_refused_at_once() {
        let mut profile = profile();
        profile.machine_images[0].versions = vec![profile.machine_images[0].versions[0].clone(); 5_000];
        let pools = (0..10).map(|number| pool(&format!("p{number}"), "1.0.0")).collect();
        let refused = notices(&shoot("1.33.6", pools, false), &profile, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(refused.to_string(), "10 pools and 5003 versions are too many for a forecast");
    }

    #[test]
    fn warns_of_newly_expiring_versions_in_a_profile() {
        let now: Timestamp = "2026-02-01T12:00:00Z".parse().unwrap();
        let of_change = |new: &ProfileSpec, old: Option<&ProfileSpec>| -> Vec<String> {
            let old = old.map(Expirations::from);
            notices_of_profile(new, old.as_ref(), now, 9).0.iter().map(ToString::to_string).collect()
        };
        let old = profile();
        let mut new = profile();
        assert_eq!(of_change(&new, Some(&old)), [""; 0]);
        assert_eq!(of_change(&new, None).len(), 4);
        new.machine_images[0].versions[0].expiration_date = Some("2026-03-01T00:00:00Z".to_owned());
        new.kubernetes.versions[0].expiration_date = Some("2026-01-01T00:00:00Z".to_owned());
        assert_eq!(
            of_change(&new, Some(&old)),
            [
                "Kubernetes 1.34.5 expired on 2026-01-01: stuck. The CloudProfile needs a version 1.35.x that is no \
                 preview: control planes and pools go from minor to minor",
                "os 2.0.0 expires on 2026-03-01, then forced to 3.0.0",
            ]
        );
    }
}
