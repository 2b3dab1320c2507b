//! What a side that does not name a capability is taken to have.

use crate::api::gardener::{Capabilities, CapabilityDefinition};

/// Name of the one capability that Gardener itself defines.
pub const ARCHITECTURE: &str = "architecture";

/// Every architecture that Gardener knows.
pub const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// The architecture of everything that names none.
pub const DEFAULT_ARCHITECTURE: &str = "amd64";

/// An architecture as capabilities.
#[must_use]
pub fn only_architecture(architecture: &str) -> Capabilities {
    Capabilities::from_iter([(ARCHITECTURE, [architecture])])
}

/// The one capability of a CloudProfile in the old format: the architecture.
#[must_use]
pub fn architecture_definition() -> CapabilityDefinition {
    CapabilityDefinition { name: ARCHITECTURE.to_owned(), values: ARCHITECTURES.map(str::to_owned).to_vec() }
}

/// Capabilities with exactly the names of the definitions: the listed values where the name is present, even when the
/// list is empty, else every value of the definition.
pub fn with_defaults(capabilities: &Capabilities, definitions: &[CapabilityDefinition]) -> Capabilities {
    definitions.iter().map(|definition| (definition.name.as_str(), values_of(capabilities, definition))).collect()
}

/// The flavors of an image version with [`with_defaults`]; a version without flavors has one that runs everything.
pub fn flavors_with_defaults(flavors: &[Capabilities], definitions: &[CapabilityDefinition]) -> Vec<Capabilities> {
    match flavors {
        [] => vec![with_defaults(&Capabilities::default(), definitions)],
        _ => flavors.iter().map(|flavor| with_defaults(flavor, definitions)).collect(),
    }
}

/// The values of one capability as [`with_defaults`] would list them, without building the map.
pub(super) fn values_of<'a>(capabilities: &'a Capabilities, definition: &'a CapabilityDefinition) -> &'a [String] {
    capabilities.values(&definition.name).unwrap_or(&definition.values)
}

/// Capabilities of a machine type that name its architecture.
///
/// One that is listed stays. Else it is the only architecture of the definitions, or that of the pool; a pool without
/// one counts as `amd64`.
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
