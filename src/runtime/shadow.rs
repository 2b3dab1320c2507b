//! `--shadow`: a controller beside another one, which writes nothing. It plans each Worker that rests, compares what it would
//! write with what is there, and tells the differences as metrics and in the log.
//!
//! While an operation goes on nothing is compared: the other controller is about to write. What differs by what the watches
//! have shown is looked at once more as it is now, so that nothing is told that only had not arrived.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::{info, warn};

use super::controller::Shared;
use super::look::LookError;
use super::metrics::{Metrics, ShadowNumbers};
use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::preview::shadow::{ShadowDifference, shadow_differences};
use crate::provider::{Provider, WorkerError};
use crate::worker::decode;
use crate::worker::live::MachineObjects;
use crate::worker::observe;
use crate::worker::operation::{Decision, decide};
use crate::worker::plan::plan;

/// A Worker is looked at again after this time even if nothing is heard.
const AGAIN: Duration = Duration::from_secs(10 * 60);

/// How a Worker stands beside what we would make of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Every machine object is as we would write it.
    Same,
    /// Some are not.
    Differs(Vec<ShadowDifference>),
    /// An operation goes on.
    UnderWay,
    /// We can't plan it, or a pool of it.
    Unplanned(String),
}

/// How all Workers stand, by uid.
#[derive(Default)]
pub(super) struct Shadow(Mutex<HashMap<String, Standing>>);

impl Shadow {
    /// Tells how a Worker stands, in the log only what is new.
    pub(super) fn tell(&self, uid: &str, standing: Standing, metrics: &Metrics) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(uid) != Some(&standing) {
            match &standing {
                Standing::Same => info!("shadow: no difference"),
                Standing::Differs(differences) => {
                    for difference in differences {
                        warn!(pool = difference.pool, rolls = difference.roll.is_some(), "shadow: {difference}");
                    }
                }
                Standing::UnderWay => info!("shadow: an operation goes on"),
                Standing::Unplanned(why) => warn!(error = why, "shadow: can't be planned"),
            }
            all.insert(uid.to_owned(), standing);
        }
        metrics.shadow(numbers(all.values()));
    }

    /// The Worker is gone.
    pub(super) fn forget(&self, uid: &str, metrics: &Metrics) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.remove(uid).is_some() {
            metrics.shadow(numbers(all.values()));
        }
    }
}

fn numbers<'a>(standings: impl Iterator<Item = &'a Standing>) -> ShadowNumbers {
    let mut numbers = ShadowNumbers::default();
    for standing in standings {
        match standing {
            Standing::Same => numbers.same += 1,
            Standing::UnderWay => numbers.under_way += 1,
            Standing::Unplanned(_) => numbers.unplanned += 1,
            Standing::Differs(differences) => {
                numbers.differing += 1;
                for difference in differences {
                    *numbers.differences.entry((difference.kind, difference.would_be)).or_default() += 1;
                    if let Some(cause) = difference.roll {
                        *numbers.rolls.entry(cause.as_str()).or_default() += 1;
                    }
                }
            }
        }
    }
    numbers
}

/// Compares a Worker, and tells when to do it again.
pub(super) async fn look_at_worker(worker: &Worker, shadow: &Shadow, shared: &Shared) -> Result<Action, LookError> {
    let Some(provider) = shared.served.provider_of(worker) else { return Ok(Action::await_change()) };
    let uid = worker.uid().unwrap_or_default();
    if let Some(wait) = shared.pace.until_look(&uid, Instant::now()) {
        return Ok(Action::requeue(wait));
    }
    let standing = if rests(worker) { standing(worker, provider, shared).await } else { Ok(Standing::UnderWay) };
    shared.pace.looked(&uid, Instant::now());
    shadow.tell(&uid, standing?, &shared.metrics);
    shared.retries.forget(&uid);
    Ok(Action::requeue(AGAIN))
}

/// Whether nothing is asked of the other controller, and it has answered the last request.
fn rests(worker: &Worker) -> bool {
    decide(worker, Timestamp::now()) == Decision::Nothing
        && worker.metadata.deletion_timestamp.is_none()
        && worker.status.observed_generation == worker.metadata.generation
}

async fn standing(worker: &Worker, provider: &dyn Provider, shared: &Shared) -> Result<Standing, LookError> {
    let place = shared.place(worker);
    let Some(cluster) = place.cluster(false).await? else {
        let cluster = place.namespace().to_owned();
        return Ok(Standing::Unplanned(WorkerError::ClusterMissing { cluster }.to_string()));
    };
    let (secrets, live) = tokio::try_join!(place.secrets(worker, false), place.machine_objects())?;
    let mut standing = compare(worker, &cluster, &secrets, &live, provider);
    if standing != Standing::Same {
        // With everything that is in them, for where they differ.
        let cluster = place.cluster(true).await?.unwrap_or(cluster);
        let live = observe::machine_objects(place.client(), place.namespace());
        let (secrets, live) = tokio::try_join!(place.secrets(worker, true), live)?;
        standing = compare(worker, &cluster, &secrets, &live, provider);
    }
    place.rest(worker);
    Ok(standing)
}

fn compare(
    worker: &Worker,
    cluster: &Arc<Cluster>,
    secrets: &Secrets,
    live: &MachineObjects,
    provider: &dyn Provider,
) -> Standing {
    let compared = || -> Result<Standing, WorkerError> {
        let mut context = decode::context(worker, cluster, secrets)?;
        // No cloud is asked: what is recorded is taken for there.
        let dependencies = match provider.settled_cloud(context)? {
            Some(cloud) => provider.described_dependencies(context, &cloud)?,
            None => None,
        };
        context.dependencies = dependencies.as_ref();
        let plan = plan(provider, context)?;
        let unplanned: Vec<String> = plan.unplanned().map(ToString::to_string).collect();
        if !unplanned.is_empty() {
            return Ok(Standing::Unplanned(unplanned.join("; ")));
        }
        let differences = shadow_differences(&context, &plan, live, Timestamp::now());
        Ok(if differences.is_empty() { Standing::Same } else { Standing::Differs(differences) })
    };
    compared().unwrap_or_else(|error| Standing::Unplanned(error.to_string()))
}
