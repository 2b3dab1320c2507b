//! What a person says about machine types.

use std::str::FromStr;

use crate::offer::selection::matches;

/// Machine types that have these values of a capability: `Standard_D*=hypervisorType:gen1,gen2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDecision {
    /// Names; `*` stands for any text.
    pub machine_types: String,
    /// The capability.
    pub capability: String,
    /// Its values.
    pub values: Vec<String>,
}

/// A decision that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} is expected")]
pub struct DecisionError {
    pub(super) expected: &'static str,
}

impl FromStr for TypeDecision {
    type Err = DecisionError;

    fn from_str(text: &str) -> Result<Self, DecisionError> {
        let error = DecisionError { expected: "TYPES=CAPABILITY:VALUE[,VALUE]" };
        let (machine_types, rest) = text.split_once('=').ok_or(error.clone())?;
        let (capability, values) = rest.split_once(':').ok_or(error.clone())?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if machine_types.is_empty() || capability.is_empty() || values.iter().any(String::is_empty) {
            return Err(error);
        }
        Ok(Self { machine_types: machine_types.to_owned(), capability: capability.to_owned(), values })
    }
}

impl TypeDecision {
    /// Whether it is about a machine type.
    pub(super) fn is_about(&self, machine_type: &str) -> bool {
        matches(&self.machine_types, machine_type)
    }
}
