//! Derives NEW from OLD, with another CloudProfile or after the next maintenance window.

use std::path::PathBuf;

use jiff::Timestamp;

use super::pairs::Loaded;
use super::replacement::{Replaced, Replacement};
use super::shoots::ShootReader;
use explanations::preview::{Baseline, CloudProfiles, WorkerChange, after_next_window, compare};

/// How to derive NEW.
pub(super) struct NewSide {
    /// Replaces the CloudProfile.
    pub(super) replacement: Option<Replacement>,
    /// Applies the first maintenance window after this time.
    pub(super) maintenance: Option<Timestamp>,
    /// Renders Shoots to Workers, on both sides.
    pub(super) of_shoots: ShootReader,
    /// Folder of the result cache.
    pub(super) cache: Option<PathBuf>,
}

impl NewSide {
    /// Compares a Worker with its derived NEW.
    pub(super) fn compare(
        &self,
        old: &Loaded,
        baseline: Baseline,
        profiles: &CloudProfiles,
        replaced: &mut Replaced,
    ) -> WorkerChange {
        let Loaded { inputs, live } = old;
        let new = match &self.replacement {
            Some(replacement) => replacement.of(inputs, profiles, replaced),
            None => Ok(inputs.clone()),
        };
        let new = match new {
            Ok(new) => new,
            Err(error) => {
                return WorkerChange::not_compared(inputs.namespace(), inputs.name(), &format!("{error:#}"));
            }
        };
        let Some(now) = self.maintenance else { return compare(Some(inputs), Some(&new), live, baseline, profiles) };
        match after_next_window(&new, now) {
            Ok(maintained) => {
                let mut change = compare(Some(inputs), Some(&maintained.inputs), live, baseline, profiles);
                // Put maintenance actions before other findings of the same severity.
                change.findings.splice(0..0, maintained.findings);
                change.findings.sort_by_key(|finding| finding.severity);
                change
            }
            Err(error) => WorkerChange::not_compared(new.namespace(), new.name(), &error.to_string()),
        }
    }
}
