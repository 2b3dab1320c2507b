//! The webhooks as they are shipped, behind a real API server: objects are really applied, and really refused or changed.
//! `cargo test --test admission`.
//!
//! ```text
//! garden       the garden's resources on the API server of ../cluster (garden.yaml)
//! program      the binary under test, which registers itself
//! objects      CloudProfiles, NamespacedCloudProfiles and Shoots to begin with
//! raw_client   requests that no API server would send
//! checks/      one file per thing that a user would notice
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

#[path = "../cluster/mod.rs"]
mod cluster;

mod checks;
mod garden;
mod objects;
mod program;
mod raw_client;
