//! Defaults for capabilities that are not listed.

use crate::api::gardener::{Capabilities, CapabilityDefinition};

/// Name of the only capability that Gardener itself defines.
pub const ARCHITECTURE: &str = "architecture";

/// All architectures that Gardener supports.
pub const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// The default architecture.
pub const DEFAULT_ARCHITECTURE: &str = "amd64";

/// Capabilities with only an architecture.
#[must_use]
pub fn only_architecture(architecture: &str) -> Capabilities {
    Capabilities::from_iter([(ARCHITECTURE, [architecture])])
}

/// The implicit capability of a CloudProfile in the old format: the architecture.
#[must_use]
pub fn architecture_definition() -> CapabilityDefinition {
    CapabilityDefinition { name: ARCHITECTURE.to_owned(), values: ARCHITECTURES.map(str::to_owned).to_vec() }
}

/// Capabilities with exactly the defined names: the listed values (even an empty list), otherwise all values of the
/// definition.
pub fn with_defaults(capabilities: &Capabilities, definitions: &[CapabilityDefinition]) -> Capabilities {
    definitions.iter().map(|definition| (definition.name.as_str(), values_of(capabilities, definition))).collect()
}

/// The flavors of an image version with [`with_defaults`]; a version without flavors has one for all machines.
pub fn flavors_with_defaults(flavors: &[Capabilities], definitions: &[CapabilityDefinition]) -> Vec<Capabilities> {
    match flavors {
        [] => vec![with_defaults(&Capabilities::default(), definitions)],
        _ => flavors.iter().map(|flavor| with_defaults(flavor, definitions)).collect(),
    }
}

/// The values of one capability according to [`with_defaults`], without allocating the map.
pub(super) fn values_of<'a>(capabilities: &'a Capabilities, definition: &'a CapabilityDefinition) -> &'a [String] {
    capabilities.values(&definition.name).unwrap_or(&definition.values)
}

/// Completes the capabilities of a machine type with its architecture.
///
/// A listed architecture stays. Otherwise, the only architecture of the definitions or that of the pool is added. The
/// default for pools is `amd64`.
pub fn complete_machine_type(
    capabilities: Option<&Capabilities>,
    worker_architecture: &str,
    definitions: &[CapabilityDefinition],
) -> Capabilities {
    let mut capabilities = capabilities.cloned().unwrap_or_default();
    if capabilities.values(ARCHITECTURE).is_some() {
        return capabilities;
    }
    let defined = definitions
        .iter()
        .find(|definition| definition.name == ARCHITECTURE)
        .map_or(&[][..], |definition| &definition.values);
    let architecture = match (defined, worker_architecture) {
        ([only], _) => only,
        (_, "") => DEFAULT_ARCHITECTURE,
        (_, named) => named,
    };
    capabilities.0.insert(ARCHITECTURE.to_owned(), vec![architecture.to_owned()]);
    capabilities
}
