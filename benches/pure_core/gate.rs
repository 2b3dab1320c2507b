//! Measures the decision which zones of a pool roll now: while all pools roll zone by zone, and while a budget holds all.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use gardener_extension_worker::provider::{Providers, WorkerContext};
use gardener_extension_worker::worker::plan::desired::{CloudView, DesiredState};
use gardener_extension_worker::worker::plan::roll_budget::RollBudget;
use gardener_extension_worker::worker::plan::zone_by_zone::ANNOTATION;
use gardener_extension_worker::worker::plan::zone_facts::GateInputs;
use gardener_extension_worker::worker::request::Operation;

use runtime::cluster::cache::SeedCache;
use runtime::cluster::identity::Identity;
use runtime::cluster::machine_objects::DeploymentText;
use serde_json::json;

use crate::clouds::Cloud;
use crate::{Input, NOW, POOLS, ZONES, live_after};

/// MachineDeployments of a seed.
const DEPLOYMENTS: usize = 63_000;

/// Names the node agent Secret of each pool in the labels of its nodes, as gardenlet does.
fn with_secret_labels(mut input: Input) -> Input {
    for pool in &mut input.worker.spec.pools {
        let secret = pool.node_agent_secret_name.clone().unwrap_or_default();
        pool.labels.insert("worker.gardener.cloud/gardener-node-agent-secret-name".to_owned(), secret);
    }
    input
}

/// The facts about all zones and the verdicts, with deployments that have another class and no machines.
pub(crate) fn measure(criterion: &mut Criterion, cloud: &Cloud) {
    let mut group = criterion.benchmark_group(format!("{} gate", cloud.worker_type));
    let used_up = RollBudget { limit: 3, ..RollBudget::default() };
    for pools in [3, POOLS] {
        let before = with_secret_labels(Input::new(cloud, pools));
        let live = live_after(&before, &before.plan());
        let mut after = with_secret_labels(Input::new(cloud, pools));
        after.worker.spec.pools.iter_mut().for_each(|pool| pool.data_volumes.clear());
        let desired =
            DesiredState::new(after.provider, after.context(), CloudView::Context).expect("it can be planned");
        let inputs = GateInputs {
            provider: after.provider,
            operation: Operation::Reconcile,
            live: black_box(&live),
            now: NOW,
            budget: None,
        };
        group.throughput(Throughput::Elements((pools * ZONES) as u64));
        let mut bench = |name: &str, desired: &DesiredState<'_>, inputs: GateInputs<'_>| {
            group.bench_function(BenchmarkId::new(name, format!("{pools}x{ZONES}")), |bencher| {
                let decide = |desired: DesiredState<'_>| black_box(desired.with_gate(&inputs)).plan.waits.pools.len();
                bencher.iter_batched(|| desired.clone(), decide, BatchSize::SmallInput);
            });
        };
        let budget = GateInputs { budget: Some(&used_up), ..inputs };
        assert_eq!(desired.clone().with_gate(&budget).plan.budget.held.len(), pools, "each pool is on hold");
        bench("budget", &desired, budget);

        let mut named = after.worker.clone();
        named.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), "*".to_owned());
        let context = WorkerContext { worker: &named, ..after.context() };
        let desired = DesiredState::new(after.provider, context, CloudView::Context).expect("it can be planned");
        assert_eq!(desired.clone().with_gate(&inputs).plan.waits.pools.len(), pools, "in each pool, zones wait");
        bench("gate", &desired, inputs);
    }
    group.finish();
}

/// The slots in use over all MachineDeployments of a seed, three of which have the mark.
pub(crate) fn measure_slots(criterion: &mut Criterion) {
    let seed = SeedCache::new(Providers::SHIPPED, false);
    let cache = &seed.machine_objects;
    for number in 0..DEPLOYMENTS {
        let mark = if number % (DEPLOYMENTS / 3) == 0 { json!("budget") } else { json!(null) };
        let record = json!({"v": 1, "d": 0, "g": [{"c": "class", "t": "2026-11-29T12:00:00Z"}], "u": mark});
        let deployment = json!({
            "metadata": {
                "name": format!("pool-z{number}"), "namespace": format!("shoot--{}", number / 9),
                "uid": number.to_string(), "resourceVersion": number.to_string(),
                "labels": {"worker.gardener.cloud/pool": "pool"},
                "annotations": {"gardener-extension-worker/class-inputs": record.to_string()},
            },
            "spec": {"replicas": 1, "template": {"spec": {"class": {"kind": "MachineClass", "name": "class"}}}},
        });
        let text = deployment.to_string();
        let identity = Identity::read(&text).expect("it has the metadata");
        cache.deployments.event(identity, || cache.kept::<DeploymentText>(&text));
    }
    assert_eq!(cache.pools_with_slots().len(), 3, "each mark counts");
    criterion.bench_function(&format!("slots of {DEPLOYMENTS} deployments"), |bencher| {
        bencher.iter(|| black_box(cache).pools_with_slots());
    });
}
