//! Machine capabilities (GEP-33): which image flavor runs on a machine type, and which of several is the best.
//!
//! A CloudProfile defines capabilities with the values they can have, the preferred ones first. Machine types and
//! image flavors list the values that they have:
//!
//! ```text
//!  CapabilityDefinition list ──┐
//!                              ├─ defaults ─► compatibility ─► ranking ─► one flavor, or why there is none
//!  machine type, flavors ──────┘
//! ```
//!
//! * `defaults`: what a machine type or flavor that does not name a capability is taken to have.
//! * `compatibility`: whether two sides share a value of every capability, and where they do not.
//! * `ranking`: the best of several compatible flavors, and how the choice came about.
//! * `lifecycle`: which stage of its life a version of a profile is in.
//! * `architecture`: the one capability that Gardener itself knows, and the older fields beside it.
//! * `validation`, `names`: which definitions and capabilities are wrong.
//!
//! Nothing here knows a provider. The rules stand in `docs/capabilities.md`.

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
pub use ranking::{FlavorVerdict, NoFlavor, Ranking, RankingStep, best_flavor, rank_flavors};
pub use validation::{validate_definitions, validate_image_version, validate_machine_type, validate_provider_flavor};
