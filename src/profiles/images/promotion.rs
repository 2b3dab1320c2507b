//! Promotes images that are proven in one landscape to the next.

use jiff::{SignedDuration, Timestamp};

use super::lock::{Cause, Change, Lock, LockedImage};
use super::resolution::FlavorKey;

/// Result of a promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The new lock of the target landscape.
    pub lock: Lock,
    /// Changes to that lock.
    pub changes: Vec<Change>,
    /// Images that the source landscape has not had for long enough.
    pub too_young: Vec<(FlavorKey, LockedImage)>,
}

/// Moves images to a landscape that another one has had for this number of days. Flavors that only the target has
/// stay unchanged.
#[must_use]
pub fn promote(from: &Lock, to: &Lock, days: u16, now: Timestamp) -> Promotion {
    let old_enough = now - SignedDuration::from_hours(24 * i64::from(days));
    let differs = |(key, image): &(&FlavorKey, &LockedImage)| {
        to.images.get(key).is_none_or(|known| known.reference != image.reference)
    };
    let (old, young): (Vec<_>, Vec<_>) =
        from.images.iter().filter(differs).partition(|(_, image)| image.locked <= old_enough);
    let change = |(key, image): (&FlavorKey, &LockedImage)| Change {
        key: key.clone(),
        before: to.images.get(key).cloned(),
        after: LockedImage { locked: now, ..image.clone() },
        cause: Cause::Promoted,
    };
    let changes: Vec<Change> = old.into_iter().map(change).collect();
    let mut lock = to.clone();
    lock.apply(&changes);
    let too_young = young.into_iter().map(|(key, image)| (key.clone(), image.clone())).collect();
    Promotion { lock, changes, too_young }
}
