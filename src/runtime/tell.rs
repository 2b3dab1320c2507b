//! What a look at a Worker leads to that people want to know: events, and numbers of rolls.

use kube::Resource;

use super::metrics::Metrics;
use super::worker_events::{Recorder, of_transition};
use crate::api::gardener::Worker;
use crate::worker::reconcile::Pass;
use crate::worker::transitions::Transition;

/// Writes the events of a pass. `worker` is as it was before the pass: what is told once the status says it would be lost
/// when the process ends in between.
pub(super) async fn tell(recorder: &Recorder, metrics: &Metrics, worker: &Worker, pass: &Pass) {
    let reference = worker.object_ref(&());
    for transition in &pass.transitions {
        if let Transition::RollsStarted(rolls) = transition {
            rolls.iter().for_each(|roll| metrics.rolled(roll.cause.as_str()));
        }
        recorder.tell(&reference, of_transition(transition)).await;
    }
}
