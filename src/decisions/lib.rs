//! All decisions about one Worker, and the trait that a cloud implements. Nothing here knows a client, a runtime or a clock.
//!
//! * [`pool`]: zones, hash, names, settings;
//! * [`provider`]: the provider traits, and one folder per provider;
//! * [`worker`]: the plan of a Worker, what to create and to delete, its progress and its status.
//!
//! [`api`] and [`capabilities`] are those of `wire`, so that a provider needs this crate only.
//!
//! A provider of another crate depends on this crate and follows semantic versioning with [`pool`], [`provider`] and the parts
//! of [`worker`] that the provider trait uses.

pub mod pool;
pub mod provider;
pub mod worker;

pub use wire::{api, capabilities};
