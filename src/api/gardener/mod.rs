//! The kinds of `extensions.gardener.cloud` and `core.gardener.cloud` that a Worker is made from.

mod capability;

pub use capability::{Capabilities, CapabilityDefinition};
