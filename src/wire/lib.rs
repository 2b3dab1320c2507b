//! Types of the API objects that the extension reads and writes, and what machine capabilities decide about them.
//!
//! * [`api`]: API objects, decoded and encoded as Go does;
//! * [`capabilities`]: which image flavors fit a machine, and which fits best (GEP-33).
//!
//! A provider of another crate may depend on this crate: it follows semantic versioning.

pub mod api;
pub mod capabilities;
