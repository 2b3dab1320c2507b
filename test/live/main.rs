//! The controller as it is shipped, against a real API server: from a Worker to ready nodes, and everything that may
//! happen in between. `cargo test --test live`.
//!
//! ```text
//! program      the binary under test as a process of its own user
//! history      every version that a Worker had
//! requests     what the program asked the API server for, as a table
//! checks/      one file per thing that a user would notice
//! ```
//!
//! Machines come from the real machine-controller-manager where its behaviour matters, from a stand-in elsewhere. All tests
//! share one control plane and one program; each has a namespace of its own. Those that kill the program have a control
//! plane of their own.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod checks;
mod history;
mod program;
mod requests;
