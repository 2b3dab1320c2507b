//! One of several processes that share the Workers of a seed, by the protocol of kubernetes-controller-sharding
//! (docs/operations.md#several-processes-for-one-seed): its labels, and how a Worker stands that has them.
//!
//! ```text
//!  Lease of the shard      alpha.sharding.timebertt.dev/controllerring=RING      membership
//!  Worker                  shard.alpha.sharding.timebertt.dev/RING=SHARD         whose it is
//!                          drain.alpha.sharding.timebertt.dev/RING               its shard has to let it go
//! ```
//!
//! The sharder assigns Workers. A shard removes both labels of a Worker that is drained; it writes no other label.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Label of a Lease: the ring that its shard belongs to.
pub(crate) const RING_LABEL: &str = "alpha.sharding.timebertt.dev/controllerring";
/// Holder of the lease of a shard that the sharder has given up.
pub(crate) const SHARDER: &str = "shardlease-controller";

/// Before the name of a ring, the label of an object with its shard.
const SHARD_LABEL: &str = "shard.alpha.sharding.timebertt.dev/";
/// Before the name of a ring, the label of an object that its shard has to let go.
const DRAIN_LABEL: &str = "drain.alpha.sharding.timebertt.dev/";
/// Rings and shards are parts of labels, which are not longer.
const LONGEST_NAME: usize = 63;

/// A name that the protocol does not allow.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name of a {what}: at most 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends")]
pub(crate) struct InvalidName {
    what: &'static str,
    name: String,
}

/// One process of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    ring: String,
    name: String,
}

/// How a Worker stands to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The shard reconciles it.
    Assigned,
    /// The shard has to let it go.
    Drained,
    /// It is another shard's, or nobody's yet.
    NotOurs,
}

impl Shard {
    /// The shard of that name in a ring.
    ///
    /// # Errors
    /// When one of both can't be part of a label, or the name of a Lease.
    pub(crate) fn new(ring: &str, name: &str) -> Result<Self, InvalidName> {
        Ok(Self { ring: valid("ring", ring)?, name: valid("shard", name)? })
    }

    /// The ring.
    pub(crate) fn ring(&self) -> &str {
        &self.ring
    }

    /// Its name, which its Lease has too.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Selects the Workers of this shard, those that it has to let go among them.
    pub(crate) fn selector(&self) -> String {
        format!("{}={}", self.shard_label(), self.name)
    }

    /// How a Worker with these labels stands.
    pub(crate) fn standing(&self, labels: Option<&BTreeMap<String, String>>) -> Standing {
        let label = |key: &str| labels.and_then(|labels| labels.get(key));
        match (label(&self.shard_label()), label(&self.drain_label())) {
            (Some(shard), None) if *shard == self.name => Standing::Assigned,
            (Some(shard), Some(_)) if *shard == self.name => Standing::Drained,
            _ => Standing::NotOurs,
        }
    }

    /// Lets an object in that version go: a merge patch that takes both labels off.
    pub(crate) fn acknowledgement(&self, version: u64) -> Value {
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
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    match name.len() <= LONGEST_NAME && name.bytes().all(is_known) && name.split('.').all(is_part) {
        true => Ok(name.to_owned()),
        // Who runs the program gets back what was typed, and not more of it than fits.
        false => Err(InvalidName { what, name: name.chars().take(LONGEST_NAME + 1).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// What the functions LabelShard and LabelDrain of v0.11.0 return, and its LabelControllerRing.
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
