//! Lifecycle stages of image and Kubernetes versions.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::api::gardener::{ExpirableVersion, LifecycleStage, ProfileImageVersion};

/// A lifecycle stage of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Classification {
    /// For testing only.
    Preview,
    /// For general use.
    #[default]
    Supported,
    /// Usable, but should be replaced.
    Deprecated,
    /// Not available to new pools; existing pools are updated.
    Expired,
    /// Not available before its first stage.
    Unavailable,
    /// Unknown to Gardener; the version can be used.
    Unknown,
}

impl Classification {
    /// The spelling in profiles.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Preview => "preview",
            Self::Supported => "supported",
            Self::Deprecated => "deprecated",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
            Self::Unknown => "",
        }
    }

    /// Parses the spelling in profiles.
    #[must_use]
    pub fn of(word: &str) -> Self {
        let known = [Self::Preview, Self::Supported, Self::Deprecated, Self::Expired, Self::Unavailable];
        known.into_iter().find(|known| known.word() == word).unwrap_or(Self::Unknown)
    }

    /// Whether new pools may use the version.
    #[must_use]
    pub fn is_active(self) -> bool {
        !matches!(self, Self::Expired | Self::Unavailable)
    }
}

/// The lifecycle of a version in one of two formats. If both are set, only the stages are used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Life<'a> {
    /// The older format: the current stage …
    pub classification: Option<&'a str>,
    /// … and the expiration time (RFC 3339).
    pub expiration_date: Option<&'a str>,
    /// The newer format: every stage with its start.
    pub stages: &'a [LifecycleStage],
}

macro_rules! life_of {
    ($($version:ty),*) => {$(
        impl<'a> From<&'a $version> for Life<'a> {
            fn from(version: &'a $version) -> Self {
                Self {
                    classification: version.classification.as_deref(),
                    expiration_date: version.expiration_date.as_deref(),
                    stages: &version.lifecycle,
                }
            }
        }
    )*};
}

life_of!(ExpirableVersion, ProfileImageVersion);

impl<'a> Life<'a> {
    /// The stages in list order with their start; a stage without a start has begun.
    pub fn stages(&self) -> impl Iterator<Item = (Option<&'a str>, Classification)> + use<'a> {
        let listed =
            self.stages.iter().map(|stage| (stage.start_time.as_deref(), Classification::of(&stage.classification)));
        let older = self.stages.is_empty().then_some((self.classification, self.expiration_date));
        let older = older.into_iter().flat_map(|(classification, expiration_date)| {
            let first = classification.map_or(Classification::Supported, Classification::of);
            let end = expiration_date.map(|date| (Some(date), Classification::Expired));
            std::iter::once((None, first)).chain(end)
        });
        listed.chain(older)
    }

    /// The stage at a time: the last one in the list that has begun, even if start times are not sorted.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Classification {
        let began = |start: Option<&str>| start.is_none_or(|start| time(start).is_some_and(|start| start < now));
        let reached = self.stages().filter(|(start, _)| began(*start)).last();
        reached.map_or(Classification::Unavailable, |(_, stage)| stage)
    }

    /// The expiration time, past or future, if there is one.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        if self.stages.is_empty() {
            return self.expiration_date.and_then(time);
        }
        let last = self.stages.iter().find(|stage| stage.classification == Classification::Expired.word())?;
        last.start_time.as_deref().and_then(time)
    }
}

fn time(rfc3339: &str) -> Option<Timestamp> {
    rfc3339.parse().ok()
}
