//! Values that the API server sets in objects before the controller reads them, if they affect results.

use serde_json::{Map, Value, json};

/// Components that are never empty, because the API server sets members of each.
const COMPONENTS: [&str; 6] =
    ["kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet", "clusterAutoscaler"];

pub(crate) fn set_defaults(shoot: &mut Value) {
    let created_by = json!({"gardener.cloud/created-by": "owner"});
    entry(shoot, "metadata").entry("annotations").or_insert(created_by);
    let state = json!({"state": "Succeeded"});
    entry(shoot, "status").entry("lastOperation").or_insert(state);
    let kubernetes = &mut shoot["spec"]["kubernetes"];
    for component in COMPONENTS {
        if let Some(component) = kubernetes.get_mut(component).and_then(Value::as_object_mut) {
            component.insert("default".to_owned(), true.into());
        }
    }
    let workers = shoot["spec"]["provider"]["workers"].as_array_mut();
    for kubelet in workers.into_iter().flatten().filter_map(|worker| worker.pointer_mut("/kubernetes/kubelet")) {
        kubelet["default"] = true.into();
    }
    if let Some(ingress) = shoot.pointer_mut("/spec/addons/nginxIngress").and_then(Value::as_object_mut) {
        ingress.entry("externalTrafficPolicy").or_insert("Cluster".into());
    }
}

fn entry<'a>(object: &'a mut Value, member: &str) -> &'a mut Map<String, Value> {
    if !object[member].is_object() {
        object[member] = json!({});
    }
    object[member].as_object_mut().expect("it is an object now")
}

/// A JSON merge patch.
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in members {
        if value.is_null() {
            object.as_object_mut().map(|object| object.remove(name));
        } else {
            merge(&mut object[name], value);
        }
    }
}
