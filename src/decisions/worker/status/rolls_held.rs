//! Pure: the condition `RollsHeld`. It is written only where the setting is or was in use.

use serde_json::Value;

use crate::worker::plan::zone_waits::{WaitingPool, ZONE_FAILS, ZONES_WAIT, ZoneWaits};
use crate::worker::status::conditions::{Condition, ConditionType};
use crate::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::listed;

/// The condition; `None` if the setting is not in use and was not before. `present` are the recorded conditions.
#[must_use]
pub fn rolls_held(waits: &ZoneWaits, present: &[Value]) -> Option<Condition> {
    let of_type = ConditionType::RollsHeld;
    let was_in_use = present.iter().any(|recorded| of_type.is_recorded_in(recorded));
    if !waits.is_in_use && !was_in_use {
        return None;
    }
    if waits.pools.is_empty() {
        return Some(Condition::unmet(of_type, "NothingHeld", "No zone waits for another zone of its pool."));
    }
    let (failing, rolling): (Vec<_>, Vec<_>) = waits.pools.iter().partition(|pool| pool.reason() == ZONE_FAILS);
    let reason = if failing.is_empty() { ZONES_WAIT } else { ZONE_FAILS };
    let texts: Vec<String> = failing.into_iter().chain(rolling).map(WaitingPool::text).collect();
    Some(Condition::met(of_type, reason, listed(&texts, MAX_FAILURE_BYTES)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::worker::plan::zone_waits::WaitCause;
    use crate::worker::plan::zone_waits::test_support::waiting_pool;
    use crate::worker::status::conditions::ConditionStatus;

    #[test]
    fn condition_exists_only_with_the_setting() {
        let recorded = [json!({"type": "RollsHeld", "status": "True"})];
        let unused = ZoneWaits::default();
        assert_eq!(rolls_held(&unused, &[]), None);
        let in_use = ZoneWaits { is_in_use: true, ..ZoneWaits::default() };
        for (waits, present) in [(&unused, &recorded[..]), (&in_use, &[])] {
            let condition = rolls_held(waits, present).unwrap();
            assert_eq!((condition.status, condition.reason), (ConditionStatus::False, "NothingHeld"));
        }
    }

    #[test]
    fn failing_zones_come_first() {
        let rolling = waiting_pool(Timestamp::UNIX_EPOCH);
        let cause = WaitCause::Failing { zones: vec![1], failure: None };
        let failing = WaitingPool { pool: "db".to_owned(), cause, ..rolling.clone() };
        let waits = |pools: &[&WaitingPool]| ZoneWaits {
            is_in_use: true,
            pools: pools.iter().map(|pool| (*pool).clone()).collect(),
            ..ZoneWaits::default()
        };
        assert_eq!(rolls_held(&waits(&[&rolling]), &[]).unwrap().reason, ZONES_WAIT);
        let condition = rolls_held(&waits(&[&rolling, &failing]), &[]).unwrap();
        assert_eq!((condition.status, condition.reason), (ConditionStatus::True, ZONE_FAILS));
        assert!(condition.message.starts_with(r#"pool "db": zone 1 fails"#), "{}", condition.message);
        assert!(condition.message.contains(r#"pool "web": zones 2, 3 wait for zone 1"#), "{}", condition.message);
    }
}
