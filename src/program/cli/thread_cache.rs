//! The allocator's cache of freed memory for each thread. Commands allocate much and end soon, so they use it.

use tikv_jemalloc_ctl::{Access, AsName};

/// The allocator's setting for the current thread.
const SETTING: &[u8] = b"thread.tcache.enabled\0";

/// Lets the current thread keep freed memory for itself. Servers don't, so that memory returns to the system when Workers are
/// deleted (docs/dependencies.md#allocator).
pub(super) fn enable() {
    // Without the cache, or with another allocator, commands only take longer.
    let _ = SETTING.name().write(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enables_the_cache_of_this_thread() {
        SETTING.name().write(false).unwrap();
        enable();
        let is_enabled: bool = SETTING.name().read().unwrap();
        assert!(is_enabled);
    }
}
