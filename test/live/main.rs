//! The shipped controller against a real API server: from a Worker to ready nodes, including everything that can happen
//! in between. `cargo test --test live`.
//!
//! ```text
//! program      the binary under test as a process with its own user
//! history      every version of a Worker
//! requests     the program's requests to the API server, as a table
//! checks/      user-visible behaviour, one file per topic
//! ```
//!
//! Machines come from the real machine-controller-manager where its behaviour matters, otherwise from a fake. All tests
//! share one control plane and one program, and each has its own namespace. Tests that kill the program have their own
//! control plane.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod checks;
mod history;
mod program;
mod requests;
