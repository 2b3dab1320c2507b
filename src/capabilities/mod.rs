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
//!
//! Nothing here knows a provider. The rules are those of gardener-core sections 1.2 to 1.4.

mod compatibility;
mod defaults;
mod lifecycle;
mod ranking;

pub use compatibility::{Mismatch, are_compatible, are_equal, first_mismatch, intersection, mismatches};
pub use defaults::{ARCHITECTURE, DEFAULT_ARCHITECTURE, complete_machine_type, with_defaults};
pub use lifecycle::{Classification, Life};
pub use ranking::{Choice, NoFlavor, RankingStep, best_flavor, explain_ranking, trace_ranking};
