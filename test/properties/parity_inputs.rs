//! Inputs of the parity cases, from which other inputs are derived.

use serde_json::Value;
use test_support::measured::cases::{collect, find, own};

#[derive(Clone, Debug)]
pub(crate) struct ParityInput {
    /// Name of the case, for messages.
    pub(crate) name: String,
    pub(crate) bundle: Value,
}

/// Every input of the project's own cases.
pub(crate) fn all() -> Vec<ParityInput> {
    let cases = collect(&own()).unwrap().into_iter();
    let inputs = cases.map(|case| ParityInput {
        name: format!("{}/{}", case.family, case.name),
        bundle: case.documents.unwrap().input,
    });
    let inputs: Vec<_> = inputs.collect();
    assert!(inputs.len() > 100, "only {} inputs", inputs.len());
    inputs
}

/// The input of one case.
pub(crate) fn one(name: &str) -> ParityInput {
    ParityInput { name: name.to_owned(), bundle: find(name).unwrap().input }
}
