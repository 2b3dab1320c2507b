//! Random numbers determined by a seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A random number generator. Clones share its state.
#[derive(Clone)]
pub(crate) struct Random(Arc<Mutex<u64>>);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// A random number (splitmix64).
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// True with this probability in a thousand.
    pub(crate) fn happens(&self, in_a_thousand: u64) -> bool {
        in_a_thousand > 0 && self.below(1000) < in_a_thousand
    }

    /// A duration in this range, in milliseconds.
    pub(crate) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to.saturating_sub(from) + 1))
    }

    /// One of the items.
    pub(crate) fn one_of<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(u64::try_from(all.len()).unwrap_or(1))).unwrap_or_default();
        all.get(index)
    }
}
