//! Tables about GCP: labels, pools of Shoots.

use gardener_extension_worker::api::gardener::ShootPools;
use gardener_extension_worker::provider::Provider as _;
use gardener_extension_worker::provider::gcp::Gcp;
use gardener_extension_worker::provider::gcp::labels::{label_key, label_value};
use serde_json::{Value, json};

use super::{Check, from_text, member};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(match name {
        "sanitize-label" => Check::Reply(label),
        "admission-workers" => Check::Compare(pools),
        _ => return None,
    })
}

fn label(row: &Value) -> Result<Value, String> {
    let label: String = member(row, "label")?;
    Ok(json!({"key": label_key(&label), "value": label_value(&label)}))
}

/// This library denies exactly what the Go extension denies. Paths differ, because the Go extension's errors name no
/// pool.
fn pools(case: &Value) -> Result<(), (Value, String)> {
    let row = &case["in"];
    let decoded = |workers: &Value| -> Result<ShootPools, (Value, String)> {
        from_text(&json!({"pools": {"workers": workers}}), "pools").map_err(|error| (case.clone(), error))
    };
    let old = row.get("old").map(decoded).transpose()?;
    let errors = Gcp.validate_shoot_pools(&decoded(&row["workers"])?, old.as_ref());
    let expected = case["out"]["value"].as_array().map_or(0, Vec::len);
    // An empty volume type is denied like a missing one, because no machine could be created with it.
    let is_stricter = expected == 0 && errors.0.iter().all(|error| error.field.ends_with("volume.type"));
    if errors.0.len() == expected || is_stricter {
        return Ok(());
    }
    let got: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    Err((case["out"].clone(), got.join("; ")))
}
