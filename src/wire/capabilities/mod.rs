//! Machine capabilities (GEP-33): which image flavors fit a machine type, and which of them is best.
//!
//! A CloudProfile defines capabilities with their possible values, in order of preference. Machine types and image
//! flavors list the values that they support:
//!
//! ```text
//!  CapabilityDefinition list ──┐
//!                              ├─ defaults ─► compatibility ─► ranking ─► one flavor, or why there is none
//!  machine type, flavors ──────┘
//! ```
//!
//! * `defaults`: values of capabilities that a machine type or flavor does not list.
//! * `compatibility`: whether two sides share a value of every capability, and their mismatches.
//! * `ranking`: the best of several compatible flavors, with the reasons.
//! * `lifecycle`: lifecycle stages of profile versions.
//! * `architecture`: the only capability that Gardener itself defines, and the older fields for it.
//! * `validation`, `names`: validation of definitions and capabilities.
//!
//! Independent of providers. The rules are documented in `docs/capabilities.md`.

mod architecture;
mod compatibility;
mod defaults;
mod lifecycle;
mod names;
mod ranking;
mod validation;

pub use architecture::{
    architecture_of_machine_type, architectures_of_flavors, architectures_of_version, defined_architectures,
};
pub use compatibility::{
    Meaning, Meanings, Mismatch, are_compatible, are_equal, intersection, is_supported_by_image, mean_the_same,
    mismatches,
};
pub use defaults::{
    ARCHITECTURE, ARCHITECTURES, DEFAULT_ARCHITECTURE, architecture_definition, complete_machine_type,
    flavors_with_defaults, only_architecture, with_defaults,
};
pub use lifecycle::{Classification, Life};
pub use names::not_a_name;
pub use ranking::{
    FlavorVerdict, NoFlavor, Ranking, RankingStep, best_flavor, preference, proposed_flavor, rank_flavors,
};
pub use validation::{validate_definitions, validate_image_version, validate_machine_type, validate_provider_flavor};
