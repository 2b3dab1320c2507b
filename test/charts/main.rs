//! The Helm charts: their rendered objects, whether an API server accepts these, and whether the program runs with
//! them. `cargo test --test charts`.
//!
//! ```text
//! programs     Helm, promtool and the schemas of Kubernetes: built or fetched once, cached with the control plane
//! chart        a chart rendered with values
//! installed    a rendered chart in a real API server, and the program that it describes
//! permissions  compares the permissions of roles with the requests of a program
//! checks/      one file for each behaviour that an operator notices
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod chart;
mod checks;
mod installed;
mod permissions;
mod programs;
