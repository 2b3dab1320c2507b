//! Pure: rolls from a preview, saved in an annotation of the Shoot or the Worker.
//!
//! For each pool that rolls, the annotation has the changed inputs of its class names with their new digests. A preview
//! can't predict more, because it may have only a Shoot and its CloudProfile, and class names depend on more.
//!
//! `{"v":1,"saved":"2026-11-22T10:00:00Z","pools":{"web":{"~machineImage":"065f7bb7"}}}`

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::worker::plan::class_inputs::{ChangedInputs, digest};
use wire::api::gardener::{Shoot, Worker};

/// Name of the annotation.
pub const ANNOTATION: &str = "gardener-extension-worker/planned-rolls";
const VERSION: u8 = 1;

/// Saved rolls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRolls {
    v: u8,
    /// Time at which they were saved.
    pub saved: Timestamp,
    /// Changed inputs by pool. Other pools don't roll.
    pub pools: BTreeMap<String, ChangedInputs>,
}

/// Why the annotation can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannedRollsError {
    /// It has another format.
    #[error("the annotation {ANNOTATION} can't be decoded at its column {0}")]
    Document(usize),
    /// It was written by another version of this program.
    #[error("the annotation {ANNOTATION} has version {0}; {VERSION} is known")]
    Version(u8),
}

impl PlannedRolls {
    /// Creates rolls saved at this time.
    #[must_use]
    pub fn new(saved: Timestamp, pools: BTreeMap<String, ChangedInputs>) -> Self {
        Self { v: VERSION, saved, pools }
    }

    /// The saved rolls of the Worker, otherwise those of its Shoot.
    pub(crate) fn of(worker: &Worker, shoot: &Shoot) -> Option<Result<Self, PlannedRollsError>> {
        let of_worker = worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
        let text = of_worker.or_else(|| shoot.annotations().get(ANNOTATION))?;
        Some(Self::read(text))
    }

    fn read(text: &str) -> Result<Self, PlannedRollsError> {
        let read: Self = serde_json::from_str(text).map_err(|error| PlannedRollsError::Document(error.column()))?;
        if read.v == VERSION { Ok(read) } else { Err(PlannedRollsError::Version(read.v)) }
    }

    /// The value of the annotation.
    ///
    /// # Errors
    /// Never, because it only contains strings.
    pub fn annotation(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Identifies the saved rolls.
    pub(crate) fn digest(&self) -> String {
        let changes = self.pools.iter().flat_map(|(pool, inputs)| {
            let inputs =
                inputs.iter().flat_map(|(name, digest)| [name.as_str(), digest.as_deref().unwrap_or_default()]);
            [pool.as_str()].into_iter().chain(inputs)
        });
        digest(&self.saved.to_string(), &changes.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_error_has_no_content() {
        let text =
            r#"{"v":1,"saved":"2026-11-22T10:00:00Z","pools":{"web":{"image.version":"1a2b3c4d","volume.type":null}}}"#;
        let planned = PlannedRolls::read(text).unwrap();
        assert_eq!(planned.annotation().unwrap(), text);
        assert_eq!(PlannedRolls::read(&text.replace("\"v\":1", "\"v\":2")), Err(PlannedRollsError::Version(2)));
        for broken in ["", "{}", "secret", "[1]", r#"{"v":1,"saved":"yesterday","pools":{}}"#] {
            let error = PlannedRolls::read(broken).unwrap_err();
            assert!(matches!(error, PlannedRollsError::Document(_)), "{broken}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn prefers_rolls_saved_with_worker() {
        let saved_at = |of_worker: Option<&str>, of_shoot: Option<&str>| {
            let annotations = |saved: Option<&str>| {
                let saved = saved.map(|saved| format!(r#"{{"v":1,"saved":"{saved}","pools":{{}}}}"#));
                saved.map(|saved| serde_json::json!({ ANNOTATION: saved }))
            };
            let [worker, shoot] = [of_worker, of_shoot].map(|saved| {
                serde_json::json!({"metadata": {"annotations": annotations(saved)}, "spec": {}}).to_string()
            });
            let shoot = serde_json::from_str(&shoot).unwrap();
            let planned = PlannedRolls::of(&serde_json::from_str(&worker).unwrap(), &shoot)?;
            Some(planned.unwrap().saved.to_string())
        };
        let [monday, tuesday] = ["2026-11-23T10:00:00Z", "2026-11-24T10:00:00Z"];
        assert_eq!(saved_at(Some(monday), Some(tuesday)).as_deref(), Some(monday));
        assert_eq!(saved_at(None, Some(tuesday)).as_deref(), Some(tuesday));
        assert_eq!(saved_at(None, None), None);
    }
}
