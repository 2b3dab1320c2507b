//! Durations and quantities of a Shoot in the form in which the API server writes them.

use serde_json::Value;

use super::ShootError;
use super::members::{name, pools_mut};
use wire::api::gotext::duration::Duration;
use wire::api::gotext::json::decode_value;
use wire::api::gotext::quantity::Quantity;

/// Type of a text.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Duration,
    Quantity,
}

/// Fields of kubelet settings; `/*` selects all fields of an object.
const KUBELET: [(&str, Meaning); 8] = [
    ("imageMinimumGCAge", Meaning::Duration),
    ("imageMaximumGCAge", Meaning::Duration),
    ("streamingConnectionIdleTimeout", Meaning::Duration),
    ("evictionPressureTransitionPeriod", Meaning::Duration),
    ("evictionSoftGracePeriod/*", Meaning::Duration),
    ("evictionMinimumReclaim/*", Meaning::Quantity),
    ("kubeReserved/*", Meaning::Quantity),
    ("containerLogMaxSize", Meaning::Quantity),
];

/// Fields of a pool.
const POOL: [(&str, Meaning); 8] = [
    ("machineControllerManager/machineDrainTimeout", Meaning::Duration),
    ("machineControllerManager/machineHealthTimeout", Meaning::Duration),
    ("machineControllerManager/machineCreationTimeout", Meaning::Duration),
    ("machineControllerManager/machinePreserveTimeout", Meaning::Duration),
    ("machineControllerManager/inPlaceUpdateTimeout", Meaning::Duration),
    ("clusterAutoscaler/scaleDownUnneededTime", Meaning::Duration),
    ("clusterAutoscaler/scaleDownUnreadyTime", Meaning::Duration),
    ("clusterAutoscaler/maxNodeProvisionTime", Meaning::Duration),
];

/// Rewrites all texts that reach the Worker.
pub(super) fn rewrite(shoot: &mut Value) -> Result<(), ShootError> {
    if let Some(kubelet) = shoot.pointer_mut("/spec/kubernetes/kubelet") {
        rewrite_members(kubelet, &KUBELET, "spec.kubernetes.kubelet")?;
    }
    for pool in pools_mut(shoot) {
        let path = format!("spec.provider.workers[{}]", name(pool));
        rewrite_members(pool, &POOL, &path)?;
        if let Some(kubelet) = pool.pointer_mut("/kubernetes/kubelet") {
            rewrite_members(kubelet, &KUBELET, &format!("{path}.kubernetes.kubelet"))?;
        }
    }
    Ok(())
}

fn rewrite_members(object: &mut Value, table: &[(&str, Meaning)], path: &str) -> Result<(), ShootError> {
    for (location, meaning) in table {
        let parent = location.strip_suffix("/*");
        let location = parent.unwrap_or(location);
        let Some(found) = object.pointer_mut(&format!("/{location}")) else { continue };
        let path = format!("{path}.{}", location.replace('/', "."));
        match found {
            Value::Object(members) if parent.is_some() => {
                for (member, text) in members {
                    *text = canonical(text, *meaning, &format!("{path}.{member}"))?;
                }
            }
            found => *found = canonical(found, *meaning, &path)?,
        }
    }
    Ok(())
}

fn canonical(value: &Value, meaning: Meaning, path: &str) -> Result<Value, ShootError> {
    let text = match meaning {
        Meaning::Duration => decode_value(value).map(|duration: Duration| duration.to_string()),
        Meaning::Quantity => decode_value(value).map(|quantity: Quantity| quantity.to_string()),
    };
    text.map(Value::from).map_err(|error| ShootError::Malformed(error.within(path)))
}
