//! CloudProfiles as Gardener itself treats them, the half that every provider has in common.
//!
//! * [`members`]: which members there are and of which type; [`validation`]: what the API server refuses;
//! * [`creation`]: what of it is refused when a profile is created; [`change`]: when it changes;
//! * [`architecture_fields`]: defaults, and how the older architecture fields follow the capability;
//! * [`namespaced`]: a NamespacedCloudProfile and its parent as one profile;
//! * [`namespaced_rules`]: what Gardener refuses in a NamespacedCloudProfile, also compared with what it was before.
//!
//! Pure: the time is an argument. The rules are those of docs/contract.md#cloudprofiles.

pub mod architecture_fields;
pub mod change;
pub mod creation;
pub mod members;
pub mod namespaced;
pub mod namespaced_rules;
pub mod validation;
