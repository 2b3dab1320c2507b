//! Metrics of the image controllers (docs/metrics.md). Operators create only a few lookups; the series of a lookup
//! are removed with it.

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use profiles::images::objects::numbers::ImageNumbers;

/// Maximum number of lookups that have series.
const MOST_LOOKUPS: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLookup {
    lookup: String,
}

/// Metrics of the objects for images.
#[derive(Default)]
pub(crate) struct ImageMetrics {
    images: Family<OfState, Gauge>,
    upgrades: Gauge,
    failing_since: Family<OfLookup, Gauge>,
    last_success: Family<OfLookup, Gauge>,
    /// Lookups that have series.
    lookups: Mutex<Vec<String>>,
}

impl ImageMetrics {
    /// Registers all metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("machine_images", "MachineImages by state", self.images.clone());
        let help = "Versions of ImageSelections for which a newer image is known";
        registry.register("image_upgrades_available", help, self.upgrades.clone());
        let help = "Since when an ImageLookup fails; absent while it does not";
        registry.register("image_lookup_failing_since_timestamp", help, self.failing_since.clone());
        let help = "When the sources were last checked for an ImageLookup without an error";
        registry.register("image_lookup_last_success_timestamp", help, self.last_success.clone());
    }

    /// Sets all metrics. `checked` returns when the sources of a lookup were last checked.
    pub(crate) fn set(&self, numbers: &ImageNumbers, checked: impl Fn(&str) -> Timestamp) {
        for (state, number) in numbers.images {
            self.images.get_or_create(&OfState { state: state.as_str() }).set(number);
        }
        self.upgrades.set(numbers.upgrades);
        let lookups = &numbers.lookups[..numbers.lookups.len().min(MOST_LOOKUPS)];
        for (lookup, failing_since) in lookups {
            let labels = OfLookup { lookup: lookup.clone() };
            match failing_since {
                Some(since) => drop(self.failing_since.get_or_create(&labels).set(since.as_second())),
                None => {
                    self.failing_since.remove(&labels);
                    self.last_success.get_or_create(&labels).set(checked(lookup).as_second());
                }
            }
        }
        let names = lookups.iter().map(|(lookup, _)| lookup.clone()).collect();
        let before = std::mem::replace(&mut *self.cached(), names);
        for lookup in before.into_iter().filter(|cached| lookups.iter().all(|(lookup, _)| lookup != cached)) {
            let labels = OfLookup { lookup };
            self.failing_since.remove(&labels);
            self.last_success.remove(&labels);
        }
    }

    fn cached(&self) -> MutexGuard<'_, Vec<String>> {
        self.lookups.lock()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn series_of_a_lookup_go_with_it() {
        let metrics = ImageMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let series = |name: &str| {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect::<Vec<_>>()
        };
        let numbers = |lookups: &[(&str, Option<Timestamp>)]| ImageNumbers {
            lookups: lookups.iter().map(|(name, since)| ((*name).to_owned(), *since)).collect(),
            ..ImageNumbers::default()
        };
        let at = Timestamp::constant;
        metrics.set(&numbers(&[("a", None), ("b", Some(at(5, 0)))]), |_| at(7, 0));
        assert_eq!(series("image_lookup_last"), ["image_lookup_last_success_timestamp{lookup=\"a\"} 7"]);
        assert_eq!(series("image_lookup_failing"), ["image_lookup_failing_since_timestamp{lookup=\"b\"} 5"]);
        metrics.set(&numbers(&[("b", None)]), |_| at(9, 0));
        assert_eq!(series("image_lookup_last"), ["image_lookup_last_success_timestamp{lookup=\"b\"} 9"]);
        assert!(series("image_lookup_failing").is_empty());
        let many: Vec<(String, Option<Timestamp>)> = (0..1000).map(|number| (number.to_string(), None)).collect();
        metrics.set(&ImageNumbers { lookups: many, ..ImageNumbers::default() }, |_| at(9, 0));
        assert_eq!(series("image_lookup_last").len(), MOST_LOOKUPS);
    }
}
