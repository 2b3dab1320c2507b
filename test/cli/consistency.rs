//! `explain` matches the plan, for the example and for every case of `test/parity/cases` and `PARITY_CASES`.

use std::collections::BTreeSet;
use std::path::Path;

use gardener_extension_worker::cli::input::{WorkerInput, workers_of_documents, workers_of_file};
use gardener_extension_worker::explain::explain;
use gardener_extension_worker::provider::explanation::PlacementPlan;
use gardener_extension_worker::provider::{MachinePlan, Providers};
use gardener_extension_worker::reader::files::files;
use gardener_extension_worker::worker::plan::desired::{CloudView, DesiredState};
use gardener_extension_worker::worker::plan::rolls::RollCause;
use gardener_extension_worker::worker::request::decode;
use serde_json::Value;
use test_support::measured::cases::{collect, own};
use test_support::measured::report::folders;
use test_support::repository;

fn inputs() -> Vec<WorkerInput> {
    let examples = files(&[repository().join("example")]).files;
    let examples = examples.iter().filter_map(|file| workers_of_file(file).ok());
    let cases = folders(vec![own()], "PARITY_CASES").into_iter().flat_map(|folder| collect(&folder).unwrap());
    // Some cases are malformed on purpose.
    let cases = cases.filter_map(|case| {
        let path = Path::new(&case.family).join(case.name);
        workers_of_documents(&path, vec![case.documents.ok()?.input]).ok()
    });
    examples.chain(cases).flatten().collect()
}

/// Numbers of compared pools whose plan succeeded or failed.
#[derive(Default)]
struct Compared {
    planned: usize,
    failed: usize,
}

fn compare(input: &WorkerInput, compared: &mut Compared) {
    let Some(cluster) = &input.cluster else { return };
    let Ok(context) = decode::context(&input.worker, cluster, &input.secrets) else { return };
    let Ok(provider) = Providers::SHIPPED.for_worker_type(&input.worker.spec.worker_type) else { return };
    let Ok(desired) = DesiredState::new(provider, context, CloudView::Context) else { return };
    let plan = &desired.plan;
    let explanation = explain(provider, &desired, &input.live, None);
    let explanation = explanation.unwrap_or_else(|error| panic!("{}: {error}", input.source));
    let planner = provider.planner(context).unwrap();
    for ((pool, explained), planned) in input.worker.spec.pools.iter().zip(&explanation.pools).zip(&plan.pools) {
        let at = format!("{} pool {:?}", input.source, pool.name);
        match planned {
            Err(error) => {
                let message = explained.error.as_ref().map(|error| error.message.as_str());
                assert_eq!(message, Some(error.problem.to_string().as_str()), "{at}");
                compared.failed += 1;
            }
            Ok(planned) => {
                assert!(explained.error.is_none(), "{at}");
                // Runs the provider's explanation of failing pools on a pool that does not fail, and compares it with
                // the plan.
                let correct: Vec<PlacementPlan> = planned.machines.iter().map(PlacementPlan::from).collect();
                assert_eq!(planner.explain_pool(pool).placements, correct, "{at}");
                let classes =
                    explained.placements.iter().map(|placement| placement.plan.class.as_ref().map(|(class, _)| class));
                let names = planned.machines.iter().map(|machine| Some(&machine.deployment.class_name));
                assert!(classes.eq(names), "{at}: {:?}", explained.placements);
                for machine in &planned.machines {
                    let chosen = explained.image.chosen.as_ref().unwrap_or_else(|| panic!("{at}: no image"));
                    let reference = chosen.reference.as_ref().unwrap();
                    assert_eq!(*image_of(machine, &reference.member), *reference.value, "{at}");
                    assert_eq!(explained.image.candidates[chosen.candidate].reference, chosen.reference, "{at}");
                    let hash =
                        explained.hashes.iter().find(|hash| hash.deployments.contains(&machine.deployment.name.0));
                    assert_eq!(hash.map(|hash| &hash.hash), Some(&machine.hash_items.pool_hash()), "{at}");
                }
                compared.planned += 1;
            }
        }
    }
}

/// The image in the provider spec: an object for Azure, the boot disk for GCP, and other members for AliCloud and
/// OpenStack.
fn image_of<'a>(machine: &'a MachinePlan, member: &str) -> &'a Value {
    let spec = &machine.class.provider_spec;
    let of_clouds = [
        format!("/properties/storageProfile/imageReference/{member}"),
        format!("/disks/0/{member}"),
        "/imageID".to_owned(),
        "/spec/imageID".to_owned(),
        "/spec/imageName".to_owned(),
        format!("/{member}"),
    ];
    of_clouds.iter().find_map(|path| spec.pointer(path)).unwrap_or(&Value::Null)
}

/// First parts of the names of hashed pool members.
const POOL_INPUTS: [&str; 8] = [
    "dataVolumes",
    "inPlaceHash",
    "kubernetesVersion",
    "machineImage",
    "machineType",
    "nodeAgentSecretName",
    "shoot",
    "volume",
];

/// Checks the cause of each hashed input. Returns the inputs from the infrastructure, each with the worker type.
fn infrastructure_inputs(input: &WorkerInput) -> Vec<(String, String)> {
    let Some(cluster) = &input.cluster else { return Vec::new() };
    let worker_type = &input.worker.spec.worker_type;
    let Ok(context) = decode::context(&input.worker, cluster, &input.secrets) else { return Vec::new() };
    let Ok(provider) = Providers::SHIPPED.for_worker_type(worker_type) else { return Vec::new() };
    let Ok(desired) = DesiredState::new(provider, context, CloudView::Context) else { return Vec::new() };
    let mut found = Vec::new();
    for item in
        desired.plan.pools.iter().flatten().flat_map(|pool| &pool.machines).flat_map(|one| one.hash_items.iter())
    {
        let root = item.input.split(['.', '[']).next().unwrap_or_default();
        let expected = match root {
            "providerConfig" => RollCause::ProviderConfig,
            root if POOL_INPUTS.contains(&root) => RollCause::Pool,
            _ => RollCause::Infrastructure,
        };
        let cause = RollCause::of_input(&item.input, provider.infrastructure_inputs());
        assert_eq!(cause, expected, "{worker_type}: {}", item.input);
        if cause == RollCause::Infrastructure {
            found.push((worker_type.clone(), item.input.to_string()));
        }
    }
    found
}

#[test]
fn every_hashed_input_has_its_cause() {
    let found: BTreeSet<_> = inputs().iter().flat_map(infrastructure_inputs).collect();
    let listed = Providers::SHIPPED.of_machines.iter().flat_map(|provider| {
        let names = provider.infrastructure_inputs().iter();
        names.map(|name| (provider.provider_type().to_owned(), (*name).to_owned()))
    });
    assert_eq!(found, listed.collect(), "what is hashed, and what providers list");
}

#[test]
fn explanations_equal_plans() {
    let mut compared = Compared::default();
    for input in inputs() {
        compare(&input, &mut compared);
    }
    assert!(compared.planned >= 2, "{} pools were planned, {} failed", compared.planned, compared.failed);
    println!("{} planned pools and {} failed ones are explained as they are", compared.planned, compared.failed);
}
