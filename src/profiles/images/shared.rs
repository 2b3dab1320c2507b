//! Deduplicates values in memory, because thousands of images share a few flavors.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::record::{ImageRecord, Release};
use wire::api::gardener::Capabilities;

/// Minimum number of values for a clean-up. Unused values are dropped whenever the number has doubled since the last
/// clean-up.
const FEWEST: usize = 1024;

/// Deduplicated values of images.
#[derive(Debug, Default)]
pub struct Shared {
    facts: Values<Capabilities>,
    tags: Values<BTreeMap<String, String>>,
    releases: Values<Release>,
    regions: Values<BTreeSet<String>>,
}

impl Shared {
    /// Replaces the values of an image with shared ones.
    pub fn share(&mut self, image: &mut ImageRecord) {
        self.facts.share(&mut image.facts);
        self.facts.share(&mut image.attributes.shared);
        self.tags.share(&mut image.tags);
        image.release.iter_mut().for_each(|release| self.releases.share(release));
        image.replicated_to.iter_mut().for_each(|regions| self.regions.share(regions));
    }
}

/// Deduplicated values of one type.
#[derive(Debug)]
struct Values<T> {
    values: HashSet<Arc<T>>,
    clean_up_at: usize,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), clean_up_at: FEWEST }
    }
}

impl<T: Eq + Hash> Values<T> {
    fn share(&mut self, value: &mut Arc<T>) {
        if let Some(known) = self.values.get(value) {
            *value = Arc::clone(known);
            return;
        }
        if self.values.len() >= self.clean_up_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.clean_up_at = FEWEST.max(self.values.len().saturating_mul(2));
        }
        self.values.insert(Arc::clone(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_equal_values_and_drops_unused_ones() {
        let mut values = Values::default();
        let mut first = Arc::new("a".to_owned());
        let mut second = Arc::new("a".to_owned());
        values.share(&mut first);
        values.share(&mut second);
        assert!(Arc::ptr_eq(&first, &second));
        for number in 0..10 * FEWEST {
            values.share(&mut Arc::new(number.to_string()));
        }
        assert!(values.values.len() <= FEWEST, "{}", values.values.len());
        assert!(values.values.contains(&first));
    }
}
