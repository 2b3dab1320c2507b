//! Events on Workers: what each transition says, and how it is written.
//!
//! An event has its name from the version of the Worker that it was found with, so that a process that dies before it has
//! written the status, and finds the same again, does not tell it twice.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::worker::roll::Roll;
use crate::worker::transitions::Transition;

/// Who writes the events.
const CONTROLLER: &str = "gardener-extension-worker";
/// The API server takes no longer note.
const LONGEST_NOTE: usize = 1024;

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    is_warning: bool,
    reason: &'static str,
    action: &'static str,
    note: String,
}

/// A Worker can't be decoded.
pub(super) fn undecodable(reason: &str) -> Said {
    let note = format!("The Worker can't be decoded, so nothing is done for it: {reason}");
    Said { is_warning: true, reason: "WorkerUndecodable", action: "Decode", note }
}

/// What a transition says.
pub(super) fn of_transition(transition: &Transition) -> Said {
    match transition {
        Transition::RollsStarted(rolls) => rolls_started(rolls),
        Transition::PoolsReady { pools, asleep } => {
            let what = if *asleep { "No machine is left" } else { "All machines run as wanted" };
            let note = format!("{what} in {}", named(pools));
            Said { is_warning: false, reason: "PoolReady", action: "Follow", note }
        }
        Transition::PoolFailed { pool, message, codes } => {
            let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
            let note = format!("Pool {pool:?} failed{codes}: {message}");
            Said { is_warning: true, reason: "PoolFailed", action: "Follow", note }
        }
        Transition::MachineControllerRestarted(stuck) => {
            let note = format!(
                "machine-controller-manager has made no machine set for {} since {}; its pods are started anew",
                stuck.deployment, stuck.since
            );
            Said { is_warning: true, reason: "MachineControllerManagerRestarted", action: "Restart", note }
        }
    }
}

/// One sentence for each pool.
fn rolls_started(rolls: &[Roll]) -> Said {
    let mut by_pool: Vec<(&Roll, Vec<&str>)> = Vec::new();
    for roll in rolls {
        match by_pool.iter_mut().find(|(first, _)| first.pool == roll.pool) {
            Some((_, deployments)) => deployments.push(&roll.deployment),
            None => by_pool.push((roll, vec![&roll.deployment])),
        }
    }
    let of_pool = |(roll, deployments): (&Roll, Vec<&str>)| {
        let does = if roll.is_in_place { "updates its machines where they are" } else { "replaces its machines" };
        let cause = if roll.inputs.is_empty() {
            "not recorded, another program made the class before".to_owned()
        } else {
            roll.inputs.join(", ")
        };
        format!("Pool {:?} {does} ({}); cause: {cause}", roll.pool, deployments.join(", "))
    };
    let note = by_pool.into_iter().map(of_pool).collect::<Vec<_>>().join(". ");
    let reason = if rolls.iter().all(|roll| roll.is_in_place) { "InPlaceUpdateStarted" } else { "RollStarted" };
    Said { is_warning: false, reason, action: "Deploy", note }
}

fn named(pools: &[String]) -> String {
    let names: Vec<String> = pools.iter().map(|pool| format!("{pool:?}")).collect();
    format!("{} {}", if names.len() == 1 { "pool" } else { "pools" }, names.join(", "))
}

/// Writes events.
pub(super) struct Recorder {
    client: Client,
}

impl Recorder {
    /// One that writes with this client.
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Writes an event about a Worker in that version. What can't be written is logged and given up.
    pub(super) async fn tell(&self, worker: &ObjectReference, said: Said) {
        let event = event(worker, said, Timestamp::now());
        let api: Api<Event> = Api::namespaced(self.client.clone(), worker.namespace.as_deref().unwrap_or_default());
        match api.create(&PostParams::default(), &event).await {
            Ok(_) => {}
            // It was told before the status could be written.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => warn!(%error, "event can't be written"),
        }
    }
}

fn event(worker: &ObjectReference, said: Said, now: Timestamp) -> Event {
    let Said { is_warning, reason, action, note } = said;
    let note = shortened(note);
    let mut digest = Sha256::new();
    for part in [worker.uid.as_deref(), worker.resource_version.as_deref(), Some(reason), Some(&note)] {
        digest.update(part.unwrap_or_default());
        digest.update([0]);
    }
    let name = worker.name.as_deref().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{}", &hex::encode(digest.finalize())[..16])),
            namespace: worker.namespace.clone(),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        type_: Some(if is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(reason.to_owned()),
        action: Some(action.to_owned()),
        note: Some(note),
        regarding: Some(worker.clone()),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(CONTROLLER.to_owned()),
        ..Event::default()
    }
}

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
    use crate::worker::progress::Stuck;
    use crate::worker::roll::RollCause;

    #[test]
    fn long_notes_are_cut_between_letters() {
        let note = shortened("ä".repeat(1000));
        assert!(note.len() <= LONGEST_NOTE && note.ends_with('…'), "{}", note.len());
        assert_eq!(shortened("short".to_owned()), "short");
    }

    #[test]
    fn each_reason_is_documented() {
        let roll = |is_in_place: bool| Roll {
            pool: "a".to_owned(),
            deployment: "a-z1".to_owned(),
            from: "old".to_owned(),
            to: "new".to_owned(),
            inputs: vec![],
            cause: RollCause::NotRecorded,
            is_in_place,
        };
        let stuck = Stuck { deployment: "a-z1".to_owned(), since: Timestamp::UNIX_EPOCH };
        let transitions = [
            Transition::RollsStarted(vec![roll(false)]),
            Transition::RollsStarted(vec![roll(true)]),
            Transition::PoolsReady { pools: vec![], asleep: false },
            Transition::PoolFailed { pool: "a".to_owned(), message: String::new(), codes: Default::default() },
            Transition::MachineControllerRestarted(stuck),
        ];
        let all = transitions.iter().map(of_transition).chain([undecodable("")]);
        let documented = include_str!("../../docs/status.md");
        for Said { reason, .. } in all {
            assert!(documented.contains(&format!("`{reason}`")), "{reason} is not in docs/status.md");
        }
    }

    #[test]
    fn the_same_look_makes_the_same_event() {
        let named = |version: &str, reason: &str| {
            let worker = ObjectReference {
                name: Some("fleet".to_owned()),
                uid: Some("uid".to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectReference::default()
            };
            event(&worker, undecodable(reason), Timestamp::UNIX_EPOCH).metadata.name.unwrap()
        };
        assert_eq!(named("1", "a"), named("1", "a"));
        assert!(named("1", "a") != named("1", "b") && named("1", "a") != named("2", "a"));
        assert!(named("1", "a").starts_with("fleet."));
    }
}
