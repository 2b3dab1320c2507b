//! Counts images, lookups and selections by state.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::Objects;
use super::discovery::last_run;
use super::image::{GONE, ImageObject};
use crate::images::record::ImageState;
use wire::api::image_objects::ImageLookup;

/// Counts over all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageNumbers {
    /// Number of images by state.
    pub images: [(State, i64); State::ALL.len()],
    /// Number of versions in selections that have a newer image.
    pub upgrades: i64,
    /// Lookups whose current generation was processed, with the time since when they fail.
    pub lookups: Vec<(String, Option<Timestamp>)>,
    /// Last responses for lookups that use a cloud, according to their status.
    pub live: BTreeMap<String, Timestamp>,
}

/// State of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Machines can start from it.
    #[default]
    Available,
    /// Machines can start from it, but its owner has deprecated it.
    Deprecated,
    /// Machines can't start from it.
    Unavailable,
    /// No source lists it any more, but it is in use.
    Gone,
    /// The object can't be decoded.
    Invalid,
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Available, Self::Deprecated, Self::Unavailable, Self::Gone, Self::Invalid];

    /// Name of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Deprecated => "deprecated",
            Self::Unavailable => "unavailable",
            Self::Gone => "gone",
            Self::Invalid => "invalid",
        }
    }

    fn of(image: &ImageObject, now: Timestamp) -> Self {
        match &image.record {
            Err(_) => Self::Invalid,
            Ok(record) => match &record.state {
                ImageState::Unavailable(word) if word == GONE => Self::Gone,
                ImageState::Unavailable(_) => Self::Unavailable,
                ImageState::Available if record.is_deprecated(now) => Self::Deprecated,
                ImageState::Available => Self::Available,
            },
        }
    }
}

impl Objects {
    /// Counts all objects.
    #[must_use]
    pub fn numbers(&self, now: Timestamp) -> ImageNumbers {
        let mut images = State::ALL.map(|state| (state, 0));
        for image in &self.images {
            let state = State::of(image, now);
            images.iter_mut().filter(|(known, _)| *known == state).for_each(|(_, count)| *count += 1);
        }
        let upgrades = self.selections.iter().map(|selection| selection.status.upgrades.len()).sum::<usize>();
        let was_run = |lookup: &&Arc<ImageLookup>| {
            lookup.metadata.generation.unwrap_or_default() == lookup.status.observed_generation
        };
        let lookup = |lookup: &Arc<ImageLookup>| {
            let since = lookup.status.failing_since.as_ref().and_then(|since| since.parse().ok());
            (lookup.metadata.name.clone().unwrap_or_default(), since)
        };
        let live = self.lookups.iter().filter(|lookup| lookup.spec.ec2.is_some());
        let completed = |lookup: &Arc<ImageLookup>| Some((lookup.metadata.name.clone()?, last_run(&lookup.status)?));
        ImageNumbers {
            images,
            live: live.filter_map(completed).collect(),
            upgrades: i64::try_from(upgrades).unwrap_or(i64::MAX),
            lookups: self.lookups.iter().filter(was_run).map(lookup).collect(),
        }
    }
}
