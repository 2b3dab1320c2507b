//! Tables about capabilities.

use gardener_extension_worker::api::gardener::{Capabilities, CapabilityDefinition, ExpirableVersion};
use gardener_extension_worker::api::gotext::field::{FieldErrors, FieldPath};
use gardener_extension_worker::capabilities::{
    Life, NoFlavor, are_compatible, are_equal, best_flavor, complete_machine_type, intersection, is_supported_by_image,
    validate_provider_flavor, with_defaults,
};
use serde_json::{Value, json};

use super::{Check, member, same_errors};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(match name {
        "capabilities-bestmatch" => Check::Compare(best_match),
        "capabilities-compatible" => Check::Reply(compatible),
        "capabilities-defaults" => Check::Reply(defaults),
        "capabilities-equal" => Check::Reply(equal),
        "capabilities-validate-provider" => Check::Compare(provider_flavor),
        "capabilities-intersection" => Check::Reply(common),
        "find-best-image-flavor" => Check::Reply(best),
        "maintenance-classification" => Check::Compare(classification),
        "normalize-machine-type-capabilities" => Check::Reply(complete),
        _ => return None,
    })
}

/// Dates in the table are long past or far in the future.
fn classification(row: &Value) -> Result<(), (Value, String)> {
    let reference = &row["classification"];
    let got = member::<ExpirableVersion>(row, "version").and_then(|version| {
        let now = "2026-11-21T00:00:00Z".parse().map_err(|_| "no time".to_owned())?;
        let stage = Life::from(&version).at(now);
        Ok((stage.word(), stage.is_active()))
    });
    match got {
        Ok((word, active)) if *reference == word && row["isActive"] == active => Ok(()),
        got => Err((reference.clone(), format!("{got:?}"))),
    }
}

fn definitions(row: &Value) -> Result<Vec<CapabilityDefinition>, String> {
    member(row, "capabilityDefinitions")
}

fn compatible(row: &Value) -> Result<Value, String> {
    let (a, b): (Capabilities, Capabilities) = (member(row, "a")?, member(row, "b")?);
    Ok(are_compatible(&a, &b, &definitions(row)?).into())
}

fn equal(row: &Value) -> Result<Value, String> {
    let (a, b): (Capabilities, Capabilities) = (member(row, "a")?, member(row, "b")?);
    Ok(are_equal(&a, &b).into())
}

fn defaults(row: &Value) -> Result<Value, String> {
    let capabilities: Capabilities = member(row, "capabilities")?;
    Ok(json!(with_defaults(&capabilities, &definitions(row)?)))
}

/// The table's values are sorted, because Go does not define their order.
fn common(row: &Value) -> Result<Value, String> {
    let mut common = intersection(&member(row, "a")?, &member(row, "b")?);
    common.0.values_mut().for_each(|values| values.sort());
    Ok(json!(common))
}

fn complete(row: &Value) -> Result<Value, String> {
    let capabilities: Option<Capabilities> = member(row, "capabilities")?;
    let architecture: String = member(row, "workerArchitecture")?;
    Ok(json!(complete_machine_type(capabilities.as_ref(), &architecture, &definitions(row)?)))
}

#[derive(serde::Deserialize)]
struct Flavor {
    id: String,
    capabilities: Capabilities,
}

fn best(row: &Value) -> Result<Value, String> {
    let flavors: Vec<Flavor> = member(row, "flavors")?;
    let machine = member(row, "machineCapabilities")?;
    let chosen = best_flavor(&machine, &definitions(row)?, &flavors, |flavor| &flavor.capabilities)
        .map_err(|error| error.to_string())?;
    Ok(flavors[chosen].id.clone().into())
}

/// Also compares the kind of the error, because its upstream text distinguishes "none" from "several".
fn best_match(case: &Value) -> Result<(), (Value, String)> {
    let expected = &case["expected"];
    let decoded = || -> Result<_, String> {
        Ok((member(case, "machineCapabilities")?, member(case, "definitions")?, member(case, "flavors")?))
    };
    let (machine, definitions, flavors): (Capabilities, Vec<CapabilityDefinition>, Vec<Capabilities>) =
        decoded().map_err(|error| (expected.clone(), error))?;
    let compatible: Vec<usize> =
        (0..flavors.len()).filter(|index| are_compatible(&machine, &flavors[*index], &definitions)).collect();
    let got = match best_flavor(&machine, &definitions, &flavors, |flavor| flavor) {
        Ok(chosen) => json!({"compatible": compatible, "index": chosen.to_string()}),
        Err(NoFlavor::NoneCompatible { .. }) => json!({
            "compatible": compatible,
            "error": "no compatible flavor found",
        }),
        Err(NoFlavor::Ambiguous { .. }) => json!({
            "compatible": compatible,
            "error": "could not determine a unique capability flavor; this is usually attributed to an invalid CloudProfile",
        }),
    };
    let mut got = got;
    got["areCapabilitiesSupportedByImageFlavors"] = is_supported_by_image(&machine, &flavors, &definitions).into();
    if *expected == got { Ok(()) } else { Err((expected.clone(), got.to_string())) }
}

fn provider_flavor(case: &Value) -> Result<(), (Value, String)> {
    let decoded = || Ok::<_, String>((member(case, "capabilities")?, member(case, "definitions")?));
    let (capabilities, definitions): (Capabilities, Vec<CapabilityDefinition>) =
        decoded().map_err(|error| (case["errors"].clone(), error))?;
    let flavor = FieldPath::new("spec.providerConfig.machineImages[0].versions[0].capabilityFlavors[0]");
    let mut errors = FieldErrors::default();
    validate_provider_flavor(&capabilities, &definitions, flavor.child("capabilities"), &mut errors);
    same_errors(&case["errors"], &errors)
}
