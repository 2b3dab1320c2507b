//! Which stage of its life a version of an image or of Kubernetes is in.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::api::gardener::{ExpirableVersion, LifecycleStage, ProfileImageVersion};

/// A stage in the life of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Classification {
    /// For trying out.
    Preview,
    /// For everybody.
    #[default]
    Supported,
    /// Still works, shall be left.
    Deprecated,
    /// Not for new pools; pools that have it are moved away.
    Expired,
    /// Its first stage has not begun.
    Unavailable,
    /// A word that Gardener does not know; such a version can be used.
    Unknown,
}

impl Classification {
    /// How profiles write it.
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

    /// The stage that a profile names.
    #[must_use]
    pub fn of(word: &str) -> Self {
        let known = [Self::Preview, Self::Supported, Self::Deprecated, Self::Expired, Self::Unavailable];
        known.into_iter().find(|known| known.word() == word).unwrap_or(Self::Unknown)
    }

    /// Whether new pools may have it.
    #[must_use]
    pub fn is_active(self) -> bool {
        !matches!(self, Self::Expired | Self::Unavailable)
    }
}

/// The life of a version, written in one of two ways; with both, the stages count alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Life<'a> {
    /// The older way: its stage …
    pub classification: Option<&'a str>,
    /// … and when it expires, RFC 3339.
    pub expiration_date: Option<&'a str>,
    /// The newer way: every stage with its start.
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
    /// Its stages in list order, each with its start; one without start has begun.
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

    /// The stage at a moment. Of the stages that have begun the last in the list counts, whatever their times say.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Classification {
        let began = |start: Option<&str>| start.is_none_or(|start| time(start).is_some_and(|start| start < now));
        let reached = self.stages().filter(|(start, _)| began(*start)).last();
        reached.map_or(Classification::Unavailable, |(_, stage)| stage)
    }

    /// When it expires or has expired, where a moment is given.
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
