//! A shard, one of several processes that share the Workers of a seed, by the protocol of
//! kubernetes-controller-sharding (docs/operations.md#several-processes-for-one-seed). Defines its labels and their
//! meaning on a Worker.
//!
//! ```text
//!  Lease of the shard      alpha.sharding.timebertt.dev/controllerring=RING      membership
//!  Worker                  shard.alpha.sharding.timebertt.dev/RING=SHARD         assigned shard
//!                          drain.alpha.sharding.timebertt.dev/RING               drain requested
//! ```
//!
//! The sharder assigns Workers. To acknowledge a drain, a shard removes both labels from the Worker. It writes no
//! other labels.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Label of a Lease with the ring of its shard.
pub(crate) const RING_LABEL: &str = "alpha.sharding.timebertt.dev/controllerring";
/// Holder identity that the sharder writes into the lease of a dead shard.
pub(crate) const SHARDER: &str = "shardlease-controller";

/// Prefix of the label with the shard of an object, followed by the name of the ring.
const SHARD_LABEL: &str = "shard.alpha.sharding.timebertt.dev/";
/// Prefix of the label that requests a drain, followed by the name of the ring.
const DRAIN_LABEL: &str = "drain.alpha.sharding.timebertt.dev/";
/// Maximum length of a label part, which limits the names of rings and shards.
const LONGEST_NAME: usize = 63;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name of a {what}: at most 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends")]
pub struct InvalidName {
    what: &'static str,
    name: String,
}

/// One process of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    ring: String,
    name: String,
}

/// State of a Worker from the point of view of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The shard reconciles it.
    Assigned,
    /// The shard has to acknowledge a drain.
    Drained,
    /// It is unassigned or belongs to another shard.
    NotOurs,
}

impl Shard {
    /// Validates the names.
    ///
    /// # Errors
    /// If a name can't be part of a label or the name of a Lease.
    pub fn new(ring: &str, name: &str) -> Result<Self, InvalidName> {
        Ok(Self { ring: valid("ring", ring)?, name: valid("shard", name)? })
    }

    pub(crate) fn ring(&self) -> &str {
        &self.ring
    }

    /// Name of the shard and of its Lease.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Label selector for the Workers of this shard, including drained ones.
    pub(crate) fn selector(&self) -> String {
        format!("{}={}", self.shard_label(), self.name)
    }

    /// The state of a Worker with these labels.
    pub fn standing(&self, labels: Option<&BTreeMap<String, String>>) -> Standing {
        let label = |key: &str| labels.and_then(|labels| labels.get(key));
        match (label(&self.shard_label()), label(&self.drain_label())) {
            (Some(shard), None) if *shard == self.name => Standing::Assigned,
            (Some(shard), Some(_)) if *shard == self.name => Standing::Drained,
            _ => Standing::NotOurs,
        }
    }

    /// Acknowledges a drain: a merge patch of this version that removes both labels.
    pub fn acknowledgement(&self, version: u64) -> Value {
        let labels = json!({ self.shard_label(): null, self.drain_label(): null });
        json!({"metadata": {"resourceVersion": version.to_string(), "labels": labels}})
    }

    fn shard_label(&self) -> String {
        format!("{SHARD_LABEL}{}", self.ring)
    }

    fn drain_label(&self) -> String {
        format!("{DRAIN_LABEL}{}", self.ring)
    }
}

fn valid(what: &'static str, name: &str) -> Result<String, InvalidName> {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_part = |part: &str| is_end(part.as_bytes().first()) && is_end(part.as_bytes().last());
    let is_cached = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    match name.len() <= LONGEST_NAME && name.bytes().all(is_cached) && name.split('.').all(is_part) {
        true => Ok(name.to_owned()),
        // Repeats the input in the error, but no more than fits.
        false => Err(InvalidName { what, name: name.chars().take(LONGEST_NAME + 1).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// Expected values are the results of LabelShard and LabelDrain in v0.11.0, and its LabelControllerRing.
    #[test]
    fn labels_are_those_of_the_sharder() {
        let shard = Shard::new("workers", "worker-0").unwrap();
        assert_eq!(shard.selector(), "shard.alpha.sharding.timebertt.dev/workers=worker-0");
        assert_eq!(shard.drain_label(), "drain.alpha.sharding.timebertt.dev/workers");
        assert_eq!(RING_LABEL, "alpha.sharding.timebertt.dev/controllerring");
    }

    #[test]
    fn a_worker_is_reconciled_by_the_shard_that_its_label_names_until_it_is_drained() {
        let shard = Shard::new("r", "a").unwrap();
        let (own, drain) = ("shard.alpha.sharding.timebertt.dev/r", "drain.alpha.sharding.timebertt.dev/r");
        let other_ring = ("drain.alpha.sharding.timebertt.dev/other", "true");
        for (pairs, expected) in [
            ([(own, "a")].as_slice(), Standing::Assigned),
            (&[(own, "a"), other_ring], Standing::Assigned),
            (&[(own, "a"), (drain, "true")], Standing::Drained),
            (&[(own, "a"), (drain, "")], Standing::Drained),
            (&[(own, "b")], Standing::NotOurs),
            (&[(own, "b"), (drain, "true")], Standing::NotOurs),
            (&[(drain, "true")], Standing::NotOurs),
            (&[], Standing::NotOurs),
        ] {
            assert_eq!(shard.standing(Some(&labels(pairs))), expected, "{pairs:?}");
        }
        assert_eq!(shard.standing(None), Standing::NotOurs);
    }

    #[test]
    fn the_acknowledgement_takes_off_both_labels_of_one_version() {
        let patch = Shard::new("r", "a").unwrap().acknowledgement(7);
        let labels = json!({
            "shard.alpha.sharding.timebertt.dev/r": null,
            "drain.alpha.sharding.timebertt.dev/r": null,
        });
        assert_eq!(patch, json!({"metadata": {"resourceVersion": "7", "labels": labels}}));
    }

    #[test]
    fn names_that_are_no_labels_are_refused() {
        let longest = "a".repeat(63);
        for name in ["a", "worker-7d9f-x2", "worker.0", &longest] {
            assert!(Shard::new(name, name).is_ok(), "{name:?}");
        }
        for name in ["", "-a", "a-", "a..b", ".a", "A", "a_b", "a/b", "a=b,c", &"a".repeat(64)] {
            assert!(Shard::new(name, "a").is_err() && Shard::new("a", name).is_err(), "{name:?}");
        }
    }
}
