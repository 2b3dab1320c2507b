//! Azure is slow, throttles, fails or rejects requests.

use std::time::{Duration, Instant};

use gardener_extension_worker::api::gardener::ErrorCode;
use gardener_extension_worker::cloud::dependency::CleanUp;
use serde_json::json;

use super::world::{World, failure_of, name_of, record};
use test_support::arm::{Fault, Operations, ScaleSet, Verb};
use test_support::cluster::eventually;

#[tokio::test]
async fn a_reconcile_waits_only_a_moment_and_only_for_its_own_scale_sets() {
    let mut world = World::new(&["slow", "there"]);
    world.group.has(ScaleSet::of_pool("vmo-there-AbCd1234", "there", 3));
    world.record(json!([record("there", "vmo-there-AbCd1234")]));
    world.group.operations(Operations::Held);
    let begun = Instant::now();
    let provided = world.ensure_once(true, false).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "a reconcile took {:?}", begun.elapsed());
    let dependencies = provided.dependencies.unwrap();
    assert_eq!(dependencies.waiting.keys().collect::<Vec<_>>(), ["slow"]);
    assert_eq!(dependencies.records, json!([record("there", "vmo-there-AbCd1234")]), "the other pool goes on");
    assert!(world.rings.lock().unwrap().is_empty());
    world.group.complete_operations();
    eventually(Duration::from_secs(20), "the end of the background task", async || {
        let rings = world.rings.lock().unwrap();
        anyhow::ensure!(rings.len() == 1 && rings[0].namespace == super::world::NAMESPACE, "{rings:?}");
        Ok(())
    })
    .await
    .unwrap();
    let provided = world.ensure_once(false, false).await.unwrap();
    assert!(provided.records_changed && provided.dependencies.unwrap().waiting.is_empty());
}

#[tokio::test]
async fn an_operation_is_followed_to_its_end() {
    let world = World::new(&["a", "b"]);
    world.group.operations(Operations::Polled { times: 3, retry_after: 0 });
    let dependencies = world.ensure().await;
    assert!(dependencies.failures.is_empty(), "{dependencies:?}");
    assert!(world.group.scale_sets().iter().all(|set| set.provisioning_state == "Succeeded"));
    assert_eq!(world.verbs(), ["CreateOrUpdate", "CreateOrUpdate"]);
}

#[tokio::test]
async fn a_failed_operation_reports_why_and_is_retried() {
    let world = World::new(&["a"]);
    world.group.operations(Operations::Polled { times: 1, retry_after: 0 });
    world.group.fail_to_make("QuotaExceeded", "no more scale sets");
    let (text, code) = failure_of(&world.ensure().await, "a");
    assert!(text.contains("QuotaExceeded: no more scale sets") && text.contains("vmo-a-"), "{text}");
    assert_eq!(code, Some(ErrorCode::InfraQuotaExceeded));
    let provided = world.ensure_once(false, false).await.unwrap();
    assert!(provided.check_again.is_some_and(|again| again <= Duration::from_secs(1)));
    world.group.heal();
    let mended =
        world.settled_as(|dependencies| dependencies.failures.is_empty() && dependencies.waiting.is_empty()).await;
    assert_eq!(world.group.names(), [name_of(&mended, "a")]);
}

#[tokio::test]
async fn throttled_requests_wait_as_long_as_retry_after() {
    let world = World::new(&["a"]);
    world.group.fail(Fault::on(Verb::Put).status(429).retry_after(2));
    let begun = Instant::now();
    let provided = world.ensure_once(true, false).await.unwrap();
    let waiting = provided.dependencies.unwrap().waiting["a"].clone();
    assert!(waiting.message.contains("asks to wait 2 s"), "{waiting}");
    assert_eq!(waiting.code, Some(ErrorCode::InfraRateLimitsExceeded), "for the case that it takes too long");
    let dependencies = world.settled().await;
    assert!(dependencies.failures.is_empty() && begun.elapsed() >= Duration::from_secs(2));
    assert_eq!(world.verbs(), ["CreateOrUpdate", "CreateOrUpdate"]);
}

#[tokio::test]
async fn server_errors_of_azure_are_retried_and_then_reported_as_retryable() {
    let world = World::new(&["a", "b"]);
    world.group.fail(Fault::on(Verb::Put).status(500).times(2));
    assert!(world.ensure().await.failures.is_empty());
    world.group.fail(Fault::on(Verb::Put).status(503).always());
    let lasting = World::beside(world.arm.clone(), &["a"], "shoot--demo--other");
    lasting.group.fail(Fault::on(Verb::Put).status(503).always());
    let (_, code) = failure_of(&lasting.ensure().await, "a");
    assert_eq!(code, Some(ErrorCode::RetryableInfraDependencies));
}

#[tokio::test]
async fn a_conflict_is_retried_until_it_is_over() {
    let world = World::new(&["a"]);
    world.group.fail(Fault::on(Verb::Put).status(409).times(1));
    let provided = world.ensure_once(true, false).await.unwrap();
    assert!(provided.dependencies.unwrap().failures.is_empty());
    assert!(world.settled().await.failures.is_empty());
}

#[tokio::test]
async fn one_pool_never_stops_another() {
    let world = World::new(&["a", "b"]);
    world.group.fail(Fault::on(Verb::Put).status(403).error("AuthorizationFailed", "no right"));
    let dependencies = world.ensure().await;
    let (text, code) = failure_of(&dependencies, "a");
    assert!(text.contains("AuthorizationFailed: no right"), "{text}");
    assert_eq!(code, Some(ErrorCode::InfraUnauthorized));
    assert_eq!(world.group.names(), [name_of(&dependencies, "b")]);
}

#[tokio::test]
async fn error_codes_follow_the_error_of_azure() {
    for (status, code, expected) in [
        (404, "ResourceGroupNotFound", Some(ErrorCode::ConfigurationProblem)),
        (404, "SubscriptionNotFound", Some(ErrorCode::InfraUnauthenticated)),
        (409, "ReadOnlyDisabledSubscription", Some(ErrorCode::InfraDependencies)),
        (400, "InvalidParameter", Some(ErrorCode::ConfigurationProblem)),
        (400, "SkuNotAvailable", Some(ErrorCode::InfraResourcesDepleted)),
    ] {
        let world = World::new(&["a"]);
        world.group.fail(Fault::on(Verb::Put).status(status).error(code, "in Azure's words"));
        let (text, reported) = failure_of(&world.ensure().await, "a");
        assert_eq!(reported, expected, "{text}");
        assert!(text.contains(code), "{text}");
    }
}

#[tokio::test]
async fn a_404_of_a_proxy_is_not_believed() {
    let mut world = World::new(&["a"]);
    let made = world.ensure().await;
    world.keep(&made);
    let names = world.group.names();
    world.group.fail(Fault::on(Verb::Get).status(404).by_a_proxy());
    world.restart();
    let (text, _) = failure_of(&world.ensure().await, "a");
    assert!(text.contains(&format!("reading scale set {}", names[0])), "{text}");
    assert_eq!(world.group.names(), names, "another one would roll the nodes");
    world.group.fail(Fault::on(Verb::Delete).status(404).by_a_proxy());
    assert!(matches!(world.remove().await, Ok(CleanUp::Failed(..))));
    assert_eq!(world.group.names(), names, "nobody would know of it any more");
}

#[tokio::test]
async fn proxy_page_deletes_nothing() {
    let mut world = World::new(&["a"]);
    let made = world.ensure().await;
    world.keep(&made);
    world.group.fail(Fault::on(Verb::Delete).status(200).by_a_proxy());
    assert!(matches!(world.remove().await, Ok(CleanUp::Failed(..))));
    assert_eq!(world.group.names().len(), 1);
}

#[tokio::test]
async fn an_address_elsewhere_gets_no_token() {
    let world = World::new(&["a"]);
    let elsewhere = test_support::arm::Arm::start().unwrap();
    world.group.links_to(&elsewhere.url());
    world.group.operations(Operations::Polled { times: 1, retry_after: 0 });
    let (text, _) = failure_of(&world.ensure().await, "a");
    assert!(text.contains("not its own"), "{text}");
    world.group.page(1);
    world.group.has(ScaleSet::foreign("one", 1));
    assert!(
        matches!(world.clean_up(&[]).await, CleanUp::Failed(failure, _) if failure.message.contains("not its own"))
    );
    assert_eq!(elsewhere.request_count(), 0);
}
