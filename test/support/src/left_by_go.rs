//! The state of a seed after the Go extensions, taken from the measured cases of ../parity.

use serde_json::{Value, json};

use crate::measured::cases::Documents;
use crate::measured::images::REFERENCES;

/// A Worker with status and objects as left by the Go extension. `None` if it created no machine deployments, or
/// recorded an image without a reference, which cannot be planned again.
pub fn left_by_go(case: Documents) -> Option<Value> {
    let Documents { input: mut bundle, expected: made } = case;
    let is_reconcile = bundle.get("operation").is_none_or(|operation| operation == "reconcile");
    let deployments = made["machineDeploymentObjects"].as_array().is_some_and(|deployments| !deployments.is_empty());
    if !is_reconcile || made.get("error").is_some() || !deployments {
        return None;
    }
    let images = made["workerStatus"]["providerStatus"]["machineImages"].as_array();
    if images.into_iter().flatten().any(|image| REFERENCES.iter().all(|member| image[*member].is_null())) {
        return None;
    }
    let mut existing = Vec::new();
    for (member, kind) in [
        ("machineClasses", "MachineClass"),
        ("machineClassSecrets", "Secret"),
        ("machineDeploymentObjects", "MachineDeployment"),
    ] {
        for object in made[member].as_array().into_iter().flatten() {
            let mut object = object.clone();
            object["kind"] = json!(kind);
            existing.push(object);
        }
    }
    bundle["existing"] = existing.into();
    for member in ["providerStatus", "machineDeployments", "inPlaceUpdates"] {
        if let Some(value) = made["workerStatus"].get(member) {
            bundle["worker"]["status"][member] = value.clone();
        }
    }
    Some(bundle)
}
