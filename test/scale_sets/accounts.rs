//! Credentials: client secrets, workload identities, clouds, shared tokens.

use gardener_extension_worker::api::gardener::ErrorCode;
use serde_json::json;

use super::world::{World, failure_of};
use test_support::arm::Proof;

#[tokio::test]
async fn a_client_secret_is_exchanged_for_one_token() {
    let world = World::new(&["a", "b", "c"]);
    world.ensure().await;
    world.ensure().await;
    let [requested] = world.arm.token_requests().try_into().unwrap();
    assert_eq!((requested.tenant.as_str(), requested.client.as_str()), ("tenant", "client"));
    assert_eq!(requested.proof, Proof::Secret("clients-s3cret".to_owned()));
    assert_eq!(requested.scope, "https://management.core.windows.net//.default");
}

#[tokio::test]
async fn workers_with_the_same_credentials_share_a_token() {
    let mut world = World::new(&["a"]);
    for number in 0..20 {
        let namespace = format!("shoot--demo--{number}");
        let beside = World::beside(world.arm.clone(), &["a"], &namespace);
        world.worker = beside.worker;
        assert!(world.ensure().await.failures.is_empty());
    }
    assert_eq!(world.arm.token_requests().len(), 1);
    world.secret["data"]["clientSecret"] = "another".into();
    world.ensure().await;
    assert_eq!(world.arm.token_requests().len(), 2, "who proves something else gets nothing of others");
}

#[tokio::test]
async fn workload_identity_presents_its_token() {
    let mut world = World::new(&["a"]);
    let config = json!({
        "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "WorkloadIdentityConfig",
        "clientID": "id-client", "tenantID": "id-tenant", "subscriptionID": "sub",
    });
    world.secret = json!({
        "labels": {"security.gardener.cloud/purpose": "workload-identity-token-requestor"},
        "data": {"config": config.to_string(), "token": "gardens-t0ken", "clientSecret": "not used"},
    });
    assert!(world.ensure().await.failures.is_empty());
    world.secret["data"]["token"] = "renewed-t0ken".into();
    world.ensure().await;
    let requested = world.arm.token_requests();
    let proofs: Vec<&Proof> = requested.iter().map(|requested| &requested.proof).collect();
    let tokens = ["gardens-t0ken", "renewed-t0ken"].map(|token| Proof::Assertion(token.to_owned()));
    assert_eq!(proofs, tokens.iter().collect::<Vec<_>>());
    assert!(
        requested
            .iter()
            .all(|requested| (requested.tenant.as_str(), requested.client.as_str()) == ("id-tenant", "id-client"))
    );
    world.secret["data"]["token"] = "".into();
    let error = world.ensure_once(true, false).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::InfraUnauthenticated), "{error}");
}

#[tokio::test]
async fn each_cloud_has_its_audience() {
    for (cloud, region, audience) in [
        (None, "chinanorth3", "https://management.core.chinacloudapi.cn/"),
        (None, "usgovvirginia", "https://management.core.usgovcloudapi.net/"),
        (Some("azurechina"), "westeurope", "https://management.core.chinacloudapi.cn/"),
        (Some("AzurePublic"), "chinanorth3", "https://management.core.windows.net/"),
    ] {
        let mut world = World::new(&["a"]);
        world.cloud = cloud;
        world.worker["spec"]["region"] = region.into();
        world.fault_domains = json!([{"region": region, "count": 3}]);
        let dependencies = world.ensure().await;
        assert!(dependencies.failures.is_empty(), "{region}: {dependencies:?}");
        assert_eq!(world.arm.token_requests()[0].scope, format!("{audience}/.default"), "{region}");
    }
}

#[tokio::test]
async fn rejected_credentials_are_reported_with_a_code_and_without_the_secret() {
    let world = World::new(&["a"]);
    world.arm.refuse_client("client", 7_000_215, "Invalid client secret provided.");
    let dependencies = world.ensure().await;
    let (text, code) = failure_of(&dependencies, "a");
    assert_eq!(code, Some(ErrorCode::InfraUnauthenticated));
    assert!(text.contains("AADSTS7000215: Invalid client secret provided.") && !text.contains("Trace ID"), "{text}");
    assert!(!format!("{dependencies:?}{world:?}", world = world.ensure_once(true, false).await).contains("s3cret"));
    world.arm.accept_client("client");
    let is_mended = |dependencies: &gardener_extension_worker::provider::Dependencies| dependencies.failures.is_empty();
    assert!(world.settled_as(is_mended).await.failures.is_empty());
}

#[tokio::test]
async fn an_authority_in_trouble_is_no_reason_to_blame_the_client() {
    let world = World::new(&["a"]);
    world.arm.fail_tokens(&[500, 503]);
    assert!(world.ensure().await.failures.is_empty(), "tried again");
    let other = World::new(&["a"]);
    other.arm.fail_tokens(&[500; 40]);
    let (text, code) = failure_of(&other.ensure().await, "a");
    assert_eq!(code, None, "{text}");
}

#[tokio::test]
async fn a_revoked_token_is_replaced() {
    let world = World::new(&["a"]);
    world.ensure().await;
    world.arm.revoke_tokens();
    assert_eq!(failure_of(&world.ensure().await, "a").1, Some(ErrorCode::InfraUnauthenticated));
    let is_mended = |dependencies: &gardener_extension_worker::provider::Dependencies| dependencies.failures.is_empty();
    world.settled_as(is_mended).await;
}
