//! A sharder with the protocol of kubernetes-controller-sharding. It takes the lease of a shard that has not renewed it
//! for twice its duration, reassigns the Worker of such a shard, and occasionally drains it. `test/running` uses the
//! real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::sleep;

use crate::actor::{Actor, name_of};
use crate::api_server::kinds::{LEASE, WORKER};
use crate::api_server::store::Change;
use crate::documents::WORKER_NAME;
use crate::random::Random;

pub(crate) const LEASES: &str = "garden";
const RING: &str = "alpha.sharding.timebertt.dev/controllerring";
pub(crate) const SHARD: &str = "shard.alpha.sharding.timebertt.dev/ring";
pub(crate) const DRAIN: &str = "drain.alpha.sharding.timebertt.dev/ring";
/// Holder of a lease that the sharder has taken.
const SHARDER: &str = "shardlease-controller";

/// The sharder.
pub(crate) struct Sharder {
    pub(crate) leases: Actor,
    pub(crate) workers: Actor,
    pub(crate) random: Random,
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Whether it moves the Worker without need.
    pub(crate) rebalances: Arc<AtomicBool>,
}

impl Sharder {
    /// Runs until dropped.
    pub(crate) async fn run(self) {
        loop {
            sleep(self.random.millis(10, 1_500)).await;
            let shards = self.available();
            let Some(worker) = self.workers.get(&WORKER, WORKER_NAME) else { continue };
            let labels = &worker.value["metadata"]["labels"];
            let shard = labels[SHARD].as_str().unwrap_or_default();
            if !shards.iter().any(|known| known == shard) {
                self.assign(&shards);
            } else if labels[DRAIN].is_null()
                && self.rebalances.load(Ordering::Relaxed)
                && shards.len() > 1
                && self.random.happens(60)
            {
                self.workers.change(&WORKER, WORKER_NAME, |worker| worker["metadata"]["labels"][DRAIN] = json!("true"));
            }
        }
    }

    /// Available shards. Takes the leases of others.
    fn available(&self) -> Vec<String> {
        let mut available = Vec::new();
        for lease in self.leases.list(&LEASE) {
            let (name, spec) = (name_of(&lease.value).to_owned(), &lease.value["spec"]);
            if lease.value["metadata"]["labels"][RING].is_null() || spec["holderIdentity"] != name.as_str() {
                continue;
            }
            let renewed =
                spec["renewTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok()).unwrap_or_default();
            let seconds = spec["leaseDurationSeconds"].as_i64().unwrap_or_default();
            let now = (self.now)();
            if now.duration_since(renewed) < SignedDuration::from_secs(2 * seconds) {
                available.push(name);
                continue;
            }
            self.leases.change(&LEASE, &name, |lease| {
                lease["spec"]["holderIdentity"] = json!(SHARDER);
                lease["spec"]["leaseDurationSeconds"] = json!(2 * seconds);
                lease["spec"]["renewTime"] = json!(format!("{now:.6}"));
            });
        }
        available
    }

    /// Assigns the Worker to one of these shards.
    fn assign(&self, shards: &[String]) {
        let Some(shard) = self.random.one_of(shards) else { return };
        self.workers.change(&WORKER, WORKER_NAME, |worker| {
            let labels = &mut worker["metadata"]["labels"];
            if !labels.is_object() {
                *labels = json!({});
            }
            labels[SHARD] = json!(shard);
            if let Some(labels) = labels.as_object_mut() {
                labels.remove(DRAIN);
            }
        });
    }
}

/// Writes of a controller while the Worker belonged to another shard or none. Shards are named like their controllers.
pub(crate) fn of_another_shard(log: &[Change]) -> Vec<String> {
    let (mut shard, mut found) = (String::new(), Vec::new());
    for change in log {
        if change.author.starts_with("controller") && change.kind != &LEASE && change.author != shard {
            let Change { revision, author, kind, name, .. } = change;
            found.push(format!("#{revision} {author} writes {} {name} while the Worker is {shard:?}'s", kind.kind));
        }
        if change.kind == &WORKER && !change.is_deleted {
            change.after.value["metadata"]["labels"][SHARD].as_str().unwrap_or_default().clone_into(&mut shard);
        }
    }
    found
}
