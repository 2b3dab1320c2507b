//! Scale sets of non-zonal pools, over real HTTP against a stand-in for Azure. `cargo test --test scale_sets`.
//!
//! ```text
//! stand_in    the stand-in follows the rules of the REST reference
//! world       a Worker, its related objects, and the client of Azure
//! ensure      scale sets are created, kept and replaced
//! crash       nothing is created twice, whenever the process ends
//! trouble     Azure is slow, throttles, fails or rejects requests
//! accounts    credentials: client secrets, workload identities, clouds, shared tokens
//! clean_up    unneeded scale sets are deleted, and nothing else
//! ```
//!
//! `test/live` tests scale sets in the life of a Worker, with the real controller and API server.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod accounts;
mod clean_up;
mod crash;
mod ensure;
mod stand_in;
mod trouble;
mod world;
