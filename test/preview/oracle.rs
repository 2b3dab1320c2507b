//! The effect of changes on a world's machines, computed without the code under test. The controller's pipeline renders
//! the objects, and a transcription of machine-controller-manager's rule evaluates the typed template.

use std::collections::{BTreeMap, BTreeSet};

use gardener_extension_worker::api::gardener::{CloudProfile, Shoot, Worker};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::api::machine::{MachineDeployment, MachineTemplate};
use gardener_extension_worker::provider::{Providers, UserData, WorkerContext};
use gardener_extension_worker::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use gardener_extension_worker::worker::plan::changes::{class_document, replica_rules};
use gardener_extension_worker::worker::plan::deployment::target_document;
use gardener_extension_worker::worker::plan::plan;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::world::World;

/// The parts of one deployment that machine-controller-manager and new nodes use.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) pool: String,
    pub(crate) document: Value,
    typed: MachineDeployment,
    class: Value,
    user_data: UserData,
    bounds: (i32, i32),
    priority: Option<i32>,
}

/// The result of rendering a world.
#[derive(Clone, Default)]
pub(crate) struct Rendered {
    pub(crate) deployments: BTreeMap<String, Seen>,
    pub(crate) failed: BTreeSet<String>,
}

/// The verdict as printed by the code under test, and whether new nodes differ.
pub(crate) type Evaluation = (&'static str, bool);

pub(crate) const NOTHING: Evaluation = ("NONE", false);

/// The cloud before a change: every recorded scale set has the number of fault domains in the profile. `None` if the
/// shoot uses zones instead.
pub(crate) fn cloud_of(world: &World) -> Option<Value> {
    let infrastructure = world.worker.pointer("/spec/infrastructureProviderStatus")?;
    if infrastructure["zoned"] == true || world.worker["spec"]["type"] != "azure" {
        return None;
    }
    let counts = world.cloud_profile.pointer("/spec/providerConfig/countFaultDomains").and_then(Value::as_array);
    let region = &world.worker["spec"]["region"];
    let count = counts.and_then(|counts| counts.iter().find(|count| count["region"] == *region));
    let records = world.worker.pointer("/status/providerStatus/vmoDependencies").and_then(Value::as_array);
    let output = records.into_iter().flatten().map(|record| {
        json!({
            "resourceGroup": infrastructure["resourceGroup"]["name"],
            "name": record["name"],
            "id": record["id"],
            "platformFaultDomainCount": count.map(|count| &count["count"]),
        })
    });
    Some(json!({"assumed": true, "vmss": output.collect::<Vec<_>>()}))
}

/// Renders a world with live objects and a cloud. Returns `None` if no pool can be planned.
pub(crate) fn render(world: &World, live: &MachineObjects, cloud: Option<&Value>) -> Option<Rendered> {
    let worker: Worker = decode_lenient(&to_go_json(&world.worker)).ok()?;
    let cloud_profile: CloudProfile = decode_lenient(&to_go_json(&world.cloud_profile)).ok()?;
    let shoot: Shoot = decode_lenient(&to_go_json(&world.shoot)).ok()?;
    let secrets = world.secrets();
    let mut context = WorkerContext {
        worker: &worker,
        cloud_profile: &cloud_profile,
        shoot: &shoot,
        secrets: &secrets,
        dependencies: None,
    };
    let provider = Providers::SHIPPED.for_worker_type(&worker.spec.worker_type).ok()?;
    let dependencies = cloud.map(|cloud| provider.described_dependencies(context, cloud)).transpose().ok()?.flatten();
    context.dependencies = dependencies.as_ref();
    let plan = plan(provider, context).ok()?;
    let rules = replica_rules(&context, live);
    let deployments = plan.machines().map(|machine| {
        let expected = &machine.deployment;
        let live = live.deployments.get(&expected.name.0);
        let document = target_document("worker", world.namespace(), expected, live, rules);
        let seen = Seen {
            pool: expected.pool_name.clone(),
            typed: serde_json::from_value(document.clone()).unwrap(),
            document,
            class: class_document(machine),
            user_data: machine.user_data.clone(),
            bounds: (expected.minimum, expected.maximum),
            priority: expected.priority,
        };
        (expected.name.0.clone(), seen)
    });
    let failed = plan.failed_pools().into_iter().map(str::to_owned).collect();
    Some(Rendered { deployments: deployments.collect(), failed })
}

/// The rendered deployments as live objects.
pub(crate) fn as_live(rendered: &Rendered) -> MachineObjects {
    let mut live = MachineObjects::default();
    for (name, seen) in &rendered.deployments {
        live.deployments.insert(name.clone(), LiveDeployment::read_without_codes(seen.document.clone()).unwrap());
    }
    live
}

/// The rendered deployments and their classes, as in a cluster.
pub(crate) fn as_cluster(rendered: &Rendered) -> MachineObjects {
    let mut live = as_live(rendered);
    for seen in rendered.deployments.values() {
        let name = seen.class["metadata"]["name"].as_str().unwrap().to_owned();
        let data = BTreeMap::from([("userData".to_owned(), ByteString(seen.user_data.0.clone()))]);
        let secret = Secret { data: Some(data), ..Secret::default() };
        live.class_secrets.insert(name.clone(), DigestedObject::secret(secret));
        live.classes.insert(name, DigestedObject::class(seen.class.clone()).unwrap());
    }
    live
}

/// The change of a deployment between two states.
pub(crate) fn evaluate(name: &str, old: &Rendered, new: &Rendered) -> Evaluation {
    let (old, new) = match (old.deployments.get(name), new.deployments.get(name)) {
        (None, None) => return NOTHING,
        (None, Some(_)) => return ("CREATE", false),
        // A pool that cannot be planned keeps its objects.
        (Some(old), None) if new.failed.contains(&old.pool) => return NOTHING,
        (Some(_), None) => return ("DELETE", false),
        (Some(old), Some(new)) => (old, new),
    };
    if !equal_ignore_hash(&old.typed.spec.template, &new.typed.spec.template) {
        let in_place = new.typed.spec.strategy.as_ref().unwrap().in_place_update.is_some();
        return (if in_place { "IN-PLACE" } else { "ROLL" }, false);
    }
    let differ = old.class["providerSpec"] != new.class["providerSpec"]
        || old.class["credentialsSecretRef"] != new.class["credentialsSecretRef"]
        || old.user_data != new.user_data;
    let metadata = |seen: &Seen| {
        let mut document = seen.document.clone();
        document["spec"].as_object_mut().unwrap().remove("replicas");
        (document, seen.priority, seen.class["nodeTemplate"].clone(), seen.class["metadata"]["labels"].clone())
    };
    let verdict = if old.typed.spec.replicas != new.typed.spec.replicas || old.bounds != new.bounds {
        "SCALE"
    } else if metadata(old) != metadata(new) {
        "METADATA"
    } else {
        "NONE"
    };
    (verdict, differ)
}

/// machine-controller-manager's `EqualIgnoreHash`, for the typed fields of a template.
fn equal_ignore_hash(first: &MachineTemplate, second: &MachineTemplate) -> bool {
    let (mut labels1, mut labels2) = (&first.metadata.labels, &second.metadata.labels);
    if labels1.len() > labels2.len() {
        (labels1, labels2) = (labels2, labels1);
    }
    for (key, value) in labels2 {
        if labels1.get(key).map_or("", String::as_str) != value && key != "machine-template-hash" {
            return false;
        }
    }
    let (class1, class2) = (&first.spec.class, &second.spec.class);
    first.metadata.annotations == second.metadata.annotations
        && first.spec.provider_id == second.spec.provider_id
        && (&class1.name, &class1.api_group) == (&class2.name, &class2.api_group)
}
