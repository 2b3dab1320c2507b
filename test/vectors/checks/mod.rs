//! Which table is checked by which function.

mod capabilities;
mod gotext;

use serde_json::Value;

use crate::Difference;

/// How the rows of a table are checked.
pub(crate) enum Check {
    /// Rows `{"in": …, "out": {"value" | "error" | "panic": …}}`: the function answers `in`.
    ///
    /// An error is right where upstream answers with an error or panics; the texts are not compared.
    Answer(fn(&Value) -> Result<Value, String>),
    /// Rows of another form: the function compares by itself and answers what it wanted and what it got.
    Compare(fn(&Value) -> Result<(), (Value, String)>),
}

/// The check for the file `<name>.json`. A table belongs into the file named after its subject.
pub(crate) fn for_table(name: &str) -> Option<Check> {
    capabilities::for_table(name).or_else(|| gotext::for_table(name))
}

impl Check {
    /// Checks one row.
    pub(crate) fn run(&self, case: &Value) -> Option<Difference> {
        match self {
            Self::Answer(answer) => {
                let (input, wanted) = (&case["in"], &case["out"]);
                let got = answer(input);
                let is_right = match (&got, wanted.get("value")) {
                    (Ok(got), Some(value)) => got == value,
                    (Err(_), None) => true,
                    _ => false,
                };
                (!is_right).then(|| Difference {
                    input: input.clone(),
                    wanted: wanted.clone(),
                    got: match got {
                        Ok(got) => got.to_string(),
                        Err(error) => format!("error: {error}"),
                    },
                })
            }
            Self::Compare(compare) => {
                compare(case).err().map(|(wanted, got)| Difference { input: case.clone(), wanted, got })
            }
        }
    }
}

/// Decodes a member of a row; what is null or absent is the zero value, as in Go.
fn member<T: serde::de::DeserializeOwned + Default>(row: &Value, name: &str) -> Result<T, String> {
    let value = row.get(name).cloned().unwrap_or_default();
    let decoded: Option<T> = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(decoded.unwrap_or_default())
}
