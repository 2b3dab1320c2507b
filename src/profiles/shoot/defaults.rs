//! Defaults that the API server sets in a Shoot on every read and write, limited to those that reach the Worker.

use serde_json::{Map, Value, json};

use super::ShootError;
use super::members::{object, pools, pools_mut, text};

/// Sets missing fields. A Shoot without pools has no nodes and stays unchanged.
pub(super) fn set(shoot: &mut Value) -> Result<(), ShootError> {
    if pools(shoot).is_empty() {
        return Ok(());
    }
    let kubelet = object(shoot, &["spec", "kubernetes", "kubelet"])?;
    let pulls_in_parallel = kubelet.get("maxParallelImagePulls").and_then(Value::as_i64).is_some_and(|most| most >= 2);
    missing(
        kubelet,
        json!({
            "imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 40,
            "imageMinimumGCAge": "2m0s", "imageMaximumGCAge": "0s",
            "serializeImagePulls": !pulls_in_parallel,
        }),
    );
    set_swap(kubelet);
    let proxy = object(shoot, &["spec", "kubernetes", "kubeProxy"])?;
    missing(proxy, json!({"mode": "IPTables", "enabled": true}));
    let settings = object(shoot, &["spec", "provider", "workersSettings"])?;
    let ssh = settings.entry("sshAccess").or_insert_with(|| json!({"enabled": true}));
    missing_in(ssh, json!({"enabled": false}));
    for pool in pools_mut(shoot) {
        set_in_pool(pool)?;
    }
    Ok(())
}

fn set_in_pool(pool: &mut Value) -> Result<(), ShootError> {
    let members = object(pool, &[])?;
    missing(
        members,
        json!({
            "cri": {"name": "containerd"}, "updateStrategy": "AutoRollingUpdate",
            "systemComponents": {"allow": true}, "minimum": 0, "maximum": 0,
        }),
    );
    missing_in(&mut members["systemComponents"], json!({"allow": false}));
    let strategy = text(&members["updateStrategy"]).to_owned();
    match strategy.as_str() {
        "AutoInPlaceUpdate" => missing(members, json!({"maxSurge": 0, "maxUnavailable": 1})),
        // Users choose how many machines to update at a time.
        "ManualInPlaceUpdate" => {}
        _ => missing(members, json!({"maxSurge": 1, "maxUnavailable": 0})),
    }
    if ["AutoInPlaceUpdate", "ManualInPlaceUpdate"].contains(&strategy.as_str()) {
        missing(object(pool, &["machineControllerManager"])?, json!({"disableHealthTimeout": true}));
    }
    if let Some(image) = pool.pointer_mut("/machine/image") {
        missing_in(image, json!({"version": ""}));
    }
    if let Some(Value::Object(kubelet)) = pool.pointer_mut("/kubernetes/kubelet") {
        set_swap(kubelet);
    }
    Ok(())
}

/// Defaults for every kubelet, including those with pool settings.
fn set_swap(kubelet: &mut Map<String, Value>) {
    missing(kubelet, json!({"failSwapOn": true}));
    let has_gate = kubelet.get("featureGates").is_some_and(|gates| gates["NodeSwap"] == true);
    if has_gate && kubelet["failSwapOn"] == false {
        let swap = kubelet.entry("memorySwap").or_insert_with(|| json!({}));
        missing_in(swap, json!({"swapBehavior": "LimitedSwap"}));
    }
}

/// Adds missing fields.
fn missing(members: &mut Map<String, Value>, defaults: Value) {
    let Value::Object(defaults) = defaults else { return };
    for (name, value) in defaults {
        members.entry(name).or_insert(value);
    }
}

fn missing_in(value: &mut Value, defaults: Value) {
    if let Value::Object(members) = value {
        missing(members, defaults);
    }
}
