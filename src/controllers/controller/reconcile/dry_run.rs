//! `--shadow`: a controller that runs next to another one and writes nothing. It plans each steady Worker, compares
//! the plan with the live objects, and reports the differences as metrics and in the log.
//!
//! During an operation it compares nothing, because the other controller is about to write. If the store shows
//! differences, a fresh read confirms them, so that a watch that is behind does not cause false reports.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::controller::queue::Requeue;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::RESYNC_PERIOD;
use crate::controller::report::metrics::ShadowNumbers;
use crate::controller::run::context::ControllerContext;
use decisions::provider::Provider;
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::plan::zone_facts::GateInputs;
use decisions::worker::request::{Decision, Operation, Request};
use explanations::preview::dry_run::{Comparison, object_differences};
use runtime::cluster::machine_reads;
use wire::api::bounded_text::listed;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// How often the summary of all Workers is logged if it has changed.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum size of a log line about pools that can't be planned.
const MAX_LOG_BYTES: usize = 16 * 1024;

/// Records the comparison of a Worker. Logs it only if it has changed.
pub(crate) fn record(uid: &str, comparison: Comparison, controller: &ControllerContext) {
    if controller.memory.of(uid, |memory| memory.comparison_changed(&comparison)) {
        match &comparison {
            Comparison::Same => debug!("dry run: no difference"),
            Comparison::Differs(differences) => {
                for difference in differences {
                    warn!(pool = difference.pool, rolls = difference.roll.is_some(), "dry run: {difference}");
                }
            }
            Comparison::UnderWay => debug!("dry run: an operation continues"),
            Comparison::Unplanned(why) => warn!(error = why, "dry run: the Worker is invalid"),
        }
    }
    update_metrics(controller);
}

/// Logs the number of Workers by comparison result whenever it has changed. Never returns.
pub(crate) async fn log_summaries(controller: &ControllerContext) {
    let mut logged = ShadowNumbers::default();
    loop {
        tokio::time::sleep(SUMMARY_INTERVAL).await;
        let numbers = controller.memory.comparisons(count);
        if numbers != logged {
            let ShadowNumbers { same, differing, under_way, unplanned, differences: _, rolls: _ } = &numbers;
            info!(same, differing, under_way, invalid = unplanned, "dry run: Workers compared");
            logged = numbers;
        }
    }
}

/// Updates the metrics from the comparisons of all Workers.
pub(crate) fn update_metrics(controller: &ControllerContext) {
    controller.metrics.shadow(controller.memory.comparisons(count));
}

fn count(numbers: &mut ShadowNumbers, comparison: &Comparison) {
    match comparison {
        Comparison::Same => numbers.same += 1,
        Comparison::UnderWay => numbers.under_way += 1,
        Comparison::Unplanned(_) => numbers.unplanned += 1,
        Comparison::Differs(differences) => {
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

/// Compares a Worker and returns when to requeue it.
pub(crate) async fn compare_worker(worker: &Worker, controller: &ControllerContext) -> Result<Requeue, ReconcileError> {
    let Some(provider) = controller.served.provider_of(worker) else { return Ok(Requeue::OnEvent) };
    let uid = worker.uid().unwrap_or_default();
    if let Some(wait) = controller.memory.of(&uid, |memory| memory.rate_limit.until_reconcile(Instant::now())) {
        return Ok(Requeue::After(wait));
    }
    let compared = if is_steady(worker, controller.clock.now()) {
        compare_steady(worker, provider, controller).await
    } else {
        Ok(Comparison::UnderWay)
    };
    controller.memory.of(&uid, |memory| memory.rate_limit.reconciled(Instant::now()));
    record(&uid, compared?, controller);
    controller.memory.of(&uid, |memory| memory.backoff.reset());
    Ok(Requeue::After(RESYNC_PERIOD))
}

/// Whether no operation is pending and the other controller has finished the last one.
fn is_steady(worker: &Worker, now: Timestamp) -> bool {
    Request::of(worker, now).decide(worker) == Decision::Nothing
        && worker.metadata.deletion_timestamp.is_none()
        && worker.status.observed_generation == worker.metadata.generation
}

async fn compare_steady(
    worker: &Worker,
    provider: &'static dyn Provider,
    controller: &ControllerContext,
) -> Result<Comparison, ReconcileError> {
    let shoot = controller.shoot_namespace(worker.metadata.namespace.as_deref().unwrap_or_default(), provider);
    let shoot = shoot.beside(controller.other_workers(worker));
    let cluster = shoot.cluster(false).await?;
    let (mut secrets, live) = tokio::try_join!(shoot.secrets(worker, false), shoot.machine_objects())?;
    let now = controller.clock.now();
    let budget = controller.budget_of(worker);
    let inputs = |live| GateInputs { provider, operation: Operation::Reconcile, live, now, budget: budget.as_ref() };
    let mut compared = compare(worker, cluster.as_deref(), &secrets, inputs(&live));
    if compared != Comparison::Same {
        // Read in full, because the store keeps only digests of classes and Secrets.
        let cluster = shoot.cluster(true).await?.or(cluster);
        let live = machine_reads::machine_objects(shoot.client(), shoot.name());
        let (again, live) = tokio::try_join!(shoot.secrets(worker, true), live)?;
        secrets = again;
        let live = shoot.others().without_theirs(shoot.name(), live);
        compared = compare(worker, cluster.as_deref(), &secrets, inputs(&live));
    }
    shoot.pack_secrets(&secrets);
    Ok(compared)
}

fn compare(worker: &Worker, cluster: Option<&Cluster>, secrets: &Secrets, inputs: GateInputs<'_>) -> Comparison {
    let GateInputs { provider, live, now, .. } = inputs;
    // `Settled` sends no request to a cloud and assumes that recorded dependencies exist.
    let desired = match DesiredState::of_worker(provider, worker, cluster, secrets, CloudView::Settled) {
        Ok(desired) => desired,
        Err(error) => return Comparison::Unplanned(error.to_string()),
    };
    let unplanned: Vec<String> = desired.plan.unplanned().map(ToString::to_string).collect();
    if !unplanned.is_empty() {
        return Comparison::Unplanned(listed(&unplanned, MAX_LOG_BYTES));
    }
    let desired = desired.with_gate(&inputs);
    let differences = object_differences(&desired.drift(live, now), live, provider);
    if differences.is_empty() { Comparison::Same } else { Comparison::Differs(differences) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_seed::{NAMESPACE, Seed};
    use crate::controller::test_support::watched;
    use decisions::provider::azure::Azure;
    use decisions::worker::machines::machine_objects::{DigestedObject, MachineObjects};
    use decisions::worker::plan::rolls::RollCause;
    use runtime::cluster::identity::Identity;
    use runtime::process::endpoints::MetricsText;
    use wire::api::secret::SecretContent;

    #[test]
    fn a_worker_is_compared_when_the_other_controller_is_done() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let is_compared = |changed: serde_json::Value| {
            let last = json!({"type": "Reconcile", "state": "Succeeded", "lastUpdateTime": "2026-11-21T09:00:00Z"});
            let mut worker = json!({
                "metadata": {"generation": 3}, "spec": {"type": "azure"},
                "status": {"observedGeneration": 3, "lastOperation": last},
            });
            json_patch::merge(&mut worker, &changed);
            is_steady(&serde_json::from_str(&worker.to_string()).unwrap(), now)
        };
        assert!(is_compared(json!({})));
        let requested = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
        assert!(!is_compared(requested), "it is asked to do something");
        assert!(!is_compared(json!({"metadata": {"deletionTimestamp": "2026-11-21T09:30:00Z"}})));
        assert!(!is_compared(json!({"metadata": {"generation": 4}})), "it has not answered yet");
    }

    const API_VERSION: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";

    fn without_pools() -> (Worker, Cluster) {
        let networks = json!({
            "layout": "SingleSubnet", "vnet": {"name": "n"}, "subnets": [{"name": "nodes", "purpose": "nodes"}],
        });
        let infrastructure = json!({
            "apiVersion": API_VERSION, "kind": "InfrastructureStatus", "zoned": true,
            "resourceGroup": {"name": "g"}, "networks": networks,
        });
        let worker = json!({
            "metadata": {"name": "w", "namespace": "ns"},
            "spec": {
                "type": "azure", "region": "r", "pools": [], "secretRef": {"namespace": "ns", "name": "cloudprovider"},
                "infrastructureProviderStatus": infrastructure,
            },
        });
        let config = json!({"apiVersion": API_VERSION, "kind": "CloudProfileConfig"});
        let spec = json!({"cloudProfile": {"spec": {"providerConfig": config}}, "shoot": {}});
        let cluster = json!({"metadata": {"name": "ns"}, "spec": spec});
        (serde_json::from_str(&worker.to_string()).unwrap(), serde_json::from_str(&cluster.to_string()).unwrap())
    }

    /// Compares the Worker without pools with the live objects.
    fn compared(cluster: Option<&Cluster>, live: &MachineObjects) -> Comparison {
        let mut secrets = Secrets::default();
        secrets.insert("ns", "cloudprovider", SecretContent::unread([].into()));
        let now = Timestamp::UNIX_EPOCH;
        let inputs = GateInputs { provider: &Azure, operation: Operation::Reconcile, live, now, budget: None };
        compare(&without_pools().0, cluster, &secrets, inputs)
    }

    fn with_an_orphan() -> MachineObjects {
        let class = DigestedObject::class(json!({"metadata": {"name": "old"}})).unwrap();
        MachineObjects { classes: [("old".to_owned(), class)].into(), ..MachineObjects::default() }
    }

    #[test]
    fn what_is_there_is_compared_with_what_would_be_written() {
        let (_, cluster) = without_pools();
        let nothing = MachineObjects::default();
        assert_eq!(compared(Some(&cluster), &nothing), Comparison::Same);
        assert!(matches!(compared(None, &nothing), Comparison::Unplanned(_)));
        let differs = compared(Some(&cluster), &with_an_orphan());
        let Comparison::Differs(differences) = &differs else { panic!("nothing wants the class: {differs:?}") };
        assert_eq!((differences.len(), differences[0].name.as_str()), (1, "old"));
    }

    #[test]
    fn workers_are_counted_by_how_they_compare_and_objects_by_how_they_differ() {
        let mut differs = compared(Some(&without_pools().1), &with_an_orphan());
        let Comparison::Differs(differences) = &mut differs else { panic!("nothing wants the class: {differs:?}") };
        differences[0].roll = Some(RollCause::Pool);
        let invalid = Comparison::Unplanned(String::new());
        let mut numbers = ShadowNumbers::default();
        for comparison in [&Comparison::Same, &Comparison::UnderWay, &differs, &differs, &invalid] {
            count(&mut numbers, comparison);
        }
        let ShadowNumbers { same, differing, under_way, unplanned, differences, rolls } = numbers;
        assert_eq!((same, differing, under_way, unplanned), (1, 2, 1, 1));
        assert_eq!(differences.into_values().collect::<Vec<_>>(), [2]);
        assert_eq!(rolls, [("pool", 2)].into());
    }

    #[tokio::test(start_paused = true)]
    async fn stale_cache_is_no_difference() {
        let (seed, context) = Seed::settled().await;
        let standing = async |expected: &str| {
            tokio::time::advance(Duration::from_secs(2)).await;
            assert_eq!(compare_worker(&seed.worker(), &context).await.unwrap(), Requeue::After(RESYNC_PERIOD));
            let metrics = context.metrics.text();
            let series = format!("shadow_workers{{standing=\"{expected}\"}} 1");
            assert!(metrics.contains(&series), "{series}: {metrics}");
        };
        watched(&context);
        standing("same").await;
        let (name, class) = seed.all("machineclasses/").remove(0);
        let identity = Identity {
            namespace: NAMESPACE.to_owned(),
            name: class["metadata"]["name"].as_str().unwrap().to_owned(),
            uid: class["metadata"]["uid"].as_str().unwrap().to_owned(),
            version: class["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap(),
        };
        context.cache.machine_objects.classes.event_deleted(&identity);
        standing("same").await;
        seed.remove(&name);
        standing("differs").await;
        seed.request("reconcile");
        standing("under-way").await;
    }
}
