//! NEW where it is made of OLD: with another CloudProfile, and behind the next maintenance window.

use jiff::Timestamp;

use super::pairs::Loaded;
use super::replacement::Replacement;
use super::shoots::ShootReader;
use crate::preview::{Baseline, CloudProfiles, WorkerChange, after_next_window, compare};

/// How NEW is made.
pub(super) struct NewSide {
    /// With this CloudProfile.
    pub(super) replacement: Option<Replacement>,
    /// Behind the first maintenance window from then on.
    pub(super) maintenance: Option<Timestamp>,
    /// How Workers are made of Shoots, on both sides.
    pub(super) of_shoots: ShootReader,
}

impl NewSide {
    /// What becomes of a Worker.
    pub(super) fn compare(&self, old: &Loaded, baseline: Baseline, profiles: &CloudProfiles) -> WorkerChange {
        let Loaded { inputs, live } = old;
        let new = self.replacement.as_ref().map_or_else(|| inputs.clone(), |replacement| replacement.of(inputs));
        let Some(now) = self.maintenance else { return compare(Some(inputs), Some(&new), live, baseline, profiles) };
        match after_next_window(&new, now) {
            Ok(maintained) => {
                let mut change = compare(Some(inputs), Some(&maintained.inputs), live, baseline, profiles);
                // What happens comes before what is to be said of it.
                change.findings.splice(0..0, maintained.findings);
                change.findings.sort_by_key(|finding| finding.severity);
                change
            }
            Err(error) => WorkerChange::not_compared(new.namespace(), new.name(), &error.to_string()),
        }
    }
}
