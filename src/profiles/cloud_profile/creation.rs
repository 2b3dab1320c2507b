//! Rules for the creation of a profile. Before validation, Gardener removes Kubernetes versions that are expired or not
//! yet available, and expired image versions. So the result differs from that of a change.

use jiff::Timestamp;

use super::validation::{FeatureGates, validate_profile};
use wire::api::gardener::ProfileSpec;
use wire::api::gotext::field::{FieldError, FieldErrors};
use wire::capabilities::{Classification, Life};

/// Validates the core fields of a new profile, with error positions as in `spec`.
#[must_use]
pub fn validate_creation(spec: &ProfileSpec, gates: FeatureGates, now: Timestamp) -> FieldErrors {
    let mut stored = spec.clone();
    let kept = leave_out(&mut stored, now);
    let errors = validate_profile(&stored, gates, now).0.into_iter();
    let original = errors.map(|error| FieldError { field: kept.original(&error.field), ..error });
    FieldErrors::from(original.collect::<Vec<_>>())
}

/// Removes the versions that Gardener does not store when a profile is created.
pub fn leave_out_inactive(spec: &mut ProfileSpec, now: Timestamp) {
    leave_out(spec, now);
}

/// The original positions of the remaining versions.
struct Kept {
    kubernetes: Vec<usize>,
    images: Vec<Vec<usize>>,
}

fn leave_out(spec: &mut ProfileSpec, now: Timestamp) -> Kept {
    let kubernetes = retain(&mut spec.kubernetes.versions, |version| Life::from(version).at(now).is_active());
    let images = spec
        .machine_images
        .iter_mut()
        .map(|image| retain(&mut image.versions, |version| Life::from(version).at(now) != Classification::Expired));
    Kept { kubernetes, images: images.collect() }
}

/// Filters items and returns the original positions of the remaining ones.
fn retain<Item>(items: &mut Vec<Item>, is_kept: impl Fn(&Item) -> bool) -> Vec<usize> {
    let kept = items.iter().enumerate().filter(|(_, item)| is_kept(item)).map(|(position, _)| position).collect();
    items.retain(is_kept);
    kept
}

impl Kept {
    fn original(&self, field: &str) -> String {
        let moved = |prefix: &str, positions: &[usize]| -> Option<String> {
            let (index, rest) = field.strip_prefix(prefix)?.split_once(']')?;
            let position = positions.get(index.parse::<usize>().ok()?)?;
            Some(format!("{prefix}{position}]{rest}"))
        };
        let of_images = self.images.iter().enumerate();
        let mut of_images =
            of_images.filter_map(|(image, kept)| moved(&format!("spec.machineImages[{image}].versions["), kept));
        moved("spec.kubernetes.versions[", &self.kubernetes)
            .or_else(|| of_images.next())
            .unwrap_or_else(|| field.to_owned())
    }
}
