//! Pool `a` in three zones, for tests.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use jiff::Timestamp;

use crate::provider::PoolPlan;
use crate::provider::azure::Azure;
use crate::provider::test_support::machine_plan;
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::changes::{MachineChanges, Write};
use crate::worker::plan::desired::DesiredState;
use crate::worker::plan::desired::test_support::Objects;
use crate::worker::plan::zone_by_zone::ANNOTATION;
use crate::worker::plan::zone_facts::GateInputs;
use crate::worker::request::Operation;
use wire::api::gardener::NODE_AGENT_SECRET_LABEL;

/// Inputs of a reconcile without a budget.
pub(super) fn inputs(live: &MachineObjects, now: Timestamp) -> GateInputs<'_> {
    GateInputs { provider: &Azure, operation: Operation::Reconcile, live, now, budget: None }
}

pub(super) const NOW: &str = "2026-11-29T12:00:00Z";

pub(super) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A Worker whose pool `a` has this node agent Secret and this setting.
pub(super) fn objects(key: &str, setting: Option<&str>) -> Objects {
    let mut objects = Objects::new(&json!({}));
    objects.0.metadata.annotations = setting.map(|setting| [(ANNOTATION.to_owned(), setting.to_owned())].into());
    objects.0.spec.pools[0].node_agent_secret_name = Some(key.to_owned());
    objects.0.spec.pools[0].max_surge = IntOrString::Int(3);
    objects.0.spec.pools[0].max_unavailable = IntOrString::Int(2);
    objects
}

/// The plan of pool `a` in three zones, with this generation of its classes and this node agent Secret.
pub(super) fn plan(class: &str, key: &str) -> PoolPlan {
    let machine = |number: usize| {
        let mut machine = machine_plan();
        machine.deployment.name.0 = format!("a-z{number}");
        machine.deployment.class_name.0 = format!("a-{class}-z{number}");
        machine.deployment.secret_name.0 = format!("a-{class}-z{number}");
        machine.class.metadata.name = Some(format!("a-{class}-z{number}"));
        machine.deployment.labels = [(NODE_AGENT_SECRET_LABEL.to_owned(), key.to_owned())].into();
        machine
    };
    PoolPlan {
        pool: "a".to_owned(),
        machines: (1..=3).map(machine).collect(),
        status_image: json!({}),
        in_place_hash: None,
    }
}

/// The objects after these writes. All machines of the live classes run.
pub(super) fn written(changes: &[MachineChanges<'_>]) -> MachineObjects {
    let mut live = MachineObjects::default();
    for change in changes {
        let mut document = change.deployment.as_ref().map(|write| write.after().clone()).unwrap_or_default();
        document["status"] = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2,
            "conditions": [{"type": "Available", "status": "True"}]});
        settle(&mut live, document);
    }
    live
}

/// Adds a deployment with its machine set and two running machines.
pub(super) fn settle(live: &mut MachineObjects, document: Value) {
    let name = document["metadata"]["name"].as_str().unwrap().to_owned();
    let class = document["spec"]["template"]["spec"]["class"].clone();
    let owned = |name: &str, kind: &str, owner: &str| {
        let owner = json!({"apiVersion": "v1", "kind": kind, "name": owner, "uid": "u"});
        json!({"name": name, "ownerReferences": [owner]})
    };
    let spec = json!({"template": {"spec": {"class": class}}});
    let set = json!({"metadata": owned(&format!("{name}-set"), "MachineDeployment", &name), "spec": spec,
        "status": {"replicas": 2, "observedGeneration": 1}});
    live.machine_sets.push(serde_json::from_value(set).unwrap());
    for number in 0..2 {
        let metadata = owned(&format!("{name}-{number}"), "MachineSet", &format!("{name}-set"));
        let status = json!({"currentStatus": {"phase": "Running"}});
        let machine = json!({"metadata": metadata, "spec": {"class": class}, "status": status});
        live.machines.push(serde_json::from_value(machine).unwrap());
    }
    live.deployments.insert(name, LiveDeployment::read_without_codes(document).unwrap());
}

/// The objects of a steady Worker with the class `old` and the node agent Secret `k1`.
pub(super) fn steady(setting: Option<&str>) -> MachineObjects {
    let objects = objects("k1", setting);
    let desired = objects.desired(Ok(plan("old", "k1"))).with_bounds_of_pools();
    written(&desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH).changes)
}

pub(super) fn classes<'a>(desired: &'a DesiredState<'_>) -> Vec<&'a str> {
    desired.plan.machines().map(|machine| machine.deployment.class_name.0.as_str()).collect()
}

pub(super) fn patch<'a>(change: &'a MachineChanges<'_>) -> &'a Value {
    let Some(Write::Patch { patch, .. }) = &change.deployment else { panic!("a patch") };
    patch
}
