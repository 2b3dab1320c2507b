//! What is explained is what is planned: for the example, and for every case of `PARITY_CASES` or `test/parity/cases`.

use std::path::{Path, PathBuf};

use gardener_extension_worker::cli::input::{WorkerInput, files, workers_of_file};
use gardener_extension_worker::explain::explain;
use gardener_extension_worker::provider::explanation::Placement;
use gardener_extension_worker::provider::{MachinePlan, Providers};
use gardener_extension_worker::worker::decode;
use gardener_extension_worker::worker::plan::plan;
use serde_json::Value;

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = std::env::var_os("PARITY_CASES").map_or_else(|| root.join("test/parity/cases"), PathBuf::from);
    [root.join("example"), cases].into_iter().filter(|folder| folder.exists()).collect()
}

fn inputs() -> Vec<WorkerInput> {
    let files = files(&folders()).unwrap();
    // Some cases are malformed on purpose.
    files.iter().filter_map(|file| workers_of_file(file).ok()).flatten().collect()
}

/// How many pools were compared, planned and failed.
#[derive(Default)]
struct Compared {
    planned: usize,
    failed: usize,
}

fn compare(input: &WorkerInput, compared: &mut Compared) {
    let Some(cluster) = &input.cluster else { return };
    let Ok(context) = decode::context(&input.worker, cluster, &input.secrets) else { return };
    let Ok(provider) = Providers::SHIPPED.for_worker_type(&input.worker.spec.worker_type) else { return };
    let explanation = explain(provider, context, &input.live, None);
    let Ok(plan) = plan(provider, context) else {
        assert!(explanation.is_err(), "{}: explained, but not planned", input.source);
        return;
    };
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
                // The provider's answer for pools that fail, held against one that does not.
                let wanted: Vec<Placement> = planned.machines.iter().map(Placement::from).collect();
                assert_eq!(planner.explain_pool(pool).placements, wanted, "{at}");
                let classes = explained.placements.iter().map(|placement| placement.class.as_ref());
                let names = planned.machines.iter().map(|machine| Some(&machine.deployment.class_name));
                assert!(classes.eq(names), "{at}: {:?}", explained.placements);
                for machine in &planned.machines {
                    let chosen = explained.image.chosen.as_ref().unwrap_or_else(|| panic!("{at}: no image"));
                    let reference = chosen.reference.as_ref().unwrap();
                    assert_eq!(image_of(machine)[&reference.member], *reference.value, "{at}");
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

/// The object that names the image: Azure has one for it, AWS names it beside everything else.
fn image_of(machine: &MachinePlan) -> &Value {
    let spec = &machine.class.provider_spec;
    spec.pointer("/properties/storageProfile/imageReference").unwrap_or(spec)
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
