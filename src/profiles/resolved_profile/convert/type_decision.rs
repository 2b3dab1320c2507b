//! The operator's decisions about machine types.

use std::str::FromStr;

use crate::resolved_profile::selection::matches;
use crate::resolved_profile::suffix::DecisionError;

/// A decision about the values of a capability, for example `Standard_D*=hypervisorType:gen1,gen2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDecision {
    /// Names of machine types; `*` matches any text.
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
    /// Whether the decision applies to a machine type.
    pub(super) fn is_about(&self, machine_type: &str) -> bool {
        matches(&self.machine_types, machine_type)
    }
}
