//! From one landscape to the next: what has stood the test of time there.

use jiff::{SignedDuration, Timestamp};

use super::lock::{Cause, Change, Lock, LockedImage};
use super::resolution::FlavorKey;

/// What a promotion does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The lock of the landscape that is promoted to, afterwards.
    pub lock: Lock,
    /// What differs from before.
    pub changes: Vec<Change>,
    /// What the first landscape has not had for long enough.
    pub too_young: Vec<(FlavorKey, LockedImage)>,
}

/// Moves to a landscape the images that another one has had for this number of days. What only the later one has stays.
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
