//! Scale sets of non-zonal pools, over real HTTP against a stand-in for Azure. `cargo test --test scale_sets`.
//!
//! ```text
//! stand_in    that the stand-in keeps the rules of the REST reference
//! ```

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

#[path = "../arm/mod.rs"]
mod arm;

mod stand_in;
