//! Pure: readiness of the pools, as written to and parsed from the condition `PoolsReady`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::worker::machines::progress::Progress;
use crate::worker::plan::Plan;
use crate::worker::status::status_text::TextSize;
use wire::api::bounded_text::{Bound, named};

/// Type of the condition.
pub(crate) const POOLS_READY: &str = "PoolsReady";

/// Pools that are not ready, by reason. It is written to the message of `PoolsReady` and parsed from there, so that
/// transitions are detected after a restart too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolReadiness {
    /// Pools with failed machines.
    pub failed: PoolList,
    /// Pools that could not be planned.
    pub not_deployed: PoolList,
    /// Pools that wait for machines.
    pub pending: PoolList,
}

/// Names of pools, and the number of those that did not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolList {
    names: BTreeSet<String>,
    unnamed: usize,
}

impl PoolList {
    fn of<'a>(pools: impl Iterator<Item = &'a str>) -> Self {
        Self { names: pools.map(name_in_list).collect(), unnamed: 0 }
    }

    /// Parses the output of [`PoolList::text`].
    fn read(text: &str) -> Self {
        let counted = text.strip_suffix(" more").and_then(|text| text.rsplit_once(" and "));
        let counted = counted.and_then(|(names, count)| Some((names, count.parse().ok()?)));
        let (names, unnamed) = counted.unwrap_or((text, 0));
        let names = names.split(", ").filter(|name| !name.is_empty());
        Self { names: names.map(str::to_owned).collect(), unnamed }
    }

    fn text(&self, bytes: usize) -> String {
        let names: Vec<&String> = self.names.iter().collect();
        let text = named(&names, Bound::bytes(bytes.saturating_sub(OMITTED_COUNT_BYTES)));
        match self.unnamed {
            0 => text,
            unnamed => {
                let read = Self::read(&text);
                let names: Vec<&String> = read.names.iter().collect();
                let all = Bound { items: usize::MAX, bytes: usize::MAX };
                format!("{} and {} more", named(&names, all), read.unnamed + unnamed)
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.unnamed == 0
    }

    /// Whether the list names the pool.
    #[must_use]
    pub fn contains(&self, pool: &str) -> bool {
        self.names.contains(&name_in_list(pool))
    }
}

/// Bytes reserved for the number of omitted pools.
const OMITTED_COUNT_BYTES: usize = 32;

/// A name as it appears in a list. Characters that no Kubernetes name contains are replaced, because they would break
/// parsing.
fn name_in_list(pool: &str) -> String {
    let character = |one: char| if one.is_alphanumeric() || "-._".contains(one) { one } else { '_' };
    pool.chars().take(LONGEST_NAME).map(character).collect()
}

/// The longest name of a Kubernetes object.
const LONGEST_NAME: usize = 253;

impl PoolReadiness {
    /// The current readiness.
    #[must_use]
    pub fn of(plan: &Plan, progress: &Progress) -> Self {
        let failed = PoolList::of(progress.failed().map(|(deployment, _)| deployment.pool.as_str()));
        let awaited = plan.awaited().map(|error| error.pool.as_str());
        let mut pending = PoolList::of(progress.pending_pools().into_iter().chain(awaited));
        pending.names.retain(|pool| !failed.names.contains(pool));
        Self { not_deployed: PoolList::of(plan.errors().map(|error| error.pool.as_str())), failed, pending }
    }

    /// The readiness according to the recorded conditions; `None` if it is not recorded.
    #[must_use]
    pub fn recorded(present: &[Value]) -> Option<Self> {
        let condition = present.iter().find(|condition| condition["type"] == POOLS_READY)?;
        if condition["status"] == "True" {
            return Some(Self::default());
        }
        Self::read(condition["message"].as_str()?)
    }

    /// Parses the output of [`PoolReadiness::text`].
    pub(crate) fn read(message: &str) -> Option<Self> {
        let mut readiness = Self::default();
        for part in message.split("; ") {
            let (label, pools) = part.split_once(": ")?;
            let pools = PoolList::read(pools);
            match label {
                FAILED => readiness.failed = pools,
                NOT_DEPLOYED => readiness.not_deployed = pools,
                PENDING => readiness.pending = pools,
                _ => return None,
            }
        }
        Some(readiness)
    }

    /// Whether no list names the pool.
    #[must_use]
    pub fn is_ready(&self, pool: &str) -> bool {
        !self.lists().iter().any(|(_, pools)| pools.contains(pool))
    }

    /// Whether the state of the pool is known. It is not if the pool may be one of those that did not fit into a list.
    #[must_use]
    pub fn is_known(&self, pool: &str) -> bool {
        !self.is_ready(pool) || self.lists().iter().all(|(_, pools)| pools.unnamed == 0)
    }

    fn lists(&self) -> [(&'static str, &PoolList); 3] {
        [(FAILED, &self.failed), (NOT_DEPLOYED, &self.not_deployed), (PENDING, &self.pending)]
    }

    pub(crate) fn text(&self, texts: TextSize) -> String {
        let parts = self.lists().into_iter().filter(|(_, pools)| !pools.is_empty());
        let parts = parts.map(|(label, pools)| format!("{label}: {}", pools.text(texts.of_pool_list())));
        parts.collect::<Vec<_>>().join("; ")
    }
}

const FAILED: &str = "Machines failed";
const NOT_DEPLOYED: &str = "Not deployed";
const PENDING: &str = "Waiting for machines";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_written_readiness() {
        let pools = |names: &[&str]| PoolList::of(names.iter().copied());
        let readiness =
            PoolReadiness { failed: pools(&["a"]), not_deployed: pools(&["b", "c"]), pending: pools(&["d"]) };
        let text = readiness.text(TextSize::Full);
        assert_eq!(text, "Machines failed: a; Not deployed: b, c; Waiting for machines: d");
        let condition =
            |status: &str, message: &str| json!({"type": "PoolsReady", "status": status, "message": message});
        assert_eq!(PoolReadiness::recorded(&[condition("False", &text)]), Some(readiness));
        assert_eq!(
            PoolReadiness::recorded(&[condition("True", "All 4 pools are ready.")]),
            Some(PoolReadiness::default())
        );
        assert_eq!(PoolReadiness::recorded(&[condition("False", "another program's words")]), None);
        assert_eq!(PoolReadiness::recorded(&[]), None);
    }

    #[test]
    fn omitted_pools_are_unknown() {
        let names: Vec<String> = (0..1000).map(|number| format!("pool-{number:03}")).collect();
        let readiness =
            PoolReadiness { failed: PoolList::of(names.iter().map(String::as_str)), ..PoolReadiness::default() };
        let full = readiness.text(TextSize::Full);
        assert_eq!(PoolReadiness::read(&full), Some(readiness.clone()), "a thousand pools are named");
        let short = readiness.text(TextSize::Short);
        assert!(short.len() <= 1100 && short.ends_with(" more"), "{short}");
        let read = PoolReadiness::read(&short).unwrap();
        assert_eq!(read.text(TextSize::Short), short, "as it was written");
        assert!(!read.is_ready("pool-000") && read.is_known("pool-000"));
        assert!(!read.is_known("pool-999") && !read.is_known("another"));
        let shortest = read.text(TextSize::Shortest);
        let counted = shortest.rsplit(' ').nth(1).unwrap().parse::<usize>().unwrap();
        assert_eq!(counted + shortest.matches("pool-").count(), 1000, "{shortest}");
    }
}
