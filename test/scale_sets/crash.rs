//! Nothing is created twice and no node rolls twice, whenever the process ends.

use serde_json::json;

use super::world::{World, name_of, record};
use test_support::arm::{Fault, Operations, ScaleSet, Verb};

#[tokio::test]
async fn a_crash_between_creation_and_record_makes_no_second_scale_set() {
    for replaces in [false, true] {
        let mut world = World::new(&["a"]);
        if replaces {
            world.group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 2));
            world.record(json!([record("a", "vmo-a-AbCd1234")]));
        }
        let made = name_of(&world.ensure().await, "a");
        // The record was never written.
        world.restart();
        let again = world.ensure().await;
        assert_eq!(name_of(&again, "a"), made, "the same name, so no node rolls twice");
        assert_eq!(world.group.names().len(), if replaces { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_crash_while_azure_is_at_it_is_followed_to_the_end() {
    let mut world = World::new(&["a"]);
    world.group.operations(Operations::Held);
    let provided = world.ensure_once(true, false).await.unwrap();
    assert!(provided.dependencies.unwrap().waiting.contains_key("a"));
    world.restart();
    // Azure rejects a second operation while the first one runs.
    world.ensure_once(true, false).await.unwrap();
    let waiting = world.settled_as(|dependencies| dependencies.waiting["a"].message.contains("Conflict")).await;
    assert!(waiting.failures.is_empty(), "that is no failure");
    world.group.complete_operations();
    assert_eq!(name_of(&world.settled().await, "a"), world.group.names()[0]);
    assert_eq!(world.group.names().len(), 1);
}

#[tokio::test]
async fn lost_response_creates_no_second_scale_set() {
    let world = World::new(&["a"]);
    world.group.fail(Fault::on(Verb::Put).response_lost());
    let dependencies = world.ensure().await;
    assert!(dependencies.failures.is_empty(), "{dependencies:?}");
    assert_eq!(world.verbs(), ["CreateOrUpdate", "CreateOrUpdate"]);
    assert_eq!(world.group.names(), [name_of(&dependencies, "a")]);
}

#[tokio::test]
async fn two_processes_at_once_make_one_scale_set() {
    let world = World::new(&["a"]);
    let mut other = World::beside(world.arm.clone(), &["a"], super::world::NAMESPACE);
    other.restart();
    let (first, second) = tokio::join!(world.ensure(), other.ensure());
    assert_eq!(first.records, second.records);
    assert_eq!(world.group.names().len(), 1);
}
