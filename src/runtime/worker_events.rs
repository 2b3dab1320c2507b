//! Events on Workers: one function per reason.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use tracing::warn;

use crate::worker::progress::Stuck;
use crate::worker::roll::Roll;

/// A Worker can't be decoded.
pub(super) async fn undecodable(recorder: &Recorder, worker: &ObjectReference, reason: &str) {
    let note = format!("The Worker can't be decoded, so nothing is done for it: {reason}");
    publish(recorder, worker, EventType::Warning, "WorkerUndecodable", "Decode", note).await;
}

/// Machines of pools begin to be replaced.
pub(super) async fn roll_started(recorder: &Recorder, worker: &ObjectReference, rolls: &BTreeMap<&str, Vec<&Roll>>) {
    let of_pools = rolls.iter().map(|(pool, rolls)| {
        let deployments: Vec<&str> = rolls.iter().map(|roll| roll.deployment.as_str()).collect();
        let cause = rolls.first().map(|roll| roll.inputs.join(", ")).filter(|inputs| !inputs.is_empty());
        let cause = cause.unwrap_or_else(|| "not recorded, another program made the class before".to_owned());
        format!("Pool {pool:?} replaces its machines ({}); cause: {cause}", deployments.join(", "))
    });
    let note = of_pools.collect::<Vec<_>>().join(". ");
    publish(recorder, worker, EventType::Normal, "RollStarted", "Deploy", note).await;
}

/// All machines of pools run as wanted.
pub(super) async fn pools_ready(recorder: &Recorder, worker: &ObjectReference, pools: &[String]) {
    let pools: Vec<String> = pools.iter().map(|pool| format!("{pool:?}")).collect();
    let note = format!("All machines of pool {} run as wanted", pools.join(", "));
    publish(recorder, worker, EventType::Normal, "PoolReady", "Follow", note).await;
}

/// A pool can't be planned, or its machines can't be made.
pub(super) async fn pool_failed(recorder: &Recorder, worker: &ObjectReference, pool: &str, message: &str, codes: &str) {
    let codes = if codes.is_empty() { String::new() } else { format!(" ({codes})") };
    let note = format!("Pool {pool:?} failed{codes}: {message}");
    publish(recorder, worker, EventType::Warning, "PoolFailed", "Follow", note).await;
}

/// machine-controller-manager did nothing about a change and was started anew.
pub(super) async fn machine_controller_restarted(recorder: &Recorder, worker: &ObjectReference, stuck: &Stuck) {
    let note = format!(
        "machine-controller-manager has made no machine set for {} since {}; its pods are started anew",
        stuck.deployment, stuck.since
    );
    publish(recorder, worker, EventType::Warning, "MachineControllerManagerRestarted", "Restart", note).await;
}

async fn publish(
    recorder: &Recorder,
    worker: &ObjectReference,
    type_: EventType,
    reason: &str,
    action: &str,
    note: String,
) {
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(shortened(note)),
        action: action.to_owned(),
        secondary: None,
    };
    if let Err(error) = recorder.publish(&event, worker).await {
        warn!(%error, "event can't be written");
    }
}

/// The API server takes no longer note.
const LONGEST_NOTE: usize = 1024;

fn shortened(mut note: String) -> String {
    const END: char = '…';
    if note.len() > LONGEST_NOTE {
        let end = (0..=LONGEST_NOTE - END.len_utf8()).rev().find(|end| note.is_char_boundary(*end)).unwrap_or_default();
        note.truncate(end);
        note.push(END);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_between_letters() {
        let note = shortened("ä".repeat(1000));
        assert!(note.len() <= LONGEST_NOTE && note.ends_with('…'), "{}", note.len());
        assert_eq!(shortened("short".to_owned()), "short");
    }
}
