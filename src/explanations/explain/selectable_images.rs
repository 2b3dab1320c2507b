//! Selects the images that the owner of a pool can choose, with their classification.

use k8s_openapi::jiff::Timestamp;

use super::Explanation;
use decisions::provider::explanation::NamedImage;
use profiles::versions::selectable::selectable;
use wire::api::gardener::ProfileImage;

impl Explanation {
    /// Keeps the fitting images that can be selected at the time `now`, the best of each name first, according to
    /// core's half of the CloudProfile. If that lists no images, all are kept.
    pub fn keep_selectable(&mut self, listed: &[ProfileImage], now: Timestamp) {
        if listed.is_empty() {
            return;
        }
        for pool in &mut self.pools {
            let required = &pool.image.name;
            let Some(fitting) = &mut pool.image.fitting else { continue };
            let (same, others): (Vec<_>, Vec<_>) = listed.iter().partition(|image| image.name == *required);
            let best = same.into_iter().chain(others).flat_map(|image| {
                selectable(&image.versions, now).into_iter().map(move |(version, classification)| NamedImage {
                    name: image.name.clone(),
                    version: version.version.clone(),
                    classification: Some(classification),
                })
            });
            let would_fit = std::mem::take(&mut fitting.images);
            let is_fitting = |image: &NamedImage| {
                would_fit.iter().any(|fitting| (&fitting.name, &fitting.version) == (&image.name, &image.version))
            };
            fitting.images = best.filter(is_fitting).collect();
        }
    }
}
