//! Computes the pace of a roll or an in-place update: additional and missing machines at a time, and the duration.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use decisions::pool::roll_bounds::RollBounds;
use wire::api::gotext::duration::Duration;

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

/// The duration of a roll or an in-place update according to its settings, in seconds. Actual times for creating machines
/// and for draining or updating nodes are unknown, so the timeouts are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// The duration if every round takes five minutes only.
    pub usual_seconds: i64,
    /// The duration if every round uses its timeouts in full.
    pub longest_seconds: i64,
    /// Number of rounds, each of as many machines as may be replaced or updated at a time.
    pub rounds: i64,
    /// Maximum time from the creation of a machine until its node has joined.
    pub creation_timeout_seconds: i64,
    /// Maximum time for draining a node.
    pub drain_timeout_seconds: i64,
    /// Maximum time for updating a node in place; absent for a roll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_update_timeout_seconds: Option<i64>,
}

impl Pace {
    /// The duration of zones that roll at the same time: that of the slowest.
    pub(super) fn or_slower(self, other: Self) -> Self {
        self.max(other)
    }

    /// The duration of zones that roll one after the other.
    pub(super) fn then(self, next: Self) -> Self {
        Self {
            usual_seconds: self.usual_seconds.saturating_add(next.usual_seconds),
            longest_seconds: self.longest_seconds.saturating_add(next.longest_seconds),
            rounds: self.rounds.saturating_add(next.rounds),
            ..self
        }
    }
}

/// An assumed round without waiting, in seconds: until new nodes are ready, and old ones are drained.
pub(super) const USUAL_ROUND: i64 = 5 * 60;
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
    let surge = &bounds["maxSurge"];
    let unavailable = &bounds["maxUnavailable"];
    let RollBounds { above, missing, both_zero } = roll_bounds(surge, unavailable, manual, replicas)?;
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
    let [creation, drain] = [timeout("creationTimeout", CREATION_TIMEOUT), timeout("drainTimeout", DRAIN_TIMEOUT)];
    let rounds = replicas.saturating_add(at_once - 1) / at_once;
    let update = in_place.then(|| timeout("inPlaceUpdateTimeout", IN_PLACE_UPDATE_TIMEOUT));
    // A running machine is available immediately: `minReadySeconds` has no effect.
    let round = drain.saturating_add(update.unwrap_or(creation));
    // Machines above the target number are created once, before the others are updated.
    let first = if in_place && above > 0 { creation } else { 0 };
    let longest_seconds = round.saturating_mul(rounds).saturating_add(first);
    Some(Pace {
        usual_seconds: USUAL_ROUND.saturating_mul(rounds).min(longest_seconds),
        longest_seconds,
        rounds,
        creation_timeout_seconds: creation,
        drain_timeout_seconds: drain,
        in_place_update_timeout_seconds: update,
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.as_i64().unwrap_or_default().to_string(), str::to_owned)
}

/// The bounds of a document. Manual in-place updates create no additional machines, so `surge` does not apply.
fn roll_bounds(surge: &Value, unavailable: &Value, manual: bool, replicas: i64) -> Option<RollBounds> {
    let bound = |value: &Value| serde_json::from_value::<Option<IntOrString>>(value.clone()).ok();
    let surge = if manual { None } else { bound(surge)? };
    RollBounds::of(surge.as_ref(), bound(unavailable)?.as_ref(), replicas)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn zones_one_after_the_other_add_up() {
        let pace = |replicas| {
            let bounds = json!({"maxSurge": 1, "maxUnavailable": 0});
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": bounds});
            surge_plan(&json!({"spec": {"strategy": strategy}}), replicas).unwrap().pace.unwrap()
        };
        let both = pace(2).then(pace(3));
        assert_eq!((both.rounds, both.usual_seconds), (5, 5 * USUAL_ROUND));
        assert_eq!(both.longest_seconds, pace(5).longest_seconds);
        assert_eq!(pace(2).or_slower(pace(3)), pace(3));
    }

    #[test]
    fn an_update_in_place_takes_as_many_rounds_and_no_new_machines() {
        let pace = |bounds: Value, of_template: Value| {
            let strategy = json!({"type": "InPlaceUpdate", "inPlaceUpdate": bounds});
            let spec = json!({"strategy": strategy, "minReadySeconds": 500, "template": {"spec": of_template}});
            let pace = surge_plan(&json!({"spec": spec}), 5).unwrap().pace;
            pace.map(|pace| (pace.rounds, pace.longest_seconds))
        };
        let auto =
            |surge: u8, missing: u8| json!({"orchestrationType": "Auto", "maxSurge": surge, "maxUnavailable": missing});
        assert_eq!(pace(auto(0, 2), json!({})), Some((3, 3 * (7200 + 1200))));
        let timeouts = json!({"drainTimeout": "10m0s", "inPlaceUpdateTimeout": "5m0s", "creationTimeout": "15m0s"});
        assert_eq!(pace(auto(1, 0), timeouts), Some((5, 5 * (600 + 300) + 900)));
        assert_eq!(pace(json!({"orchestrationType": "Manual", "maxUnavailable": 1}), json!({})), None);
    }

    #[test]
    fn a_roll_takes_as_many_rounds_as_its_bounds_make_of_it() {
        let pace = |surge: Value, missing: Value, replicas: i64, of_template: Value| {
            let bounds = json!({"maxSurge": surge, "maxUnavailable": missing});
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": bounds});
            let spec = json!({"strategy": strategy, "minReadySeconds": 500, "template": {"spec": of_template}});
            let pace = surge_plan(&json!({"spec": spec}), replicas).unwrap().pace;
            pace.map(|pace| (pace.rounds, pace.longest_seconds))
        };
        assert_eq!(pace(json!(3), json!(0), 7, json!({})), Some((3, 3 * (1200 + 7200))));
        assert_eq!(pace(json!("50%"), json!("50%"), 7, json!({"drainTimeout": "10m0s"})), Some((1, 1200 + 600)));
        assert_eq!(pace(json!(0), json!(0), 2, json!({"creationTimeout": "-1s"})), Some((2, 2 * 7200)));
        assert_eq!(pace(json!(1), json!(0), 0, json!({})), None);
        let longest = pace(json!(1), json!(0), i64::MAX, json!({"drainTimeout": "2562047h"})).unwrap();
        assert_eq!(longest.1, i64::MAX, "nothing overflows");
    }
}
