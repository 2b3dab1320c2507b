//! Texts of the events on Workers.

use crate::controller::run::context::ControllerContext;
use decisions::worker::plan::roll_budget::{ReleaseReason, ReleasedPool};
use decisions::worker::plan::rolls::Roll;
use decisions::worker::status::events::WorkerEvent;
use runtime::cluster::events::EventNote;
use runtime::cluster::identity::Identity;
use wire::api::bounded_text::{Bound, joined, named, shortened};
use wire::api::gardener::Worker;

/// Maximum size of a requested operation within a note.
const MAX_REQUEST_BYTES: usize = 80;
/// Maximum size of a pool's name within a note.
const MAX_POOL_BYTES: usize = 66;
/// Maximum size of a list within a note.
const MAX_LIST_BYTES: Bound = Bound::bytes(170);

pub(crate) fn undecodable(reason: &str) -> EventNote {
    let note = format!("The Worker can't be decoded, so nothing is done for it: {reason}");
    EventNote { is_warning: true, reason: "WorkerUndecodable", action: "Decode", note }
}

/// The requested operation is unknown, for example one of a newer Gardener.
pub(crate) fn unsupported_migration(request: &str) -> EventNote {
    let request = shortened(&format!("{request:?}"), MAX_REQUEST_BYTES);
    let note = format!("The requested operation {request} is not supported, so nothing is done for the Worker");
    EventNote { is_warning: true, reason: "OperationNotSupported", action: "Follow", note }
}

/// The status does not fit into the Worker.
pub(crate) fn status_too_large(reason: &str) -> EventNote {
    let note = format!("The status can't be written, not even in a few words: {reason}");
    EventNote { is_warning: true, reason: "StatusTooLarge", action: "Follow", note }
}

/// The note of an event.
pub(crate) fn note_of(event: &WorkerEvent) -> EventNote {
    match event {
        WorkerEvent::RollsStarted(rolls) => rolls_started(rolls),
        WorkerEvent::PoolsReady { pools, hibernated } => {
            let what = if *hibernated { "No machine is left" } else { "All machines run as wanted" };
            let note = format!("{what} in {}", pools_named(pools));
            EventNote { is_warning: false, reason: "PoolReady", action: "Follow", note }
        }
        WorkerEvent::PoolFailed { pool, message, codes } => {
            let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
            let note = format!("Pool {pool:?} failed{codes}: {message}");
            EventNote { is_warning: true, reason: "PoolFailed", action: "Follow", note }
        }
        WorkerEvent::MachineControllerRestarted(stuck) => {
            let note = format!(
                "machine-controller-manager has made no machine set for {} since {}; its pods are restarted",
                stuck.deployment, stuck.since
            );
            EventNote { is_warning: true, reason: "MachineControllerManagerRestarted", action: "Restart", note }
        }
        WorkerEvent::RollHeld(waiting) => {
            EventNote { is_warning: false, reason: "RollHeld", action: "Deploy", note: in_sentence(&waiting.text()) }
        }
        WorkerEvent::RollStopped(stopped) => {
            EventNote { is_warning: false, reason: "RollStopped", action: "Deploy", note: in_sentence(&stopped.text()) }
        }
        WorkerEvent::RollResumed(pool) => {
            let pool = shortened(&format!("{pool:?}"), MAX_POOL_BYTES);
            let note = format!("Rolls of pool {pool} are no longer stopped");
            EventNote { is_warning: false, reason: "RollResumed", action: "Deploy", note }
        }
        WorkerEvent::PoolHeld(held) => {
            EventNote { is_warning: false, reason: "RollHeld", action: "Deploy", note: in_sentence(&held.text()) }
        }
        WorkerEvent::PoolReleased(ReleasedPool { pool, reason }) => {
            let pool = shortened(&format!("{pool:?}"), MAX_POOL_BYTES);
            let why = match reason {
                ReleaseReason::Slot => "it has a slot of the roll budget",
                ReleaseReason::LetRoll => "the annotation let-roll names it",
                ReleaseReason::KeyChanges => "its node agent Secret changes",
                ReleaseReason::Requested => "its owner has edited it",
            };
            let note = format!("Pool {pool} is no longer on hold, because {why}");
            EventNote { is_warning: false, reason: "RollReleased", action: "Deploy", note }
        }
        WorkerEvent::RollReleased(zone) => {
            let pool = shortened(&format!("{:?}", zone.pool), MAX_POOL_BYTES);
            let why = match zone.lacks_machine {
                true => "it lacks a machine, which its old class can't provide",
                false => "it has waited for six hours",
            };
            let note = format!("Zone {} of pool {pool} rolls while another zone does, because {why}", zone.number);
            EventNote { is_warning: false, reason: "RollReleased", action: "Deploy", note }
        }
    }
}

/// The text of a pool with its first letter in upper case, within the size of a note.
fn in_sentence(text: &str) -> String {
    let text = shortened(text, MAX_LIST_BYTES.bytes);
    text.strip_prefix("pool").map_or(text.clone(), |rest| format!("Pool{rest}"))
}

/// One sentence per pool.
fn rolls_started(rolls: &[Roll]) -> EventNote {
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
    let sentences: Vec<String> = by_pool.into_iter().map(of_pool).collect();
    let rest = |rest: &[String]| format!(". And {} more pools", rest.len());
    let note = joined(&sentences, ". ", MAX_LIST_BYTES, |sentence, bytes| shortened(sentence, bytes), rest);
    let reason = if rolls.iter().all(|roll| roll.is_in_place) { "InPlaceUpdateStarted" } else { "RollStarted" };
    EventNote { is_warning: false, reason, action: "Deploy", note }
}

fn pools_named(pools: &[String]) -> String {
    let names: Vec<String> = pools.iter().map(|pool| format!("{pool:?}")).collect();
    format!("{} {}", if names.len() == 1 { "pool" } else { "pools" }, named(&names, MAX_LIST_BYTES))
}

/// Publishes events of a reconcile, and counts rolls.
pub(crate) async fn publish(controller: &ControllerContext, worker: &Identity, events: &[&WorkerEvent]) {
    for event in events {
        if let WorkerEvent::RollsStarted(rolls) = event {
            rolls.iter().for_each(|roll| controller.metrics.rolled(roll, controller.clock.now()));
        }
        controller.events.publish::<Worker>(worker, note_of(event)).await;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use k8s_openapi::jiff::Timestamp;

    use super::*;
    use crate::controller::test_support::{controller, lines};
    use decisions::worker::machines::progress::Stuck;
    use decisions::worker::plan::roll_budget::test_support::held_pool;
    use decisions::worker::plan::rolls::RollCause;
    use decisions::worker::plan::stops::test_support::stopped_pool;
    use decisions::worker::plan::zone_waits::ReleasedZone;
    use decisions::worker::plan::zone_waits::test_support::waiting_pool;
    use runtime::cluster::events::{MAX_NAME_LENGTH, MAX_NOTE_BYTES, event};
    use runtime::process::endpoints::MetricsText;

    fn worker(name: &str, version: u64) -> Identity {
        Identity { namespace: "ns".to_owned(), name: name.to_owned(), uid: "uid".to_owned(), version }
    }

    fn roll(pool: &str, is_in_place: bool) -> Roll {
        Roll {
            pool: pool.to_owned(),
            deployment: format!("{pool}-z1"),
            from: "old".to_owned(),
            to: "new".to_owned(),
            inputs: vec![],
            cause: RollCause::NotRecorded,
            is_in_place,
            waited_since: None,
        }
    }

    #[test]
    fn events_about_waits_fit_into_a_note() {
        let mut waiting = waiting_pool(Timestamp::UNIX_EPOCH);
        waiting.pool = "p".repeat(500);
        let number = 4_000;
        for lacks_machine in [true, false] {
            let (pool, class) = (waiting.pool.clone(), String::new());
            let since = Timestamp::UNIX_EPOCH;
            let released = ReleasedZone { pool, deployment: String::new(), number, class, since, lacks_machine };
            for event in [WorkerEvent::RollHeld(waiting.clone()), WorkerEvent::RollReleased(released)] {
                let note = note_of(&event).note;
                assert!(note.len() <= MAX_NOTE_BYTES[0] && note.contains("pp"), "{}: {note}", note.len());
            }
        }
    }

    #[test]
    fn events_about_holds_fit_into_a_note() {
        let mut held = held_pool();
        assert_eq!(note_of(&WorkerEvent::PoolHeld(held.clone())).reason, "RollHeld");
        held.pool = "p".repeat(500);
        let reasons =
            [ReleaseReason::Slot, ReleaseReason::LetRoll, ReleaseReason::KeyChanges, ReleaseReason::Requested];
        let released =
            reasons.map(|reason| WorkerEvent::PoolReleased(ReleasedPool { pool: held.pool.clone(), reason }));
        for event in released.into_iter().chain([WorkerEvent::PoolHeld(held.clone())]) {
            let note = note_of(&event).note;
            assert!(note.len() <= MAX_NOTE_BYTES[0] && note.contains("pp"), "{}: {note}", note.len());
        }
    }

    #[test]
    fn events_about_stops_fit_into_a_note() {
        let mut stopped = stopped_pool(Timestamp::UNIX_EPOCH);
        stopped.pool = "p".repeat(500);
        stopped.paused = (1..1000).collect();
        for event in [WorkerEvent::RollResumed(stopped.pool.clone()), WorkerEvent::RollStopped(stopped)] {
            let note = note_of(&event).note;
            assert!(note.len() <= MAX_NOTE_BYTES[0] && note.contains("pp"), "{}: {note}", note.len());
        }
    }

    proptest! {
        #[test]
        fn any_event_has_its_size_and_counts_what_it_does_not_name(
            pools in prop::collection::vec(".{0,300}", 1..50),
            name in "[a-z][a-z0-9.-]{0,251}[a-z]",
            message in ".{0,5000}",
            longest in prop::sample::select(&MAX_NOTE_BYTES[..]),
        ) {
            let worker = worker(&name, 1);
            let rolls = pools.iter().map(|pool| roll(pool, false)).collect();
            let failed = WorkerEvent::PoolFailed { pool: pools[0].clone(), message, codes: Default::default() };
            for published in [
                WorkerEvent::RollsStarted(rolls),
                WorkerEvent::PoolsReady { pools: pools.clone(), hibernated: false },
                failed,
            ] {
                let event = event::<Worker>(&worker, &note_of(&published), longest, Timestamp::UNIX_EPOCH);
                let note = event.note.unwrap();
                prop_assert!(note.len() <= longest, "{} bytes", note.len());
                prop_assert!(event.metadata.name.unwrap().len() <= MAX_NAME_LENGTH);
                prop_assert!(!note.contains(|one: char| one.is_control() && !"\n\t".contains(one)), "{note:?}");
                let are_all_named = pools.iter().all(|pool| note.contains(pool.as_str()));
                let is_list = !matches!(published, WorkerEvent::PoolFailed { .. });
                prop_assert!(!is_list || are_all_named || note.contains(" more") || note.contains('…') || note.contains('\\'), "{note}");
            }
        }
    }

    #[test]
    fn a_thousand_pools_are_counted() {
        let pools: Vec<String> = (0..1000).map(|pool| format!("pool-{pool}")).collect();
        let rolls = pools.iter().map(|pool| roll(pool, false)).collect();
        let note = note_of(&WorkerEvent::RollsStarted(rolls)).note;
        assert!(note.len() <= 200 && note.contains("Pool \"pool-0\"") && note.ends_with(" more pools"), "{note}");
        let note = note_of(&WorkerEvent::PoolsReady { pools, hibernated: false }).note;
        assert!(note.len() <= 200 && note.contains("\"pool-0\", ") && note.ends_with(" more"), "{note}");
    }

    #[test]
    fn each_reason_is_documented() {
        let stuck = Stuck { deployment: "a-z1".to_owned(), since: Timestamp::UNIX_EPOCH };
        let events = [
            WorkerEvent::RollsStarted(vec![roll("a", false)]),
            WorkerEvent::RollsStarted(vec![roll("a", true)]),
            WorkerEvent::PoolsReady { pools: vec![], hibernated: false },
            WorkerEvent::PoolFailed { pool: "a".to_owned(), message: String::new(), codes: Default::default() },
            WorkerEvent::MachineControllerRestarted(stuck),
            WorkerEvent::RollStopped(stopped_pool(Timestamp::UNIX_EPOCH)),
            WorkerEvent::RollResumed(String::new()),
        ];
        let all = events.iter().map(note_of).chain([undecodable(""), status_too_large("")]);
        let documented = include_str!("../../../../docs/status.md");
        for EventNote { reason, .. } in all {
            assert!(documented.contains(&format!("`{reason}`")), "{reason} is not in docs/status.md");
        }
    }

    #[test]
    fn the_same_reconcile_makes_the_same_event() {
        let named = |version: u64, reason: &str| {
            event::<Worker>(&worker("fleet", version), &undecodable(reason), 1024, Timestamp::UNIX_EPOCH)
                .metadata
                .name
                .unwrap()
        };
        assert_eq!(named(1, "a"), named(1, "a"));
        assert!(named(1, "a") != named(1, "b") && named(1, "a") != named(2, "a"));
        assert!(named(1, "a").starts_with("fleet."));
    }

    #[tokio::test]
    async fn what_a_reconcile_has_found_is_published_and_counted() {
        let (controller, requested) = controller(None, |_, _| (201, serde_json::json!({"metadata": {}})));
        let stuck = Stuck { deployment: "a-z1".to_owned(), since: Timestamp::UNIX_EPOCH };
        let waited = Roll { waited_since: Some(Timestamp::UNIX_EPOCH), ..roll("b", false) };
        let events =
            [WorkerEvent::RollsStarted(vec![roll("a", false), waited]), WorkerEvent::MachineControllerRestarted(stuck)];
        publish(&controller, &worker("w", 7), &events.each_ref()).await;
        assert_eq!(lines(&requested), ["POST events", "POST events"]);
        let metrics = controller.metrics.text();
        assert!(metrics.contains("roll_wait_seconds_count 1"), "{metrics}");
        let counted = format!("rolls_total{{cause=\"{}\"}} 2", RollCause::NotRecorded.as_str());
        assert!(metrics.contains(&counted), "{metrics}");
    }
}
