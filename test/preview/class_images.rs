//! Every cloud: if a CloudProfile has other images for the same versions, a class changes only in values that
//! `--pin-images` keeps.

use gardener_extension_worker::api::gardener::{CloudProfile, Shoot, Worker};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::api::secret::Secrets;
use gardener_extension_worker::provider::{Providers, WorkerContext};
use gardener_extension_worker::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use gardener_extension_worker::worker::plan::changes::class_document;
use gardener_extension_worker::worker::plan::class_images::ImagePolicy;
use gardener_extension_worker::worker::plan::desired::{CloudView, DesiredState};
use gardener_extension_worker::worker::status::conditions::ConditionStatus;
use serde_json::Value;

use crate::world::secrets_of;

/// An example of each cloud, with its Worker type.
const CLOUDS: [(&str, &str); 5] = [
    (include_str!("../../example/azure.yaml"), "azure"),
    (include_str!("../../example/aws.yaml"), "aws"),
    (include_str!("../../example/gcp.yaml"), "gcp"),
    (include_str!("../../example/alicloud.yaml"), "alicloud"),
    (include_str!("../../example/openstack.yaml"), "openstack"),
];

#[test]
fn a_pinned_class_is_as_it_was_before_its_images_changed() {
    for (text, cloud) in CLOUDS {
        let documents = yaml::documents(text).unwrap();
        let of_kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap().clone();
        let (worker, cluster) = (of_kind("Worker"), of_kind("Cluster"));
        let secrets = secrets_of(&documents);
        let before = planned(&worker, &cluster, &secrets, ImagePolicy::Report, &MachineObjects::default());
        let live = deployed(&before, cloud);
        let mut rebuilt = cluster.clone();
        rename_images(&mut rebuilt["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"]);
        let followed = planned(&worker, &rebuilt, &secrets, ImagePolicy::Report, &live);
        let pinned = planned(&worker, &rebuilt, &secrets, ImagePolicy::Pin, &live);
        assert!(!before.classes.is_empty(), "{cloud}");
        assert_ne!(before.classes, followed.classes, "{cloud}: the CloudProfile has other images");
        assert_eq!(before.classes, pinned.classes, "{cloud}");
        for (planned, drifts) in [(&before, false), (&followed, true), (&pinned, true)] {
            assert_eq!(planned.drifts, drifts, "{cloud}");
        }
    }
}

struct Planned {
    classes: Vec<Value>,
    deployments: Vec<(String, Value)>,
    drifts: bool,
}

fn planned(worker: &Value, cluster: &Value, secrets: &Secrets, policy: ImagePolicy, live: &MachineObjects) -> Planned {
    let worker: Worker = decode_lenient(&to_go_json(worker)).unwrap();
    let cloud_profile: CloudProfile = decode_lenient(&to_go_json(&cluster["spec"]["cloudProfile"])).unwrap();
    let shoot: Shoot = decode_lenient(&to_go_json(&cluster["spec"]["shoot"])).unwrap();
    let context =
        WorkerContext { worker: &worker, cloud_profile: &cloud_profile, shoot: &shoot, secrets, dependencies: None };
    let provider = Providers::SHIPPED.for_worker_type(&worker.spec.worker_type).unwrap();
    let desired = DesiredState::new(provider, context, CloudView::Settled).unwrap().with_images(provider, policy, live);
    let deployments = desired.drift(live, "2026-01-01T00:00:00Z".parse().unwrap()).changes.into_iter();
    Planned {
        classes: desired.plan.machines().map(class_document).collect(),
        deployments: deployments
            .filter_map(|change| Some((change.machine.deployment.name.0.clone(), change.deployment?.after().clone())))
            .collect(),
        drifts: desired.image_drift().unwrap().status == ConditionStatus::True,
    }
}

/// The planned deployments as live objects.
fn deployed(planned: &Planned, cloud: &str) -> MachineObjects {
    let provider = Providers::SHIPPED.for_worker_type(cloud).unwrap();
    let mut live = MachineObjects::default();
    for (name, document) in &planned.deployments {
        live.deployments.insert(name.clone(), LiveDeployment::read(document.clone(), provider).unwrap());
    }
    live
}

/// Gives every image another reference at the cloud.
fn rename_images(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename_images),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text)
                        if ["id", "ami", "image", "urn", "communityGalleryImageID", "sharedGalleryImageID"]
                            .contains(&name.as_str()) =>
                    {
                        text.push_str(if name == "urn" { "1" } else { "-rebuilt" });
                    }
                    member => rename_images(member),
                }
            }
        }
        _ => {}
    }
}
