//! Alternatives for a pool without a fitting image: other images for its machine type, or other machine types for its
//! image.

use std::cmp::Reverse;

use super::machine_type;
use super::selection::{ImageSelection, WorkerImages};
use crate::provider::explanation::{Fitting, ImageCandidate, ImageExplanation, NamedImage};
use wire::api::bounded_text::{Bound, named};
use wire::api::gardener::{Capabilities, MachineImage, WorkerPool};
use wire::api::gotext::version::Version;
use wire::capabilities::{FlavorVerdict, best_flavor};

/// Maximum number of images in an error.
const FITTING: Bound = Bound { items: 3, bytes: 200 };

impl WorkerImages<'_> {
    /// Explains which image a pool gets and why, with alternatives if none fits.
    #[must_use]
    pub fn explain(&self, pool: &WorkerPool) -> ImageExplanation {
        let ImageSelection { selected, mut explanation } = self.select(pool);
        if selected.is_err() {
            explanation.nearest_miss = nearest_miss(&explanation.candidates);
            explanation.fitting =
                Some(Fitting { images: self.fitting_images(pool), machine_types: self.fitting_machine_types(pool) });
        }
        explanation
    }

    /// Other images of the CloudProfile that fit, versions of the same image first.
    fn fitting_images(&self, pool: &WorkerPool) -> Vec<NamedImage> {
        let target = &pool.machine_image;
        let Ok(machine_type) = machine_type(&self.context, pool) else { return Vec::new() };
        let machine = self.capabilities_of(machine_type, pool);
        let mut fitting: Vec<NamedImage> = Vec::new();
        for listed in self.config.iter().flat_map(|config| config.images()) {
            let image = MachineImage { name: listed.image.to_owned(), version: listed.version.to_owned() };
            let known = fitting.iter().any(|known| known.name == image.name && known.version == image.version);
            if !known && image != *target && self.is_in_profile(pool, &image, &machine) {
                fitting.push(image.into());
            }
        }
        // The sort is stable, so both groups keep the order of the CloudProfile.
        fitting.sort_by_key(|image| image.name != target.name);
        fitting
    }

    /// The newest images that fit, for an error: versions of the same image without its name.
    pub(super) fn fitting_text(&self, pool: &WorkerPool) -> String {
        let mut fitting = self.fitting_images(pool);
        let is_other = |image: &NamedImage| image.name != pool.machine_image.name;
        fitting.sort_by_key(|image| (is_other(image), Reverse(Version::parse(&image.version).ok())));
        let text = |image: &NamedImage| match is_other(image) {
            true => format!("{} {}", image.name, image.version),
            false => image.version.clone(),
        };
        let texts: Vec<String> = fitting.iter().map(text).collect();
        named(&texts, FITTING)
    }

    fn fitting_machine_types(&self, pool: &WorkerPool) -> Vec<String> {
        let types = self.context.cloud_profile.spec.machine_types.iter();
        let others = types.filter(|machine_type| machine_type.name != pool.machine_type);
        let fitting = others.filter(|machine_type| {
            self.is_in_profile(pool, &pool.machine_image, &self.capabilities_of(machine_type, pool))
        });
        fitting.map(|machine_type| machine_type.name.clone()).collect()
    }

    /// Whether the CloudProfile has a fitting image for a machine.
    fn is_in_profile(&self, pool: &WorkerPool, image: &MachineImage, machine: &Capabilities) -> bool {
        let flavors = self.flavors_for_pool(pool, image);
        best_flavor(machine, &self.definitions, &flavors, |flavor| &*flavor.capabilities).is_ok()
    }
}

/// The first candidate that misses the fewest capabilities.
fn nearest_miss(candidates: &[ImageCandidate]) -> Option<usize> {
    let missed = candidates.iter().enumerate().filter_map(|(position, candidate)| match &candidate.verdict {
        FlavorVerdict::Rejected { mismatches } => Some((mismatches.len(), position)),
        _ => None,
    });
    missed.min().map(|(_, position)| position)
}
