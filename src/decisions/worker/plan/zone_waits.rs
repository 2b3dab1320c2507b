//! Zones of a plan that wait for another zone of their pool, with their texts.

use jiff::Timestamp;

use crate::worker::plan::gate::WAIT_LIMIT;
use wire::api::bounded_text::{Bound, escaped, in_one_line, named, shortened};

/// Reason while zones wait.
pub const ZONES_WAIT: &str = "ZonesWait";
/// Reason while zones wait and a rolling zone fails because of its class.
pub const ZONE_FAILS: &str = "ZoneFails";
/// Maximum length of a list of zones in bytes.
const MOST_OF_ZONES: Bound = Bound::bytes(200);
/// Maximum length of a pool's name in bytes.
const MOST_OF_NAME: usize = 80;
/// Maximum length of a failure in bytes.
const MOST_OF_FAILURE: usize = 300;

/// Zones that wait, and zones that got their class although it was not their turn.
#[derive(Clone, Debug, Default)]
pub struct ZoneWaits {
    /// Whether the setting names a pool of the plan.
    pub is_in_use: bool,
    /// Pools with waiting zones, in the order of the plan.
    pub pools: Vec<WaitingPool>,
    /// Zones whose wait ended early.
    pub released: Vec<ReleasedZone>,
}

/// A pool with waiting zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPool {
    /// Name of the pool.
    pub pool: String,
    /// Its waiting zones, in the order of the pool.
    pub zones: Vec<WaitingZone>,
    /// Why they wait.
    pub cause: WaitCause,
}

/// A waiting zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingZone {
    /// Name of its MachineDeployment.
    pub deployment: String,
    /// Its number in the pool, from 1.
    pub number: usize,
    /// Name of the planned class.
    pub planned_class: String,
    /// Since when it waits for this class.
    pub since: Timestamp,
    /// Whether the whole template stays, because the name of the node agent Secret changes with the class.
    pub keeps_template: bool,
    /// Whether the wait begins with this plan.
    pub is_new: bool,
}

/// Why the zones of a pool wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The zones with these numbers roll.
    Rolling(Vec<usize>),
    /// The zones with these numbers fail because of their class.
    Failing {
        /// Their numbers.
        zones: Vec<usize>,
        /// Failure of one of their machines.
        failure: Option<String>,
    },
}

/// A zone whose wait ended although another zone still rolls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedZone {
    /// Name of the pool.
    pub pool: String,
    /// Name of its MachineDeployment.
    pub deployment: String,
    /// Its number in the pool, from 1.
    pub number: usize,
    /// Name of its new class.
    pub class: String,
    /// Since when it had waited.
    pub since: Timestamp,
    /// Whether it lacks a machine. Otherwise, it has waited for the longest time.
    pub lacks_machine: bool,
}

impl ZoneWaits {
    /// The wait of a MachineDeployment.
    #[must_use]
    pub fn of(&self, deployment: &str) -> Option<&WaitingZone> {
        let mut zones = self.pools.iter().flat_map(|pool| &pool.zones);
        zones.find(|zone| zone.deployment == deployment)
    }

    /// Number of pools by reason.
    #[must_use]
    pub fn numbers(&self) -> [(&'static str, usize); 2] {
        let count = |reason| self.pools.iter().filter(|pool| pool.reason() == reason).count();
        [ZONES_WAIT, ZONE_FAILS].map(|reason| (reason, count(reason)))
    }

    /// The earliest end of a wait.
    #[must_use]
    pub fn next_end(&self) -> Option<Timestamp> {
        let zones = self.pools.iter().flat_map(|pool| &pool.zones);
        zones.filter_map(|zone| zone.since.checked_add(WAIT_LIMIT).ok()).min()
    }
}

impl WaitingPool {
    /// Reason in the condition and the metric.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self.cause {
            WaitCause::Rolling(_) => ZONES_WAIT,
            WaitCause::Failing { .. } => ZONE_FAILS,
        }
    }

    /// Which zones wait for which, and how long.
    #[must_use]
    pub fn text(&self) -> String {
        let pool = quoted(&self.pool);
        let waiting: Vec<usize> = self.zones.iter().map(|zone| zone.number).collect();
        let waiting = zones_named(&waiting);
        let verb = if self.zones.len() == 1 { "waits" } else { "wait" };
        match &self.cause {
            WaitCause::Rolling(zones) => {
                let end = self.end().map_or_else(String::new, |end| format!(", until {} at the latest", seconds(end)));
                format!("pool {pool}: {waiting} {verb} for {}{end}", zones_named(zones))
            }
            WaitCause::Failing { zones, failure } => {
                let fails = if zones.len() == 1 { "fails" } else { "fail" };
                let failing = format!("{} {fails} because of the new class", zones_named(zones));
                let failure =
                    failure.as_deref().map(|failure| shortened(&escaped(&in_one_line(failure)), MOST_OF_FAILURE));
                let failure = failure.map_or_else(String::new, |failure| format!(" ({failure})"));
                format!("pool {pool}: {failing}{failure}, so {waiting} {verb} without a time limit")
            }
        }
    }

    /// When all its zones roll.
    fn end(&self) -> Option<Timestamp> {
        let since = self.zones.iter().map(|zone| zone.since).max()?;
        since.checked_add(WAIT_LIMIT).ok()
    }
}

/// The name of a pool as texts have it.
pub(crate) fn quoted(pool: &str) -> String {
    shortened(&format!("{pool:?}"), MOST_OF_NAME)
}

pub(super) fn zones_named(numbers: &[usize]) -> String {
    let word = if numbers.len() == 1 { "zone" } else { "zones" };
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("{word} {}", named(&numbers, MOST_OF_ZONES))
}

pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Waits of a pool, for tests.
#[cfg(any(test, feature = "testing"))]
pub mod test_support {
    use super::*;

    /// Zone 1 of pool `web` rolls, and zones 2 and 3 wait since this time.
    #[must_use]
    pub fn waiting_pool(since: Timestamp) -> WaitingPool {
        let zone = |number: usize| WaitingZone {
            deployment: format!("shoot--p--s-web-z{number}"),
            number,
            planned_class: format!("shoot--p--s-web-4f8a0-z{number}"),
            since,
            keeps_template: true,
            is_new: true,
        };
        WaitingPool { pool: "web".to_owned(), zones: vec![zone(2), zone(3)], cause: WaitCause::Rolling(vec![1]) }
    }
}

#[cfg(test)]
mod tests {
    use super::test_support::waiting_pool;
    use super::*;

    #[test]
    fn text_names_zones_and_the_end() {
        let mut pool = waiting_pool("2026-11-29T12:00:00Z".parse().unwrap());
        let text = r#"pool "web": zones 2, 3 wait for zone 1, until 2026-11-29T18:00:00Z at the latest"#;
        assert_eq!(pool.text(), text);
        pool.zones.pop();
        pool.cause = WaitCause::Rolling(vec![1, 3]);
        assert!(pool.text().contains("zone 2 waits for zones 1, 3, until"), "{}", pool.text());
        pool.cause = WaitCause::Failing { zones: vec![1], failure: Some("no such image".to_owned()) };
        let text = r#"pool "web": zone 1 fails because of the new class (no such image), so zone 2 waits without a time limit"#;
        assert_eq!(pool.text(), text);
    }

    #[test]
    fn text_is_bounded_and_escaped() {
        let mut pool = waiting_pool(Timestamp::MAX);
        pool.pool = "\u{1b}[2J".repeat(500);
        let zone = pool.zones[0].clone();
        pool.zones = (0..5000).map(|number| WaitingZone { number, ..zone.clone() }).collect();
        pool.cause = WaitCause::Failing { zones: (0..5000).collect(), failure: Some("\u{1b}".repeat(5000)) };
        let text = pool.text();
        assert!(text.len() < 1000 && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn next_end_is_the_earliest() {
        let [early, late] = ["2026-11-29T12:00:00Z", "2026-11-29T13:00:00Z"].map(|time| time.parse().unwrap());
        let waits = ZoneWaits { pools: vec![waiting_pool(late), waiting_pool(early)], ..ZoneWaits::default() };
        assert_eq!(waits.next_end(), Some("2026-11-29T18:00:00Z".parse().unwrap()));
        assert_eq!(ZoneWaits::default().next_end(), None);
    }
}
