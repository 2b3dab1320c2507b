//! Scale sets of non-zonal pools, over real HTTP against a stand-in for Azure. `cargo test --test scale_sets`.
//!
//! ```text
//! stand_in    that the stand-in keeps the rules of the REST reference
//! world       a Worker, its surroundings, and who asks Azure for it
//! ensure      scale sets come, stay and are replaced
//! crash       nothing is made twice, whenever the process ends
//! trouble     Azure is slow, throttles, fails or says no
//! accounts    who asks: client secrets, workload identities, clouds, shared tokens
//! clean_up    what nobody needs goes, and nothing else
//! ```
//!
//! Scale sets in the life of a Worker, with the real controller and API server, are in `test/live`.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod accounts;
mod clean_up;
mod crash;
mod ensure;
mod stand_in;
mod trouble;
mod world;
