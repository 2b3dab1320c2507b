//! Jitter for backoff, so that clients that fail together don't retry together. Not cryptographic.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
}

/// A random number from 0 to 0.5.
pub fn random_half() -> f64 {
    let random = STATE.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    STATE.set(random);
    f64::from(u16::try_from((random >> 33) % 1000).unwrap_or_default()) / 2000.0
}

/// Makes the random numbers of this thread deterministic.
#[cfg(feature = "simulation")]
pub fn seed(seed: u64) {
    STATE.set(seed);
}
