//! A gauge metric for short-lived objects. A tree releases the memory of removed series; a `Family` of
//! `prometheus_client` is a hash map that keeps the capacity of its peak.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// Values by labels.
#[derive(Debug)]
pub(crate) struct Gauges<Labels>(Arc<Mutex<BTreeMap<Labels, i64>>>);

impl<Labels: Ord> Gauges<Labels> {
    /// Sets the value for these labels; `None` removes the series.
    pub(crate) fn set(&self, labels: Labels, number: Option<i64>) {
        match number {
            Some(number) => drop(self.numbers().insert(labels, number)),
            None => drop(self.numbers().remove(&labels)),
        }
    }

    /// Replaces all series.
    pub(crate) fn replace(&self, series: impl Iterator<Item = (Labels, i64)>) {
        *self.numbers() = series.collect();
    }
}

impl<Labels> Gauges<Labels> {
    fn numbers(&self) -> MutexGuard<'_, BTreeMap<Labels, i64>> {
        self.0.lock()
    }
}

impl<Labels> Default for Gauges<Labels> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<Labels> Clone for Gauges<Labels> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Labels: EncodeLabelSet + Debug> EncodeMetric for Gauges<Labels> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (labels, number) in &*self.numbers() {
            encoder.encode_family(labels)?.encode_gauge(number)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.numbers().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_metric_without_series_is_not_there() {
        let gauges = Gauges::<Vec<(String, String)>>::default();
        let mut registry = Registry::default();
        registry.register("pools", "Pools", gauges.clone());
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        assert_eq!(text(), "# EOF\n");
        gauges.set(vec![("state".to_owned(), "ready".to_owned())], Some(3));
        assert!(text().contains("pools{state=\"ready\"} 3"), "{}", text());
    }
}
