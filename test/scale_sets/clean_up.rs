//! Unneeded scale sets are deleted, and nothing else.

use gardener_extension_worker::api::gardener::ErrorCode;
use gardener_extension_worker::cloud::dependency::{CleanUp, UsedByClasses};
use serde_json::{Value, json};

use super::world::{NAMESPACE, World, id_of, name_of, record};
use test_support::arm::{Fault, Operations, ScaleSet, Verb};

/// The remaining records, if some were removed.
fn done(end: CleanUp) -> Option<Value> {
    match end {
        CleanUp::Done(change) => change.map(|change| change["vmoDependencies"].clone()),
        other => panic!("{other:?}"),
    }
}

fn with_leftovers() -> World {
    let mut world = World::new(&["a"]);
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));
    world.group.has(ScaleSet::of_pool("vmo-gone-00000000", "gone", 3));
    world.group.has(ScaleSet::of_pool("vmo-orphan-11111111", "orphan", 3));
    world.group.has(ScaleSet::foreign("customer", 3));
    world.record(json!([record("a", "vmo-a-AbCd1234"), record("gone", "vmo-gone-00000000")]));
    world
}

#[tokio::test]
async fn deletes_orphans_and_scale_sets_of_removed_pools() {
    for pace in [Operations::AtOnce, Operations::Polled { times: 2, retry_after: 0 }] {
        let mut world = with_leftovers();
        world.group.operations(pace);
        world.group.page(1);
        let dependencies = world.ensure().await;
        world.keep(&dependencies);
        world.group.forget_calls();
        assert_eq!(done(world.clean_up(&[]).await), Some(json!([record("a", "vmo-a-AbCd1234")])));
        let delete = |name: &str| json!(["Delete", NAMESPACE, name, "forceDeletion=false"]);
        assert_eq!(
            world.calls(),
            json!([["List", NAMESPACE], delete("vmo-orphan-11111111"), delete("vmo-gone-00000000")])
        );
        assert_eq!(world.group.names(), ["vmo-a-AbCd1234", "customer"]);
    }
}

#[tokio::test]
async fn what_machines_are_still_made_in_stays() {
    let world = with_leftovers();
    let used = [id_of("VMO-ORPHAN-11111111"), id_of("vmo-gone-00000000")];
    assert_eq!(done(world.clean_up(&[&used[0], &used[1]]).await), None);
    assert_eq!(world.verbs(), ["List"]);
}

#[tokio::test]
async fn what_this_reconcile_created_is_no_orphan() {
    let mut world = World::new(&["a"]);
    let dependencies = world.ensure().await;
    // The controller passes the new records, which are already in the status.
    world.keep(&dependencies);
    assert_eq!(done(world.clean_up(&[]).await), None);
    assert_eq!(world.group.names(), [name_of(&dependencies, "a")]);
}

#[tokio::test]
async fn deletes_resources_once_their_class_is_deleted() {
    let world = with_leftovers();
    world.group.operations(Operations::Held);
    let kept = vec![id_of("vmo-gone-00000000")];
    let first = world.clean_up_once(kept).await;
    assert!(matches!(first, CleanUp::Waiting(_)), "the other one takes its time: {first:?}");
    world.group.complete_operations();
    world.group.operations(Operations::AtOnce);
    let unneeded = world.end_of_clean_up(UsedByClasses::Seen(Vec::new())).await;
    assert!(matches!(unneeded, CleanUp::Unneeded), "the cloud is asked again: {unneeded:?}");
    assert_eq!(world.group.names(), ["vmo-a-AbCd1234", "vmo-gone-00000000", "customer"]);
    assert_eq!(done(world.clean_up(&[]).await), Some(json!([record("a", "vmo-a-AbCd1234")])));
    assert_eq!(world.group.names(), ["vmo-a-AbCd1234", "customer"]);
}

#[tokio::test]
async fn what_cannot_be_removed_keeps_its_record_and_is_tried_again() {
    let world = with_leftovers();
    world.group.fail(Fault::on(Verb::Delete).of("vmo-gone-00000000").status(409).error("ScopeLocked", "locked"));
    let CleanUp::Failed(failure, _) = world.clean_up(&[]).await else { panic!("it is locked") };
    assert_eq!(failure.codes, [ErrorCode::InfraDependencies].into());
    assert!(failure.message.contains("vmo-gone-00000000: ScopeLocked: locked"), "{}", failure.message);
    assert_eq!(world.group.names(), ["vmo-a-AbCd1234", "vmo-gone-00000000", "customer"], "the other one has gone");
    let records =
        test_support::cluster::eventually(std::time::Duration::from_secs(20), "next try", async || {
            match world.clean_up_once(vec![]).await {
                end @ CleanUp::Done(_) => Ok(done(end)),
                other => Err(anyhow::anyhow!("{other:?}")),
            }
        });
    assert_eq!(records.await.unwrap(), Some(json!([record("a", "vmo-a-AbCd1234")])));
}

#[tokio::test]
async fn a_deletion_that_conflicts_waits_until_the_conflict_is_over() {
    let world = with_leftovers();
    let refused = Fault::on(Verb::Delete).of("vmo-gone-00000000").status(409).times(1);
    world.group.fail(refused);
    let first = world.clean_up_once(vec![]).await;
    let CleanUp::Waiting(text) = &first else { panic!("{first:?}") };
    assert!(text.contains("another operation of Azure is in progress"), "{text}");
    assert!(!text.contains("vmo-gone"), "nobody has to do anything about it: {text}");
    assert_eq!(done(world.clean_up(&[]).await), Some(json!([record("a", "vmo-a-AbCd1234")])));
    assert_eq!(world.group.names(), ["vmo-a-AbCd1234", "customer"]);
}

#[tokio::test]
async fn without_a_resource_group_nothing_is_left() {
    let mut world = with_leftovers();
    world.group.vanish();
    world.worker["spec"]["pools"] = json!([]);
    assert_eq!(done(world.clean_up(&[]).await), Some(Value::Null));
    assert_eq!(done(world.remove().await.unwrap()), Some(Value::Null));
}

#[tokio::test]
async fn zonal_infrastructure_releases_all_scale_sets() {
    let mut world = with_leftovers();
    world.worker["spec"]["infrastructureProviderStatus"]["zoned"] = true.into();
    assert_eq!(done(world.clean_up(&[&id_of("vmo-a-AbCd1234")]).await), Some(json!([record("a", "vmo-a-AbCd1234")])));
    assert_eq!(done(world.clean_up(&[]).await), Some(Value::Null), "once its machines are elsewhere");
    assert_eq!(world.group.names(), ["customer"]);
}

#[tokio::test]
async fn a_deleted_worker_takes_everything_with_it() {
    for pace in [Operations::AtOnce, Operations::Polled { times: 2, retry_after: 0 }] {
        let mut world = with_leftovers();
        world.group.operations(pace);
        // The removal needs no pool that can be planned.
        world.worker["spec"]["pools"][0]["machineImage"] = Value::Null;
        world.fault_domains = json!([]);
        assert_eq!(done(world.remove().await.unwrap()), Some(Value::Null));
        assert_eq!(world.group.names(), ["customer"]);
        assert_eq!(world.verbs()[0], "List");
    }
}

#[tokio::test]
async fn a_worker_without_an_infrastructure_never_had_anything() {
    let mut world = World::new(&["a"]);
    world.worker["spec"]["infrastructureProviderStatus"] = Value::Null;
    world.secret = json!({"data": {}});
    assert_eq!(done(world.remove().await.unwrap()), None);
}

#[tokio::test]
async fn without_credentials_nothing_can_be_removed() {
    let mut world = with_leftovers();
    world.secret["data"]["clientSecret"] = "".into();
    let error = world.remove().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::InfraUnauthenticated), "{error}");
}

#[tokio::test]
async fn returning_pool_waits_for_scale_set_deletion() {
    let mut world = with_leftovers();
    world.group.operations(Operations::Held);
    assert!(matches!(world.clean_up_once(vec![]).await, CleanUp::Waiting(_)));
    world.worker["spec"]["pools"] = json!([super::world::pool("a"), super::world::pool("gone")]);
    let provided = world.ensure_once(true, false).await.unwrap();
    let dependencies = provided.dependencies.unwrap();
    assert!(dependencies.waiting.contains_key("gone") && !dependencies.waiting.contains_key("a"), "{dependencies:?}");
    world.group.complete_operations();
    world.group.operations(Operations::AtOnce);
    let dependencies = world.settled().await;
    let new = name_of(&dependencies, "gone");
    assert_ne!(new, "vmo-gone-00000000");
    assert_eq!(world.group.names(), ["vmo-a-AbCd1234", "customer", &new]);
}
