//! How a roll or an update in place proceeds: how many machines more and how many fewer at a time
//! (machine-controller-manager v0.62, `ResolveFenceposts`).

use serde::Serialize;
use serde_json::Value;

/// The numbers of one deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SurgePlan {
    /// `maxSurge` of the deployment.
    pub max_surge: String,
    /// `maxUnavailable` of the deployment.
    pub max_unavailable: String,
    /// Machines above the wanted number.
    pub above: i64,
    /// Machines that may be missing.
    pub missing: i64,
    /// Whether a person selects the machines.
    pub manual: bool,
    /// Whether both numbers came to 0, and one missing machine is taken instead.
    pub both_zero: bool,
    /// Paths of bounds that are neither a number nor a percentage; they count as 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub malformed: Vec<String>,
}

/// The plan of a MachineDeployment document with that many replicas; `None` without a strategy that has bounds.
pub(super) fn surge_plan(deployment: &Value, replicas: i64) -> Option<SurgePlan> {
    let strategy = deployment.pointer("/spec/strategy")?;
    let kind = ["rollingUpdate", "inPlaceUpdate"].into_iter().find(|kind| strategy.get(kind).is_some())?;
    let bounds = &strategy[kind];
    let in_place = strategy["type"] == "InPlaceUpdate";
    let manual = in_place && bounds["orchestrationType"] == "Manual";
    let (surge, unavailable) = (&bounds["maxSurge"], &bounds["maxUnavailable"]);
    let mut malformed = Vec::new();
    let mut number = |member: &str, up| {
        resolve(&bounds[member], replicas, up).unwrap_or_else(|| {
            malformed.push(format!("spec.strategy.{kind}.{member}"));
            0
        })
    };
    // Rounded up and down, as percentages of what shall run.
    let above = if manual { 0 } else { number("maxSurge", true) };
    let mut missing = number("maxUnavailable", false);
    let both_zero = above == 0 && missing == 0;
    if both_zero {
        missing = 1;
    }
    Some(SurgePlan {
        max_surge: text(surge),
        max_unavailable: text(unavailable),
        above,
        missing: missing.min(replicas),
        manual,
        both_zero,
        malformed,
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.as_i64().unwrap_or_default().to_string(), str::to_owned)
}

/// An absent bound is 0; `None` where it is neither a number nor a percentage.
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

    fn plan_of(surge: &Value, unavailable: &Value, replicas: i64) -> SurgePlan {
        let strategy =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        surge_plan(&json!({"spec": {"strategy": strategy}}), replicas).unwrap()
    }

    fn plan(surge: &Value, unavailable: &Value, replicas: i64) -> (i64, i64, bool) {
        let plan = plan_of(surge, unavailable, replicas);
        assert_eq!(plan.malformed, [""; 0]);
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
    fn a_bound_that_is_no_number_is_named_with_its_place() {
        for malformed in [json!("25"), json!("a%"), json!("%"), json!(""), json!(true), json!(1.5)] {
            let plan = plan_of(&malformed, &json!(1), 5);
            assert_eq!(plan.malformed, ["spec.strategy.rollingUpdate.maxSurge"], "{malformed}");
        }
    }
}
