//! The check function of each table.

mod azure;
mod azure_profiles;
mod capabilities;
mod cloud_profile;
mod gcp;
mod gcp_profiles;
mod gotext;
mod pool;
mod versions;

use gardener_extension_worker::api::gotext::field::FieldErrors;
use serde_json::Value;

use crate::Difference;

/// How the rows of a table are checked.
pub(crate) enum Check {
    /// Rows `{"in": …, "out": {"value" | "error" | "panic": …}}`: the function returns the result for `in`.
    ///
    /// An error is correct if upstream returns an error or panics; the texts are not compared.
    Reply(fn(&Value) -> Result<Value, String>),
    /// Like [`Self::Reply`], but some rows request a situation that can't occur.
    RespondToSome {
        /// Whether the row is compared.
        applies: fn(&Value) -> bool,
        /// The function that returns the result.
        result: fn(&Value) -> Result<Value, String>,
    },
    /// Rows of another form: the function compares them itself, and returns the expected and the actual value.
    Compare(fn(&Value) -> Result<(), (Value, String)>),
}

/// The check for the file `<name>.json`. A table belongs in the file named after its subject.
pub(crate) fn for_table(name: &str) -> Option<Check> {
    capabilities::for_table(name)
        .or_else(|| gotext::for_table(name))
        .or_else(|| pool::for_table(name))
        .or_else(|| azure::for_table(name))
        .or_else(|| gcp::for_table(name))
        .or_else(|| cloud_profile::for_table(name))
        .or_else(|| azure_profiles::for_table(name))
        .or_else(|| versions::for_table(name))
        .or_else(|| gcp_profiles::for_table(name))
}

/// The result of one row.
pub(crate) enum Verdict {
    Same,
    Different(Difference),
    /// The row requests a situation that can't occur.
    NotRequested,
}

impl Check {
    /// Checks one row.
    pub(crate) fn run(&self, case: &Value) -> Verdict {
        match self {
            Self::Reply(result) => compared(case, result(&case["in"])),
            Self::RespondToSome { applies, .. } if !applies(&case["in"]) => Verdict::NotRequested,
            Self::RespondToSome { result, .. } => compared(case, result(&case["in"])),
            Self::Compare(compare) => match compare(case) {
                Ok(()) => Verdict::Same,
                Err((expected, got)) => Verdict::Different(Difference { input: case.clone(), expected, got }),
            },
        }
    }
}

fn compared(case: &Value, got: Result<Value, String>) -> Verdict {
    let reference = &case["out"];
    match (&got, reference.get("value")) {
        (Ok(got), Some(value)) if got == value => Verdict::Same,
        (Err(_), None) => Verdict::Same,
        _ => Verdict::Different(Difference {
            input: case["in"].clone(),
            expected: reference.clone(),
            got: got.map_or_else(|error| format!("error: {error}"), |got| got.to_string()),
        }),
    }
}

/// Decodes a member of a row. A null or absent member is the zero value, as in Go.
fn member<T: serde::de::DeserializeOwned + Default>(row: &Value, name: &str) -> Result<T, String> {
    let value = row.get(name).cloned().unwrap_or_default();
    let decoded: Option<T> = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(decoded.unwrap_or_default())
}

/// Decodes a member of a row from its text, because raw documents inside it require that.
fn from_text<T: serde::de::DeserializeOwned + Default>(row: &Value, name: &str) -> Result<T, String> {
    let text = row.get(name).unwrap_or(&Value::Null).to_string();
    let decoded: Option<T> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(decoded.unwrap_or_default())
}

/// Compares field and type of errors, in any order. Details are not compared, because the texts are ours.
fn same_errors(reference: &Value, got: &FieldErrors) -> Result<(), (Value, String)> {
    let pair = |error: &Value| format!("{} {}", error["field"].as_str().unwrap_or_default(), error["type"]);
    let mut expected: Vec<String> = reference.as_array().into_iter().flatten().map(pair).collect();
    let mut found: Vec<String> = got.0.iter().map(|error| pair(&serde_json::json!(error))).collect();
    expected.sort();
    found.sort();
    if expected == found {
        return Ok(());
    }
    let texts: Vec<String> = got.0.iter().map(ToString::to_string).collect();
    Err((reference.clone(), texts.join("\n            ")))
}

/// A value without null members, which Go writes for empty lists.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            kept.map(|(name, member)| (name.clone(), without_nulls(member))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
