//! Pure: the condition `RollsAsPlanned`. It reports whether the pools that roll match the saved rolls and roll for the
//! same reasons (docs/preview.md#saved-rolls). It is written only after rolls were saved.
//!
//! A roll is evaluated in the reconcile that writes it. If it was recorded after the rolls were saved, it is evaluated
//! again as long as old machines exist, in case that reconcile could not report it. An unplanned roll is reported until
//! other rolls are saved.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::provider::WorkerContext;
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::Plan;
use crate::worker::plan::class_inputs::{ChangedInputs, History, INDIRECT_PREFIX, Inputs, changed_inputs, inputs_of};
use crate::worker::plan::planned_rolls::{PlannedRolls, PlannedRollsError};
use crate::worker::plan::rolls::Roll;
use crate::worker::status::conditions::{Condition, ConditionStatus, ConditionType};
use crate::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::listed;

const PLANNED: &str = "RollsArePlanned";
const NONE: &str = "NothingRolls";
const UNPLANNED: &str = "UnplannedRoll";
const NOT_COMPARABLE: &str = "RollNotComparable";
const NO_PLAN: &str = "NoPlannedRolls";

/// Result of comparing a roll with the saved rolls.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Compared {
    AsPlanned,
    /// The difference, as a human-readable message.
    Unplanned(String),
    /// The earlier inputs of its class were not recorded.
    Unknown,
}

impl Compared {
    fn rank(&self) -> u8 {
        match self {
            Self::AsPlanned => 0,
            Self::Unknown => 1,
            Self::Unplanned(_) => 2,
        }
    }

    fn unplanned(&self) -> Option<&str> {
        match self {
            Self::Unplanned(why) => Some(why),
            Self::AsPlanned | Self::Unknown => None,
        }
    }
}

/// Compares the rolls with the saved ones; `None` if the recorded condition stays. `rolls` were written by this
/// reconcile, and `live` are the objects after that.
#[must_use]
pub fn rolls_as_planned(
    context: &WorkerContext<'_>,
    plan: &Plan,
    rolls: &[Roll],
    live: &MachineObjects,
) -> Option<Condition> {
    let present = &context.worker.status.conditions;
    let recorded = present.iter().find(|recorded| ConditionType::RollsAsPlanned.is_recorded_in(recorded));
    let planned = match PlannedRolls::of(context.worker, context.shoot) {
        Some(Ok(planned)) => planned,
        unknown => return without_plan(recorded, unknown.and_then(Result::err).as_ref()),
    };
    let mut pools: BTreeMap<&str, Compared> = BTreeMap::new();
    for machine in plan.machines() {
        let name = &machine.deployment.name.0;
        let pool = machine.deployment.pool_name.as_str();
        let Some(deployment) = live.deployments.get(name) else { continue };
        let history = deployment.history();
        let is_written = rolls.iter().any(|roll| roll.deployment == *name);
        if !is_written && !is_rolling_since(deployment, history.as_ref(), &planned) {
            continue;
        }
        let Some(pool_of_worker) = context.pool(pool) else { continue };
        let target = inputs_of(&machine.hash_items, pool_of_worker, context.shoot);
        let compared = compared(pool, &target, history.as_ref(), &planned);
        count_worst(&mut pools, pool, compared);
    }
    evaluate(recorded, &planned, &pools)
}

/// Keeps the worst result among a pool's zones.
fn count_worst<'a>(pools: &mut BTreeMap<&'a str, Compared>, pool: &'a str, compared: Compared) {
    let worst = pools.entry(pool).or_insert(Compared::AsPlanned);
    if compared.rank() > worst.rank() {
        *worst = compared;
    }
}

/// The resulting condition; `None` if the recorded one stays.
fn evaluate(recorded: Option<&Value>, planned: &PlannedRolls, pools: &BTreeMap<&str, Compared>) -> Option<Condition> {
    let of_type = ConditionType::RollsAsPlanned;
    let which = format!("the rolls saved at {} ({})", planned.saved.strftime("%Y-%m-%dT%H:%M:%SZ"), planned.digest());
    let reports = |recorded: &Value| recorded["message"].as_str().is_some_and(|message| message.contains(&which));
    let of_these = recorded.filter(|recorded| reports(recorded));
    let unplanned: Vec<String> = pools.values().filter_map(Compared::unplanned).map(str::to_owned).collect();
    if !unplanned.is_empty() {
        let text = listed(&unplanned, MAX_FAILURE_BYTES);
        return Some(Condition::unmet(of_type, UNPLANNED, format!("Compared with {which}: {text}")));
    }
    // Report it until other rolls are saved.
    if of_these.is_some_and(|recorded| recorded["status"] == ConditionStatus::False.as_str()) {
        return None;
    }
    let unknown = pools.iter().filter(|(_, compared)| **compared == Compared::Unknown);
    let unknown: Vec<String> = unknown.map(|(pool, _)| format!("pool {pool:?}")).collect();
    if !unknown.is_empty() {
        let pools = listed(&unknown, MAX_FAILURE_BYTES);
        let text = format!("What these had before is not recorded, so they can't be compared with {which}: {pools}");
        return Some(Condition::unknown(of_type, NOT_COMPARABLE, text));
    }
    match pools.len() {
        0 if of_these.is_some() => None,
        0 => Some(Condition::met(of_type, NONE, format!("Nothing has rolled since {which}."))),
        1 => Some(Condition::met(of_type, PLANNED, format!("1 pool rolls, as in {which}."))),
        pools => Some(Condition::met(of_type, PLANNED, format!("{pools} pools roll, as in {which}."))),
    }
}

/// Rolls are not saved or can't be read. A condition from an earlier comparison must not stay indefinitely.
fn without_plan(recorded: Option<&Value>, error: Option<&PlannedRollsError>) -> Option<Condition> {
    let why = match (error, recorded) {
        (Some(error), _) => error.to_string(),
        (None, Some(recorded)) if recorded["reason"] != NO_PLAN => "No rolls are saved any more.".to_owned(),
        (None, _) => return None,
    };
    Some(Condition::unknown(ConditionType::RollsAsPlanned, NO_PLAN, why))
}

/// Whether old machines are left of a class that was replaced after the rolls were saved.
fn is_rolling_since(deployment: &LiveDeployment, history: Option<&History>, planned: &PlannedRolls) -> bool {
    let status = &deployment.object.status;
    let Some([newest, _, ..]) = history.map(|history| history.generations.as_slice()) else { return false };
    !newest.found && newest.since >= planned.saved && status.updated_replicas < status.replicas
}

fn compared(pool: &str, target: &Inputs, history: Option<&History>, planned: &PlannedRolls) -> Compared {
    let Some(planned) = planned.pools.get(pool) else {
        let what = history.and_then(changed).map(|changed| names(changed.keys())).unwrap_or_default();
        let because = if what.is_empty() { String::new() } else { format!(" because of {what}") };
        return Compared::Unplanned(format!("pool {pool:?} rolls{because}, and was not to roll"));
    };
    let others = others(target, planned);
    if !others.is_empty() {
        let others = names(others.into_iter());
        return Compared::Unplanned(format!("pool {pool:?} rolls to another {others} than planned"));
    }
    let Some((history, changed)) = history.and_then(|history| Some((history, changed(history)?))) else {
        return Compared::Unknown;
    };
    let detail = history.detail;
    let is_planned = |name: &String| planned.keys().any(|planned| detail.name_of(planned) == name);
    let mut more = changed.keys().filter(|name| !is_planned(name)).peekable();
    if more.peek().is_none() {
        return Compared::AsPlanned;
    }
    let more = names(more);
    Compared::Unplanned(format!("pool {pool:?} rolls also because of {more}, which was not planned"))
}

/// Planned inputs that get another value than planned.
fn others<'a>(target: &Inputs, planned: &'a ChangedInputs) -> Vec<&'a String> {
    planned.iter().filter(|(name, digest)| target.get(*name) != digest.as_ref()).map(|(name, _)| name).collect()
}

/// The inputs of the last change; `None` if they were not recorded.
fn changed(history: &History) -> Option<ChangedInputs> {
    let [newest, before, ..] = history.generations.as_slice() else { return None };
    Some(changed_inputs(before.inputs.as_ref()?, newest.inputs.as_ref()?))
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(|name| name.trim_start_matches(INDIRECT_PREFIX)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::worker::plan::class_inputs::{ANNOTATION, Detail, Generation, digest};
    use crate::worker::plan::desired::test_support::{Objects, planned as planned_pool};
    use crate::worker::plan::planned_rolls;
    use crate::worker::plan::rolls::RollCause;

    fn inputs(texts: &[(&str, &str)]) -> Inputs {
        texts.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect()
    }

    fn planned(pools: &[(&str, &[(&str, &str)])]) -> PlannedRolls {
        let pools = pools.iter().map(|(pool, changes)| {
            let changes = inputs(changes).into_iter().map(|(name, digest)| (name, Some(digest))).collect();
            ((*pool).to_owned(), changes)
        });
        PlannedRolls::new("2026-11-22T10:00:00Z".parse().unwrap(), pools.collect())
    }

    fn history(before: Option<Inputs>, after: &Inputs, detail: Detail) -> History {
        let generation = |class: &str, inputs: Option<Inputs>| Generation {
            class: class.to_owned(),
            since: "2026-11-22T11:00:00Z".parse().unwrap(),
            found: false,
            inputs: inputs.map(|inputs| detail.of(&inputs)),
            owner: None,
        };
        History {
            detail,
            generations: vec![generation("new", Some(after.clone())), generation("old", before)],
            wait: None,
            mark: None,
        }
    }

    #[test]
    fn roll_matches_equal_input_changes() {
        let before = inputs(&[
            ("machineType", "a"),
            ("image.version", "1"),
            ("nodeAgentSecretName", "x"),
            ("~kubernetes.version", "k1"),
        ]);
        let change = |changes: &[(&str, &str)]| {
            let mut after = before.clone();
            after.extend(inputs(changes));
            after
        };
        let image: &[(&str, &str)] = &[("image.version", "2")];
        let kubernetes: &[(&str, &str)] = &[("~kubernetes.version", "k2")];
        let plan = planned(&[("web", image), ("db", kubernetes)]);
        let rolled = |pool: &str, changes: &[(&str, &str)], detail: Detail| {
            let after = change(changes);
            match compared(pool, &after, Some(&history(Some(before.clone()), &after, detail)), &plan) {
                Compared::AsPlanned => "as planned".to_owned(),
                Compared::Unknown => "unknown".to_owned(),
                Compared::Unplanned(why) => why,
            }
        };
        let upgraded: &[(&str, &str)] = &[("~kubernetes.version", "k2"), ("nodeAgentSecretName", "y")];
        for detail in [Detail::Fields, Detail::Lists, Detail::Roots, Detail::Whole] {
            assert_eq!(rolled("web", image, detail), "as planned", "{detail:?}");
            assert_eq!(rolled("db", upgraded, detail), "as planned", "what its name becomes is not known before");
        }
        let fields = Detail::Fields;
        assert_eq!(
            rolled("web", &[("image.version", "3")], fields),
            "pool \"web\" rolls to another image.version than planned"
        );
        let both = [("image.version", "2"), ("machineType", "b")];
        assert_eq!(
            rolled("web", &both, fields),
            "pool \"web\" rolls also because of machineType, which was not planned"
        );
        assert_eq!(
            rolled("cache", upgraded, fields),
            "pool \"cache\" rolls because of kubernetes.version, and was not to roll"
        );
        // The key may also change for a reason that only the landscape determines.
        let rekeyed = [("image.version", "2"), ("nodeAgentSecretName", "z")];
        assert!(rolled("web", &rekeyed, fields).contains("nodeAgentSecretName"), "{}", rolled("web", &rekeyed, fields));
        let after = change(image);
        assert_eq!(compared("web", &after, Some(&history(None, &after, fields)), &plan), Compared::Unknown);
        assert_eq!(compared("web", &after, None, &plan), Compared::Unknown);
    }

    #[test]
    fn keeps_reporting_unplanned_roll() {
        let plan = planned(&[("web", &[("image.version", "2")])]);
        let recorded = |condition: &Condition| {
            json!({"type": "RollsAsPlanned", "status": condition.status.as_str(), "reason": condition.reason,
                "message": condition.message})
        };
        let none = BTreeMap::new();
        let first = evaluate(None, &plan, &none).unwrap();
        assert_eq!((first.status, first.reason), (ConditionStatus::True, NONE));
        assert_eq!(evaluate(Some(&recorded(&first)), &plan, &none), None);
        let rolls = evaluate(Some(&recorded(&first)), &plan, &BTreeMap::from([("web", Compared::AsPlanned)])).unwrap();
        assert_eq!((rolls.status, rolls.reason), (ConditionStatus::True, PLANNED));
        assert_eq!(evaluate(Some(&recorded(&rolls)), &plan, &none), None, "it was so when it rolled");
        let why = Compared::Unplanned("pool \"db\" rolls".to_owned());
        let unplanned = evaluate(Some(&recorded(&rolls)), &plan, &BTreeMap::from([("db", why)])).unwrap();
        assert_eq!((unplanned.status, unplanned.reason), (ConditionStatus::False, UNPLANNED));
        assert!(unplanned.message.ends_with("pool \"db\" rolls"), "{}", unplanned.message);
        assert_eq!(evaluate(Some(&recorded(&unplanned)), &plan, &BTreeMap::from([("web", Compared::AsPlanned)])), None);
        let other = planned(&[("web", &[("image.version", "3")])]);
        assert_eq!(evaluate(Some(&recorded(&unplanned)), &other, &none).unwrap().reason, NONE);
        let unknown = evaluate(None, &plan, &BTreeMap::from([("web", Compared::Unknown)])).unwrap();
        assert_eq!((unknown.status, unknown.reason), (ConditionStatus::Unknown, NOT_COMPARABLE));
        let deleted = without_plan(Some(&recorded(&unplanned)), None).unwrap();
        assert_eq!((deleted.status, deleted.reason), (ConditionStatus::Unknown, NO_PLAN));
        assert_eq!(without_plan(Some(&recorded(&deleted)), None), None);
        assert_eq!(without_plan(None, None), None);
    }

    #[test]
    fn reports_worst_zone() {
        let unplanned = |why: &str| Compared::Unplanned(why.to_owned());
        let worst = |zones: &[Compared]| {
            let mut pools = BTreeMap::new();
            zones.iter().for_each(|zone| count_worst(&mut pools, "web", zone.clone()));
            pools["web"].clone()
        };
        assert_eq!(worst(&[Compared::AsPlanned, Compared::AsPlanned]), Compared::AsPlanned);
        for zones in [[Compared::AsPlanned, Compared::Unknown], [Compared::Unknown, Compared::AsPlanned]] {
            assert_eq!(worst(&zones), Compared::Unknown);
        }
        for zones in [[unplanned("b"), Compared::Unknown], [Compared::Unknown, unplanned("b")]] {
            assert_eq!(worst(&zones), unplanned("b"));
        }
        assert_eq!(worst(&[unplanned("b"), Compared::AsPlanned, unplanned("c")]), unplanned("b"), "the first of these");
    }

    /// Reason of the condition after a reconcile of pool `a`, whose class now depends on machine type `b` and
    /// previously on `before`. `rolls` are the deployments whose roll was written by it.
    fn reason_after(saved: &PlannedRolls, before: &Generation, rolls: &[&str], updated: i32) -> Option<&'static str> {
        let mut objects = Objects::new(&json!({}));
        let annotation = (planned_rolls::ANNOTATION.to_owned(), saved.annotation().unwrap());
        objects.0.metadata.annotations = Some([annotation].into());
        let Objects(worker, cloud_profile, shoot, secrets) = &objects;
        let context = WorkerContext { worker, cloud_profile, shoot, secrets, dependencies: None };
        let mut pool = planned_pool().unwrap();
        pool.machines[0].hash_items.push("machineType", "b");
        let name = pool.machines[0].deployment.name.0.clone();
        let newest = Generation { class: "new".to_owned(), inputs: Some(machine_type("b")), ..before.clone() };
        let history =
            History { detail: Detail::Fields, generations: vec![newest, before.clone()], wait: None, mark: None };
        let document = json!({
            "metadata": {"name": name, "annotations": {ANNOTATION: history.write().unwrap()}},
            "status": {"replicas": 2, "updatedReplicas": updated},
        });
        let deployments = [(name, LiveDeployment::read_without_codes(document).unwrap())].into();
        let live = MachineObjects { deployments, ..MachineObjects::default() };
        let roll = |deployment: &&str| Roll {
            pool: "a".to_owned(),
            deployment: (*deployment).to_owned(),
            from: "old".to_owned(),
            to: "new".to_owned(),
            inputs: Vec::new(),
            cause: RollCause::Pool,
            is_in_place: false,
            waited_since: None,
        };
        let rolls: Vec<Roll> = rolls.iter().map(roll).collect();
        let plan = Plan { pools: vec![Ok(pool)], provider_status: json!({}), ..Plan::default() };
        rolls_as_planned(&context, &plan, &rolls, &live).map(|condition| condition.reason)
    }

    fn machine_type(value: &str) -> Inputs {
        inputs(&[("machineType", &digest("machineType", &[value]))])
    }

    /// A class with machine type `a`.
    fn before(since: &str, found: bool) -> Generation {
        let inputs = Some(machine_type("a"));
        Generation { class: "old".to_owned(), since: since.parse().unwrap(), found, inputs, owner: None }
    }

    #[test]
    fn evaluates_roll_while_old_machines_exist() {
        let nothing = planned(&[]);
        let earlier = "2026-11-22T09:59:59Z";
        let saved = "2026-11-22T10:00:00Z";
        let later = "2026-11-22T10:00:01Z";
        let this = &["shoot--p--s-a-z1"][..];
        let other = &["shoot--p--s-b-z1"][..];
        for (since, found, rolls, updated, reason, why) in [
            (earlier, false, this, 2, UNPLANNED, "it has just been written"),
            (earlier, false, other, 2, NONE, "another one has"),
            (later, false, &[], 1, UNPLANNED, "an old machine is left"),
            (saved, false, &[], 1, UNPLANNED, "it was written in the second of the saved rolls"),
            (later, false, &[], 2, NONE, "all machines are new"),
            (earlier, false, &[], 1, NONE, "it began before rolls were saved"),
            (later, true, &[], 1, NONE, "another program made the class, nobody knows when"),
        ] {
            assert_eq!(reason_after(&nothing, &before(since, found), rolls, updated), Some(reason), "{why}");
        }
    }

    #[test]
    fn compares_current_class_inputs() {
        let this = &["shoot--p--s-a-z1"][..];
        let before = before("2026-11-22T11:00:00Z", false);
        let saved = |value: &str| planned(&[("a", &[("machineType", &digest("machineType", &[value]))])]);
        assert_eq!(reason_after(&saved("b"), &before, this, 0), Some(PLANNED));
        assert_eq!(reason_after(&saved("c"), &before, this, 0), Some(UNPLANNED), "to another machine type");
        let unknown = Generation { inputs: None, ..before };
        assert_eq!(reason_after(&saved("b"), &unknown, this, 0), Some(NOT_COMPARABLE));
    }
}
