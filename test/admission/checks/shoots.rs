//! Pools of Shoots are denied if no machine can be created for them. All other changes of a Shoot are allowed.

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::{Value, json};

use crate::program;
use test_support::garden::{Garden, details, refusal};
use test_support::garden_objects::{azure_profile, azure_shoot, labels, namespaced_profile, review_of_change};
use test_support::https::Connection;

#[tokio::test]
async fn a_pool_is_refused_with_every_problem_at_once() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let namespace = control_plane.namespace("garden-shoots").await?;
    let mut shoot = azure_shoot(&namespace);
    garden.try_create(&shoot).await?;
    let pool = &mut shoot["spec"]["provider"]["workers"][0];
    pool["zones"] = json!(["1", "1"]);
    pool["volume"] = json!({"size": "50Gi", "type": "Premium_LRS", "encrypted": true});
    pool["providerConfig"] = json!({
        "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "WorkerConfig",
        "volume": {"caching": "readonly"},
    });
    let message = refusal(garden.create(&shoot).await)?;
    for part in [
        &format!("Shoot {namespace}/s has 3 problems"),
        r#"spec.provider.workers[0].zones[1]: Invalid value: "1": must only be specified once per worker group"#,
        "spec.provider.workers[0].volume.encrypted: Unsupported value: true",
        r#"providerConfig.volume.caching: Unsupported value: "readonly": supported values: "None", "ReadOnly", "ReadWrite""#,
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn zones_may_only_be_added() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut shoot = azure_shoot(&control_plane.namespace("garden-zones").await?);
    garden.create(&shoot).await?;
    shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["1", "2"]);
    garden.patch(&shoot, &json!({"spec": shoot["spec"]})).await?;
    shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["2", "1"]);
    let message = refusal(garden.patch(&shoot, &json!({"spec": shoot["spec"]})).await)?;
    ensure!(message.contains("workers[0].zones") && message.contains("it was [1, 2]"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_shoot_from_before_is_held_up_only_by_changes_of_its_pools() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut shoot = azure_shoot(&control_plane.namespace("garden-before").await?);
    shoot["metadata"]["labels"] = json!({});
    shoot["spec"]["provider"]["workers"][0]["volume"] = json!({"size": "50Gi"});
    garden.create(&shoot).await?;
    garden.patch(&shoot, &json!({"metadata": {"labels": labels("azure")}})).await?;
    garden.patch(&shoot, &json!({"spec": {"hibernation": {"enabled": true}}})).await?;
    shoot["spec"]["provider"]["workers"][0]["maximum"] = 5.into();
    let message = refusal(garden.patch(&shoot, &json!({"spec": shoot["spec"]})).await)?;
    ensure!(message.contains("workers[0].volume.type: Required value"), "{message}");
    Ok(())
}

#[tokio::test]
async fn aws_has_its_own_rules() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut shoot = azure_shoot(&control_plane.namespace("garden-aws").await?);
    shoot["metadata"]["labels"] = labels("aws");
    shoot["spec"]["provider"]["type"] = "aws".into();
    shoot["spec"]["provider"]["infrastructureConfig"] = json!({"networks": {"zones": [{"name": "eu-west-1a"}]}});
    shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["eu-west-1b"]);
    shoot["spec"]["provider"]["workers"][0]["volume"]["type"] = "io1".into();
    let message = refusal(garden.create(&shoot).await)?;
    for part in [
        "workers[0].zones[0]: Invalid value: \"eu-west-1b\"",
        "it has eu-west-1a",
        "providerConfig.volume.iops: Required value",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_machine_type_that_no_image_fits_is_refused_with_both_sides_and_a_way_out() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("fitting");
    profile["spec"]["machineTypes"][0]["capabilities"]["hypervisorType"] = json!(["gen1"]);
    let add =
        |list: &mut serde_json::Value, version: serde_json::Value| list.as_array_mut().expect("a list").push(version);
    let flavors = json!([{"capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen1"]}, "urn": "a:b:c:4"}]);
    add(&mut profile["spec"]["machineImages"][0]["versions"], json!({"version": "1.1.0"}));
    let config = &mut profile["spec"]["providerConfig"]["machineImages"][0]["versions"];
    add(config, json!({"version": "1.1.0", "capabilityFlavors": flavors}));
    garden.create(&profile).await?;

    let mut shoot = azure_shoot(&control_plane.namespace("garden-fitting").await?);
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "fitting"});
    let machine = &mut shoot["spec"]["provider"]["workers"][0]["machine"];
    machine["image"] = json!({"name": "linux", "version": "1.0.0"});
    let message = refusal(garden.create(&shoot).await)?;
    for part in [
        "workers[0].machine.image.version: Invalid value: \"1.0.0\": no image of linux@1.0.0 fits machine type Standard_D4s_v5",
        "capabilityFlavors[0]: machine type requires hypervisorType=gen1; image supports gen2",
        "capabilityFlavors[1]: machine type requires architecture=amd64; image supports arm64",
        "Versions of linux that fit Standard_D4s_v5: 1.1.0",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1.1.0".into();
    garden.create(&shoot).await?;

    // The same check with the merged profile of a project.
    let namespace = shoot["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
    let mut own = namespaced_profile(&namespace, "fitting");
    own["spec"]["machineImages"][0]["versions"][0]["version"] = "2.0.0".into();
    garden.create(&own).await?;
    let status = json!({"cloudProfileSpec": profile["spec"]});
    garden.patch_status(&own, &status).await?;
    shoot["metadata"]["name"] = "other".into();
    shoot["spec"]["cloudProfile"] = json!({"kind": "NamespacedCloudProfile", "name": "own"});
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1.0.0".into();
    let message = refusal(garden.create(&shoot).await)?;
    ensure!(message.contains("no image of linux@1.0.0 fits machine type Standard_D4s_v5"), "{message}");

    // A missing profile does not block the Shoot.
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "nobody"});
    garden.create(&shoot).await?;
    Ok(())
}

/// A CloudProfile of `example/cloudprofiles` with Gardener's labels.
fn example_profile(provider: &str) -> Result<Value> {
    let file = test_support::repository().join(format!("example/cloudprofiles/{provider}.yaml"));
    let mut profile = documents(&std::fs::read_to_string(file)?)?.pop().context("a CloudProfile")?;
    profile["metadata"]["labels"] = labels(provider);
    Ok(profile)
}

/// A Shoot with one pool of this machine type, with the profile and image of the example.
fn shoot_of(provider: &str, namespace: &str, region: &str, machine_type: &str) -> Value {
    let mut shoot = azure_shoot(namespace);
    shoot["metadata"]["labels"] = labels(provider);
    shoot["spec"]["region"] = region.into();
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": provider});
    let image = json!({"name": "gardenlinux", "version": "1877.3.0"});
    let pool = json!({
        "name": "a", "machine": {"type": machine_type, "image": image},
        "volume": {"type": "ssd", "size": "50Gi"}, "zones": ["a"],
    });
    shoot["spec"]["provider"] = json!({"type": provider, "workers": [pool]});
    shoot
}

#[tokio::test]
async fn images_are_compared_for_every_cloud_whose_profiles_are_reviewed() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let namespace = control_plane.namespace("garden-clouds").await?;
    for (provider, fits, misfit, problem) in [
        (
            "gcp",
            ("europe-west1", "n1-standard-4"),
            ("europe-west1", "c4a-virtio"),
            "no image of gardenlinux@1877.3.0 fits machine type c4a-virtio",
        ),
        (
            "openstack",
            ("north", "legacy2"),
            ("west", "legacy2"),
            "capabilityFlavors[0]: machine type requires firmware=bios; image supports uefi",
        ),
        (
            "alicloud",
            ("eu-central-1", "ecs.g7.xlarge"),
            ("us-east-1", "ecs.g7.xlarge"),
            "gardenlinux@1877.3.0 has no image in region \"us-east-1\", only in cn-beijing, eu-central-1",
        ),
    ] {
        let mut profile = example_profile(provider)?;
        if provider == "gcp" {
            let capabilities = json!({"architecture": ["arm64"], "network": ["virtio"]});
            let machine_type =
                json!({"name": "c4a-virtio", "cpu": "4", "gpu": "0", "memory": "16Gi", "capabilities": capabilities});
            profile["spec"]["machineTypes"].as_array_mut().context("a list")?.push(machine_type);
        }
        garden.create(&profile).await?;
        garden.try_create(&shoot_of(provider, &namespace, fits.0, fits.1)).await.with_context(|| provider)?;
        let message = refusal(garden.try_create(&shoot_of(provider, &namespace, misfit.0, misfit.1)).await)?;
        ensure!(message.contains(problem), "{provider}: {message}");
    }
    // On AliCloud, an encrypted volume starts from a copy of the image in the account, regardless of the profile.
    let mut encrypted = shoot_of("alicloud", &namespace, "us-east-1", "ecs.g7.xlarge");
    encrypted["spec"]["provider"]["workers"][0]["volume"]["encrypted"] = true.into();
    garden.try_create(&encrypted).await?;
    Ok(())
}

#[tokio::test]
async fn an_invalid_pool_hides_no_image_error_of_another_pool() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let namespace = control_plane.namespace("garden-together").await?;
    garden.create(&azure_profile("together")).await?;
    let mut shoot = azure_shoot(&namespace);
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "together"});
    shoot["spec"]["region"] = "westeurope".into();
    let mut other = shoot["spec"]["provider"]["workers"][0].clone();
    other["name"] = "b".into();
    other["machine"] = json!({
        "type": "Standard_D4s_v5", "architecture": "amd64", "image": {"name": "linux", "version": "1.0.0"},
    });
    shoot["spec"]["provider"]["workers"][0]["volume"]["encrypted"] = true.into();
    shoot["spec"]["provider"]["workers"].as_array_mut().context("a list")?.push(other);
    let mut misfit = azure_profile("together");
    misfit["spec"]["machineTypes"][0]["capabilities"]["hypervisorType"] = json!(["gen1"]);
    garden.patch(&misfit, &json!({"spec": misfit["spec"]})).await?;

    let refused = garden.try_create(&shoot).await;
    let details = details(&refused)?;
    let message = refusal(refused)?;
    for part in [
        "has 2 problems",
        "workers[0].volume.encrypted: Unsupported value: true",
        "workers[1].machine.image.version: Invalid value: \"1.0.0\": no image of linux@1.0.0 fits",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    // Same form as the API server's own causes, so that kubectl prints each field once.
    ensure!(details["kind"] == "Shoot" && details["name"] == "s", "{details}");
    ensure!(details["group"] == "core.gardener.cloud", "{details}");
    let encrypted = json!({
        "reason": "FieldValueNotSupported", "message": "Unsupported value: true",
        "field": "spec.provider.workers[0].volume.encrypted",
    });
    ensure!(details["causes"][0] == encrypted, "{details}");
    let image = &details["causes"][1];
    ensure!(image["reason"] == "FieldValueInvalid", "{image}");
    ensure!(image["field"] == "spec.provider.workers[1].machine.image.version", "{image}");
    let message = image["message"].as_str().unwrap_or_default();
    ensure!(message.starts_with("Invalid value: \"1.0.0\": no image of linux@1.0.0 fits"), "{image}");
    Ok(())
}

#[tokio::test]
async fn warns_of_the_pools_that_roll() -> Result<()> {
    let (_, admission) = program::shared().await?;
    let mut old = azure_shoot("garden-warned");
    old["spec"]["kubernetes"] = json!({"version": "1.34.3"});
    let pool = &mut old["spec"]["provider"]["workers"][0];
    pool["machine"]["image"] = json!({"name": "gardenlinux", "version": "1.2.3"});
    pool["maxSurge"] = json!(1);
    let mut new = old.clone();
    new["spec"]["kubernetes"]["version"] = json!("1.35.1");
    let mut connection = Connection::open(admission.port).await?;
    for (edited, expected) in [
        (&new, json!(["pool a: its 1 to 2 nodes roll, because kubernetes.version changed; 1 at a time"])),
        (&old, Value::Null),
    ] {
        let body = review_of_change("shoots", edited, &old);
        let reply = connection.post("/webhooks/validate", "application/json", &body).await?;
        let response = serde_json::from_str::<Value>(&reply.body)?["response"].clone();
        ensure!(response["allowed"] == true && response["warnings"] == expected, "{response}");
    }
    Ok(())
}
