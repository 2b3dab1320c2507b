//! Measures the decision which zones of a pool roll now, while all pools roll zone by zone.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use gardener_extension_worker::provider::Provider;
use gardener_extension_worker::worker::machines::machine_objects::MachineObjects;
use gardener_extension_worker::worker::plan::desired::{CloudView, DesiredState};
use gardener_extension_worker::worker::plan::zone_by_zone::ANNOTATION;
use gardener_extension_worker::worker::plan::zone_facts::GateInputs;
use gardener_extension_worker::worker::request::Operation;

use crate::clouds::Cloud;
use crate::{Input, NOW, POOLS, ZONES, live_after};

/// Names the node agent Secret of each pool in the labels of its nodes, as gardenlet does.
fn with_secret_labels(mut input: Input) -> Input {
    for pool in &mut input.worker.spec.pools {
        let secret = pool.node_agent_secret_name.clone().unwrap_or_default();
        pool.labels.insert("worker.gardener.cloud/gardener-node-agent-secret-name".to_owned(), secret);
    }
    input
}

fn gate<'a>(desired: DesiredState<'a>, provider: &dyn Provider, live: &MachineObjects) -> DesiredState<'a> {
    desired.with_gate(&GateInputs { provider, operation: Operation::Reconcile, live, now: NOW, budget: None })
}

/// The facts about all zones and the verdicts, with deployments that have another class and no machines.
pub(crate) fn measure(criterion: &mut Criterion, cloud: &Cloud) {
    let mut group = criterion.benchmark_group(format!("{} gate", cloud.worker_type));
    for pools in [3, POOLS] {
        let before = with_secret_labels(Input::new(cloud, pools));
        let live = live_after(&before, &before.plan());
        let mut after = with_secret_labels(Input::new(cloud, pools));
        after.worker.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), "*".to_owned());
        after.worker.spec.pools.iter_mut().for_each(|pool| pool.data_volumes.clear());
        let desired =
            DesiredState::new(after.provider, after.context(), CloudView::Context).expect("it can be planned");
        assert_eq!(
            gate(desired.clone(), after.provider, &live).plan.waits.pools.len(),
            pools,
            "in each pool, zones wait"
        );
        group.throughput(Throughput::Elements((pools * ZONES) as u64));
        group.bench_function(BenchmarkId::new("gate", format!("{pools}x{ZONES}")), |bencher| {
            let decide = |desired| gate(desired, after.provider, black_box(&live));
            bencher.iter_batched(|| desired.clone(), decide, BatchSize::SmallInput);
        });
    }
    group.finish();
}
