//! The Helm charts: what they render, whether an API server takes it, and whether the program runs with it.
//! `cargo test --test charts`.
//!
//! ```text
//! programs     Helm, promtool and the schemas of Kubernetes: built or fetched once, kept beside the control plane
//! chart        a chart rendered with values
//! installed    what a chart renders in a real API server, and the program that it describes
//! permissions  what roles allow, beside what was asked for
//! checks/      one file per thing that an operator would notice
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod chart;
mod checks;
mod installed;
mod permissions;
mod programs;
