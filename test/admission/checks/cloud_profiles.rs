//! CloudProfiles are denied with a message that contains the fix, and accepted if both halves match. The webhook keeps
//! the halves consistent.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::program::{self, Admission};
use test_support::cluster::RESTRICTED;
use test_support::garden::{Garden, refusal};
use test_support::garden_objects::{
    aws_profile, azure_config, azure_profile, azure_shoot, labels, namespaced_profile, review, review_of_change,
};
use test_support::https::Connection;

#[tokio::test]
async fn a_profile_whose_halves_fit_is_stored_as_it_was_written() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    for profile in [azure_profile("complete"), aws_profile("complete-aws")] {
        let stored = garden.create(&profile).await?;
        ensure!(stored["spec"] == profile["spec"], "{stored}");
    }
    Ok(())
}

#[tokio::test]
async fn a_denial_names_version_capability_both_sides_and_the_fix() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    // Core has no definitions, so the webhook can't replace core's own flavors and compares what was written.
    let mut profile = azure_profile("refused");
    profile["spec"]["machineImages"][0]["versions"][0]["version"] = "1.0.1".into();
    let message = refusal(garden.create(&profile).await)?;
    for part in [
        "validator.worker-admission-azure.extensions.gardener.cloud",
        "CloudProfile refused: spec.machineImages[0].versions[0]: Required value: machine image version linux@1.0.1",
        "is not defined in the providerConfig",
        "list it in spec.providerConfig.machineImages",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }

    let mut profile = azure_profile("refused");
    let version = &mut profile["spec"]["providerConfig"]["machineImages"][0]["versions"][0];
    version["capabilityFlavors"][0]["capabilities"]["hypervisorType"] = json!(["gen3"]);
    version["capabilityFlavors"][1]["urn"] = "a:b:c".into();
    let message = refusal(garden.create(&profile).await)?;
    let config = "spec.providerConfig.machineImages[0].versions[0].capabilityFlavors";
    for part in [
        "CloudProfile refused has 2 problems:",
        &format!(
            r#"* {config}[0].capabilities.hypervisorType[0]: Unsupported value: "gen3": supported values: "gen2", "gen1""#
        ),
        &format!("* {config}[1].urn: Invalid value: \"a:b:c\": please use the format `Publisher:Offer:Sku:Version`"),
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_or_unreadable_provider_config_is_refused() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("unreadable");
    profile["spec"]["providerConfig"]["machineImage"] = json!([]);
    let message = refusal(garden.create(&profile).await)?;
    ensure!(message.contains("spec.providerConfig: Invalid value") && message.contains("machineImage"), "{message}");
    profile["spec"].as_object_mut().expect("an object").remove("providerConfig");
    let message = refusal(garden.create(&profile).await)?;
    ensure!(message.contains("spec.providerConfig: Required value"), "{message}");
    Ok(())
}

#[tokio::test]
async fn core_lists_the_flavors_of_the_provider_config_in_one_order() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("flavors");
    profile["spec"]["machineImages"][0]["versions"] = json!([
        {"version": "1.0.0", "capabilityFlavors": [{"architecture": ["amd64"], "hypervisorType": ["gen1"]}]},
        {"version": "0.9.0"},
    ]);
    let old_format = |architecture: &str, accelerated: bool| json!({"version": "0.9.0", "architecture": architecture, "acceleratedNetworking": accelerated, "urn": "a:b:c:d"});
    let versions = &mut profile["spec"]["providerConfig"]["machineImages"][0]["versions"];
    let versions = versions.as_array_mut().expect("a list");
    versions.extend([old_format("arm64", false), old_format("amd64", false), old_format("amd64", true)]);
    let stored = garden.create(&profile).await?;
    let flavors = |stored: &Value| {
        let versions = stored["spec"]["machineImages"][0]["versions"].as_array().cloned().unwrap_or_default();
        versions.into_iter().map(|version| version["capabilityFlavors"].clone()).collect::<Vec<_>>()
    };
    let expected = [
        json!([{"architecture": ["amd64"], "hypervisorType": ["gen2"]}, {"architecture": ["arm64"]}]),
        json!([
            {"architecture": ["amd64"]},
            {"architecture": ["amd64"], "azure-networking": ["basic"]},
            {"architecture": ["arm64"], "azure-networking": ["basic"]},
        ]),
    ];
    ensure!(flavors(&stored) == expected, "{stored}");

    // Another update finds nothing to change.
    let generation = stored["metadata"]["generation"].clone();
    let labelled = garden.patch(&profile, &json!({"metadata": {"labels": {"a": "b"}}})).await?;
    ensure!(labelled["metadata"]["generation"] == generation && flavors(&labelled) == expected, "{labelled}");
    Ok(())
}

#[tokio::test]
async fn a_profile_that_was_stored_before_can_still_be_labelled_and_deleted() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("from-before");
    // Without the label the webhook does not review it.
    profile["metadata"]["labels"] = json!({});
    profile["spec"]["providerConfig"] = azure_config(json!([]));
    garden.create(&profile).await?;
    let label = json!({"metadata": {"labels": labels("azure"), "finalizers": ["example.com/f"]}});
    garden.patch(&profile, &label).await?;
    let change = json!({"spec": {"machineTypes": []}});
    let message = refusal(garden.patch(&profile, &change).await)?;
    ensure!(message.contains("must provide at least one version for machine image"), "{message}");
    garden.delete(&profile).await?;
    garden.patch(&profile, &json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

/// If the webhook can't complete an object, because its providerConfig is unreadable or its parent is deleted, it can
/// still be labelled.
#[tokio::test]
async fn what_can_not_be_completed_any_more_can_still_be_labelled() -> Result<()> {
    let (control_plane, admission) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    garden.create(&azure_profile("parent-unreadable")).await?;
    let unreadable = |mut profile: Value| {
        profile["spec"]["providerConfig"]["apiVersion"] = "azure.provider.extensions.gardener.cloud/v1alpha9".into();
        profile
    };
    for (resource, stored) in [
        ("cloudprofiles", unreadable(azure_profile("unreadable"))),
        ("namespacedcloudprofiles", unreadable(namespaced_profile("garden-unreadable", "parent-unreadable"))),
        ("namespacedcloudprofiles", namespaced_profile("garden-unreadable", "gone")),
    ] {
        let mut labelled = stored.clone();
        labelled["metadata"]["labels"]["a"] = "b".into();
        let mut changed = stored.clone();
        changed["spec"]["machineTypes"] = json!([{"name": "another", "cpu": "1", "gpu": "0", "memory": "1Gi"}]);
        for (written, before, is_allowed) in
            [(&labelled, &stored, true), (&changed, &stored, false), (&stored, &Value::Null, false)]
        {
            let mut connection = Connection::open(admission.port).await?;
            let body = review_of_change(resource, written, before);
            let reply = connection.post("/webhooks/mutate", "application/json", &body).await?;
            let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
            ensure!(response["allowed"] == is_allowed && response["patch"].is_null(), "{resource}: {response}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn profiles_of_other_providers_are_left_alone() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("other");
    profile["metadata"]["labels"] = labels("other");
    profile["spec"]["type"] = "other".into();
    profile["spec"]["providerConfig"] = json!({"anything": true});
    garden.create(&profile).await?;
    Ok(())
}

#[tokio::test]
async fn a_dry_run_is_reviewed_like_a_real_request() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    garden.try_create(&azure_profile("dry")).await?;
    let mut wrong = azure_profile("dry");
    wrong["spec"]["providerConfig"] = azure_config(json!([]));
    refusal(garden.try_create(&wrong).await)?;
    Ok(())
}

#[tokio::test]
async fn indistinguishable_flavors_get_a_warning() -> Result<()> {
    let (_, admission) = program::shared().await?;
    let mut profile = azure_profile("repeated");
    let flavors = &mut profile["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"];
    let same =
        json!({"capabilities": {"architecture": ["arm64"], "hypervisorType": ["gen1", "gen2"]}, "urn": "a:b:c:9"});
    flavors.as_array_mut().expect("a list").push(same);
    let mut connection = Connection::open(admission.port).await?;
    let body = review("cloudprofiles", &profile);
    let reply = connection.post("/webhooks/validate", "application/json", &body).await?;
    let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
    let warning = response["warnings"][0].as_str().unwrap_or_default();
    ensure!(
        response["allowed"] == true && warning.contains("capabilityFlavors[2] lists the same capabilities as"),
        "{response}"
    );
    Ok(())
}

#[tokio::test]
async fn what_expires_is_a_warning_and_refuses_nothing() -> Result<()> {
    let (control_plane, admission) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let old = azure_profile("expiring");
    let mut profile = old.clone();
    for list in ["machineImages", "providerConfig/machineImages"] {
        let versions = profile.pointer_mut(&format!("/spec/{list}/0/versions")).and_then(Value::as_array_mut);
        let versions = versions.expect("a list");
        let mut newer = versions[0].clone();
        newer["version"] = "2.0.0".into();
        versions.push(newer);
    }
    profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = "2999-04-01T00:00:00Z".into();
    let mut connection = Connection::open(admission.port).await?;
    let body = review_of_change("cloudprofiles", &profile, &old);
    let reply = connection.post("/webhooks/validate", "application/json", &body).await?;
    let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
    let expires = json!(["linux 1.0.0 expires on 2999-04-01, then forced to 2.0.0"]);
    ensure!(response["allowed"] == true && response["warnings"] == expires, "{response}");

    // The warning for a Shoot is about its own pool: an expired version is replaced in the next maintenance window.
    profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = "2020-04-01T00:00:00Z".into();
    garden.create(&profile).await?;
    let mut shoot = azure_shoot("garden-expiring");
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "expiring"});
    shoot["spec"]["kubernetes"] = json!({"version": "1.33.1"});
    shoot["spec"]["maintenance"] = json!({"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}});
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"] = json!({"name": "linux", "version": "1.0.0"});
    let reply = connection.post("/webhooks/validate", "application/json", &review("shoots", &shoot)).await?;
    let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
    let expires = json!(["pool a: linux 1.0.0 expired on 2020-04-01: forced to 2.0.0"]);
    ensure!(response["allowed"] == true && response["warnings"] == expires, "{response}");

    // The warning also appears if only the Kubernetes version changes, but not if the Shoot is merely labelled.
    let upgraded = shoot.clone();
    shoot["spec"]["kubernetes"]["version"] = "1.33.0".into();
    let mut labelled = shoot.clone();
    labelled["spec"]["purpose"] = "testing".into();
    for (edited, expected) in [(upgraded, &expires), (labelled, &Value::Null)] {
        let body = review_of_change("shoots", &edited, &shoot);
        let reply = connection.post("/webhooks/validate", "application/json", &body).await?;
        let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
        ensure!(response["allowed"] == true && response["warnings"] == *expected, "{response}");
    }
    Ok(())
}

/// Off by default. If the program may not list Shoots, it adds a warning and allows the profile.
#[tokio::test]
async fn warns_of_pools_with_new_nodes() -> Result<()> {
    let (control_plane, shared) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let old = azure_profile("pools");
    garden.create(&old).await?;
    let namespace = control_plane.namespace("garden-pools").await?;
    let mut shoot = azure_shoot(&namespace);
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "pools"});
    shoot["spec"]["kubernetes"] = json!({"version": "1.33.1"});
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"] = json!({"name": "linux", "version": "1.0.0"});
    garden.create(&shoot).await?;
    // A second Shoot uses an image that its project adds.
    shoot["metadata"]["name"] = "t".into();
    shoot["spec"]["cloudProfile"] = json!({"kind": "NamespacedCloudProfile", "name": "own"});
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"] = json!({"name": "linux", "version": "2.0.0"});
    garden.create(&shoot).await?;
    let start = async |name: &'static str, options: &[(&'static str, String)]| -> Result<Admission> {
        let admission = Admission::start(control_plane, name, |program| {
            let program = program.flag("webhook-config-name", name).arg("--webhook-config-unmanaged");
            options.iter().fold(program, |program, (option, value)| program.flag(option, value.clone()))
        });
        let admission = admission.await?;
        admission.ready().await?;
        Ok(admission)
    };
    let on = ("profile-warnings", "true".to_owned());
    let restricted = control_plane.kubeconfig_file(RESTRICTED)?.display().to_string();
    let asking = start("pool-warnings", std::slice::from_ref(&on)).await?;
    let refused = start("pool-warnings-refused", &[on, ("garden-kubeconfig", restricted)]).await?;
    let mut replaced = old.clone();
    replaced["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"][0]["urn"] =
        "a:b:c:9".into();
    let mut labelled = old.clone();
    labelled["metadata"]["labels"]["a"] = "b".into();
    let own = namespaced_profile(&namespace, "pools");
    let mut own_replaced = own.clone();
    own_replaced["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"][0]["urn"] =
        "a:b:c:9".into();
    let another = |version: &str, shoot: &str| {
        let new_nodes = format!("new nodes of 1 pool of 1 Shoot, such as {namespace}/{shoot}");
        format!("linux {version}: {new_nodes}, start from another image than those there are")
    };
    let (of_profile, of_project) = (another("1.0.0", "s"), another("2.0.0", "t"));
    let unknown = "what happens to pools is not known: NamespacedCloudProfiles can't be listed";
    for (admission, edited, before, expected) in [
        (&asking, &replaced, &old, of_profile.as_str()),
        (&asking, &own_replaced, &own, of_project.as_str()),
        (&asking, &labelled, &old, ""),
        (shared, &replaced, &old, ""),
        (&refused, &replaced, &old, unknown),
    ] {
        let resource = if before["kind"] == "CloudProfile" { "cloudprofiles" } else { "namespacedcloudprofiles" };
        let mut connection = Connection::open(admission.port).await?;
        let body = review_of_change(resource, edited, before);
        let reply = connection.post("/webhooks/validate", "application/json", &body).await?;
        let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
        let warnings = response["warnings"].as_array().cloned().unwrap_or_default();
        let is_as_expected = match warnings.as_slice() {
            [] => expected.is_empty(),
            [only] => !expected.is_empty() && only.as_str().is_some_and(|warning| warning.starts_with(expected)),
            _ => false,
        };
        ensure!(response["allowed"] == true && is_as_expected, "{expected:?}: {response}");
    }
    refused.stop().await?;
    asking.stop().await
}

#[tokio::test]
async fn what_a_project_lets_expire_is_a_warning() -> Result<()> {
    let (control_plane, admission) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    garden.create(&azure_profile("parent-expiring")).await?;
    let mut profile = namespaced_profile("garden-expiring", "parent-expiring");
    let old = profile.clone();
    let mut connection = Connection::open(admission.port).await?;
    profile["spec"]["machineImages"][0]["versions"][0]["expirationDate"] = "2999-04-01T00:00:00Z".into();
    let expires =
        json!(["linux 2.0.0 expires on 2999-04-01, then stuck. The CloudProfile needs a version of linux above \
        2.0.0 that fits the pool and is neither preview nor expired; or the pool moves to another image"]);
    for (body, expected) in [
        (review("namespacedcloudprofiles", &profile), &expires),
        (review_of_change("namespacedcloudprofiles", &profile, &old), &expires),
        (review_of_change("namespacedcloudprofiles", &old, &profile), &Value::Null),
    ] {
        let reply = connection.post("/webhooks/validate", "application/json", &body).await?;
        let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
        ensure!(response["allowed"] == true && response["warnings"] == *expected, "{response}");
    }
    Ok(())
}
