//! Pure: the condition `RollsHeld`. It is written only where zone by zone or a stop is or was in use, or the budget holds or
//! held a pool.

use serde_json::Value;

use crate::worker::plan::Plan;
use crate::worker::plan::roll_budget::{BUDGET_USED_UP, HeldPool};
use crate::worker::plan::stops::{STOPPED, StoppedPool};
use crate::worker::plan::zone_waits::{WaitingPool, ZONE_FAILS, ZONES_WAIT, quoted};
use crate::worker::status::conditions::{Condition, ConditionType};
use crate::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::listed;

/// The condition, with the most severe reason; `None` if no setting is in use and none was before. `present` are the
/// recorded conditions.
#[must_use]
pub fn rolls_held(plan: &Plan, present: &[Value]) -> Option<Condition> {
    let of_type = ConditionType::RollsHeld;
    let was_in_use = present.iter().any(|recorded| of_type.is_recorded_in(recorded));
    let on_hold = &plan.budget.held;
    let stopped = &plan.stops.pools;
    if !plan.waits.is_in_use && !plan.stops.is_in_use && on_hold.is_empty() && !was_in_use {
        return None;
    }
    if plan.waits.pools.is_empty() && stopped.is_empty() && on_hold.is_empty() {
        return Some(Condition::unmet(of_type, "NothingHeld", nothing_held(plan)));
    }
    let (failing, rolling): (Vec<_>, Vec<_>) = plan.waits.pools.iter().partition(|pool| pool.reason() == ZONE_FAILS);
    let reason = if !failing.is_empty() {
        ZONE_FAILS
    } else if !stopped.is_empty() {
        STOPPED
    } else if !on_hold.is_empty() {
        BUDGET_USED_UP
    } else {
        ZONES_WAIT
    };
    let failing = failing.into_iter().map(WaitingPool::text);
    let rolling = rolling.into_iter().map(WaitingPool::text);
    let stopped = stopped.iter().map(StoppedPool::text);
    let on_hold = on_hold.iter().map(HeldPool::text);
    let texts: Vec<String> = failing.chain(stopped).chain(on_hold).chain(rolling).collect();
    Some(Condition::met(of_type, reason, listed(&texts, MAX_FAILURE_BYTES)))
}

fn nothing_held(plan: &Plan) -> String {
    let mut text = match plan.budget.limit {
        None => "No zone waits for another zone of its pool.".to_owned(),
        Some(_) => "No zone waits for another zone of its pool, and no pool is on hold.".to_owned(),
    };
    if plan.stops.is_in_use {
        text.push_str(" No roll is in progress that the annotation stop-rolls could stop.");
    }
    text
}

/// What a text of the condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldText {
    /// Zones wait for another zone.
    ZonesWait,
    /// Zones wait for a zone that fails because of its class.
    ZoneFails,
    /// An annotation stops rolls.
    Stopped,
    /// The roll budget holds zones.
    OnHold,
}

/// The texts about a pool in the message of the condition. A message with many pools is shortened, so a pool may have
/// none.
#[must_use]
pub fn texts_of_pool<'a>(message: &'a str, pool: &str) -> Vec<(HeldText, &'a str)> {
    let start = format!("pool {}: ", quoted(pool));
    let starts = message.match_indices(&start).map(|(index, _)| index);
    let starts = starts.filter(|index| *index == 0 || message[..*index].ends_with("; "));
    let texts = starts.filter_map(|index| {
        let text = &message[index..];
        let text = text.find("; pool \"").map_or(text, |end| &text[..end]);
        let identity = text.strip_prefix(&start)?.split(';').next()?;
        let kind = if identity.contains(" because of the new class") {
            HeldText::ZoneFails
        } else if identity.contains(" stopped by the annotation") {
            HeldText::Stopped
        } else if identity.contains(" on hold") {
            HeldText::OnHold
        } else {
            HeldText::ZonesWait
        };
        Some((kind, text))
    });
    texts.collect()
}

/// Whether the message of the condition contains a hold of the pool.
#[must_use]
pub fn is_on_hold(pool: &str, message: &str) -> bool {
    texts_of_pool(message, pool).iter().any(|(kind, _)| *kind == HeldText::OnHold)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::worker::plan::roll_budget::BudgetDecisions;
    use crate::worker::plan::roll_budget::test_support::held_pool;
    use crate::worker::plan::stops::Stops;
    use crate::worker::plan::stops::test_support::stopped_pool;
    use crate::worker::plan::zone_waits::test_support::waiting_pool;
    use crate::worker::plan::zone_waits::{WaitCause, ZoneWaits};
    use crate::worker::status::conditions::ConditionStatus;

    #[test]
    fn condition_exists_only_with_the_setting() {
        let recorded = [json!({"type": "RollsHeld", "status": "True"})];
        let unused = Plan::default();
        assert_eq!(rolls_held(&unused, &[]), None);
        let waits = ZoneWaits { is_in_use: true, ..ZoneWaits::default() };
        let in_use = Plan { waits, ..Plan::default() };
        let stop_in_use = Plan { stops: Stops { is_in_use: true, ..Stops::default() }, ..Plan::default() };
        for (plan, present) in [(&unused, &recorded[..]), (&in_use, &[]), (&stop_in_use, &[])] {
            let condition = rolls_held(plan, present).unwrap();
            assert_eq!((condition.status, condition.reason), (ConditionStatus::False, "NothingHeld"));
        }
    }

    #[test]
    fn failing_zones_come_first() {
        let rolling = waiting_pool(Timestamp::UNIX_EPOCH);
        let cause = WaitCause::Failing { zones: vec![1], failure: None };
        let failing = WaitingPool { pool: "db".to_owned(), cause, ..rolling.clone() };
        let waits = |pools: &[&WaitingPool]| {
            let pools = pools.iter().map(|pool| (*pool).clone()).collect();
            Plan { waits: ZoneWaits { is_in_use: true, pools, ..ZoneWaits::default() }, ..Plan::default() }
        };
        assert_eq!(rolls_held(&waits(&[&rolling]), &[]).unwrap().reason, ZONES_WAIT);
        let condition = rolls_held(&waits(&[&rolling, &failing]), &[]).unwrap();
        assert_eq!((condition.status, condition.reason), (ConditionStatus::True, ZONE_FAILS));
        assert!(condition.message.starts_with(r#"pool "db": zone 1 fails"#), "{}", condition.message);
        assert!(condition.message.contains(r#"pool "web": zones 2, 3 wait for zone 1"#), "{}", condition.message);
    }

    #[test]
    fn stops_come_between_failing_zones_and_holds() {
        let stopped = stopped_pool(Timestamp::UNIX_EPOCH);
        let stops = Stops { is_in_use: true, pools: vec![stopped.clone()], ..Stops::default() };
        let mut plan = Plan { stops, ..Plan::default() };
        let condition = rolls_held(&plan, &[]).unwrap();
        assert_eq!((condition.status, condition.reason), (ConditionStatus::True, STOPPED));
        assert_eq!(condition.message, stopped.text());
        plan.budget = BudgetDecisions { limit: Some(3), held: vec![held_pool()], ..BudgetDecisions::default() };
        let condition = rolls_held(&plan, &[]).unwrap();
        assert_eq!(condition.reason, STOPPED);
        assert!(StoppedPool::is_in_message("web", &condition.message), "{}", condition.message);
        assert!(condition.message.contains("on hold"), "{}", condition.message);
        let cause = WaitCause::Failing { zones: vec![1], failure: None };
        let failing = WaitingPool { pool: "db".to_owned(), cause, ..waiting_pool(Timestamp::UNIX_EPOCH) };
        plan.waits.pools = vec![failing];
        assert_eq!(rolls_held(&plan, &[]).unwrap().reason, ZONE_FAILS);
    }

    #[test]
    fn pools_on_hold_come_after_failing_zones() {
        let budget = BudgetDecisions { limit: Some(3), held: vec![held_pool()], ..BudgetDecisions::default() };
        let mut plan = Plan { budget, ..Plan::default() };
        let condition = rolls_held(&plan, &[]).unwrap();
        assert_eq!((condition.status, condition.reason), (ConditionStatus::True, BUDGET_USED_UP));
        assert_eq!(condition.message, held_pool().text());
        assert!(is_on_hold("web", &condition.message) && !is_on_hold("db", &condition.message));
        plan.waits.pools = vec![waiting_pool(Timestamp::UNIX_EPOCH)];
        let condition = rolls_held(&plan, &[]).unwrap();
        assert_eq!(condition.reason, BUDGET_USED_UP, "more severe than zones that wait");
        assert!(condition.message.contains("zones 2, 3 wait for zone 1"), "{}", condition.message);
        assert!(is_on_hold("web", &condition.message));
        let texts = texts_of_pool(&condition.message, "web");
        let (on_hold, waiting) = (held_pool().text(), waiting_pool(Timestamp::UNIX_EPOCH).text());
        assert_eq!(texts, [(HeldText::OnHold, on_hold.as_str()), (HeldText::ZonesWait, waiting.as_str())]);
        assert_eq!(texts_of_pool(&condition.message, "eb"), []);
        let cause = WaitCause::Failing { zones: vec![1], failure: Some("the queue is on hold".to_owned()) };
        let failing = WaitingPool { cause, ..waiting_pool(Timestamp::UNIX_EPOCH) }.text();
        assert_eq!(texts_of_pool(&failing, "web"), [(HeldText::ZoneFails, failing.as_str())]);
        plan.budget.held.clear();
        let recorded = [json!({"type": "RollsHeld", "status": "True"})];
        let waiting = rolls_held(&plan, &recorded).unwrap();
        assert!(waiting.reason == ZONES_WAIT && !is_on_hold("web", &waiting.message));
        plan.waits.pools.clear();
        assert_eq!(rolls_held(&plan, &recorded).unwrap().status, ConditionStatus::False);
    }
}
