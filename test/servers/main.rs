//! Ports under attack: clients that hold connections, heads and bodies, and one that only needs a response.
//! `cargo test --test servers`.
//!
//! The test needs no control plane: a process is alive, and reviews objects, without one.
//!
//! ```text
//! command   a process of the binary, with its ports and few descriptors
//! stage     the requests that clients of the flood send before they fall silent
//! flood     many of them at once, and how long a good client waits alongside them
//! good      the good client: a review, /healthz, /metrics
//! checks    effects that a user would notice
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod checks;
mod command;
mod flood;
mod good;
mod stage;
