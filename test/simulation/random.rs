//! Chance that follows from a seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Random numbers, always the same ones for the same seed. Clones continue the same row.
#[derive(Clone)]
pub(crate) struct Random(Arc<Mutex<u64>>);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// Any number (splitmix64).
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// Whether something happens that happens so many times in a thousand.
    pub(crate) fn happens(&self, in_a_thousand: u64) -> bool {
        in_a_thousand > 0 && self.below(1000) < in_a_thousand
    }

    /// A time between these, in milliseconds.
    pub(crate) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to.saturating_sub(from) + 1))
    }

    /// One of these.
    pub(crate) fn one_of<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(u64::try_from(all.len()).unwrap_or(1))).unwrap_or_default();
        all.get(index)
    }
}
