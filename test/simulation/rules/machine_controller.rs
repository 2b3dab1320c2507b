//! Checks when machine-controller-manager is started and stopped.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Requested, Rules};
use crate::api_server::kinds::{DEPLOYMENT, MACHINE};
use crate::api_server::store::Change;
use crate::trace::Trace;

/// How long before its stop the shoot may have been woken up or deleted. The Deployment need not change for that, so a
/// stop that was already sent is not rejected. The response to the last read and that write take up to 0.7 s each.
const SENT_BEFORE: SignedDuration = SignedDuration::from_millis(1_500);
/// How long it may be stopped then: four requests with their responses take up to 1.4 s each.
const STARTED_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// A stop that arrived too late.
#[derive(Clone, Copy)]
pub(super) struct LateStop {
    at: Timestamp,
    author: &'static str,
    revision: u64,
}

impl LateStop {
    /// The violation, if any. A controller that was killed or lost responses cannot notice that it was too late;
    /// gardenlet starts machine-controller-manager with its next attempt.
    pub(super) fn found(&self, trace: &Trace) -> Option<String> {
        let Self { at, author, revision } = self;
        let is_completed = trace.is_completed(author, *revision, STARTED_WITHIN.unsigned_abs());
        is_completed.then(|| {
            format!("#{revision} by {author}: machine-controller-manager, stopped at {at}, is not started again")
        })
    }
}

impl Requested {
    fn stays_hibernated(&self) -> bool {
        self.hibernates && !self.shoot_is_deleted
    }
}

impl Rules {
    /// It must not run before all machines of a moved shoot are restored, because it would create others. It must not
    /// be stopped while machines exist, or unless the shoot is hibernated. A controller that stops it slightly too late
    /// must start it again.
    pub(super) fn machine_controller(&mut self, change: &Change, before: Option<&Value>, after: Option<&Value>) {
        let replicas =
            |object: Option<&Value>| object.and_then(|object| object["spec"]["replicas"].as_i64()).unwrap_or_default();
        let missing: Vec<_> = self.moved.iter().filter(|key| !self.now.contains_key(*key)).collect();
        if replicas(before) == 0 && replicas(after) > 0 && !missing.is_empty() {
            self.found.push(format!("{} starts before {missing:?} are back", DEPLOYMENT.kind));
        }
        let machines = self.of(&MACHINE).count();
        if replicas(before) == 0 || replicas(after) > 0 {
            return;
        }
        if machines > 0 {
            self.found.push(format!("machine-controller-manager is stopped while there are {machines} machines"));
        }
        let slept = |requested: &Requested| {
            requested.stays_hibernated() && requested.until.is_some_and(|until| until + SENT_BEFORE >= change.at)
        };
        if self.requested.last().is_some_and(Requested::stays_hibernated) {
            return;
        }
        if self.is_requested(slept) {
            self.stopped_late = Some(LateStop { at: change.at, author: change.author, revision: change.revision });
        } else {
            self.found
                .push("machine-controller-manager is stopped for a shoot that is not to be hibernated".to_owned());
        }
    }

    /// A late stop must soon be reversed, unless the shoot moves, even if only the status shows that.
    pub(super) fn started_again(&mut self, now: Timestamp) {
        let is_in_status =
            |last: &Value| last["type"] == "Migrate" || last["type"] == "Restore" && last["state"] != "Succeeded";
        let moves =
            |requested: &Requested| requested.moves || is_in_status(&requested.worker.value["status"]["lastOperation"]);
        if self.requested.last().is_some_and(moves) {
            self.stopped_late = None;
        }
        self.not_started_again.extend(self.stopped_late.take_if(|stop| stop.at + STARTED_WITHIN < now));
    }
}
