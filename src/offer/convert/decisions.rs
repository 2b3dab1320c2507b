//! What a person says about machine types.

use std::str::FromStr;

use crate::offer::selection::matches;
use crate::offer::suffix::DecisionError;

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

impl FromStr for TypeDecision {
    type Err = DecisionError;

    fn from_str(text: &str) -> Result<Self, DecisionError> {
        let parts = || {
            let (machine_types, rest) = text.split_once('=')?;
            let (capability, values) = rest.split_once(':')?;
            let values: Vec<String> = values.split(',').map(str::to_owned).collect();
            let is_empty = machine_types.is_empty() || capability.is_empty() || values.iter().any(String::is_empty);
            let [machine_types, capability] = [machine_types, capability].map(str::to_owned);
            (!is_empty).then_some(Self { machine_types, capability, values })
        };
        parts().ok_or(DecisionError { expected: "TYPES=CAPABILITY:VALUE[,VALUE]" })
    }
}

impl TypeDecision {
    /// Whether it is about a machine type.
    pub(super) fn is_about(&self, machine_type: &str) -> bool {
        matches(&self.machine_types, machine_type)
    }
}
