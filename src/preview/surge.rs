//! How a roll or an update in place proceeds: how many extra and how many missing machines it may have at a time
//! (machine-controller-manager v0.62, `ResolveFenceposts`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::gotext::duration::Duration;

/// The resolved bounds of one deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SurgePlan {
    /// `maxSurge` of the deployment.
    pub max_surge: String,
    /// `maxUnavailable` of the deployment.
    pub max_unavailable: String,
    /// Machines above the target number.
    pub above: i64,
    /// Machines that may be missing.
    pub missing: i64,
    /// Whether a user selects the machines.
    pub manual: bool,
    /// Whether both bounds resolve to 0, so that one missing machine is allowed instead.
    pub both_zero: bool,
    /// The duration according to the settings; absent without machines, and if a user selects them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

/// How long a roll or an update in place takes according to its settings, in seconds. The time that machines need to
/// start and nodes need to drain or update is unknown, so their timeouts are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// Upper bound: every round uses its timeouts in full.
    pub longest_seconds: i64,
    /// Lower bound: machines start and drain without delay.
    pub shortest_seconds: i64,
    /// Number of rounds; in each, as many machines are replaced or updated as the bounds allow.
    pub rounds: i64,
    /// How long a new machine must be ready before it is available.
    pub min_ready_seconds: i64,
    /// How long a machine may take until its node joins.
    pub creation_timeout_seconds: i64,
    /// How long a node may take to drain.
    pub drain_timeout_seconds: i64,
    /// How long a node may take to be updated in place; absent for a roll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_update_timeout_seconds: Option<i64>,
}

/// Defaults of machine-controller-manager for pools without these settings, in seconds.
const CREATION_TIMEOUT: i64 = 20 * 60;
const DRAIN_TIMEOUT: i64 = 2 * 60 * 60;
const IN_PLACE_UPDATE_TIMEOUT: i64 = 20 * 60;

/// Computes the plan of a MachineDeployment document with this number of replicas. Returns `None` without a strategy
/// with valid bounds, which are numbers or percentages.
pub(super) fn surge_plan(deployment: &Value, replicas: i64) -> Option<SurgePlan> {
    let strategy = deployment.pointer("/spec/strategy")?;
    let kind = ["rollingUpdate", "inPlaceUpdate"].into_iter().find(|kind| strategy.get(kind).is_some())?;
    let bounds = &strategy[kind];
    let in_place = strategy["type"] == "InPlaceUpdate";
    let manual = in_place && bounds["orchestrationType"] == "Manual";
    let (surge, unavailable) = (&bounds["maxSurge"], &bounds["maxUnavailable"]);
    // Percentages refer to the target number; the surge is rounded up and unavailability down.
    let above = if manual { 0 } else { resolve(surge, replicas, true)? };
    let mut missing = resolve(unavailable, replicas, false)?;
    let both_zero = above == 0 && missing == 0;
    if both_zero {
        missing = 1;
    }
    let missing = missing.min(replicas);
    let pace = || pace(deployment, replicas, (above, missing), in_place);
    Some(SurgePlan {
        pace: if manual { None } else { pace() },
        max_surge: text(surge),
        max_unavailable: text(unavailable),
        above,
        missing,
        manual,
        both_zero,
    })
}

fn pace(deployment: &Value, replicas: i64, (above, missing): (i64, i64), in_place: bool) -> Option<Pace> {
    let at_once = above.saturating_add(missing);
    if replicas <= 0 || at_once <= 0 {
        return None;
    }
    let timeout = |member: &str, default: i64| {
        let text = deployment.pointer("/spec/template/spec").and_then(|spec| spec.get(member)?.as_str());
        let parsed = text.and_then(|text| Duration::parse(text).ok());
        parsed.map_or(default, |timeout| (timeout.nanoseconds() / 1_000_000_000).max(0))
    };
    let min_ready_seconds =
        deployment.pointer("/spec/minReadySeconds").and_then(Value::as_i64).unwrap_or_default().max(0);
    let [creation, drain] = [timeout("creationTimeout", CREATION_TIMEOUT), timeout("drainTimeout", DRAIN_TIMEOUT)];
    let rounds = replicas.saturating_add(at_once - 1) / at_once;
    let update = in_place.then(|| timeout("inPlaceUpdateTimeout", IN_PLACE_UPDATE_TIMEOUT));
    let round = min_ready_seconds.saturating_add(drain).saturating_add(update.unwrap_or(creation));
    // Extra machines are created once, before the others are updated.
    let first = if in_place && above > 0 { creation } else { 0 };
    Some(Pace {
        longest_seconds: round.saturating_mul(rounds).saturating_add(first),
        shortest_seconds: min_ready_seconds.saturating_mul(rounds),
        rounds,
        min_ready_seconds,
        creation_timeout_seconds: creation,
        drain_timeout_seconds: drain,
        in_place_update_timeout_seconds: update,
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.as_i64().unwrap_or_default().to_string(), str::to_owned)
}

/// An absent bound is 0. Returns `None` if the value is neither a number nor a percentage.
fn resolve(value: &Value, replicas: i64, up: bool) -> Option<i64> {
    if value.is_null() || value.is_i64() {
        return Some(value.as_i64().unwrap_or_default());
    }
    let share = value.as_str()?.strip_suffix('%')?.parse::<i64>().ok()?.saturating_mul(replicas);
    Some(if up { share.saturating_add(99) / 100 } else { share / 100 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(surge: &Value, unavailable: &Value, replicas: i64) -> (i64, i64, bool) {
        let strategy =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let plan = surge_plan(&json!({"spec": {"strategy": strategy}}), replicas).unwrap();
        (plan.above, plan.missing, plan.both_zero)
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        assert_eq!(plan(&json!("25%"), &json!("25%"), 5), (2, 1, false));
        assert_eq!(plan(&json!(1), &json!(0), 5), (1, 0, false));
        assert_eq!(plan(&json!(0), &json!("10%"), 5), (0, 1, true));
        assert_eq!(plan(&json!(0), &json!(0), 0), (0, 0, true));
        assert_eq!(plan(&json!(1), &json!(null), 5), (1, 0, false));
    }

    #[test]
    fn an_update_in_place_takes_as_many_rounds_and_no_new_machines() {
        let pace = |bounds: Value, of_template: Value| {
            let strategy = json!({"type": "InPlaceUpdate", "inPlaceUpdate": bounds});
            let spec = json!({"strategy": strategy, "minReadySeconds": 500, "template": {"spec": of_template}});
            let pace = surge_plan(&json!({"spec": spec}), 5).unwrap().pace;
            pace.map(|pace| (pace.rounds, pace.shortest_seconds, pace.longest_seconds))
        };
        let auto =
            |surge: u8, missing: u8| json!({"orchestrationType": "Auto", "maxSurge": surge, "maxUnavailable": missing});
        assert_eq!(pace(auto(0, 2), json!({})), Some((3, 1500, 3 * (500 + 7200 + 1200))));
        let timeouts = json!({"drainTimeout": "10m0s", "inPlaceUpdateTimeout": "5m0s", "creationTimeout": "15m0s"});
        assert_eq!(pace(auto(1, 0), timeouts), Some((5, 2500, 5 * (500 + 600 + 300) + 900)));
        assert_eq!(pace(json!({"orchestrationType": "Manual", "maxUnavailable": 1}), json!({})), None);
    }

    #[test]
    fn a_roll_takes_as_many_rounds_as_its_bounds_make_of_it() {
        let pace = |surge: Value, missing: Value, replicas: i64, of_template: Value| {
            let bounds = json!({"maxSurge": surge, "maxUnavailable": missing});
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": bounds});
            let spec = json!({"strategy": strategy, "minReadySeconds": 500, "template": {"spec": of_template}});
            let pace = surge_plan(&json!({"spec": spec}), replicas).unwrap().pace;
            pace.map(|pace| (pace.rounds, pace.shortest_seconds, pace.longest_seconds))
        };
        assert_eq!(pace(json!(3), json!(0), 7, json!({})), Some((3, 1500, 3 * (500 + 1200 + 7200))));
        assert_eq!(
            pace(json!("50%"), json!("50%"), 7, json!({"drainTimeout": "10m0s"})),
            Some((1, 500, 500 + 1200 + 600))
        );
        assert_eq!(pace(json!(0), json!(0), 2, json!({"creationTimeout": "-1s"})), Some((2, 1000, 2 * (500 + 7200))));
        assert_eq!(pace(json!(1), json!(0), 0, json!({})), None);
        let longest = pace(json!(1), json!(0), i64::MAX, json!({"drainTimeout": "2562047h"})).unwrap();
        assert_eq!(longest.2, i64::MAX, "nothing overflows");
    }
}
