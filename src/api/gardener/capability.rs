//! Machine capabilities (GEP-33) as a CloudProfile writes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One entry of `CloudProfile.spec.machineCapabilities`. The order of entries and of values is preference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityDefinition {
    /// Name of the capability, for example `architecture`.
    pub name: String,
    /// Every value that the capability can have, the preferred one first.
    pub values: Vec<String>,
}

/// Capability values of a machine type or of an image flavor: name to values.
///
/// A missing name means "every value of the definition", an empty list means "none" (gardener-core section 1.2),
/// so both survive a round trip.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(pub BTreeMap<String, Vec<String>>);
