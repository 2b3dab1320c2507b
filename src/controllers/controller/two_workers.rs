//! Two Workers of one namespace, which Gardener never makes.

use serde_json::json;

use super::run::context::ControllerContext;
use super::test_seed::{DEPLOYMENT, Seed, WORKER};
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::identity::Identity;
use wire::api::gardener::Worker;

/// The watch shows a second Worker with a pool of this name.
fn show_another(seed: &Seed, context: &ControllerContext, pool: &str) {
    let mut other = seed.get(WORKER).unwrap();
    let metadata = other["metadata"].as_object_mut().unwrap();
    metadata.remove("deletionTimestamp");
    metadata.insert("name".to_owned(), "other".into());
    metadata.insert("uid".to_owned(), "of-the-other".into());
    other["spec"]["pools"][0]["name"] = pool.into();
    other["status"] = json!({});
    let other: LazyObject<Worker> = serde_json::from_str(&other.to_string()).unwrap();
    context.cache.workers.write().of_write(Identity::of(&other).unwrap(), || other);
}

fn is_of_machines(line: &str) -> bool {
    line.contains("machine") || line.contains("secrets")
}

#[tokio::test(start_paused = true)]
async fn a_deletion_keeps_the_machines_of_another_worker() {
    let (seed, context) = Seed::settled().await;
    seed.delete(jiff::Timestamp::now());
    show_another(&seed, &context, "web");
    for _ in 0..3 {
        if seed.get(WORKER).is_some() {
            seed.reconcile(&context).await.unwrap();
        }
    }
    let writes = seed.writes();
    assert!(!writes.iter().any(|line| is_of_machines(line)), "{writes:?}");
    assert!(seed.get(DEPLOYMENT).is_some());
    assert_eq!(seed.get(WORKER), None, "it has no machines of its own");
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_two_workers_is_an_error() {
    let (seed, context) = Seed::settled().await;
    show_another(&seed, &context, "web");
    seed.change_pool(|pool| pool["minimum"] = 4.into());
    seed.request("reconcile");
    seed.reconcile(&context).await.unwrap();
    let writes = seed.writes();
    assert!(!writes.iter().any(|line| is_of_machines(line)), "{writes:?}");
    assert_eq!(seed.state(), "Error");
    let text = seed.last("/status/lastError/description");
    assert!(text.contains("the Worker \"other\" of the same namespace"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn machines_of_another_worker_are_no_orphans() {
    let (seed, context) = Seed::settled().await;
    show_another(&seed, &context, "web");
    seed.change_pool(|pool| pool["name"] = "own".into());
    seed.request("reconcile");
    for _ in 0..2 {
        seed.reconcile(&context).await.unwrap();
    }
    let writes = seed.writes();
    assert!(!writes.iter().any(|line| line.starts_with("DELETE")), "{writes:?}");
    assert!(writes.iter().any(|line| line == "POST machinedeployments"), "{writes:?}");
    assert!(seed.get(DEPLOYMENT).is_some());
}
