//! CloudProfiles as Gardener itself treats them, the half that every provider has in common.
//!
//! * [`members`]: which members there are and of which type; [`validation`]: what the API server refuses;
//! * [`creation`]: what of it is refused when a profile is created;
//! * [`architecture_fields`]: defaults, and how the older architecture fields follow the capability;
//! * [`namespaced`]: a NamespacedCloudProfile and its parent as one profile;
//! * [`namespaced_rules`]: what Gardener refuses in a NamespacedCloudProfile, also compared with what it was before;
//! * [`selectable`]: which versions new pools can select, the best first;
//! * [`shoot_defaults`]: what a Shoot gets that leaves version, architecture or image open.
//!
//! Pure: the time is an argument. The rules are those of docs/contract.md#cloudprofiles.

pub mod architecture_fields;
pub mod creation;
pub mod members;
pub mod namespaced;
pub mod namespaced_rules;
pub mod selectable;
pub mod shoot_defaults;
pub mod validation;
