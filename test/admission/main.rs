//! The shipped webhooks behind a real API server, which applies objects or rejects them. `cargo test --test admission`.
//!
//! ```text
//! program      the binary under test, which registers itself
//! checks/      one file for each behaviour that a user notices
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod checks;
mod program;
