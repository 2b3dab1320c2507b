//! The webhooks as they are shipped, behind a real API server: objects are really applied, and really refused or changed.
//! `cargo test --test admission`.
//!
//! ```text
//! program      the binary under test, which registers itself
//! checks/      one file per thing that a user would notice
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod checks;
mod program;
