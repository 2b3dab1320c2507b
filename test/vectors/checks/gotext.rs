//! Tables about text that Go prints and parses, measured with Go 1.26, `k8s.io/apimachinery` 0.36, `sigs.k8s.io/yaml`
//! 1.6 and `Masterminds/semver` 3.5.

use gardener_extension_worker::api::gotext::duration::Duration;
use gardener_extension_worker::api::gotext::json::to_go_json;
use gardener_extension_worker::api::gotext::quantity::Quantity;
use gardener_extension_worker::api::gotext::time::go_time_text;
use gardener_extension_worker::api::gotext::version::Version;
use gardener_extension_worker::api::gotext::yaml;
use serde_json::{Value, json};

use super::{Check, member};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(Check::Reply(match name {
        "durations" => duration,
        "json-text" => json_text,
        "quantities" => quantity,
        "times" => time,
        "version-order" => version_order,
        "versions" => version,
        "yaml-to-json" => yaml_to_json,
        _ => return None,
    }))
}

fn text(input: &Value) -> Result<&str, String> {
    input.as_str().ok_or_else(|| "not a text".to_owned())
}

fn message(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn duration(input: &Value) -> Result<Value, String> {
    let duration = Duration::parse(text(input)?).map_err(message)?;
    Ok(json!({
        "nanoseconds": duration.nanoseconds().to_string(),
        "text": duration.to_string(),
    }))
}

/// The table was stored and read once, like a custom resource.
fn json_text(input: &Value) -> Result<Value, String> {
    let value = serde_json::from_str(text(input)?).map_err(message)?;
    Ok(to_go_json(&value).into())
}

/// Decoded from a JSON string, as in every API object.
fn quantity(input: &Value) -> Result<Value, String> {
    let quantity: Quantity = serde_json::from_value(input.clone()).map_err(message)?;
    Ok(json!({
        "text": quantity.to_string(),
        "value": quantity.value_rounded_up().to_string(),
    }))
}

fn time(input: &Value) -> Result<Value, String> {
    go_time_text(text(input)?).map(Value::from).map_err(message)
}

fn version(input: &Value) -> Result<Value, String> {
    let version = Version::parse(text(input)?).map_err(message)?;
    Ok(json!({
        "atLeast135": version.at_least_including_prereleases(1, 35),
        "below134": !version.at_least_including_prereleases(1, 34),
        "majorMinor": version.major_minor(),
        "prerelease": version.prerelease,
        "text": version.to_string(),
    }))
}

fn version_order(input: &Value) -> Result<Value, String> {
    let read = |name| Version::parse(&member::<String>(input, name)?).map_err(message);
    Ok(json!(read("a")?.cmp(&read("b")?) as i8))
}

/// Go reads the first document of a text, and returns null if there is none.
fn yaml_to_json(input: &Value) -> Result<Value, String> {
    let documents = yaml::documents(text(input)?).map_err(message)?;
    Ok(to_go_json(documents.first().unwrap_or(&Value::Null)).into())
}
