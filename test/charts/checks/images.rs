//! Runs the controllers for images as the chart installs them. They use every permission of their role.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::capa::AwsMachineTemplate;
use gardener_extension_worker::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use crate::chart::{Chart, merge, render};
use crate::installed::{self, apply, user};
use crate::permissions::{allowed, ensure_exact, ensure_not_refused};
use test_support::cluster::{ADMIN, ControlPlane, eventually};
use test_support::shoot::SOON;

const NAME: &str = "gardener-extension-worker";
const GROUPS: [&str; 2] = ["images.gardener-extension-worker", "infrastructure.cluster.x-k8s.io"];
/// Requests to an API server that does not stream lists.
const RARELY_NEEDED: [(&str, &str, &str); 4] = [
    ("images.gardener-extension-worker/imagelookups", "list", "lists are streamed"),
    ("images.gardener-extension-worker/imageselections", "list", "lists are streamed"),
    ("images.gardener-extension-worker/machineimages", "list", "lists are streamed"),
    ("infrastructure.cluster.x-k8s.io/awsmachinetemplates", "list", "lists are streamed"),
];

#[tokio::test]
async fn the_role_for_images_allows_what_is_needed_and_nothing_else() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = control_plane.namespace("extension-worker").await?;
    let mut values = Chart::Worker.needed();
    merge(&mut values, &json!({"images": {"enabled": true, "machineTemplates": true, "intervalSeconds": 1}}));
    // A management cluster without Gardener, where the program gets no other permissions.
    merge(&mut values, &json!({"disableControllers": ["worker"]}));
    let rendered = render(Chart::Worker, &values, &namespace).await?;
    let others = ["VerticalPodAutoscaler"];
    for object in rendered.objects.iter().filter(|object| !others.iter().any(|kind| object["kind"] == *kind)) {
        apply(&client, object).await?;
    }
    apply(&client, &stand_in("infrastructure.cluster.x-k8s.io", "v1beta2", "AWSMachineTemplate", "Namespaced")).await?;
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;
    let folder = tempfile::tempdir()?;
    let list = |amis: Value| std::fs::write(folder.path().join("amis.json"), json!({"Images": amis}).to_string());
    list(json!([ami("ami-00000001", "2026-09-22")]))?;
    let source = format!("eu-central-1={}", folder.path().display());
    let program =
        installed::start(&control_plane, &rendered, "-worker", |program| program.flag("image-source", source)).await?;

    apply(&client, &lookup()).await?;
    images_become(&client, &["ami-00000001"]).await?;
    apply(&client, &template(&namespace)).await?;
    labelled(&client, &namespace).await?;
    list(json!([ami("ami-00000001", "2026-09-22"), ami("ami-00000002", "2026-11-18")]))?;
    images_become(&client, &["ami-00000001", "ami-00000002"]).await?;
    eventually(SOON, "the older image is not the newest any more", async || {
        let image = Api::<MachineImage>::all(client.clone()).get("ami-00000001").await?;
        let latest = image.metadata.labels.context("no labels")?.remove("images.gardener-extension-worker/latest");
        ensure!(latest.as_deref() == Some("false"), "{latest:?}");
        Ok(())
    })
    .await?;
    // Removes all users of the image.
    let resource = ApiResource::erase::<AwsMachineTemplate>(&());
    let templates: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
    templates.delete("nodes", &Default::default()).await?;
    Api::<ImageSelection>::namespaced(client.clone(), &namespace).delete("nodes", &Default::default()).await?;
    list(json!([ami("ami-00000002", "2026-11-18")]))?;
    images_become(&client, &["ami-00000002"]).await?;
    program.stop(Duration::from_secs(10)).await?;

    let role = allowed(std::slice::from_ref(rendered.one("ClusterRole", "-worker")?))?;
    let others = role.into_iter().filter(|(resource, _)| !resource.ends_with("/events")).collect::<Vec<_>>();
    ensure!(others == [("extensions.gardener.cloud/workers".to_owned(), "list".to_owned())], "{others:?}");
    let own: Vec<Value> =
        rendered.objects.into_iter().filter(|object| object["metadata"]["name"] == format!("{NAME}-images")).collect();
    let requests = audit.requests(&user(&namespace, NAME), mark).await?;
    ensure_not_refused(&requests)?;
    let requests: Vec<_> =
        requests.into_iter().filter(|request| GROUPS.iter().any(|group| request.uri.contains(group))).collect();
    ensure_exact(&allowed(&own)?, &requests, &RARELY_NEEDED)
}

fn ami(id: &str, day: &str) -> Value {
    json!({"ImageId": id, "Name": format!("capa-ami-ubuntu-24.04-v1.34.2-{id}"), "OwnerId": "111111111111", "State": "available",
        "Architecture": "x86_64", "CreationDate": format!("{day}T09:00:00.000Z")})
}

fn lookup() -> Value {
    json!({"apiVersion": "images.gardener-extension-worker/v1alpha1", "kind": "ImageLookup", "metadata": {"name": "capi"}, "spec": {
        "provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*", "os": ["ubuntu-24.04"],
        "arch": ["amd64"], "versions": ">=1.33, <1.36", "owners": ["111111111111"]}})
}

fn template(namespace: &str) -> Value {
    let labels =
        json!({"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1"});
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachineTemplate",
        "metadata": {"name": "nodes", "namespace": namespace, "labels": labels}, "spec": {"template": {"spec": {}}}})
}

/// A minimal CRD for a kind of another project. It accepts any content, because this test only checks requests.
fn stand_in(group: &str, version: &str, kind: &str, scope: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": format!("{plural}.{group}")},
    "spec": {
        "group": group, "scope": scope, "names": {"kind": kind, "plural": plural},
        "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": open}}],
    }})
}

/// Objects that name images, each with the expected error if a policy does not allow the image.
fn named_images(namespace: &str) -> Vec<(&'static str, Value, Option<&'static str>)> {
    let with = |mut object: Value, path: &[&str], value: Value| {
        *path.iter().fold(&mut object, |member, step| &mut member[*step]) = value;
        object
    };
    let machine = &["spec", "template", "spec"];
    let profile = |entry: Value| {
        let versions = if entry.is_null() { entry } else { json!([entry]) };
        let provider_config = json!({"apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "gardenlinux", "versions": versions}]});
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "aws"},
            "spec": {"type": "aws", "providerConfig": provider_config}})
    };
    let region = |ami: &str| json!([{"name": "eu-central-1", "ami": ami}]);
    let owner = "ImageAdmissionPolicy only-ours does not allow images of 999999999999";
    let image =
        "ImageAdmissionPolicy only-ours does not allow images of gardenlinux in spec.providerConfig.machineImages";
    vec![
        ("a lookup", lookup(), None),
        (
            "a lookup for others",
            with(lookup(), &["spec", "owners"], json!(["111111111111", "999999999999"])),
            Some(owner),
        ),
        (
            "a lookup at another cloud",
            with(with(lookup(), &["spec", "owners"], json!(["999999999999"])), &["spec", "provider"], json!("gcp")),
            None,
        ),
        (
            "a template with an owner",
            with(template(namespace), machine, json!({"imageLookupOrg": "111111111111"})),
            None,
        ),
        (
            "a template for others",
            with(template(namespace), machine, json!({"imageLookupOrg": "999999999999"})),
            Some(owner),
        ),
        ("a template with an image", with(template(namespace), machine, json!({"ami": {"id": "ami-00000001"}})), None),
        (
            "a template with another image",
            with(template(namespace), machine, json!({"ami": {"id": "ami-00000009"}})),
            Some("ImageAdmissionPolicy only-ours does not allow ami-00000009"),
        ),
        (
            "a template that leaves it open",
            template(namespace),
            Some("images of any owner: name ami.id or imageLookupOrg"),
        ),
        ("a profile", profile(json!({"version": "1.0.0", "regions": region("ami-00000001")})), None),
        (
            "a profile with another image",
            profile(json!({"version": "1.0.0", "regions": region("ami-00000009")})),
            Some(image),
        ),
        (
            "a profile with another image in a flavor",
            profile(json!({"version": "1.0.0", "capabilityFlavors": [{"regions": region("ami-00000009")}]})),
            Some(image),
        ),
        // Go writes empty lists as null.
        (
            "a profile with null for what it has not",
            profile(json!({"version": "1.0.0", "regions": region("ami-00000001"), "capabilityFlavors": null})),
            None,
        ),
        (
            "a profile with another image beside null",
            profile(
                json!({"version": "1.0.0", "regions": null, "capabilityFlavors": [{"regions": region("ami-00000009")}]}),
            ),
            Some(image),
        ),
        ("a profile without versions", profile(Value::Null), None),
    ]
}

/// The API server enforces the policies itself, so no program runs here.
#[tokio::test]
async fn images_that_a_policy_does_not_allow_are_refused_with_its_name() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let namespace = control_plane.namespace("locked").await?;
    let mut values = Chart::Worker.needed();
    merge(&mut values, &json!({"images": {"enabled": true}}));
    let worker = render(Chart::Worker, &values, &namespace).await?;
    let garden = render(Chart::AdmissionApplication, &json!({"imagePolicies": {"enabled": true}}), &namespace).await?;
    let kinds = ["CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
    for object in
        worker.objects.iter().chain(&garden.objects).filter(|object| kinds.iter().any(|kind| object["kind"] == *kind))
    {
        apply(&client, object).await?;
    }
    apply(&client, &stand_in("infrastructure.cluster.x-k8s.io", "v1beta2", "AWSMachineTemplate", "Namespaced")).await?;
    apply(&client, &stand_in("core.gardener.cloud", "v1beta1", "CloudProfile", "Cluster")).await?;
    for (what, object, _) in named_images(&namespace) {
        dry_run(&client, &object)
            .await?
            .map_or(Ok(()), |refusal| Err(anyhow::anyhow!("{what} without a policy: {refusal}")))?;
    }
    let of_others = [others("imagelookups", lookup()), others("machineimages", machine_image())];
    for (_, object) in &of_others {
        apply(&client, object).await?;
    }
    apply(
        &client,
        &json!({"apiVersion": "images.gardener-extension-worker/v1alpha1", "kind": "ImageAdmissionPolicy",
        "metadata": {"name": "only-ours"},
        "spec": {"provider": "aws", "allowedOwners": ["111111111111"], "allowedIDs": ["ami-00000001"]}}),
    )
    .await?;
    for (what, object, expected) in named_images(&namespace) {
        eventually(SOON, &format!("{what} is refused as {expected:?}"), async || {
            let refusal = dry_run(&client, &object).await?;
            let is_as_expected = match (&refusal, expected) {
                (None, None) => true,
                (Some(refusal), Some(expected)) => refusal.contains(expected),
                _ => false,
            };
            ensure!(is_as_expected, "{refusal:?}");
            Ok(())
        })
        .await?;
    }
    // Existing objects can be labelled and released from finalizers, but not extended to more owners.
    let more = json!(["999999999999", "888888888888"]);
    for ((plural, _), wider) in of_others.iter().zip([json!({"owners": more}), json!({"owner": "888888888888"})]) {
        let label = json!({"metadata": {"labels": {"a": "b"}, "finalizers": null}});
        change(&client, plural, &label).await?;
        let refusal = change(&client, plural, &json!({ "spec": wider })).await.err().context("not refused")?;
        ensure!(format!("{refusal:#}").contains("ImageAdmissionPolicy only-ours"), "{refusal:#}");
    }
    Ok(())
}

/// An object of this kind with images that the policy does not allow.
fn others(plural: &'static str, mut object: Value) -> (&'static str, Value) {
    object["metadata"] = json!({"name": "of-others", "finalizers": ["example.org/held"]});
    let owner = json!("999999999999");
    match plural {
        "imagelookups" => object["spec"]["owners"] = json!([owner]),
        _ => object["spec"]["owner"] = owner,
    }
    (plural, object)
}

fn machine_image() -> Value {
    json!({"apiVersion": "images.gardener-extension-worker/v1alpha1", "kind": "MachineImage", "spec": {
        "provider": "aws", "image": "ubuntu", "version": "24.4.13402", "reference": {"ami": "ami-00000009"}}})
}

/// Changes the object that [`others`] creates.
async fn change(client: &Client, plural: &str, change: &Value) -> Result<()> {
    let path = format!("/apis/images.gardener-extension-worker/v1alpha1/{plural}/of-others");
    let request = axum::http::Request::patch(path).header("content-type", "application/merge-patch+json");
    client.request_text(request.body(change.to_string().into_bytes())?).await?;
    Ok(())
}

/// Returns the API server's error for the creation of an object, if any. Stores nothing.
async fn dry_run(client: &Client, object: &Value) -> Result<Option<String>> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let types = object.types.clone().context("a kind")?;
    let kind = kube::api::GroupVersionKind::try_from(&types)?;
    let (resource, _) = eventually(SOON, "its kind is announced", async || {
        kube::discovery::pinned_kind(client, &kind).await.context("asking for its kind")
    })
    .await?;
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    match api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

async fn images_become(client: &Client, expected: &[&str]) -> Result<()> {
    eventually(SOON, &format!("the images are {expected:?}"), async || {
        let images = Api::<MachineImage>::all(client.clone()).list(&ListParams::default()).await?;
        let names: BTreeSet<&str> = images.items.iter().filter_map(|image| image.metadata.name.as_deref()).collect();
        ensure!(names.iter().eq(expected), "{names:?}");
        let lookup = Api::<ImageLookup>::all(client.clone()).get("capi").await?;
        ensure!(lookup.status.last_run.is_some(), "{:?}", lookup.status);
        Ok(())
    })
    .await
}

async fn labelled(client: &Client, namespace: &str) -> Result<()> {
    eventually(SOON, "the template has the label of a version", async || {
        let template = Api::<AwsMachineTemplate>::namespaced(client.clone(), namespace).get("nodes").await?;
        let labels = template.metadata.labels.context("no labels")?;
        ensure!(labels.contains_key("cluster.x-k8s.io/version-ami-1.34.2"), "{labels:?}");
        let selection = Api::<ImageSelection>::namespaced(client.clone(), namespace).get("nodes").await?;
        ensure!(!selection.status.conditions.is_empty(), "{selection:?}");
        Ok(())
    })
    .await
}
