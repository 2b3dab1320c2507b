//! The process of the controller as an operator runs it: who leads, how it stops, what it tells about itself.
//! `cargo test --test running`.
//!
//! ```text
//! controller   one process of the binary, with ports and settings of its own
//! election     one of two leads; a leader that was asleep writes nothing
//! takeover     what the Go extension has left: seen by a shadow and by `takeover check`, then taken over
//! traces       what a collector of OpenTelemetry gets
//! operations   health, readiness, metrics, log level, heartbeat, configuration
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]
#![allow(dead_code, reason = "the shoot of the live tests knows more than is asked here")]

#[path = "../cluster/mod.rs"]
mod cluster;
mod controller;
mod election;
#[path = "../left_by_go/mod.rs"]
mod left_by_go;
mod operations;
#[path = "../live/shoot.rs"]
mod shoot;
mod takeover;
mod traces;
