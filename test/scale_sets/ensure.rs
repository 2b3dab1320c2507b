//! Scale sets are created, kept and replaced.

use gardener_extension_worker::api::gardener::ErrorCode;
use gardener_extension_worker::cloud::WriteAccess;
use serde_json::json;

use super::world::{World, failure_of, id_of, name_of, record};
use test_support::arm::{Fault, ScaleSet, Verb};

#[tokio::test]
async fn a_new_pool_gets_a_scale_set() {
    let world = World::new(&["pool-a", "pool-b"]);
    let provided = world.ensure_once(true, false).await.unwrap();
    assert!(provided.records_changed, "written down before anything refers to it");
    let dependencies = world.settled().await;
    let (first, second) = (name_of(&dependencies, "pool-a"), name_of(&dependencies, "pool-b"));
    let suffix = first.strip_prefix("vmo-pool-a-").unwrap();
    assert!(suffix.len() == 8 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{first}");
    assert_eq!(dependencies.records, json!([record("pool-a", &first), record("pool-b", &second)]));
    let body = |pool: &str| {
        format!(
            "{{\"location\":\"westeurope\",\"properties\":{{\"platformFaultDomainCount\":3,\"singlePlacementGroup\":false}},\
             \"tags\":{{\"machineset.azure.extensions.gardener.cloud\":\"1\",\
             \"machineset.azure.extensions.gardener.cloud.worker-name\":\"{pool}\"}}}}"
        )
    };
    let call = |pool: &str, name: &str| json!(["CreateOrUpdate", super::world::NAMESPACE, name, body(pool)]);
    assert_eq!(world.calls(), json!([call("pool-a", &first), call("pool-b", &second)]));
}

#[tokio::test]
async fn a_recorded_scale_set_stays_and_is_read_once_per_operation() {
    let mut world = World::new(&["a"]);
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));
    world.record(json!([{"poolName": "a", "id": id_of("vmo-a-AbCd1234").to_lowercase(), "name": "vmo-a-AbCd1234"}]));
    let dependencies = world.ensure().await;
    assert_eq!(dependencies.records, json!([record("a", "vmo-a-AbCd1234")]), "with the id as Azure writes it now");
    world.keep(&dependencies);
    for _ in 0..3 {
        world.ensure_once(false, false).await.unwrap();
    }
    let get = json!(["Get", super::world::NAMESPACE, "vmo-a-AbCd1234", "expand=userData"]);
    assert_eq!(world.calls(), json!([get]));
    world.ensure_once(true, false).await.unwrap();
    assert_eq!(world.calls(), json!([get, get]), "the next operation asks anew");
}

#[tokio::test]
async fn other_fault_domains_and_a_vanished_scale_set_lead_to_a_new_one() {
    for vanishes in [false, true] {
        let mut world = World::new(&["a"]);
        world.group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));
        world.record(json!([record("a", "vmo-a-AbCd1234")]));
        if vanishes {
            world.group.lose("vmo-a-AbCd1234");
        } else {
            world.fault_domains = json!([{"region": "elsewhere", "count": 1}, {"region": "westeurope", "count": 2}]);
        }
        let dependencies = world.ensure().await;
        let new = name_of(&dependencies, "a");
        assert_ne!(new, "vmo-a-AbCd1234");
        assert_eq!(world.verbs(), ["Get", "CreateOrUpdate"]);
        assert_eq!(world.group.names().len(), if vanishes { 1 } else { 2 }, "the old one goes when nothing is in it");
        assert_eq!(world.group.scale_sets().last().unwrap().fault_domains, if vanishes { 3 } else { 2 });
        world.keep(&dependencies);
        assert_eq!(name_of(&world.ensure().await, "a"), new, "and stays");
    }
}

#[tokio::test]
async fn a_change_of_mind_keeps_the_nodes_where_they_are() {
    let mut world = World::new(&["a"]);
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));
    world.record(json!([record("a", "vmo-a-AbCd1234")]));
    world.fault_domains = json!([{"region": "westeurope", "count": 2}]);
    world.group.fail(Fault::on(Verb::Put).status(400).error("QuotaExceeded", "no more").always());
    let dependencies = world.ensure().await;
    assert_eq!(failure_of(&dependencies, "a").1, Some(ErrorCode::InfraQuotaExceeded));
    assert_eq!(name_of(&dependencies, "a"), "vmo-a-AbCd1234", "the record of what there is stays");
    world.fault_domains = json!([{"region": "westeurope", "count": 3}]);
    let dependencies = world.ensure().await;
    assert!(dependencies.failures.is_empty(), "{dependencies:?}");
    assert_eq!(dependencies.records, json!([record("a", "vmo-a-AbCd1234")]));
}

#[tokio::test]
async fn pools_that_cannot_have_one_are_refused_before_anything_is_made() {
    let mut world = World::new(&["a", "b", "c"]);
    world.worker["spec"]["pools"][0]["updateStrategy"] = "ManualInPlaceUpdate".into();
    world.record(json!([record("b", "vmo-b-1"), record("b", "vmo-b-2")]));
    let dependencies = world.ensure().await;
    for (pool, word) in [("a", "in place"), ("b", "several scale sets")] {
        let (text, code) = failure_of(&dependencies, pool);
        assert!(text.contains(word) && code == Some(ErrorCode::ConfigurationProblem), "{text}");
    }
    assert_eq!(world.verbs(), ["CreateOrUpdate"], "only pool c asks for something");
    assert_eq!(dependencies.records.as_array().unwrap().len(), 3, "and no record is lost");
}

#[tokio::test]
async fn without_a_number_of_fault_domains_every_record_stays() {
    let mut world = World::new(&["a", "b"]);
    let records = json!([record("a", "vmo-a-AbCd1234"), record("gone", "vmo-gone-1")]);
    world.record(records.clone());
    world.fault_domains = json!([{"region": "elsewhere", "count": 2}]);
    let dependencies = world.ensure().await;
    assert_eq!(dependencies.records, records);
    for pool in ["a", "b"] {
        assert_eq!(failure_of(&dependencies, pool).1, Some(ErrorCode::ConfigurationProblem));
    }
    assert_eq!(world.arm.request_count(), 0, "nothing to ask");
}

#[tokio::test]
async fn names_that_make_no_address_are_never_sent_to_azure() {
    let mut world = World::new(&["a", "b"]);
    world.record(json!([
        {"poolName": "a", "id": "x", "name": ".."},
        {"poolName": "b", "id": "x", "name": "x?$expand=other&a#b"},
    ]));
    let dependencies = world.ensure().await;
    assert_eq!(failure_of(&dependencies, "a").1, Some(ErrorCode::ConfigurationProblem));
    assert_eq!(world.group.calls()[0].name, "x?$expand=other&a#b", "one name, whatever is in it");
    world.worker["spec"]["infrastructureProviderStatus"]["resourceGroup"]["name"] = "../../other".into();
    let error = world.ensure_once(true, false).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ConfigurationProblem), "{error}");
}

#[tokio::test]
async fn after_a_move_the_scale_set_of_exactly_that_pool_is_taken_over() {
    let world = World::new(&["pool-a", "pool-b"]);
    world.group.has(ScaleSet::of_pool("vmo-pool-a2-ZZZZZZZZ", "pool-a2", 3));
    world.group.has(ScaleSet::of_pool("vmo-pool-a-AbCd1234", "pool-a", 3));
    world.group.has(ScaleSet::foreign("vmo-pool-b-AbCd1234", 3));
    world.group.page(1);
    world.ensure_once(true, true).await.unwrap();
    let dependencies = world.settled().await;
    assert_eq!(name_of(&dependencies, "pool-a"), "vmo-pool-a-AbCd1234");
    assert_ne!(name_of(&dependencies, "pool-b"), "vmo-pool-b-AbCd1234", "somebody else's");
    assert_eq!(world.verbs(), ["List", "List", "CreateOrUpdate"]);
}

#[tokio::test]
async fn a_lost_record_is_found_again_by_the_machines() {
    let mut world = World::new(&["a", "b"]);
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd1111", "a", 3));
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd2222", "a", 3));
    world.group.has(ScaleSet::of_pool("vmo-b-AbCd1111", "b", 3));
    world.has_machines("a", &id_of("vmo-a-AbCd2222").to_uppercase());
    let dependencies = world.ensure().await;
    assert_eq!(name_of(&dependencies, "a"), "vmo-a-AbCd2222", "no node rolls");
    assert_ne!(name_of(&dependencies, "b"), "vmo-b-AbCd1111", "without machines nothing needs to be kept");
}

#[tokio::test]
async fn nobody_guesses_which_of_several_it_is() {
    let world = World::new(&["a"]);
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd1111", "a", 3));
    world.group.has(ScaleSet::of_pool("vmo-a-AbCd2222", "a", 3));
    world.ensure_once(true, true).await.unwrap();
    let (text, code) = failure_of(&world.settled().await, "a");
    assert!(text.contains("vmo-a-AbCd1111, vmo-a-AbCd2222") && code == Some(ErrorCode::ConfigurationProblem), "{text}");
}

#[tokio::test]
async fn infrastructures_with_zones_make_no_request() {
    let mut world = World::new(&["a"]);
    world.worker["spec"]["infrastructureProviderStatus"]["zoned"] = true.into();
    assert!(world.ensure_once(true, false).await.unwrap().dependencies.is_none());
    world.clean_up(&[]).await;
    world.remove().await.unwrap();
    assert_eq!(world.arm.request_count(), 0);
}

#[tokio::test]
async fn a_standby_and_a_dry_run_change_nothing_in_azure() {
    let mut world = World::new(&["a"]);
    world.restart_with(WriteAccess::Denied);
    let (text, code) = failure_of(&world.ensure().await, "a");
    assert!(text.contains("doesn't lead") && code.is_none(), "{text}");
    world.restart_with(WriteAccess::DryRun);
    let provided = world.ensure_once(true, false).await.unwrap();
    let pretended = world.settled().await;
    assert!(!provided.records_changed, "nothing is written down of what is not there");
    world.group.has(ScaleSet::of_pool("orphan", "a", 3));
    world.clean_up(&[]).await;
    assert_eq!(world.group.names(), ["orphan"]);
    world.group.lose("orphan");
    world.restart();
    assert_eq!(world.ensure().await.records, pretended.records, "what was pretended is what comes");
}
