//! Fuzz target: data that this program has recorded in objects and that any user may have changed: the inputs of a
//! class, and conditions. The first character is `i` for inputs or `c` for conditions. The text follows.
#![no_main]

use gardener_extension_worker::worker::plan::class_inputs::{History, MAXIMUM_SIZE};
use gardener_extension_worker::worker::status::conditions::{
    ConditionsReport, is_recorded_hibernated, pools_ready_since,
};
use gardener_extension_worker::worker::status::every_node_ready::{HealthCheck, every_node_unknown};
use gardener_extension_worker::worker::status::status_text::TextSize;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| match text.split_at_checked(1) {
    Some(("i", text)) => {
        let Some(history) = History::read(text) else { return };
        let Some(written) = history.write() else { return };
        assert!(written.len() <= MAXIMUM_SIZE, "too large");
        let again = History::read(&written).expect("what is written can be read");
        assert_eq!(again.write(), Some(written), "it changes when it is written again");
    }
    Some(("c", text)) => {
        let Ok(present) = serde_json::from_str::<Vec<Value>>(text) else { return };
        let _ = (is_recorded_hibernated(&present), pools_ready_since(&present), HealthCheck::OfWriter.leaves(&present));
        let now = "2026-01-01T00:00:00Z";
        let unknown = [every_node_unknown("no answer")];
        let Some(report) = ConditionsReport::of(&present, &unknown, now) else { return };
        let written = report.document(TextSize::Full);
        let written = written.as_array().expect("a list");
        assert_eq!(ConditionsReport::of(written, &unknown, now), None, "it is written twice");
    }
    _ => {}
});
