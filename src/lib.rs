//! A Gardener provider extension that owns the `Worker` resource.

pub mod api;
pub mod capabilities;
