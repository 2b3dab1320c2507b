//! Ports under attack: clients that hold connections, heads and bodies, and one that only wants an answer.
//! `cargo test --test servers`.
//!
//! Nothing of it needs a control plane: a process is alive, and judges objects, without one.
//!
//! ```text
//! command   a process of the binary, with its ports and few descriptors
//! stage     how far clients of the flood go before they say no more
//! flood     many of them at once, and how long a good client waits beside them
//! good      the good client: a review, /healthz, /metrics
//! checks    what a user would notice
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod checks;
mod command;
mod flood;
mod good;
mod stage;
